#include "app/pages/setup/spec_json_dialog.h"

#include <QDialogButtonBox>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/widgets/primary_button.h"
#include "app/widgets/theme.h"

namespace ws::app {

SpecJsonDialog::SpecJsonDialog(const RunSpec& spec, QWidget* parent)
    : QDialog(parent), spec_(spec), editor_(new QPlainTextEdit(this)), verdict_(new QLabel(this)) {
  setWindowTitle(tr("Settings as JSON"));
  resize(560, 640);
  editor_->setFont(mono_font(12));
  editor_->setAccessibleName(tr("Settings as JSON"));
  editor_->setPlainText(QString::fromStdString(spec_text(spec, 2)));
  verdict_->setWordWrap(true);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, this);
  accept_ = buttons->button(QDialogButtonBox::Ok);
  accept_->setText(tr("Use these"));
  make_primary(*accept_);
  auto* column = new QVBoxLayout(this);
  column->addWidget(editor_, 1);
  column->addWidget(verdict_);
  column->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(editor_, &QPlainTextEdit::textChanged, this, &SpecJsonDialog::check);
  check();
}

void SpecJsonDialog::check() {
  try {
    spec_ = parse_spec(editor_->toPlainText().toStdString());
    verdict_->setText(tr("Can be read."));
    accept_->setEnabled(true);
  } catch (const std::exception& problem) {
    verdict_->setText(QString::fromUtf8(problem.what()));
    accept_->setEnabled(false);
  }
}

}  // namespace ws::app
