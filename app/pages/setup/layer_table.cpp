#include "app/pages/setup/layer_table.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QMenu>
#include <QPushButton>
#include <QTimer>
#include <QToolButton>
#include <QTreeWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "app/core/runs/data_shape.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kMostRows = 14;  // more rows scroll
constexpr int kRowHeight = 20;
constexpr int kAtRole = Qt::UserRole, kLengthRole = Qt::UserRole + 1;  // of rows that stand in the line

LayerPlace place_of(const QTreeWidgetItem* row) {
  return {static_cast<size_t>(row->data(0, kAtRole).toULongLong()), static_cast<size_t>(row->data(0, kLengthRole).toULongLong())};
}
bool in_the_line(const QTreeWidgetItem* row) { return row->data(0, kAtRole).isValid(); }

bool within(const Layer& layer, LayerPlace place) { return layer.at >= place.at && layer.at < place.end(); }

QString shape_text(const NetworkLayer& l) { return text(text_of(l.out)); }

// The layers that the menu offers, as long as they fit.
QStringList candidates(const LayerShape& shape) {
  const QString channels = QString::number(std::max<int64_t>(1, shape.channels)), heads = shape.features % 4 == 0 ? "4" : "1";
  if (shape.is_picture())
    return {"conv 3x3 " + QString::number(std::max<int64_t>(16, shape.channels)), "relu", "batchnorm", "maxpool 2", "avgpool",
            "residual(conv 3x3 " + channels + " | batchnorm | relu)", "dropout 0.1", "linear 128"};
  if (shape.is_text()) return {"block(heads " + heads + ")", "layernorm", "attention heads " + heads, "linear x4", "gelu", "dropout 0.1", "embed 64"};
  return {"linear 128", "relu", "gelu", "tanh", "sigmoid", "batchnorm", "layernorm", "dropout 0.1"};
}

QToolButton* icon_button(const QString& icon, const QString& name, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setIcon(theme_icon(icon, &Theme::secondary));
  button->setFixedSize(22, 22);
  button->setFocusPolicy(Qt::StrongFocus);
  button->setAccessibleName(name);
  button->setToolTip(name);
  return button;
}

}  // namespace

std::string with_layer(std::string line, LayerPlace place, const std::string& layer) { return line.replace(place.at, place.length, layer); }

std::string without_layer(std::string line, const std::vector<LayerPlace>& list, size_t which) {
  const bool last = which + 1 == list.size();
  const size_t begin = last ? list[which - 1].end() : list[which].at, end = last ? list[which].end() : list[which + 1].at;
  return line.erase(begin, end - begin);
}

std::string with_layers_swapped(const std::string& line, LayerPlace first, LayerPlace second) {
  return line.substr(0, first.at) + line.substr(second.at, second.length) + line.substr(first.end(), second.at - first.end()) +
         line.substr(first.at, first.length) + line.substr(second.end());
}

std::string with_layer_behind(std::string line, LayerPlace place, const std::string& layer) {
  return line.insert(place.end(), " | " + layer);
}

LayerTable::LayerTable(QWidget* parent) : QWidget(parent), rows_(new QTreeWidget(this)) {
  setObjectName("layers");
  rows_->setAccessibleName(tr("Layers of the network"));
  rows_->setHeaderLabels({tr("layer"), tr("output"), tr("parameters")});
  rows_->setFont(number_font(11.5));
  rows_->setIndentation(12);
  rows_->setUniformRowHeights(true);
  rows_->setSelectionMode(QAbstractItemView::SingleSelection);
  rows_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  rows_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  rows_->setTextElideMode(Qt::ElideRight);
  rows_->header()->setStretchLastSection(false);
  rows_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  rows_->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
  rows_->header()->setSectionResizeMode(2, QHeaderView::ResizeToContents);
  rows_->installEventFilter(this);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(3);
  column->addWidget(rows_);
  column->addLayout(makeButtons());
  connect(rows_, &QTreeWidget::itemExpanded, this, &LayerTable::fitHeight);
  connect(rows_, &QTreeWidget::itemCollapsed, this, &LayerTable::fitHeight);
  connect(rows_, &QTreeWidget::itemSelectionChanged, this, &LayerTable::fitButtons);
  connect(rows_, &QTreeWidget::itemDoubleClicked, this, [this](QTreeWidgetItem* row) {
    if (in_the_line(row) && row->childCount() == 0) rows_->editItem(row, 0);
  });
  // The row's editor is still open when it reports its text.
  connect(rows_, &QTreeWidget::itemChanged, this, [this](QTreeWidgetItem* row) {
    if (!in_the_line(row)) return;
    QTimer::singleShot(0, this, [this, place = place_of(row), typed = row->text(0)] { commit(place, typed.trimmed().toStdString()); });
  });
  hide();
}

