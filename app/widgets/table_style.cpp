#include "app/widgets/table_style.h"

#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <cmath>

#include "app/widgets/pane.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"

namespace ws::app {
namespace {

constexpr int kRowHeight = 22, kHeaderHeight = 24;

class RowDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const Theme& t = theme();
    const bool chosen = option.state & QStyle::State_Selected, section = index.data(kSectionRole).toBool();
    painter->fillRect(option.rect, section ? t.header : chosen ? t.selected_row : t.base);
    painter->fillRect(QRect(option.rect.left(), option.rect.bottom(), option.rect.width(), 1), t.minor_grid);
    QRect box = option.rect.adjusted(8, 0, -8, 0);
    const QVariant meaning = index.data(kMeaningRole);
    if (meaning.isValid()) {
      draw_fill(*painter, QRectF(box.left(), box.center().y() - 4, 9, 9),
                meaning_brush(static_cast<prof::Meaning>(meaning.toInt())));
      box.setLeft(box.left() + 16);
    }
    const auto align = static_cast<Qt::Alignment>(index.data(Qt::TextAlignmentRole).toInt());
    const bool number = align & Qt::AlignRight;
    painter->setFont(ui_font(section ? 11.5 : 12, section ? 600 : 400));
    painter->setPen(section ? t.secondary : t.text);
    const QString text = index.data().toString();
    if (number)
      draw_number(*painter, box, Qt::AlignRight | Qt::AlignVCenter, text);
    else
      painter->drawText(box, Qt::AlignLeft | Qt::AlignVCenter,
                        painter->fontMetrics().elidedText(text, Qt::ElideRight, box.width()));
  }
};

}  // namespace

void style_table(QTableView& table, const QString& name) {
  table.setAccessibleName(name);
  table.setShowGrid(false);
  table.setFrameShape(QFrame::NoFrame);
  table.setSelectionBehavior(QAbstractItemView::SelectRows);
  table.setSelectionMode(QAbstractItemView::SingleSelection);
  table.setEditTriggers(QAbstractItemView::NoEditTriggers);
  table.setItemDelegate(new RowDelegate(&table));
  table.setTabKeyNavigation(false);
  table.setWordWrap(false);
  table.setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  table.verticalHeader()->hide();
  table.verticalHeader()->setDefaultSectionSize(kRowHeight);
  table.verticalHeader()->setMinimumSectionSize(kRowHeight);
  table.horizontalHeader()->setFixedHeight(kHeaderHeight);
  table.horizontalHeader()->setHighlightSections(false);
  table.horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table.horizontalHeader()->setFont(ui_font(11));
  table.horizontalHeader()->setTextElideMode(Qt::ElideRight);
}

QLabel* put_table(Pane& pane, QTableView* table) {
  auto* body = new QWidget(&pane);
  auto* words = new QLabel(body);
  words->setAlignment(Qt::AlignCenter);
  words->setWordWrap(true);
  words->setContentsMargins(16, 8, 16, 8);
  words->setForegroundRole(QPalette::PlaceholderText);
  words->hide();
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(table);
  column->addWidget(words, 1);
  pane.setBody(body);
  return words;
}

void style_ground(QWidget& widget, const QString& part) {
  widget.setObjectName(part);
  widget.setAttribute(Qt::WA_StyledBackground);
}

void style_panel_title(QLabel& title) {
  title.setFixedHeight(28);
  title.setFont(ui_font(12.5));
  title.setContentsMargins(12, 0, 12, 0);
  title.setAutoFillBackground(true);
  title.setBackgroundRole(QPalette::AlternateBase);
}

FigureStrip::FigureStrip(QWidget* parent) : QWidget(parent) { setFixedHeight(58); }

void FigureStrip::setFigures(std::vector<Figure> figures) {
  figures_ = std::move(figures);
  QStringList words;
  for (const Figure& f : figures_) words << f.name + " " + f.value + " " + f.note;
  setAccessibleName(words.join(", "));
  update();
}

