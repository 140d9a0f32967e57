#include "app/charts/flame_view.h"

#include <QKeyEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <functional>

#include "app/text/units.h"
#include "app/widgets/theme.h"
#include "app/widgets/tip.h"

namespace ws::app {
namespace {

constexpr double kRow = 19, kNarrowest = 1, kMargin = 6, kTop = 26;  // above the blocks: the legend

constexpr double kLeastText = 34, kTextMargins = 7;
constexpr double kTextSize = 11;

constexpr const char* kNoName = "?";  // code whose function is not known
QString name_of(const prof::FlameNode& node) { return node.function == kNoName ? QObject::tr("unknown") : QString::fromStdString(node.function); }
// The nearer to the program, the stronger: the user's files, Python packages, libraries and the interpreter.
enum class FlameCode { Own, Package, Library };
FlameCode flame_code(const prof::FlameNode& node) {
  if (prof::is_own_path(node.path)) return FlameCode::Own;
  return node.path.ends_with(".py") && prof::module_of_path(node.path) != prof::kPythonModule ? FlameCode::Package : FlameCode::Library;
}
QColor flame_colour(FlameCode code) {
  const Theme& t = theme();
  if (code == FlameCode::Library) return mixed(t.secondary, t.base, 0.25);
  return mixed(t.of(prof::Meaning::Matrix), t.base, code == FlameCode::Own ? 0.85 : 0.35);
}
QString time_of(double ns) { return step_time_text(ns * 1e-3); }

}  // namespace

FlameView::FlameView(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Flame graph"));
}

void FlameView::setTree(prof::FlameTree tree) {
  std::vector<std::string> way;
  for (uint32_t at = zoomed_; at != 0 && at < tree_.size(); at = tree_[at].parent) way.push_back(tree_[at].function);
  tree_ = std::move(tree);
  zoomed_ = 0, hovered_ = -1;
  for (; !way.empty() && !tree_.empty(); way.pop_back()) {
    const auto& inside = tree_[zoomed_].inside;
    const auto same = [&](uint32_t node) { return tree_[node].function == way.back(); };
    const auto next = std::ranges::find_if(inside, same);
    if (next == inside.end()) break;
    zoomed_ = *next;
  }
  find();
  layOut();
}

void FlameView::setDifference(bool on) { difference_ = on; layOut(); }

void FlameView::setRootText(const QString& text) { root_ = text; update(); }

void FlameView::setEmptyText(const QString& text) { empty_ = text; update(); }

void FlameView::setSearch(const QString& words) {
  words_ = words.trimmed();
  find();
  update();
}

// Only the outermost matching functions count, so that a recursive function counts once.
void FlameView::find() {
  matches_.assign(tree_.size(), false);
  std::vector<bool> inside(tree_.size(), false);
  double sum = 0;
  for (size_t i = 1; i < tree_.size() && !words_.isEmpty(); ++i) {
    const prof::FlameNode& node = tree_[i];
    const QString text = name_of(node) + ' ' + QString::fromStdString(node.path);
    matches_[i] = text.contains(words_, Qt::CaseInsensitive);
    inside[i] = inside[node.parent] || matches_[i];
    if (matches_[i] && !inside[node.parent]) sum += weight(node);
  }
  matched_ = tree_.empty() || weight(tree_[0]) <= 0 ? 0 : sum / weight(tree_[0]);
  emit searched();
}

// A function that only the baseline has keeps the width of its time there.
void FlameView::setSharesOfThreads(bool on) { of_threads_ = on; update(); }

// In percent, as its text and its tip say it.
double FlameView::share(uint32_t index) const {
  const double own = weight(tree_[index]);
  uint32_t whole = of_threads_ && tree_[index].depth > 1 ? index : 0;
  while (whole != 0 && tree_[whole].depth > 1) whole = tree_[whole].parent;
  return 100 * own / std::max(weight(tree_[whole]), 1.0);
}

double FlameView::weight(const prof::FlameNode& node) const { return difference_ ? std::max(node.ns, node.before) : node.ns; }

void FlameView::zoomTo(uint32_t node) {
  if (node >= tree_.size() || node == zoomed_) return;
  zoomed_ = node;
  layOut();
  emit zoomChanged();
}

void FlameView::layOut() {
  blocks_.clear();
  if (!tree_.empty()) {
    const double width = this->width() - 2 * kMargin;
    for (uint32_t at = zoomed_;; at = tree_[at].parent) {
      blocks_.push_back({at, QRectF(kMargin, kTop + kRow * tree_[at].depth, width, kRow - 1)});
      if (at == 0) break;
    }
    layOutInside(zoomed_, kMargin, width);
  }
  updateGeometry();
  update();
}

void FlameView::layOutInside(uint32_t node, double left, double width) {
  double all = weight(tree_[node]), parts = 0;
  for (const uint32_t inner : tree_[node].inside) parts += weight(tree_[inner]);
  all = std::max(all, parts);
  for (const uint32_t inner : tree_[node].inside) {
    const double part = all > 0 ? weight(tree_[inner]) / all * width : 0;
    if (part < kNarrowest) continue;
    blocks_.push_back({inner, QRectF(left, kTop + kRow * tree_[inner].depth, part, kRow - 1)});
    layOutInside(inner, left, part);
    left += part;
  }
}

QRectF FlameView::placeOf(uint32_t node) const {
  const auto at = std::ranges::find(blocks_, node, &Block::node);
  return at == blocks_.end() ? QRectF() : at->box;
}

QSize FlameView::sizeHint() const {
  double bottom = 6 * kRow;
  for (const Block& block : blocks_) bottom = std::max(bottom, block.box.bottom());
  return {600, static_cast<int>(bottom + kMargin)};
}

int FlameView::nodeAt(QPointF at) const {
  for (const Block& block : blocks_)
    if (block.box.contains(at)) return static_cast<int>(block.node);
  return -1;
}

QColor FlameView::colour(const prof::FlameNode& node) const {
  const Theme& t = theme();
  if (difference_) {
    const double most = std::max(node.ns, node.before), change = most > 0 ? (node.ns - node.before) / most : 0;
    constexpr double kNoise = 0.1;
    if (std::abs(change) < kNoise) return mixed(t.secondary, t.base, 0.35);
    return mixed(change > 0 ? t.worse : t.better, t.base, 0.3 + 0.6 * std::min(1.0, std::abs(change)));
  }
  return flame_colour(flame_code(node));
}

QString FlameView::tip(uint32_t index) const {
  const prof::FlameNode& node = tree_[index];
  QString text = index == 0 ? root_ : name_of(node);
  if (!node.path.empty()) text += "\n" + QString::fromStdString(node.path);
  if (node.function == kNoName) text += "\n" + tr("The file has no name for this function.");
  if (difference_) {
    text += "\n" + tr("%1 per step, %2 in the baseline").arg(time_of(node.ns), time_of(node.before));
    return text;
  }
  const QString whole = of_threads_ && node.depth > 1 ? tr("its thread") : tr("what is shown");
  text += "\n" + tr("%1, %2 % of %3; alone %4").arg(time_of(node.ns), fixed_text(share(index), 1), whole, time_of(node.alone));
  std::vector<std::pair<int, double>> lines(node.lines.begin(), node.lines.end());
  std::ranges::stable_sort(lines, std::greater<>{}, &std::pair<int, double>::second);
  constexpr size_t kLines = 5;
  for (size_t i = 0; i < std::min(kLines, lines.size()); ++i)
    text += "\n" + tr("line %1: %2").arg(QString::number(lines[i].first), time_of(lines[i].second));
  return text;
}

// The share is the same zoomed in or not. A difference shows the change of a step instead.
QString FlameView::label(uint32_t index, double width) const {
  const prof::FlameNode& node = tree_[index];
  const QString name = index == 0 ? root_ : name_of(node);
  const QFontMetricsF metrics(ui_font(kTextSize));
  const double change = node.ns - node.before;
  const QString first = difference_ ? (change > 0 ? "+" : change < 0 ? "−" : "") + time_of(std::abs(change)) : fixed_text(share(index), 1) + " %";
  const QString second = difference_ ? tr("%1 → %2").arg(time_of(node.before), time_of(node.ns)) : time_of(node.ns);
  for (const QString& text : {name + "  " + first + "  " + second, name + "  " + first, name})
    if (metrics.horizontalAdvance(text) <= width) return text;
  return metrics.elidedText(name, Qt::ElideRight, width);
}

QString FlameView::labelOf(uint32_t node) const {
  const QRectF box = placeOf(node);
  return box.width() < kLeastText ? QString() : label(node, box.width() - kTextMargins);
}

std::vector<FlameView::LegendEntry> FlameView::legend() const {
  const Theme& t = theme();
  if (difference_) return {{tr("less time"), mixed(t.better, t.base, 0.7)}, {tr("more time"), mixed(t.worse, t.base, 0.7)}, {tr("alike"), mixed(t.secondary, t.base, 0.35)}};
  std::vector<LegendEntry> entries;
  for (const auto& [code, name] : {std::pair{FlameCode::Own, tr("your files")}, {FlameCode::Package, tr("Python packages")}, {FlameCode::Library, tr("libraries, interpreter")}})
    if (std::ranges::any_of(tree_, [code = code](const prof::FlameNode& node) { return !node.path.empty() && flame_code(node) == code; })) entries.push_back({name, flame_colour(code)});
  return entries;
}

// An entry that does not fit is left out.
void FlameView::paintLegend(QPainter& painter) const {
  constexpr double kSwatch = 10, kGap = 5, kBetween = 14;
  double x = kMargin;
  painter.setPen(theme().secondary);
  for (const LegendEntry& entry : legend()) {
    const double swatch = entry.colour.isValid() ? kSwatch + kGap : 0, text = QFontMetricsF(painter.font()).horizontalAdvance(entry.text);
    if (x + swatch + text > width() - kMargin) return;
    if (swatch > 0) painter.fillRect(QRectF(x, (kTop - kSwatch) / 2, kSwatch, kSwatch), entry.colour);
    painter.drawText(QRectF(x + swatch, 0, text + 1, kTop), Qt::AlignVCenter, entry.text);
    x += swatch + text + kBetween;
  }
}

void FlameView::paintBlock(QPainter& painter, const Block& block) const {
  const Theme& t = theme();
  const prof::FlameNode& node = tree_[block.node];
  const bool match = !words_.isEmpty() && matches_[block.node];
  const QColor fill = match ? t.of(prof::Meaning::Loss) : colour(node);
  painter.fillRect(block.box, fill);
  if (static_cast<int>(block.node) == hovered_) {
    painter.setPen(QPen(t.text, 1));
    painter.drawRect(block.box.adjusted(0.5, 0.5, -0.5, -0.5));
  } else if (block.box.width() > 3) {
    painter.fillRect(QRectF(block.box.right() - 0.5, block.box.top(), 1, block.box.height()), t.base);
  }
  if (block.box.width() < kLeastText) return;
  painter.setPen(t.ink_on(fill));
  painter.drawText(block.box.adjusted(4, 0, -3, 0), Qt::AlignLeft | Qt::AlignVCenter, label(block.node, block.box.width() - kTextMargins));
}

void FlameView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme().base);
  painter.setFont(ui_font(tree_.empty() ? 12.5 : kTextSize));
  if (tree_.empty()) {
    painter.setPen(theme().quiet);
    return painter.drawText(rect().adjusted(20, 0, -20, 0), Qt::AlignCenter | Qt::TextWordWrap, empty_);
  }
  paintLegend(painter);
  for (const Block& block : blocks_) paintBlock(painter, block);
}

void FlameView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  if (const int node = nodeAt(event->position()); node >= 0) zoomTo(static_cast<uint32_t>(node));
}

void FlameView::mouseMoveEvent(QMouseEvent* event) {
  if (const int node = nodeAt(event->position()); node != hovered_) hovered_ = node, update();
}

void FlameView::leaveEvent(QEvent*) { hovered_ = -1; update(); }

void FlameView::keyPressEvent(QKeyEvent* event) {
  if (event->key() != Qt::Key_Escape || zoomed_ == 0) return QWidget::keyPressEvent(event);
  zoomTo(tree_[zoomed_].parent);
}

bool FlameView::event(QEvent* event) {
  const auto text_at = [this](QPointF at) { return nodeAt(at) < 0 ? QString() : tip(static_cast<uint32_t>(nodeAt(at))); };
  return showed_tip(event, this, text_at) || QWidget::event(event);
}

void FlameView::resizeEvent(QResizeEvent*) { layOut(); }

}  // namespace ws::app