QHBoxLayout* LayerTable::makeButtons() {
  add_ = new QPushButton(tr("Add a layer"), this);
  add_->setProperty("small", true);
  add_->setProperty("menu", true);
  add_->setToolTip(tr("Adds a layer behind the chosen one"));
  auto* menu = new QMenu(add_);
  add_->setMenu(menu);
  connect(menu, &QMenu::aboutToShow, this, [this, menu] {
    menu->clear();
    for (const QString& layer : offered()) connect(menu->addAction(layer), &QAction::triggered, this, [this, layer] { add(layer); });
  });
  up_ = icon_button("up", tr("Move the layer towards the input (Alt+Up)"), this);
  down_ = icon_button("down", tr("Move the layer towards the output (Alt+Down)"), this);
  remove_ = icon_button("minus", tr("Remove the layer (Del)"), this);
  connect(up_, &QToolButton::clicked, this, [this] { move(-1); });
  connect(down_, &QToolButton::clicked, this, [this] { move(1); });
  connect(remove_, &QToolButton::clicked, this, &LayerTable::remove);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(3);
  row->addWidget(add_);
  row->addStretch(1);
  for (QToolButton* button : {up_, down_, remove_}) row->addWidget(button);
  return row;
}

void LayerTable::setSpec(const RunSpec& spec) {
  const bool same = spec.model == spec_.model && spec.data == spec_.data;
  spec_ = spec;
  if (!same) refill();
}

void LayerTable::refill() {
  if (spec_.model.layers.empty()) {
    line_.clear();
    rows_->clear();
    return hide();
  }
  const QSignalBlocker quiet(rows_);
  const bool first = rows_->topLevelItemCount() == 0;
  try {
    const std::vector<Layer> layers = parse_layers(spec_.model.layers);
    std::vector<bool> open;
    for (int i = 0; i < rows_->topLevelItemCount(); ++i) open.push_back(rows_->topLevelItem(i)->isExpanded());
    line_ = spec_.model.layers;
    rows_->clear();
    rows_->setEnabled(true);
    const DataShape shape = data_shape(spec_.data);
    try {
      if (shape.input.elements() < 1) throw Failure("the shape is known once the data is loaded");
      const Model model = make_model(spec_.model, shape.input, std::max<int64_t>(1, shape.outputs));
      fill(layers, &model, nullptr);
    } catch (const LayersError& problem) {
      fill(layers, nullptr, nullptr);
      mark(problem);
    } catch (const Failure&) {
      fill(layers, nullptr, nullptr);  // the footer says what is wrong, if anything is
    }
    for (int i = 0; i < rows_->topLevelItemCount() && !first; ++i)
      if (static_cast<size_t>(i) < open.size() && open[static_cast<size_t>(i)]) rows_->topLevelItem(i)->setExpanded(true);
  } catch (const LayersError&) {
    rows_->setEnabled(false);  // the rows before the mistake; the footer says what is wrong with the line
  }
  if (chosen_at_) choose(*std::exchange(chosen_at_, std::nullopt));
  show();
  fitHeight();
  fitButtons();
}

void LayerTable::fill(const std::vector<Layer>& layers, const Model* model, QTreeWidgetItem* parent) {
  for (const Layer& layer : layers) {
    const LayerPlace place{layer.at, layer.length};
    auto* row = parent ? new QTreeWidgetItem(parent) : new QTreeWidgetItem(rows_);
    row->setText(0, text(std::string_view(line_).substr(place.at, place.length)));
    row->setToolTip(0, row->text(0));
    row->setData(0, kAtRole, static_cast<qulonglong>(place.at));
    row->setData(0, kLengthRole, static_cast<qulonglong>(place.length));
    row->setFlags(row->flags() | Qt::ItemIsEditable);
    row->setSizeHint(0, QSize(0, kRowHeight));
    for (const int column : {1, 2}) row->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    if (model) describe(row, place, *model);
    if (!layer.body.empty()) fill(layer.body, model, row);
    if (layer.kind == LayerKind::Block && model) fillBlock(row, place, *model);
  }
}

