#include "app/pages/setup/layer_editor.h"

#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/core/runs/data_shape.h"
#include "app/text/units.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

enum Act { kUp, kDown, kDouble, kRemove, kActs };
constexpr const char* kActIcons[] = {"up", "down", "copy", "minus"};
constexpr int64_t kFirstWidth = 128;
constexpr int kFirstLine = 1;  // grid row below the captions

QString act_name(int what, size_t layer) {
  const int number = static_cast<int>(layer) + 1;
  switch (what) {
    case kUp:
      return QObject::tr("Move layer %1 towards the input").arg(number);
    case kDown:
      return QObject::tr("Move layer %1 towards the output").arg(number);
    case kDouble:
      return QObject::tr("Duplicate layer %1").arg(number);
    default:
      return QObject::tr("Remove layer %1").arg(number);
  }
}

QString act_key(int what) {
  static const char* const keys[] = {"Alt+↑", "Alt+↓", "Alt+Enter", "Alt+Delete"};
  return QString::fromUtf8(keys[what]);
}

QLabel* quiet_label(QWidget* parent, Qt::Alignment align) {
  auto* label = new QLabel(parent);
  label->setFont(number_font(11.5));
  label->setForegroundRole(QPalette::PlaceholderText);
  label->setAlignment(align | Qt::AlignVCenter);
  return label;
}

// Number of parameters of a layer: its weights, and one bias for each output.
QString parameters_text(int64_t inputs, int64_t width, bool bias) {
  return inputs > 0 && width > 0 ? count_text(inputs * width + (bias ? width : 0)) : QStringLiteral("—");
}

}  // namespace

