// The dialog to choose the machine that trains: this one, one of ~/.ssh/config, or one used before.
#pragma once
#include <QDialog>

class QComboBox;
class QLabel;
class QPushButton;

namespace ws::app {

class ConnectDialog : public QDialog {
  Q_OBJECT
 public:
  explicit ConnectDialog(const QString& current, QWidget* parent = nullptr);  // current address; empty: this machine
  QString address() const;  // empty: this machine

  static QStringList recent();
  static void remember(const QString& address);

 private:
  void check();

  QComboBox* machine_;
  QLabel* verdict_;
  QPushButton* connect_;
};

}  // namespace ws::app