// What the last layer of this place gives, and the parameters of all of them: a repeated layer is one row.
void LayerTable::describe(QTreeWidgetItem* row, LayerPlace place, const Model& model) {
  const bool outputs_known = data_shape(spec_.data).outputs > 0;
  int64_t parameters = 0;
  bool open = false;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const NetworkLayer& l = model.layers[i];
    if (!within(l.layer, place)) continue;
    parameters += model.parameters_of(i);
    open = !outputs_known && (l.layer.kind == LayerKind::Embed || i + 1 == model.layers.size());
    row->setText(1, open && l.layer.kind != LayerKind::Embed ? QStringLiteral("—") : shape_text(l));
  }
  const QString count = parameters ? count_text(parameters) : QString();
  row->setText(2, open ? QStringLiteral("—") : count);
}

// The parts of the first block of a row. They follow from its heads, so they are not edited.
void LayerTable::fillBlock(QTreeWidgetItem* row, LayerPlace place, const Model& model) {
  const std::string* part = nullptr;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const NetworkLayer& l = model.layers[i];
    if (!within(l.layer, place) || l.layer.kind == LayerKind::Branch) continue;
    if (!part) part = &l.part;
    if (l.part != *part) return;
    const int64_t own = model.parameters_of(i);
    const QString name = l.layer.kind == LayerKind::Join ? tr("+ input") : text(text_of(l.layer));
    auto* inside = new QTreeWidgetItem(row, {name, shape_text(l), own ? count_text(own) : QString()});
    for (const int column : {1, 2}) inside->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    inside->setSizeHint(0, QSize(0, kRowHeight));
  }
}

// The innermost row at the mistake gets its sentence.
void LayerTable::mark(const LayersError& problem) {
  QTreeWidgetItem* found = nullptr;
  for (QTreeWidgetItem* row = rows_->topLevelItem(0); row;) {
    const LayerPlace place = place_of(row);
    const bool inside = problem.at >= place.at && problem.at < place.end();
    if (inside) found = row;
    row = inside ? row->child(0) : row->parent() ? row->parent()->child(row->parent()->indexOfChild(row) + 1)
                                                 : rows_->topLevelItem(rows_->indexOfTopLevelItem(row) + 1);
  }
  if (!found) return;
  found->setForeground(0, theme().worse);
  found->setIcon(0, theme_icon("warn", &Theme::worse));
  found->setToolTip(0, text(problem.what()));
  for (QTreeWidgetItem* row = found->parent(); row; row = row->parent()) row->setExpanded(true);
}

void LayerTable::choose(size_t at) {
  QList<QTreeWidgetItem*> open;
  for (int i = 0; i < rows_->topLevelItemCount(); ++i) open << rows_->topLevelItem(i);
  while (!open.isEmpty()) {
    QTreeWidgetItem* row = open.takeFirst();
    if (in_the_line(row) && place_of(row).at == at) return rows_->setCurrentItem(row);
    for (int i = 0; i < row->childCount(); ++i) open << row->child(i);
  }
}

QTreeWidgetItem* LayerTable::chosenRow() const {
  const QList<QTreeWidgetItem*> chosen = rows_->selectedItems();
  return !chosen.isEmpty() && in_the_line(chosen[0]) ? chosen[0] : nullptr;
}

std::vector<LayerPlace> LayerTable::listOf(QTreeWidgetItem* row, size_t* which) const {
  std::vector<LayerPlace> list;
  const QTreeWidgetItem* parent = row->parent() ? row->parent() : rows_->invisibleRootItem();
  for (int i = 0; i < parent->childCount(); ++i) list.push_back(place_of(parent->child(i)));
  *which = static_cast<size_t>(parent->indexOfChild(row));
  return list;
}

bool LayerTable::fits(const std::string& line) const {
  const DataShape shape = data_shape(spec_.data);
  try {
    const std::vector<Layer> layers = parse_layers(line);
    if (shape.input.elements() > 0) resolve(layers, shape.input, std::max<int64_t>(1, shape.outputs));
    return true;
  } catch (const Failure&) {
    return false;
  }
}

