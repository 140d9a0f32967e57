#include "app/window/connect_dialog.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QLabel>
#include <QLineEdit>
#include <QSettings>
#include <QVBoxLayout>

#include "app/core/remote/remote_address.h"
#include "app/widgets/labels.h"
#include "app/widgets/primary_button.h"
#include "app/widgets/theme.h"
#include "app/workspace/remote_machine.h"

namespace ws::app {
namespace {

constexpr const char* kRecent = "machines/recent";

}  // namespace

ConnectDialog::ConnectDialog(const QString& current, QWidget* parent)
    : QDialog(parent), machine_(new QComboBox(this)), verdict_(new QLabel(this)) {
  setWindowTitle(tr("Connect"));
  setMinimumWidth(520);
  auto* column = new QVBoxLayout(this);
  column->setSpacing(10);
  column->addWidget(label(this, ui_font(12), {},
                          tr("Train and record on another machine, over ssh. Runs go on there when the connection is cut, and "
                             "their files come here when they end. If Warpsight is missing there, it can copy itself.")));
  machine_->setEditable(true);
  machine_->setAccessibleName(tr("Machine"));
  machine_->lineEdit()->setPlaceholderText(tr("this machine; or ssh://user@host"));
  QStringList all{QString()};
  for (const QString& address : recent()) all << address;
  for (const QString& host : known_hosts())
    if (!all.contains("ssh://" + host)) all << "ssh://" + host;
  machine_->addItems(all);
  machine_->setEditText(current);
  column->addWidget(machine_);
  verdict_->setWordWrap(true);
  verdict_->setFont(ui_font(12));
  column->addWidget(verdict_);
  column->addStretch(1);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
  connect_ = buttons->addButton(tr("Connect"), QDialogButtonBox::AcceptRole);
  make_primary(*connect_);
  column->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(machine_, &QComboBox::editTextChanged, this, &ConnectDialog::check);
  check();
}

// "gpu7" is short for ssh://gpu7.
QString ConnectDialog::address() const {
  const QString text = machine_->currentText().trimmed();
  return text.isEmpty() || is_remote(text.toStdString()) ? text : "ssh://" + text;
}

void ConnectDialog::check() {
  QString problem;
  try {
    if (!address().isEmpty()) parse_remote(address().toStdString());
  } catch (const std::exception& failure) {
    problem = QString::fromUtf8(failure.what());
  }
  verdict_->setText(problem);
  connect_->setText(address().isEmpty() ? tr("Use this machine") : tr("Connect"));
  connect_->setEnabled(problem.isEmpty());
}

QStringList ConnectDialog::recent() { return QSettings().value(kRecent).toStringList(); }

void ConnectDialog::remember(const QString& address) {
  constexpr int kMost = 8;
  QStringList all = recent();
  all.removeAll(address);
  all.prepend(address);
  QSettings().setValue(kRecent, QStringList(all.mid(0, kMost)));
}

}  // namespace ws::app
