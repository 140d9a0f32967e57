#include "app/window/password_dialog.h"

#include <QDialogButtonBox>
#include <QFile>
#include <QLineEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <QVBoxLayout>
#include <cstdio>

#include "app/widgets/labels.h"
#include "app/widgets/primary_button.h"
#include "app/widgets/theme.h"
#include "profiling/base/safe_text.h"

namespace ws::app {

PasswordDialog::PasswordDialog(const QString& question, QWidget* parent) : QDialog(parent) {
  setWindowTitle(tr("ssh asks"));
  setMinimumWidth(440);
  auto* column = new QVBoxLayout(this);
  column->setSpacing(10);
  column->addWidget(label(this, ui_font(12.5), {.plain = true}, question.trimmed()));
  const bool yes_or_no = question.contains("(yes/no");
  if (!yes_or_no) {
    typed_ = new QLineEdit(this);
    typed_->setEchoMode(QLineEdit::Password);
    typed_->setAccessibleName(tr("Answer"));
    column->addWidget(typed_);
  }
  auto* buttons = new QDialogButtonBox(this);
  QPushButton* good = buttons->addButton(yes_or_no ? tr("Trust it") : tr("OK"), QDialogButtonBox::AcceptRole);
  buttons->addButton(tr("Cancel"), QDialogButtonBox::RejectRole);
  make_primary(*good);
  column->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
}

QString PasswordDialog::answer() const { return typed_ ? typed_->text() : QStringLiteral("yes"); }

void offer_password_dialog(const QString& program) {
  if (qEnvironmentVariableIsSet("SSH_ASKPASS")) return;
  static const QTemporaryDir folder;  // only this user may access it
  QFile script(folder.filePath("ask"));
  if (!folder.isValid() || !script.open(QIODevice::WriteOnly)) return;
  script.write(("#!/bin/sh\nexec " + shell_quoted(QFile::encodeName(program).toStdString()) + " --ask-password \"$1\"\n").c_str());
  script.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
  qputenv("SSH_ASKPASS", QFile::encodeName(script.fileName()));
  qputenv("SSH_ASKPASS_REQUIRE", "prefer");  // the user does not look at a terminal that started the window
}

int ask_password(const QString& question) {
  PasswordDialog dialog(question);
  if (dialog.exec() != QDialog::Accepted) return 1;
  std::printf("%s\n", qPrintable(dialog.answer()));
  return 0;
}

}  // namespace ws::app
