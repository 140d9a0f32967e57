// The three starts: each a handful of runs that differ in one thing, and a picture of what to look for.
#include <QObject>
#include <QPainter>

#include "app/widgets/theme.h"
#include "app/window/start_page.h"

namespace ws::app {
namespace {

using prof::Meaning;

RunSpec base(bool cuda, int64_t epochs) {
  RunSpec spec;
  spec.train.epochs = epochs;
  spec.train.batch = 64;
  if (!cuda) spec.data.limit = 12000;  // a CPU takes a few seconds for these rows
  return spec;
}

StartRequest request(RunSpec spec, const QString& title, bool cuda) {
  std::vector<std::string> notes;
  StartRequest one;
  one.spec = fit_to_machine(std::move(spec), cuda, notes);
  one.title = title;
  one.trace = prof::TraceLevel::Full;
  return one;
}

std::vector<StartRequest> allocation(bool cuda) {
  std::vector<StartRequest> all;
  for (Allocator allocator : {Allocator::Direct, Allocator::Arena}) {
    RunSpec spec = base(cuda, 3);
    spec.exec.allocator = allocator;
    spec.exec.fusion = Fusion::Off;
    spec.exec.sync = SyncPolicy::EveryStep;
    all.push_back(request(spec, QString::fromUtf8(to_string(allocator).data()) + QObject::tr(" allocation"), cuda));
  }
  return all;
}

std::vector<StartRequest> first_weights(bool cuda) {
  std::vector<StartRequest> all;
  for (Init init : {Init::Normal, Init::Xavier, Init::Kaiming, Init::Zeros}) {
    RunSpec spec = base(cuda, 2);
    spec.model.init = init;
    spec.train.optimizer = Optimizer::Sgd;
    all.push_back(request(spec, QString::fromUtf8(to_string(init).data()) + QObject::tr(" weights"), cuda));
  }
  return all;
}

std::vector<StartRequest> how_fast(bool cuda) {
  RunSpec spec = base(cuda, 2);
  spec.exec.allocator = Allocator::Direct;
  spec.exec.sync = SyncPolicy::EveryOp;
  spec.exec.fusion = Fusion::Off;
  std::vector<StartRequest> all{request(spec, QObject::tr("eager"), cuda)};
  spec.exec.fusion = Fusion::Epilogue;
  all.push_back(request(spec, QObject::tr("+ fused"), cuda));
  spec.exec.allocator = Allocator::Arena;
  spec.exec.sync = SyncPolicy::OnRead;
  all.push_back(request(spec, QObject::tr("+ arena"), cuda));
  if (!cuda) return all;
  spec.exec.launch = Launch::Graph;
  all.push_back(request(spec, QObject::tr("+ graph"), cuda));
  return all;
}

void blocks(QPainter& painter, double x, double y, const std::vector<std::pair<Meaning, double>>& parts) {
  for (const auto& [meaning, width] : parts) {
    draw_fill(painter, QRectF(x, y, width, 18), meaning_brush(meaning));
    x += width;
  }
}

void allocation_picture(QPainter& painter, const QRectF& box) {
  painter.setFont(ui_font(11));
  painter.setPen(theme().secondary);
  painter.drawText(QPointF(box.left(), box.top() + 19), "direct");
  painter.drawText(QPointF(box.left(), box.top() + 53), "arena");
  const double x = box.left() + 44;
  blocks(painter, x, box.top() + 5,
         {{Meaning::Allocation, 26},
          {Meaning::Matrix, 13},
          {Meaning::Allocation, 26},
          {Meaning::Pointwise, 9},
          {Meaning::Allocation, 28},
          {Meaning::Matrix, 13},
          {Meaning::Allocation, 22},
          {Meaning::Optimizer, 7}});
  blocks(painter, x, box.top() + 39,
         {{Meaning::Matrix, 13}, {Meaning::Pointwise, 9}, {Meaning::Matrix, 13}, {Meaning::Optimizer, 7}});
}

void weights_picture(QPainter& painter, const QRectF& box) {
  const char* const names[] = {"normal", "xavier", "kaiming"};
  const int colours[] = {1, 2, 0};
  const double left = box.left() + 30, right = box.left() + 140, floor = box.bottom() - 6;
  painter.setFont(ui_font(11));
  painter.setPen(theme().secondary);
  painter.drawText(QPointF(box.left(), box.top() + 34), "loss");
  painter.setPen(QPen(theme().strong_border, 1));
  painter.drawLine(QPointF(left, box.top() + 2), QPointF(left, floor));
  painter.drawLine(QPointF(left, floor), QPointF(right, floor));
  for (int i = 0; i < 3; ++i) {
    QPainterPath path;
    const double high = box.top() + 4 + i * 11, end = box.top() + 28 + i * 13;
    path.moveTo(left + 1, high);
    path.cubicTo(left + 22, end - 3, left + 50, end - 1, right, end);
    painter.setPen(QPen(theme().run[colours[i]], 1.7));
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(path);
    painter.drawText(QPointF(right + 5, end + 4), names[i]);
  }
}

void speed_picture(QPainter& painter, const QRectF& box) {
  const char* const names[] = {"eager", "+ fused", "+ arena", "+ graph"};
  const double lengths[] = {112, 72, 36, 9};
  painter.setFont(ui_font(11));
  for (int i = 0; i < 4; ++i) {
    const double y = box.top() + i * 17;
    painter.setPen(theme().secondary);
    painter.drawText(QPointF(box.left(), y + 11), names[i]);
    draw_fill(painter, QRectF(box.left() + 52, y + 1, lengths[i], 12),
              i == 3 ? theme().of(Meaning::Matrix) : theme().strong_border);
  }
}

}  // namespace

const std::vector<Start>& starts() {
  static const std::vector<Start> all = {
      {QObject::tr("What an allocation costs"),
       QObject::tr(
           "The same network with an allocation around every buffer, then with one planned block. Look for red."),
       QObject::tr("2 runs"), allocation_picture, allocation},
      {QObject::tr("What the first weights do"),
       QObject::tr("Normal, Xavier, Kaiming and zeros from one seed. Look at the first loss and at who learns at all."),
       QObject::tr("4 runs"), weights_picture, first_weights},
      {QObject::tr("How fast it can go"),
       QObject::tr("Fusion, arena and, with a GPU, one CUDA graph, added one by one. The step time split shows where "
                   "each µs went."),
       QObject::tr("3 or 4 runs"), speed_picture, how_fast}};
  return all;
}

}  // namespace ws::app
