// The program that ssh starts to ask for a password, a passphrase or trust in a machine, if there is no terminal.
#pragma once
#include <QDialog>

class QLineEdit;

namespace ws::app {

class PasswordDialog : public QDialog {
  Q_OBJECT
 public:
  explicit PasswordDialog(const QString& question, QWidget* parent = nullptr);
  QString answer() const;  // the text that ssh reads

 private:
  QLineEdit* typed_ = nullptr;  // nullptr for a yes/no question
};

// From now on ssh asks with `program --ask-password QUESTION`. A program that the user has set is kept.
void offer_password_dialog(const QString& program);
int ask_password(const QString& question);  // runs as that program; returns its exit status

}  // namespace ws::app
