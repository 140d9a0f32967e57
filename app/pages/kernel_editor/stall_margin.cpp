#include "app/pages/kernel_editor/stall_margin.h"

#include <Qsci/qsciscintilla.h>

#include <QHelpEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>

#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/stall_bar.h"
#include "app/widgets/theme.h"

namespace ws::app {
StallMargin::StallMargin(QsciScintilla* editor, QWidget* parent) : QWidget(parent), editor_(editor) {
  setFixedWidth(kWidth);
  setAccessibleName(tr("Samples of each line"));
  connect(editor->verticalScrollBar(), &QScrollBar::valueChanged, this, qOverload<>(&QWidget::update));
  for (const auto signal : {&QsciScintilla::linesChanged, &QsciScintilla::textChanged}) connect(editor, signal, this, qOverload<>(&QWidget::update));
  connect(editor, &QsciScintilla::cursorPositionChanged, this, qOverload<>(&QWidget::update));
  hide();
}

void StallMargin::setLines(const std::vector<prof::StallRow>& lines) {
  lines_.clear(), most_ = 0;
  for (const prof::StallRow& row : lines)
    if (row.line > 0) lines_[row.line] = row, most_ = std::max(most_, row.samples);
  setVisible(!lines_.empty());
  update();
}

// The editor's own rows: lines may be wrapped, folded, or have a message below them.
QRect StallMargin::rowOf(int line) const {
  if (line < 1 || line > editor_->lines()) return {};
  const long place = editor_->SendScintilla(QsciScintillaBase::SCI_POSITIONFROMLINE, static_cast<unsigned long>(line - 1));
  const auto y = static_cast<int>(editor_->SendScintilla(QsciScintillaBase::SCI_POINTYFROMPOSITION, 0UL, place));
  const auto height = static_cast<int>(editor_->SendScintilla(QsciScintillaBase::SCI_TEXTHEIGHT, static_cast<unsigned long>(line - 1)));
  const int top = editor_->viewport()->mapTo(editor_, QPoint(0, y)).y();
  return top + height <= 0 || top >= this->height() ? QRect() : QRect(0, top, width(), height);
}

QRect StallMargin::barOf(int line) const {
  const auto at = lines_.find(line);
  const QRect row = rowOf(line);
  if (at == lines_.end() || row.isEmpty() || most_ == 0) return {};
  const auto length = static_cast<int>(static_cast<double>(kBar) * static_cast<double>(at->second.samples) / static_cast<double>(most_) + 0.5);
  return {kNumber, row.top() + 3, std::max(length, 1), row.height() - 6};
}

int StallMargin::lineAt(int y) const {
  for (const auto& [line, row] : lines_)
    if (const QRect place = rowOf(line); !place.isEmpty() && y >= place.top() && y <= place.bottom()) return line;
  return 0;
}

QString StallMargin::tipOf(int line) const {
  const auto at = lines_.find(line);
  return at == lines_.end() ? QString() : stall_tip(at->second);
}

void StallMargin::paintLine(QPainter& painter, const prof::StallRow& row) const {
  const QRect bar = barOf(row.line), place = rowOf(row.line);
  if (bar.isEmpty()) return;
  painter.setPen(stall_ink());
  painter.drawText(QRect(0, place.top(), kNumber - 6, place.height()), Qt::AlignRight | Qt::AlignVCenter, count_text(static_cast<int64_t>(row.samples)));
  draw_stall_bar(painter, QRectF(kNumber, bar.top(), kBar, bar.height()), row, most_);
}

void StallMargin::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), stall_ground());
  painter.setFont(number_font(11));
  for (const auto& [line, row] : lines_) paintLine(painter, row);
}

bool StallMargin::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const QString tip = tipOf(lineAt(help->pos().y()));
  tip.isEmpty() ? QToolTip::hideText() : QToolTip::showText(help->globalPos(), tip, this);
  return true;
}

void StallMargin::mousePressEvent(QMouseEvent* event) {
  if (const int line = lineAt(static_cast<int>(event->position().y()))) editor_->setCursorPosition(line - 1, 0), editor_->setFocus();
}

StallLegend::StallLegend(QWidget* parent) : QWidget(parent) { setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed); }

void StallLegend::setLines(const std::vector<prof::StallRow>& lines) {
  counts_ = {}, samples_ = elsewhere_ = 0, sentence_.clear();
  for (const prof::StallRow& row : lines) {
    if (row.line == 0) elsewhere_ = row.samples;
    const prof::StallGroupCounts groups = prof::by_group(row.counts);
    for (size_t g = 0; g < prof::kStallGroups; ++g) counts_[g] += groups[g];
    samples_ += row.samples;
  }
  setAccessibleName(text()), setToolTip(text()), update();
}

void StallLegend::setSentence(const QString& sentence) {
  counts_ = {}, samples_ = elsewhere_ = 0, sentence_ = sentence;
  setAccessibleName(text()), setToolTip(text()), update();
}

QString StallLegend::text() const {
  if (samples_ == 0) return sentence_;
  QStringList parts;
  for (size_t g = 0; g < prof::kStallGroups; ++g)
    parts << QString::fromUtf8(prof::stall_group_name(static_cast<prof::StallGroup>(g))) + ' ' + stall_share_text(counts_[g], samples_);
  return parts.join(QStringLiteral(" · ")) + QStringLiteral(" · ") + amount() + tr(", bar length: samples of the line");
}

// Code of other files that was inlined has no line here.
QString StallLegend::amount() const {
  const QString all = tr("%1 samples").arg(count_text(static_cast<int64_t>(samples_)));
  return elsewhere_ == 0 ? all : all + tr(", %1 in other files").arg(count_text(static_cast<int64_t>(elsewhere_)));
}

void StallLegend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Theme& t = theme();
  const bool strip = samples_ > 0 && t.dark();
  painter.fillRect(rect(), strip ? stall_ground() : t.header);
  painter.setFont(ui_font(11));
  painter.setPen(strip ? stall_ink() : t.secondary);
  const QFontMetrics metrics = painter.fontMetrics();
  int x = 8;
  for (size_t g = 0; g < prof::kStallGroups && samples_ > 0; ++g) {
    const QString name = QString::fromUtf8(prof::stall_group_name(static_cast<prof::StallGroup>(g))) + ' ' + stall_share_text(counts_[g], samples_);
    painter.fillRect(QRect(x, height() / 2 - 5, 10, 10), stall_colour(static_cast<prof::StallGroup>(g)));
    painter.drawText(QRect(x + 15, 0, width() - x - 15, height()), Qt::AlignLeft | Qt::AlignVCenter, name);
    x += 15 + metrics.horizontalAdvance(name) + 12;
  }
  const QString rest = samples_ > 0 ? amount() : sentence_;
  const QRect box(x, 0, width() - x - 8, height());
  painter.drawText(box, (samples_ > 0 ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter, metrics.elidedText(rest, Qt::ElideRight, box.width()));
}

}  // namespace ws::app
