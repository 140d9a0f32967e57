#include "app/pages/setup/field_row.h"

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMap>
#include <QMenu>
#include <QPushButton>
#include <QStyle>
#include <QToolButton>

#include "app/pages/setup/layer_editor.h"
#include "app/text/qt_text.h"
#include "app/widgets/glossary.h"
#include "app/widgets/segmented_row.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

// "hidden layers" is too long for the label column.
QString shown_label(const Field& field) {
  return field.key == "model.hidden" ? QStringLiteral("layers") : text(field.label);
}

QString sentence(const std::optional<Refusal>& reason) {
  return reason ? QString::fromStdString(reason->text) : QString();
}

const QString kChanged = QString::fromUtf8(" •");  // after the label of a choice in which the shown run differs
constexpr int kLabelWidth = 66, kHalf = 125, kFieldFrame = 19;

QLabel* small_label(QWidget* parent) {
  auto* label = new QLabel(parent);
  label->setWordWrap(true);
  label->setFont(ui_font(11));
  label->setTextFormat(Qt::PlainText);
  label->setMinimumWidth(10);
  return label;
}

void paint_ink(QWidget* widget, const QColor& colour) {
  QPalette palette = widget->palette();
  palette.setColor(QPalette::WindowText, colour);
  widget->setPalette(palette);
}

QString data_title(const QString& name) {
  static const QMap<QString, QString> titles = {
      {"mnist", "MNIST · 28 × 28 digits"}, {"fashion-mnist", "Fashion-MNIST · 28 × 28"},
      {"iris", "Iris · 4 measures"},       {"line", "Line · points y = wx + b"},
      {"csv", "Own table (CSV)"},          {"idx", "Own images (IDX)"},
      {"cifar-10", "CIFAR-10 · 32 × 32 in colour"}, {"shapes", "Shapes · 32 × 32 in colour"},
      {"pictures", "Own pictures (PNG, JPEG)"},
      {"austen", "Jane Austen · 80 characters"},    {"text", "Own text"},
      {"sentences", "Sentences · made text"}};
  return titles.value(name, name.left(1).toUpper() + name.mid(1) + " · points in the plane");
}

}  // namespace

QString value_label(std::string_view value) {
  if (value == "stream-ordered") return QStringLiteral("stream");
  return text(value).replace('-', ' ');
}

QString explained(std::string_view sentence) {
  const QString whole = text(sentence);
  const qsizetype look = whole.indexOf("Look ");
  if (look < 0) return whole.toHtmlEscaped();
  return QString("%1<span style='color:%2'>%3</span>")
      .arg(whole.left(look).toHtmlEscaped(), theme().secondary.name(), whole.mid(look).toHtmlEscaped());
}

FieldRow::FieldRow(const Field& field, QWidget* parent) : QWidget(parent), field_(field) { build(); }

void FieldRow::build() {
  number_ = field_.kind == FieldKind::Integer || field_.kind == FieldKind::Number;
  label_ = new QLabel(shown_label(field_), this);
  label_->setFont(word_font(ui_font(12), shown_label(field_)));
  label_->setToolTip(explanation());
  QWidget* control = nullptr;
  if (field_.kind == FieldKind::Choice) control = buildChoice();
  if (field_.kind == FieldKind::Flag) control = check_ = new QCheckBox(this);
  if (!control) control = buildText();
  if (check_)
    connect(check_, &QCheckBox::clicked, this,
            [this](bool on) { emit edited(text(field_.key), on ? "true" : "false"); });
  for (QWidget* widget : std::initializer_list<QWidget*>{combo_, check_, edit_})
    if (widget)
      widget->setAccessibleName(text(field_.label)), widget->setAccessibleDescription(text(field_.explain)),
          widget->setToolTip(text(field_.explain));
  label_->setBuddy(edit_ ? static_cast<QWidget*>(edit_) : control);
  auto* grid = grid_ = new QGridLayout(this);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(6);
  grid->setVerticalSpacing(3);
  grid->addWidget(label_, 0, 0, Qt::AlignLeft | Qt::AlignVCenter);
  grid->addWidget(control, 0, 1);
  grid->setColumnStretch(1, 1);
  setLabelWidth(kLabelWidth);
  addNotes();
}

// The explanation spans both columns, so that two or three lines are enough. Numbers have it under the section.
void FieldRow::addNotes() {
  if (edit_) edit_->installEventFilter(this);
  if (number_) return;
  explain_ = small_label(this);
  explain_->setObjectName("explain");
  explain_->setTextFormat(Qt::RichText);
  blocked_ = small_label(this);
  if (field_.kind == FieldKind::IntegerList) {
    connect(layers_, &LayerEditor::edited, this,
            [this](const QString& widths) { emit edited(text(field_.key), widths); });
    grid_->addWidget(layers_, 1, 0, 1, 2);
  }
  grid_->addWidget(explain_, 2, 0, 1, 2);
  grid_->addWidget(blocked_, 3, 0, 1, 2);
  explain_->hide(), blocked_->hide();
}

