#include "app/window/start_page.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QRadioButton>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>

#include "app/widgets/glossary.h"
#include "app/widgets/icon_label.h"
#include "app/widgets/theme.h"
#include "app/text/units.h"

namespace ws::app {
namespace {

constexpr int kCardShare = 100;  // of the row, beside 1 for the space at its end

void clear(QLayout* layout) {
  while (QLayoutItem* item = layout->takeAt(0)) {
    delete item->widget();
    delete item;
  }
}

QLabel* heading(const QString& text, QWidget* parent) {
  auto* made = new QLabel(text, parent);
  made->setFont(ui_font(12.5, 600));
  return made;
}

}  // namespace

StartCard::StartCard(const Lesson& lesson, bool cuda, bool primary, QWidget* parent)
    : QFrame(parent), lesson_(lesson), primary_(primary) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(14, 88, 14, 14);
  column->setSpacing(6);
  auto* title = new QLabel(lesson.title, this);
  title->setFont(ui_font(14, 600));
  auto* text = new WordLabel(this);
  text->setWords(text_of(lesson, cuda));
  text->setWordWrap(true);
  auto* question = new QLabel(lesson.question, this);
  question->setWordWrap(true);
  auto* row = new QHBoxLayout;
  const QStringList shipped = shipped_runs_of(lesson, cuda);
  recorded_ = !shipped.isEmpty();
  runs_ = recorded_ ? static_cast<size_t>(shipped.size()) : lesson.requests(cuda).size();
  auto* length = new QLabel(tr("%1 runs").arg(runs_), this);
  length->setFont(ui_font(11.5));
  length->setForegroundRole(QPalette::PlaceholderText);
  const QString icon = shipped.isEmpty() ? "play" : "folder";
  button_ = new QPushButton(shipped.isEmpty() ? tr("Train") : tr("Open"), this);
  button_->setIcon(theme_icon(icon));
  button_->setAccessibleName(tr("%1: %2").arg(button_->text(), lesson.title));
  button_->setMinimumWidth(70);
  row->addWidget(length, 1);
  row->addWidget(button_);
  column->addWidget(title);
  column->addWidget(text);
  column->addSpacing(2);
  column->addStretch(1);
  column->addWidget(question);
  for (const QString& answer : lesson.answers) {
    answers_.push_back(new QRadioButton(answer, this));
    connect(answers_.back(), &QRadioButton::toggled, this, qOverload<>(&QWidget::update));  // the picture shows more now
    column->addWidget(answers_.back());
  }
  column->addSpacing(4);
  column->addLayout(row);
  setMinimumSize(206, 262);
  setMaximumWidth(300);
}

int StartCard::expected() const {
  const auto chosen = std::ranges::find_if(answers_, [](const QRadioButton* answer) { return answer->isChecked(); });
  return chosen == answers_.end() ? -1 : static_cast<int>(chosen - answers_.begin());
}

void StartCard::paintEvent(QPaintEvent*) {
  const Theme& t = theme();
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(primary_ ? t.focus : t.border, primary_ ? 2 : 1));
  painter.setBrush(t.base);
  painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 5, 5);
  paint_lesson(painter, QRectF(14, 14, width() - 28, 66), {lesson_.name, runs_, recorded_, expected() >= 0});
}

StartPage::StartPage(QWidget* parent) : QWidget(parent) {
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(1, 1, 1, 1);
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFocusPolicy(Qt::NoFocus);
  auto* inside = new QWidget(scroll);
  scroll->setWidget(inside);
  outer->addWidget(scroll);
  for (QWidget* clear_ground : {scroll->viewport(), inside}) clear_ground->setAutoFillBackground(false);
  auto* column = new QVBoxLayout(inside);
  column->setContentsMargins(24, 12, 24, 6);
  column->setSpacing(6);
  auto* headline = new QLabel(tr("Change one thing. See what it costs."), inside);
  headline->setFont(ui_font(21, 600));
  sentence_ = new WordLabel(inside);
  sentence_->setWordWrap(true);
  sentence_->setMaximumWidth(860);
  column->addWidget(headline);
  column->addWidget(sentence_);
  column->addSpacing(6);
  column->addLayout(buildOwn(inside));
  column->addSpacing(8);
  column->addWidget(heading(tr("Or with a lesson"), inside));
  row_ = new QHBoxLayout;
  row_->setSpacing(10);
  column->addLayout(row_);
  column->addSpacing(8);
  column->addWidget(heading(tr("This machine"), inside));
  facts_ = new QGridLayout;
  facts_->setHorizontalSpacing(8);
  facts_->setVerticalSpacing(4);
  for (const int label : {1, 3}) facts_->setColumnStretch(label, 1);
  column->addLayout(facts_);
  column->addStretch(1);
  setDevice(nullptr);
}