namespace {

// Behind the chosen layer, without one before the last.
std::string with_added(const std::string& line, std::optional<LayerPlace> behind, const std::string& layer, size_t* at) {
  if (!behind) {
    *at = parse_layers(line).back().at;
    return std::string(line).insert(*at, layer + " | ");
  }
  *at = behind->end() + 3;
  return with_layer_behind(line, *behind, layer);
}

}  // namespace

QStringList LayerTable::offered() const {
  QStringList fitting;
  if (line_.empty() || line_ != spec_.model.layers) return fitting;
  const QTreeWidgetItem* row = chosenRow();
  const auto behind = row ? std::optional(place_of(row)) : std::nullopt;
  LayerShape shape = data_shape(spec_.data).input;
  try {
    const Model model = make_model(spec_.model, shape, std::max<int64_t>(1, data_shape(spec_.data).outputs));
    for (const NetworkLayer& l : model.layers)
      if (!behind || l.layer.at < behind->end()) shape = behind || &l != &model.layers.back() ? l.out : l.in;
  } catch (const Failure&) {
  }
  size_t at = 0;
  for (const QString& layer : candidates(shape))
    if (fits(with_added(line_, behind, layer.toStdString(), &at))) fitting << layer;
  return fitting;
}

void LayerTable::add(const QString& layer) {
  const QTreeWidgetItem* row = chosenRow();
  size_t at = 0;
  const std::string line = with_added(line_, row ? std::optional(place_of(row)) : std::nullopt, layer.toStdString(), &at);
  change(line, at);
}

void LayerTable::remove() {
  QTreeWidgetItem* row = chosenRow();
  if (!row) return;
  size_t which = 0;
  const std::vector<LayerPlace> list = listOf(row, &which);
  if (list.size() < 2) return;
  change(without_layer(line_, list, which), which + 1 == list.size() ? list[which - 1].at : list[which].at);
}

void LayerTable::move(int by) {
  QTreeWidgetItem* row = chosenRow();
  if (!row) return;
  size_t which = 0;
  const std::vector<LayerPlace> list = listOf(row, &which);
  if (by < 0 ? which == 0 : which + 1 == list.size()) return;
  const LayerPlace first = list[by < 0 ? which - 1 : which], second = list[by < 0 ? which : which + 1];
  change(with_layers_swapped(line_, first, second), by < 0 ? first.at : second.end() - first.length);
}

void LayerTable::commit(LayerPlace place, const std::string& typed) {
  if (place.end() > line_.size() || typed == line_.substr(place.at, place.length)) return;
  choose(place.at);
  typed.empty() ? remove() : change(with_layer(line_, place, typed), place.at);
}

void LayerTable::change(const std::string& line, size_t chosen) {
  chosen_at_ = chosen;
  emit edited(QString::fromStdString(line));
}

bool LayerTable::eventFilter(QObject* object, QEvent* event) {
  if (event->type() != QEvent::KeyPress) return QWidget::eventFilter(object, event);
  const auto* key = static_cast<QKeyEvent*>(event);
  const bool alt = key->modifiers() & Qt::AltModifier;
  QTreeWidgetItem* row = chosenRow();
  if (alt && key->key() == Qt::Key_Up) move(-1);
  else if (alt && key->key() == Qt::Key_Down) move(1);
  else if (key->key() == Qt::Key_Delete) remove();
  else if (row && (key->key() == Qt::Key_F2 || key->key() == Qt::Key_Return)) rows_->editItem(row, 0);
  else return QWidget::eventFilter(object, event);
  return true;
}

void LayerTable::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && rows_ && !line_.empty()) refill();
}

void LayerTable::fitButtons() {
  QTreeWidgetItem* row = chosenRow();
  size_t which = 0;
  const size_t count = row ? listOf(row, &which).size() : 0;
  up_->setEnabled(row && which > 0);
  down_->setEnabled(row && which + 1 < count);
  remove_->setEnabled(row && count > 1);
  add_->setEnabled(rows_->isEnabled());
}

void LayerTable::fitHeight() {
  int shown = 0;
  for (QTreeWidgetItem* row = rows_->topLevelItem(0); row; row = rows_->itemBelow(row)) ++shown;
  rows_->setFixedHeight(rows_->header()->sizeHint().height() + std::min(shown, kMostRows) * kRowHeight + 2 * rows_->frameWidth() + 2);
}

}  // namespace ws::app
