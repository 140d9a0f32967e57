// ssh asks for a password, a passphrase or whether to trust a machine by starting a program: this dialog, where there is no
// terminal.
#pragma once
#include <QDialog>

class QLineEdit;

namespace ws::app {

class PasswordDialog : public QDialog {
  Q_OBJECT
 public:
  explicit PasswordDialog(const QString& question, QWidget* parent = nullptr);
  QString answer() const;  // what ssh reads

 private:
  QLineEdit* typed_ = nullptr;  // nullptr: a question of yes or no
};

// From now on ssh asks by `program --ask-password QUESTION`. A program that the person has set stays.
void offer_password_dialog(const QString& program);
int ask_password(const QString& question);  // that program; returns its exit status

}  // namespace ws::app
