// The layers of a network as a table: what each gives and how many parameters it has. A layer is edited in its row, moved and
// removed, and others are added. Every change is a change of the one-line form. Blocks and residuals fold.
#pragma once
#include <QWidget>
#include <optional>
#include <string>
#include <vector>

#include "engine/plan/model.h"

class QHBoxLayout;
class QPushButton;
class QToolButton;
class QTreeWidget;
class QTreeWidgetItem;

namespace ws::app {

// The place of a layer in the line.
struct LayerPlace {
  size_t at = 0, length = 0;
  size_t end() const { return at + length; }
  bool operator==(const LayerPlace&) const = default;
};

// Changes of the line that keep the rest as it was typed. `list`: the layers between the same parentheses, in order.
std::string with_layer(std::string line, LayerPlace place, const std::string& layer);
std::string without_layer(std::string line, const std::vector<LayerPlace>& list, size_t which);  // not the only one of a list
std::string with_layers_swapped(const std::string& line, LayerPlace first, LayerPlace second);   // first stands before second
std::string with_layer_behind(std::string line, LayerPlace place, const std::string& layer);

class LayerTable : public QWidget {
  Q_OBJECT
 public:
  explicit LayerTable(QWidget* parent = nullptr);
  // Shows the network of a list of layers. Hides itself for hidden layers, which have an editor of their own.
  void setSpec(const RunSpec& spec);
  QTreeWidget* rows() const { return rows_; }
  QStringList offered() const;  // layers that fit behind the current row
  void add(const QString& layer);
  void remove();
  void move(int by);  // −1: towards the input

 signals:
  void edited(const QString& line);

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  QHBoxLayout* makeButtons();
  void refill();
  void fill(const std::vector<Layer>& layers, const Model* model, QTreeWidgetItem* parent);
  void fillBlock(QTreeWidgetItem* row, LayerPlace place, const Model& model);
  void describe(QTreeWidgetItem* row, LayerPlace place, const Model& model);
  void mark(const LayersError& problem);
  void choose(size_t at);
  void commit(LayerPlace place, const std::string& typed);
  void change(const std::string& line, size_t chosen);
  void fitHeight();
  void fitButtons();
  bool fits(const std::string& line) const;
  QTreeWidgetItem* chosenRow() const;  // a layer of the line; nullptr: none
  std::vector<LayerPlace> listOf(QTreeWidgetItem* row, size_t* which) const;

  RunSpec spec_;
  std::string line_;
  std::optional<size_t> chosen_at_;
  QTreeWidget* rows_;
  QPushButton* add_;
  QToolButton *up_, *down_, *remove_;
};

}  // namespace ws::app
