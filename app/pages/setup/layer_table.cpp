#include "app/pages/setup/layer_table.h"

#include <QHeaderView>
#include <algorithm>

#include "app/core/runs/data_shape.h"
#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kMostRows = 14;  // more rows scroll

QString row_text(const NetworkLayer& l) {
  if (l.layer.kind == LayerKind::Join) return QObject::tr("+ input");
  return QString::fromStdString(text_of(l.layer));
}

}  // namespace

LayerTable::LayerTable(QWidget* parent) : QTreeWidget(parent) {
  setObjectName("layers");
  setAccessibleName(tr("Layers of the network"));
  setHeaderLabels({tr("layer"), tr("output"), tr("parameters")});
  setFont(number_font(11.5));
  setIndentation(12);
  setUniformRowHeights(true);
  setSelectionMode(QAbstractItemView::SingleSelection);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setTextElideMode(Qt::ElideRight);
  header()->setStretchLastSection(false);
  header()->setSectionResizeMode(0, QHeaderView::Stretch);
  header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
  header()->setSectionResizeMode(2, QHeaderView::ResizeToContents);
  connect(this, &QTreeWidget::itemExpanded, this, &LayerTable::fitHeight);
  connect(this, &QTreeWidget::itemCollapsed, this, &LayerTable::fitHeight);
  hide();
}

void LayerTable::setSpec(const RunSpec& spec) {
  const DataShape shape = data_shape(spec.data);
  const std::string wanted = spec.model.layers + '\n' + spec.data.name + '\n' + std::to_string(spec.data.context) +
                             (spec.model.bias ? "" : " without bias");
  if (wanted == shown_) return;
  shown_ = wanted;
  clear();
  setVisible(false);
  if (spec.model.layers.empty() || !shape.known()) return;
  try {
    fill(make_model(spec.model, shape.input, shape.outputs));
  } catch (const Failure&) {
    return;  // the footer says what is wrong with the list
  }
  setVisible(true);
  fitHeight();
}

QTreeWidgetItem* LayerTable::parentOf(const NetworkLayer& layer) {
  const QString part = QString::fromStdString(layer.part);
  if (part.isEmpty()) return invisibleRootItem();
  QTreeWidgetItem* last = topLevelItem(topLevelItemCount() - 1);
  if (last && last->text(0) == part) return last;
  return new QTreeWidgetItem(this, {part, QString::fromStdString(text_of(layer.in)), {}});
}

void LayerTable::fill(const Model& model) {
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const NetworkLayer& l = model.layers[i];
    if (l.layer.kind == LayerKind::Branch) continue;
    const int64_t own = model.parameters_of(i);
    QTreeWidgetItem* parent = parentOf(l);
    auto* row = new QTreeWidgetItem(parent, {row_text(l), QString::fromStdString(text_of(l.out)), own ? count_text(own) : QString()});
    for (QTreeWidgetItem* each : {row, parent}) each->setTextAlignment(2, Qt::AlignRight), each->setTextAlignment(1, Qt::AlignRight);
    if (parent == invisibleRootItem()) continue;
    const int64_t sum = parent->data(2, Qt::UserRole).toLongLong() + own;
    parent->setData(2, Qt::UserRole, QVariant::fromValue<qlonglong>(sum));
    parent->setText(2, count_text(sum));
  }
  if (topLevelItemCount() > 0) topLevelItem(0)->setExpanded(true);
}

QSize LayerTable::sizeHint() const {
  int rows = 0;
  for (QTreeWidgetItem* item = topLevelItem(0); item; item = itemBelow(item)) ++rows;
  const int each = std::max(sizeHintForRow(0), 1);
  return {200, header()->sizeHint().height() + std::min(rows, kMostRows) * each + 2 * frameWidth()};
}

void LayerTable::fitHeight() { setFixedHeight(sizeHint().height()); }

}  // namespace ws::app
