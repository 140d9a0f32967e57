// Shows every key of the window: keys of the menus and of the panes.
#pragma once
#include <QDialog>
#include <vector>

class QMenuBar;

namespace ws::app {

struct KeyEntry {
  QString keys, what;
};

class KeyList : public QDialog {
  Q_OBJECT
 public:
  KeyList(const QMenuBar* menus, QWidget* parent);
  const std::vector<KeyEntry>& entries() const { return entries_; }

 private:
  std::vector<KeyEntry> entries_;
};

}  // namespace ws::app