void FigureStrip::paintEvent(QPaintEvent*) {
  const Theme& t = theme();
  QPainter painter(this);
  painter.fillRect(rect(), t.base);
  painter.setPen(t.border);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
  double x = 18;
  const QFont small = ui_font(11), big = ui_font(17, 600);
  for (const Figure& figure : figures_) {
    const double width =
        std::max({QFontMetricsF(small).horizontalAdvance(figure.name),
                  number_width(big, figure.value) + 6 + QFontMetricsF(small).horizontalAdvance(figure.note), 60.0});
    if (x + width > this->width()) break;
    painter.setFont(small);
    painter.setPen(t.quiet);
    painter.drawText(QRectF(x, 9, width + 4, 16), Qt::AlignVCenter, figure.name);
    painter.drawText(QRectF(x + number_width(big, figure.value) + 6, 30, width + 20, 18), Qt::AlignVCenter,
                     figure.note);
    painter.setFont(big);
    painter.setPen(t.text);
    draw_number(painter, QRectF(x, 26, width, 24), Qt::AlignLeft | Qt::AlignVCenter, figure.value);
    x += width + 18;
    painter.fillRect(QRectF(x, 10, 1, height() - 20), t.border);
    x += 18;
  }
}

HistogramData histogram_of(const std::vector<double>& values, size_t bins, bool log_x) {
  HistogramData data;
  data.log_x = log_x;
  if (values.empty() || bins == 0) return data;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  data.low = *least, data.high = *most;
  if (log_x) data.low = std::max(data.low, 1e-9), data.high = std::max(data.high, data.low * 1.0001);
  if (data.high <= data.low) data.low -= 0.5 + std::abs(data.low) * 0.01, data.high += 0.5 + std::abs(data.high) * 0.01;
  data.counts.assign(bins, 0);
  const auto place = [&](double v) {
    const double share = log_x ? std::log(std::max(v, 1e-9) / data.low) / std::log(data.high / data.low)
                               : (v - data.low) / (data.high - data.low);
    return static_cast<size_t>(std::clamp(share * static_cast<double>(bins), 0.0, static_cast<double>(bins) - 1));
  };
  for (double v : values) data.counts[place(v)] += 1;
  return data;
}

HistogramView::HistogramView(const QString& name, QWidget* parent) : QWidget(parent) { setAccessibleName(name); }

void HistogramView::setData(HistogramData data, const QColor& fill) {
  data_ = std::move(data), fill_ = fill;
  update();
}

void HistogramView::paintEvent(QPaintEvent*) {
  const Theme& t = theme();
  QPainter painter(this);
  painter.fillRect(rect(), t.base);
  const QRectF plot = QRectF(rect()).adjusted(10, 20, -10, -20);
  const QFont font = ui_font(11);
  painter.setFont(font);
  painter.setPen(t.secondary);
  painter.drawText(QRectF(10, 2, width() - 20, 16), Qt::AlignLeft | Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(data_.caption, Qt::ElideRight, width() - 20));
  painter.fillRect(QRectF(plot.left(), plot.bottom(), plot.width(), 1), t.strong_border);
  if (data_.counts.empty()) return;
  double top = 1;
  for (const auto* list : {&data_.counts, &data_.ghost})
    for (double c : *list) top = std::max(top, c);
  const double width = plot.width() / static_cast<double>(data_.counts.size());
  const auto box = [&](size_t i, double count) {
    const double high = count > 0 ? std::max(1.0, count / top * plot.height()) : 0;
    return QRectF(plot.left() + width * static_cast<double>(i), plot.bottom() - high, std::max(1.0, width - 1), high);
  };
  for (size_t i = 0; i < data_.counts.size(); ++i) painter.fillRect(box(i, data_.counts[i]), fill_);
  painter.setPen(QPen(t.quiet, 1));
  for (size_t i = 0; i < data_.ghost.size(); ++i) {
    const QRectF bar = box(i, data_.ghost[i]);
    painter.drawLine(bar.topLeft(), bar.topRight());
    if (i + 1 < data_.ghost.size())
      painter.drawLine(bar.topRight(), QPointF(bar.right(), box(i + 1, data_.ghost[i + 1]).top()));
  }
  painter.setPen(t.quiet);
  const QRectF axis(plot.left(), plot.bottom() + 2, plot.width(), 16);
  draw_number(painter, axis, Qt::AlignLeft | Qt::AlignVCenter,
              data_.low_text.isEmpty() ? significant_text(data_.low) : data_.low_text);
  draw_number(painter, axis, Qt::AlignRight | Qt::AlignVCenter,
              data_.high_text.isEmpty() ? significant_text(data_.high) + " " + data_.unit : data_.high_text);
}

}  // namespace ws::app