void FieldRow::setExplained(bool on) {
  explained_ = on;
  if (explain_) explain_->setVisible(on), blocked_->setVisible(on && !blocked_->text().isEmpty());
}

void FieldRow::setProblem(const QString& sentence) {
  if (sentence == problem_) return;
  problem_ = sentence;
  label_->setPalette({});
  if (!sentence.isEmpty()) paint_ink(label_, theme().worse);
  label_->setToolTip(sentence.isEmpty() ? explanation() : sentence);
  for (QWidget* widget : std::initializer_list<QWidget*>{combo_, edit_}) {
    if (!widget) continue;
    widget->setProperty("problem", !sentence.isEmpty());
    widget->style()->polish(widget);
  }
}

bool FieldRow::eventFilter(QObject* object, QEvent* event) {
  if (object == edit_ && event->type() == QEvent::FocusIn) emit focused(text(field_.key));
  return QWidget::eventFilter(object, event);
}

bool FieldRow::half() const { return number_ && leastWidth() <= kHalf; }

int FieldRow::leastWidth() const {
  int control = 0;
  if (segments_)
    for (const Segment* segment : segments_->segments()) control += segment->minimumSizeHint().width();
  if (number_) control = QFontMetrics(edit_->font()).horizontalAdvance(edit_->text()) + kFieldFrame;
  const int label = QFontMetrics(label_->font()).horizontalAdvance(shown_label(field_) + kChanged);
  return std::max(kLabelWidth, label) + grid_->horizontalSpacing() + control;
}

void FieldRow::setLabelWidth(int width) { grid_->setColumnMinimumWidth(0, width); }

QWidget* FieldRow::buildChoice() {
  if (field_.values.size() > 5) {
    combo_ = new QComboBox(this);
    combo_->setProperty("field", true);
    combo_->setFont(ui_font(12));
    combo_->setMinimumWidth(60);
    combo_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    for (const FieldValue& value : field_.values) {
      combo_->addItem(data_title(text(value.name)), text(value.name));
      combo_->setItemData(combo_->count() - 1, text(value.explain), Qt::ToolTipRole);
    }
    connect(combo_, &QComboBox::activated, this,
            [this] { emit edited(text(field_.key), combo_->currentData().toString()); });
    return combo_;
  }
  std::vector<SegmentedRow::Value> values;
  for (const FieldValue& value : field_.values)
    values.push_back({text(value.name), value_label(value.name), text(value.explain)});
  segments_ = new SegmentedRow(text(field_.label), values, this);
  connect(segments_, &SegmentedRow::picked, this,
          [this](const QString& value) { emit edited(text(field_.key), value); });
  connect(segments_, &SegmentedRow::hovered, this,
          [this](const QString& value) { explain(value.isEmpty() ? value_ : value); });
  return segments_;
}

QWidget* FieldRow::buildText() {
  edit_ = new QLineEdit(this);
  edit_->setFont(number_font(12));
  edit_->setMinimumWidth(36);
  connect(edit_, &QLineEdit::editingFinished, this, &FieldRow::commitText);
  if (field_.kind == FieldKind::IntegerList) return withLayers();
  if (field_.key == "model.layers") edit_->setPlaceholderText(tr("conv 3x3 16 | relu | linear"));
  if (field_.key == "data.label_column") return withOffered();
  if (field_.key != "data.path") return edit_;
  auto* holder = new QWidget(this);
  auto* row = new QHBoxLayout(holder);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(4);
  auto* button = new QPushButton(tr("Browse…"), holder);
  button->setProperty("small", true);
  button->setAccessibleName(tr("Browse for %1").arg(text(field_.label)));
  connect(button, &QPushButton::clicked, this, [this] { emit browse(text(field_.key)); });
  row->addWidget(edit_);
  row->addWidget(button);
  return holder;
}

// The widths as one line of text. A button opens a row for each layer.
QWidget* FieldRow::withLayers() {
  edit_->setPlaceholderText(tr("none"));
  edit_->setObjectName("widths");
  layers_ = new LayerEditor(this);
  layers_->hide();
  each_layer_ = new QToolButton(this);
  each_layer_->setText("…");
  each_layer_->setCheckable(true);
  each_layer_->setAccessibleName(tr("A row for each layer"));
  each_layer_->setToolTip(tr("Edit, move, duplicate and remove single layers"));
  connect(each_layer_, &QToolButton::toggled, layers_, &QWidget::setVisible);
  auto* holder = new QWidget(this);
  auto* row = new QHBoxLayout(holder);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(4);
  row->addWidget(edit_);
  row->addWidget(each_layer_);
  return holder;
}

