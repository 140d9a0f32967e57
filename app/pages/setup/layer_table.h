// The layers of a network as a table: what each gives and how many parameters it has. Blocks and residuals fold.
#pragma once
#include <QTreeWidget>

#include "engine/plan/model.h"

namespace ws::app {

class LayerTable : public QTreeWidget {
  Q_OBJECT
 public:
  explicit LayerTable(QWidget* parent = nullptr);
  // Shows the network of a list of layers. Hides itself for hidden layers, which have an editor of their own, and for data
  // whose shape is not known before it is loaded.
  void setSpec(const RunSpec& spec);
  QSize sizeHint() const override;  // as high as its rows, up to a limit

 private:
  void fill(const Model& model);
  void fitHeight();
  QTreeWidgetItem* parentOf(const NetworkLayer& layer);

  std::string shown_;  // model, data and outputs of the rows
};

}  // namespace ws::app