void StartPage::addFact(QGridLayout* grid, int line, bool good, const QString& what, const QString& state) {
  auto* mark = new IconLabel(good ? theme_icon("check", &Theme::better) : theme_icon("warn", &Theme::worse), this);
  auto* label = new QLabel(
      QString("<b style='font-weight:600'>%1</b>&nbsp; %2").arg(what.toHtmlEscaped(), state.toHtmlEscaped()), this);
  label->setWordWrap(true);
  const int column = line % 2 * 2;  // two facts a row
  grid->addWidget(mark, line / 2, column, Qt::AlignTop);
  grid->addWidget(label, line / 2, column + 1, Qt::AlignTop);
}

void StartPage::showLessons(bool cuda) {
  clear(row_);
  cards_.clear();
  for (const Lesson* lesson : lessons(cuda)) {
    const int index = static_cast<int>(cards_.size());
    auto* card = new StartCard(*lesson, cuda, index == 0, this);
    connect(card->button(), &QPushButton::clicked, this, [this, index, card] { emit start(index, card->expected()); });
    row_->addWidget(card, kCardShare);  // all of one width
    cards_.push_back(card);
  }
  row_->addStretch(1);
}

void StartPage::setDevice(const DeviceInfo* device) {
  const bool cuda = device && device->cuda;
  showLessons(cuda);
  sentence_->setWords(tr("Warpsight trains a small network on %1 and shows the loss, every %2 and every [allocation] "
                         "as they happen. Each lesson makes two or more runs and lays them over each other. It "
                        "records your own PyTorch and CUDA programs in the same way.")
                         .arg(cuda || !device ? tr("this GPU") : tr("this CPU"), cuda || !device ? tr("[kernel]") : tr("op")));
  clear(facts_);
  if (!device) {
    addFact(facts_, 0, true, tr("Looking"), tr("for a GPU"));
    return;
  }
  if (cuda)
    addFact(facts_, 0, true, QString::fromStdString(device->name),
            tr("%1 SMs · %2 · CUDA %3")
                .arg(device->multiprocessors)
                .arg(bytes_text(static_cast<double>(device->memory_bytes)), QString::fromStdString(device->runtime)));
  else
    addFact(facts_, 0, false, tr("No GPU"), QString::fromStdString(device->why_not));
  addFact(facts_, 1, true, tr("CPU"),
          tr("%1 threads · trains everything, with a timeline of each op").arg(device->cpu_threads));
  addFact(facts_, 2, cuda, tr("Kernel and API timeline"),
          cuda ? tr("ready") : tr("needs a GPU; the CPU has its own timeline"));
  addFact(facts_, 3, true, tr("Data"), tr("MNIST and Iris are included"));
}

QLayout* StartPage::buildOwn(QWidget* inside) {
  auto* row = new QHBoxLayout;
  row->setSpacing(8);
  row->addWidget(heading(tr("Begin with your own"), inside));
  row->addSpacing(6);
  const auto add = [&](const QString& text, const QString& tip, void (StartPage::*signal)()) {
    auto* button = new QPushButton(text, inside);
    button->setToolTip(tip);
    connect(button, &QPushButton::clicked, this, signal);
    row->addWidget(button);
  };
  add(tr("Record a program…"), tr("A CUDA or Python program: PyTorch on one GPU or many, with torchrun, mpirun or srun"), &StartPage::recordWanted);
  add(tr("Open a run file…"), tr("Also of Kineto, Perfetto and Nsight Systems, and several ranks at once (Ctrl+O)"), &StartPage::openFile);
  add(tr("Connect to a machine…"), tr("Over ssh: record and train there, watch here"), &StartPage::connectWanted);
  add(tr("Your own data…"), tr("A CSV or IDX file to train on"), &StartPage::ownData);
  row->addStretch(1);
  return row;
}

void StartPage::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setPen(theme().border);
  painter.setBrush(theme().base);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

}  // namespace ws::app
