#include "app/window/status_line.h"

#include <QPainter>
#include <QRegularExpression>

#include "app/widgets/theme.h"

namespace ws::app {
namespace {

QStringList pieces(const QString& keys) {
  static const QRegularExpression piece(R"(\[[^\]]+\]|[^\[]+)");
  QStringList found;
  for (auto it = piece.globalMatch(keys); it.hasNext();) found << it.next().captured();
  return found;
}

bool is_key(const QString& piece) { return piece.startsWith('['); }
QString key_of(const QString& piece) { return piece.mid(1, piece.size() - 2); }

}  // namespace

double key_width(const QString& key) {
  return std::max(16.0, QFontMetricsF(ui_font(10.5)).horizontalAdvance(key) + 10);
}

void draw_key(QPainter& painter, double& x, double middle, const QString& key) {
  const QRectF box(std::round(x) + .5, middle - 7.5, key_width(key) - 1, 15);
  painter.setPen(QPen(theme().strong_border, 1));
  painter.setBrush(theme().dark() ? theme().input : theme().base);
  painter.drawRoundedRect(box, 3, 3);
  painter.setFont(ui_font(10.5));
  painter.setPen(theme().text);
  painter.drawText(box, Qt::AlignCenter, key);
  x += key_width(key);
}

StatusLine::StatusLine(QWidget* parent) : QWidget(parent) {
  constexpr int kNoteMs = 30'000;
  setFixedHeight(24);
  note_end_.setObjectName("end of the note");
  note_end_.setParent(this);
  note_end_.setSingleShot(true);
  note_end_.setInterval(kNoteMs);
  connect(&note_end_, &QTimer::timeout, this, [this] { say({}, false); });
  setAccessibleName(tr("Status"));
}

void StatusLine::setState(const QString& state, const QColor& dot) {
  state_ = state, dot_ = dot;
  setAccessibleDescription(text());
  update();
}

void StatusLine::setParts(std::vector<StatusPart> parts) {
  parts_ = std::move(parts);
  update();
}

void StatusLine::setKeys(const QString& keys) {
  keys_ = keys;
  update();
}

void StatusLine::say(const QString& sentence, bool warn) {
  note_ = {sentence, warn};
  sentence.isEmpty() ? note_end_.stop() : note_end_.start();
  setAccessibleDescription(text());
  setToolTip(sentence);
  update();
}

QString StatusLine::text() const {
  QStringList all{state_};
  if (!note_.text.isEmpty()) all << note_.text;
  for (const StatusPart& part : parts_) all << part.text;
  return all.join("   ");
}

double StatusLine::paintKeys(QPainter& painter) {
  double width = 0;
  for (const QString& piece : pieces(keys_))
    width += is_key(piece) ? key_width(key_of(piece)) : QFontMetricsF(ui_font(11.5)).horizontalAdvance(piece);
  const double start = this->width() - 10 - width, middle = height() / 2.0;
  double x = start;
  for (const QString& piece : pieces(keys_)) {
    if (is_key(piece)) {
      draw_key(painter, x, middle, key_of(piece));
      continue;
    }
    painter.setFont(ui_font(11.5));
    painter.setPen(theme().secondary);
    painter.drawText(QPointF(x, middle + 4), piece);
    x += QFontMetricsF(painter.font()).horizontalAdvance(piece);
  }
  return start;
}

void StatusLine::paintEvent(QPaintEvent*) {
  const Theme& t = theme();
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), t.header);
  painter.fillRect(QRect(0, 0, width(), 1), t.border);
  const double limit = paintKeys(painter) - 16, middle = height() / 2.0;
  painter.setPen(Qt::NoPen);
  painter.setBrush(dot_);
  painter.drawEllipse(QPointF(14, middle), 3.5, 3.5);
  double x = 23;
  const auto put = [&](const QString& text, const QColor& colour, bool warn) {
    painter.setFont(ui_font(11.5));
    const double space = limit - x - (warn ? 18 : 0);
    if (text.isEmpty() || space < 40) return;
    if (warn) {
      theme_icon("warn", &Theme::worse).paint(&painter, QRect(static_cast<int>(x), 5, 14, 14));
      x += 18;
    }
    const QString shown = QFontMetricsF(painter.font()).elidedText(text, Qt::ElideRight, space);
    painter.setPen(colour);
    draw_number(painter, QRectF(x, 0, space, height()), Qt::AlignLeft | Qt::AlignVCenter, shown);
    x += number_width(painter.font(), shown) + 18;
  };
  put(state_, t.text, false);
  if (!note_.warn) put(note_.text, t.secondary, false);  // a problem is shown above in full
  for (const StatusPart& part : parts_) put(part.text, part.warn ? t.worse : t.secondary, part.warn);
}

}  // namespace ws::app