QWidget* FieldRow::withOffered() {
  offered_ = new QToolButton(this);
  offered_->setIcon(theme_icon("more"));
  offered_->setAccessibleName(tr("Columns of the file"));
  offered_->setToolTip(tr("Columns of the file"));
  offered_->setPopupMode(QToolButton::InstantPopup);
  offered_->setMenu(new QMenu(offered_));
  offered_->setEnabled(false);
  auto* holder = new QWidget(this);
  auto* row = new QHBoxLayout(holder);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(4);
  row->addWidget(edit_);
  row->addWidget(offered_);
  return holder;
}

void FieldRow::setOffered(const QStringList& values) {
  offered_->menu()->clear();
  offered_->setEnabled(!values.isEmpty());
  for (const QString& value : values)
    offered_->menu()->addAction(value, this, [this, value] { emit edited(text(field_.key), value); });
}

void FieldRow::commitText() {
  const QString typed = edit_->text().trimmed();
  if (typed != value_) emit edited(text(field_.key), typed);
}

void FieldRow::refreshValue(const QString& value) {
  value_ = value;
  if (segments_) segments_->setValue(value);
  if (combo_) combo_->setCurrentIndex(combo_->findData(value));
  if (check_) check_->setChecked(value == "true");
  if (edit_ && (!edit_->hasFocus() || !edit_->isModified())) edit_->setText(value), edit_->setCursorPosition(0);
}

void FieldRow::explain(const QString& value) {
  if (!explain_) return;
  std::string_view sentence = field_.explain;
  for (const FieldValue& v : field_.values)
    if (text(v.name) == value) sentence = v.explain;
  explain_->setText(explained(sentence));
}

// Groups the blocked values by reason. A reason about another choice gets "not with" before it.
void FieldRow::refreshBlocked(const RunSpec& spec, bool cuda) {
  QMap<QString, QStringList> by_reason;
  QStringList order;
  const QString now = sentence(why_invalid(spec, cuda));
  for (const FieldValue& value : field_.values) {
    const QString name = text(value.name);
    QString reason = name == value_ ? QString() : sentence(why_not(spec, field_.key, value.name, cuda));
    if (reason == now) reason.clear();
    if (segments_) segments_->setBlocked(name, reason);
    if (reason.isEmpty()) continue;
    const QString rest = reason.startsWith(name + ": ") ? reason.mid(name.size() + 2) : tr("not with %1").arg(reason);
    if (!by_reason.contains(rest)) order << rest;
    by_reason[rest] << value_label(value.name);
  }
  QStringList lines;
  for (const QString& rest : order) lines << by_reason[rest].join(", ") + ": " + rest;
  const QString lock =
      QString("<img src=':/icons/lock-%1.svg' width='11' height='11'> ").arg(theme().dark() ? "dark" : "light");
  QStringList rich;
  for (const QString& line : lines) rich << lock + line.toHtmlEscaped();
  blocked_->setTextFormat(Qt::RichText);
  blocked_->setText(rich.join("<br>"));
  blocked_->setVisible(explained_ && !lines.isEmpty());
}

// The label is underlined if the glossary has its word.
QString FieldRow::explanation() const {
  const Word* word = word_of(shown_label(field_));
  return text(field_.explain) + (word ? '\n' + word->name + ": " + word->meaning : QString());
}

QString FieldRow::tip(const QString& difference, bool locked) const {
  return explanation() + (difference.isEmpty() ? QString() : '\n' + difference) +
         (locked ? tr("\nFixed while this run trains. A new value applies to the next run.") : QString());
}

void FieldRow::refresh(const RunSpec& spec, const Other& other, bool cuda, bool locked) {
  const QString value = QString::fromStdString(field_text(spec, field_.key));
  const QString before = QString::fromStdString(field_text(other.spec, field_.key));
  refreshValue(value);
  explain(value);
  if (segments_)
    refreshBlocked(spec, cuda);
  else if (blocked_)
    blocked_->hide();
  const bool changed = value != before;
  label_->setText(shown_label(field_) + (changed ? kChanged : QString()));
  if (segments_) segments_->setOther(before);
  const QString said = tip(changed ? tr("%1 has %2.").arg(other.name, before) : QString(), locked);
  label_->setToolTip(said);
  if (number_) edit_->setToolTip(said);
  if (layers_) layers_->setSpec(spec);
  paint_ink(label_, locked ? theme().quiet : theme().text);
  if (explain_) paint_ink(explain_, theme().quiet);
  if (blocked_) paint_ink(blocked_, theme().secondary);
}

}  // namespace ws::app