LayerEditor::LayerEditor(QWidget* parent) : QWidget(parent), grid_(new QGridLayout) {
  setAccessibleName(tr("Hidden layers"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 2, 0, 2);
  column->setSpacing(3);
  grid_->setHorizontalSpacing(4);
  grid_->setVerticalSpacing(3);
  grid_->setColumnStretch(2, 1);
  column->addLayout(grid_);
  auto* width = quiet_label(this, Qt::AlignLeft);
  auto* learned = quiet_label(this, Qt::AlignRight);
  width->setText(tr("width"));
  learned->setText(tr("parameters"));
  for (QLabel* caption : {width, learned}) caption->setFont(ui_font(10.5));
  grid_->addWidget(width, 0, 1);
  grid_->addWidget(learned, 0, 2);
  outputs_name_ = quiet_label(this, Qt::AlignLeft);
  outputs_name_->setText(tr("out"));
  outputs_ = quiet_label(this, Qt::AlignLeft);
  outputs_->setIndent(7);
  outputs_parameters_ = quiet_label(this, Qt::AlignRight);
  wrong_ = new QLabel(this);
  wrong_->setFont(ui_font(11));
  wrong_->setWordWrap(true);
  wrong_->setTextFormat(Qt::PlainText);
  wrong_->hide();
  add_ = new QPushButton(tr("Add a layer"), this);
  add_->setProperty("link", true);
  add_->setFont(ui_font(11));
  connect(add_, &QPushButton::clicked, this, [this] {
    std::vector<int64_t> widths = widths_;
    widths.push_back(widths.empty() ? kFirstWidth : std::max<int64_t>(1, widths.back() / 2));
    change(widths, widths.size() - 1);
  });
  column->addWidget(wrong_);
  column->addWidget(add_, 0, Qt::AlignLeft);
}

QString LayerEditor::text(const std::vector<int64_t>& widths) {
  QStringList parts;
  for (int64_t width : widths) parts << QString::number(width);
  return parts.join(',');
}

LayerEditor::Row LayerEditor::makeRow(size_t layer) {
  Row row;
  row.number = quiet_label(this, Qt::AlignLeft);
  row.number->setText(QString::number(layer + 1));
  row.number->setFixedWidth(20);
  row.width = new QLineEdit(this);
  row.width->setFont(number_font(12));
  row.width->setFixedWidth(58);
  row.width->setAccessibleName(tr("Width of layer %1").arg(layer + 1));
  row.width->installEventFilter(this);
  connect(row.width, &QLineEdit::editingFinished, this, [this, layer] { commit(layer); });
  row.parameters = quiet_label(this, Qt::AlignRight);
  row.parameters->setToolTip(tr("Parameters of this layer"));
  const int line = static_cast<int>(layer) + kFirstLine;
  grid_->addWidget(row.number, line, 0);
  grid_->addWidget(row.width, line, 1);
  grid_->addWidget(row.parameters, line, 2);
  for (int what = 0; what < kActs; ++what) {
    auto* button = new QToolButton(this);
    button->setFixedSize(22, 22);
    button->setFocusPolicy(Qt::StrongFocus);
    button->setAccessibleName(act_name(what, layer));
    button->setToolTip(QString("%1 (%2)").arg(act_name(what, layer), act_key(what)));
    connect(button, &QToolButton::clicked, this, [this, layer, what] { act(layer, what); });
    grid_->addWidget(button, line, 3 + what);
    row.buttons.push_back(button);
    button->show();
  }
  for (QWidget* part : std::initializer_list<QWidget*>{row.number, row.width, row.parameters})
    part->show();  // now, so that it can get the focus
  return row;
}

// Adds and removes rows only at the end, so that the field with the cursor stays the same.
void LayerEditor::fitRows() {
  while (rows_.size() > widths_.size()) {
    Row row = rows_.back();
    rows_.pop_back();
    const auto drop = [this](QWidget* part) { part->hide(); grid_->removeWidget(part); part->deleteLater(); };
    drop(row.number), drop(row.width), drop(row.parameters);
    for (QToolButton* button : row.buttons) drop(button);
  }
  QWidget* before = rows_.empty() ? nullptr : rows_.back().buttons.back();
  while (rows_.size() < widths_.size()) {
    rows_.push_back(makeRow(rows_.size()));
    Row& row = rows_.back();
    if (before) setTabOrder(before, row.width);
    setTabOrder(row.width, row.buttons.front());
    for (size_t i = 1; i < row.buttons.size(); ++i) setTabOrder(row.buttons[i - 1], row.buttons[i]);
    before = row.buttons.back();
  }
  if (before) setTabOrder(before, add_);
}

void LayerEditor::refreshRow(size_t layer, int64_t inputs, bool bias) {
  Row& row = rows_[layer];
  const QString shown = QString::number(widths_[layer]);
  if (!row.width->hasFocus() || !row.width->isModified()) row.width->setText(shown);
  row.parameters->setText(parameters_text(inputs, widths_[layer], bias));
  for (int what = 0; what < kActs; ++what)
    row.buttons[static_cast<size_t>(what)]->setIcon(theme_icon(kActIcons[what], &Theme::secondary));
  row.buttons[kUp]->setEnabled(layer > 0);
  row.buttons[kDown]->setEnabled(layer + 1 < widths_.size());
}

void LayerEditor::refreshOutputs(const RunSpec& spec, int64_t inputs, int64_t outputs) {
  const int line = static_cast<int>(widths_.size()) + kFirstLine;
  grid_->addWidget(outputs_name_, line, 0);
  grid_->addWidget(outputs_, line, 1);
  grid_->addWidget(outputs_parameters_, line, 2);
  outputs_->setText(outputs > 0 ? count_text(outputs) : tr("by the data"));
  outputs_parameters_->setText(parameters_text(inputs, outputs, spec.model.bias));
}

void LayerEditor::setSpec(const RunSpec& spec) {
  const DataShape shape = data_shape(spec.data);
  if (widths_ != spec.model.hidden) showWrong({});
  widths_ = spec.model.hidden;
  fitRows();
  int64_t inputs = shape.features();
  for (size_t i = 0; i < widths_.size(); ++i) {
    refreshRow(i, inputs, spec.model.bias);
    inputs = widths_[i];
  }
  refreshOutputs(spec, inputs, shape.outputs);
}

void LayerEditor::showWrong(const QString& why) {
  wrong_->setText(why);
  QPalette palette = wrong_->palette();
  palette.setColor(QPalette::WindowText, theme().worse);
  wrong_->setPalette(palette);
  wrong_->setVisible(!why.isEmpty());
}

QString LayerEditor::wrong() const { return wrong_->text(); }

void LayerEditor::commit(size_t layer) {
  if (layer >= rows_.size()) return;
  QLineEdit* field = rows_[layer].width;
  const QString typed = field->text().trimmed();
  field->setModified(false);
  if (typed == QString::number(widths_[layer])) return field->setText(typed);
  const Field& limits = ws::field("model.hidden");
  bool whole = false;
  const qlonglong width = typed.toLongLong(&whole);
  if (!whole || static_cast<double>(width) < limits.least || static_cast<double>(width) > limits.most) {
    field->setText(QString::number(widths_[layer]));
    return showWrong(tr("Layer %1: “%2” is not a width. Use a whole number from %3 to %4.")
                         .arg(QString::number(layer + 1), typed, count_text(static_cast<int64_t>(limits.least)),
                              count_text(static_cast<int64_t>(limits.most))));
  }
  std::vector<int64_t> widths = widths_;
  widths[layer] = width;
  showWrong({});
  emit edited(text(widths));
}

void LayerEditor::act(size_t layer, int what) {
  if (layer >= widths_.size()) return;
  std::vector<int64_t> widths = widths_;
  const auto at = widths.begin() + static_cast<std::ptrdiff_t>(layer);
  size_t focus = layer;
  if (what == kUp && layer > 0) std::iter_swap(at, at - 1), focus = layer - 1;
  if (what == kDown && layer + 1 < widths.size()) std::iter_swap(at, at + 1), focus = layer + 1;
  if (what == kDouble) widths.insert(at, *at), focus = layer + 1;
  if (what == kRemove) widths.erase(at), focus = layer > 0 && layer == widths.size() ? layer - 1 : layer;
  change(std::move(widths), focus);
}

void LayerEditor::change(std::vector<int64_t> widths, size_t focus) {
  showWrong({});
  for (const Row& row : rows_) row.width->setModified(false);
  emit edited(text(widths));
  if (focus < rows_.size())
    rows_[focus].width->setFocus(), rows_[focus].width->selectAll();
  else
    add_->setFocus();
}

bool LayerEditor::eventFilter(QObject* object, QEvent* event) {
  if (event->type() != QEvent::KeyPress) return QWidget::eventFilter(object, event);
  const auto* key = static_cast<QKeyEvent*>(event);
  if (!(key->modifiers() & Qt::AltModifier)) return QWidget::eventFilter(object, event);
  const auto row = std::find_if(rows_.begin(), rows_.end(), [object](const Row& r) { return r.width == object; });
  if (row == rows_.end()) return QWidget::eventFilter(object, event);
  const auto layer = static_cast<size_t>(row - rows_.begin());
  switch (key->key()) {
    case Qt::Key_Up:
      act(layer, kUp);
      return true;
    case Qt::Key_Down:
      act(layer, kDown);
      return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      act(layer, kDouble);
      return true;
    case Qt::Key_Delete:
      act(layer, kRemove);
      return true;
    default:
      return QWidget::eventFilter(object, event);
  }
}

}  // namespace ws::app
