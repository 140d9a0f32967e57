#include "app/pages/kernel_editor/kernel_panel.h"

#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QGuiApplication>
#include <QLabel>
#include <QPushButton>
#include <QShortcut>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include "app/core/kernels/kernel_library.h"
#include "app/pages/kernel_editor/code_editor.h"
#include "app/pages/kernel_editor/exercise_strip.h"
#include "app/pages/kernel_editor/kernel_tables.h"
#include "app/pages/kernel_editor/occupancy_view.h"
#include "app/pages/kernel_editor/stall_margin.h"
#include "app/pages/kernel_editor/step_change.h"
#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/empty_words.h"
#include "app/widgets/instruction_view.h"
#include "app/widgets/labels.h"
#include "app/widgets/pane.h"
#include "app/widgets/theme.h"
#include "app/workspace/workspace.h"
#include "engine/devices/devices.h"
#include "engine/devices/own_kernels.h"
#include "engine/own_kernels/kernel_contract.h"
#include "engine/own_kernels/kernel_versions.h"
#include "profiling/analysis/card.h"
#include "profiling/base/failure.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {

constexpr int kTypingMs = 350, kLookMs = 500, kRightWidth = 372;

QString shape_text(const own::Operand& o) { return QStringLiteral("%1 (%2 × %3)").arg(text(o.name)).arg(o.rows).arg(o.cols); }

QString operands_text(const own::KernelContract& contract, bool written) {
  QStringList names;
  double bytes = 0;
  for (const own::Operand& o : contract.operands)
    if (written ? o.written : o.read) names << shape_text(o), bytes += static_cast<double>(o.elements() * size_of(o.type));
  return names.join(QStringLiteral(", ")) + QStringLiteral(" · ") + bytes_text(bytes);
}

}  // namespace

KernelPanel::KernelPanel(Workspace& workspace, QWidget* parent) : QWidget(parent), workspace_(workspace) {
  strip_ = new ExerciseStrip(this);
  auto* rows = new QSplitter(Qt::Vertical, this);
  auto* top = new QSplitter(Qt::Horizontal, rows);
  auto* right = new QSplitter(Qt::Vertical, top);
  top->addWidget(makeEditor());
  for (QWidget* pane : {makeOpPane(), makeCheckPane(), makeOccupancyPane(), makeTimePane()}) right->addWidget(pane);
  top->addWidget(right);
  steps_pane_ = new Pane(tr("The step, before and after"), rows);
  steps_ = new StepPathView(steps_pane_);
  steps_->setAccessibleName(tr("The step before and after your kernel is used"));
  steps_pane_->setBody(steps_);
  rows->addWidget(steps_pane_);
  for (Pane* pane : {op_pane_, check_pane_, occupancy_pane_, time_pane_, steps_pane_}) pane->legend()->hide();
  for (QSplitter* splitter : {rows, top, right}) splitter->setChildrenCollapsible(false);
  right->setMinimumWidth(kRightWidth);
  top->setStretchFactor(0, 1), top->setSizes({760, 400});
  right->setSizes({84, 176, 120, 220}), rows->setSizes({560, 190});
  rows->setStretchFactor(0, 1);
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0), outer->setSpacing(5);
  outer->addWidget(strip_), outer->addWidget(rows, 1);
  soon_.setSingleShot(true), soon_.setInterval(kTypingMs);
  looks_.setSingleShot(true), looks_.setInterval(kLookMs);
  connect(&soon_, &QTimer::timeout, this, &KernelPanel::build);
  connect(&looks_, &QTimer::timeout, this, [this] { showUse(); showSteps(); showStalls(); });
  connect(code_, &CodeEditor::edited, this, [this] {
    good_ = false;
    chosen_ = true;
    soon_.start();
  });
  connect(&watcher_, &QFileSystemWatcher::fileChanged, this, &KernelPanel::fileChanged);
  connect(strip_, &ExerciseStrip::handInWanted, this, [this] {
    if (exercise_result_) QGuiApplication::clipboard()->setText(text(to_json_line(*exercise_result_)));
  });
  for (QTableView* table : {check_table_, time_table_}) table->viewport()->installEventFilter(this);
  connect(new QShortcut(QKeySequence(Qt::CTRL | Qt::Key_Return), this), &QShortcut::activated, this, &KernelPanel::buildAndCheck);
  connect(new QShortcut(QKeySequence(Qt::Key_F8), this), &QShortcut::activated, code_, &CodeEditor::goToNextNote);
  setRun(nullptr);
}

QWidget* KernelPanel::makeEditor() {
  auto* pane = new Pane(tr("Source"), this);
  pane->legend()->hide();
  files_ = new QComboBox(pane);
  files_->setAccessibleName(tr("Your kernels")), files_->setToolTip(tr("Your kernels. Each one is a file in CUDA (.cu), PTX (.ptx) or Triton (.py), which another editor may have open."));
  files_->setMinimumContentsLength(18);
  computes_ = new QComboBox(pane);
  computes_->setAccessibleName(tr("GPU to compile for"));
  for (const int compute : own::known_computes()) computes_->addItem(QStringLiteral("sm_%1").arg(compute), compute);
  computes_->setCurrentText(QStringLiteral("sm_90"));
  exercises_ = new QComboBox(pane);
  exercises_->setAccessibleName(tr("Exercise"));
  exercises_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  exercises_->setMinimumContentsLength(16);  // its names are read when the page is shown first
  check_ = new QPushButton(cuda_ ? tr("Build and check") : tr("Build"), pane);
  check_->setToolTip(tr("Compares the kernel with the op on many shapes, in a process of its own (Ctrl+Enter)."));
  for (QWidget* option : std::initializer_list<QWidget*>{exercises_, files_, computes_, check_}) pane->addOption(option);
  auto* body = new QWidget(pane);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(0, 0, 0, 0), column->setSpacing(0);
  stalls_ = new StallLegend(body);
  auto* parts = new QSplitter(Qt::Horizontal, body);
  code_ = new CodeEditor(parts);
  instructions_ = new InstructionView(parts);
  parts->setChildrenCollapsible(false), parts->setStretchFactor(0, 1), parts->setSizes({520, 330});
  instructions_->hide();
  state_ = label(body, ui_font(11), {.selectable = true});
  state_->setMargin(6);
  instructions_shown_ = new QPushButton(tr("Machine code"), body);
  instructions_shown_->setCheckable(true);
  instructions_shown_->setToolTip(tr("Shows the machine instructions of the kernel beside its lines, with nvdisasm of the CUDA toolkit."));
  auto* below = new QHBoxLayout;
  below->setContentsMargins(0, 2, 6, 2);
  below->addWidget(state_, 1), below->addWidget(instructions_shown_);
  column->addWidget(stalls_), column->addWidget(parts, 1), column->addLayout(below);
  pane->setBody(body);
  connect(check_, &QPushButton::clicked, this, &KernelPanel::buildAndCheck);
  connect(instructions_shown_, &QPushButton::toggled, this, &KernelPanel::showInstructions);
  connect(code_, &CodeEditor::lineChosen, this, [this](int line) {
    if (!instructions_->isHidden()) instructions_->showLine(file_.toStdString(), line);
  });
  connect(instructions_, &InstructionView::chosen, this, [this](const QString& file, int line) {
    if (prof::same_file(file.toStdString(), QFileInfo(file_).fileName().toStdString())) code_->goToLine(line);
  });
  connect(files_, &QComboBox::activated, this, [this](int index) {
    const QVariant language = files_->itemData(index);
    language.isValid() ? newIn(static_cast<own::KernelLanguage>(language.toInt())) : openFile(files_->itemText(index));
  });
  connect(computes_, &QComboBox::activated, this, &KernelPanel::build);
  connect(exercises_, &QComboBox::activated, this, [this](int index) { openExercise(exercises_->itemData(index).toString()); });
  return pane;
}

QWidget* KernelPanel::makeOpPane() {
  op_pane_ = new Pane(tr("The op"), this);
  ops_ = new QComboBox(op_pane_);
  ops_->setAccessibleName(tr("Op of the plan"));
  op_pane_->addOption(ops_);
  contract_ = label(op_pane_, ui_font(12), {.selectable = true});
  contract_->setMargin(8), contract_->setAlignment(Qt::AlignTop);
  op_pane_->setBody(contract_);
  connect(ops_, &QComboBox::textActivated, this, &KernelPanel::openOp);
  return op_pane_;
}

QWidget* KernelPanel::makeCheckPane() {
  check_pane_ = new Pane(tr("Check"), this);
  auto* body = new QWidget(check_pane_);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(0, 0, 0, 0), column->setSpacing(0);
  check_table_ = table_view(body, check_model_, check_sorter_, tr("Check by shape"));
  verdict_ = label(body, ui_font(12), {.selectable = true});
  verdict_->setMargin(6);
  column->addWidget(check_table_, 1), column->addWidget(verdict_);
  check_pane_->setBody(body);
  return check_pane_;
}

QWidget* KernelPanel::makeOccupancyPane() {
  occupancy_pane_ = new Pane(tr("Theoretical occupancy"), this);
  auto* body = new QWidget(occupancy_pane_);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(8, 4, 8, 6);
  facts_text_ = label(body, ui_font(12), {.selectable = true});
  occupancy_ = new OccupancyView(body);
  column->addWidget(facts_text_), column->addWidget(occupancy_, 1);
  occupancy_pane_->setBody(body);
  return occupancy_pane_;
}

QWidget* KernelPanel::makeTimePane() {
  time_pane_ = new Pane(tr("Time"), this);
  time_pane_->setTitle(tr("Time"), tr("beside the built-in kernel and the limits"));
  auto* body = new QWidget(time_pane_);
  time_table_ = table_view(body, time_model_, time_sorter_, tr("Time beside the built-in kernel and the limits"));
  new EmptyWords(time_table_, tr("The times appear here after the check passes."));
  use_ = new QCheckBox(tr("Use it"), body);
  use_text_ = label(body, ui_font(11), {.selectable = true});
  undo_ = new QPushButton(tr("Undo"), body);
  undo_->setToolTip(tr("Goes back to the kernel that ran before, from the next step on."));
  auto* row = new QHBoxLayout;
  row->setContentsMargins(8, 4, 8, 6), row->setSpacing(10);
  row->addWidget(use_), row->addWidget(use_text_, 1), row->addWidget(undo_);
  auto* column = new QVBoxLayout(body);
  column->setContentsMargins(0, 0, 0, 0), column->setSpacing(0);
  column->addWidget(time_table_, 1), column->addLayout(row);
  time_pane_->setBody(body);
  connect(use_, &QCheckBox::clicked, this, &KernelPanel::setUsed);
  connect(undo_, &QPushButton::clicked, this, &KernelPanel::undoUse);
  return time_pane_;
}

void KernelPanel::say(const QString& sentence, bool problem) { workspace_.say(sentence, problem); }

int KernelPanel::compute() const { return computes_->currentData().toInt(); }

QString KernelPanel::state() const { return state_->text(); }
QString KernelPanel::useText() const { return use_text_->text(); }
QString KernelPanel::contract() const { return contract_->text(); }

void KernelPanel::setCuda(bool cuda) {
  cuda_ = cuda;
  showUse(), showResults();
}

// The plan of another run: the text stays, and is built for the new plan.
void KernelPanel::setRun(Run* run) {
  if (run_ != run) {
    if (run_) disconnect(run_, nullptr, this, nullptr);
    run_ = run;
    if (run)
      connect(run, &Run::changed, this, [this] {
        if (!looks_.isActive()) looks_.start();
      });
  }
  if (isVisible() && !strip_->exercise()) takePlan();
  else if (!chosen_) plan_.reset();  // who opens the page next sees the plan of this run
  showUse(), showSteps(), showStalls();
}

void KernelPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (exercises_->count() == 0) {
    exercises_->addItem(tr("No exercise"), QString());
    try {
      for (const Exercise& e : exercises()) exercises_->addItem(text(e.name), text(e.name));
    } catch (const Failure& problem) {
      say(QString::fromUtf8(problem.what()), true);
    }
  }
  if (!plan_) takePlan();
  fillFiles();
}

bool KernelPanel::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize) watched == check_table_->viewport() ? fit_columns(*check_table_, check_model_) : fit_columns(*time_table_, time_model_);
  return QWidget::eventFilter(watched, event);
}

void KernelPanel::takePlan() {
  spec_ = run_ && run_->hasChoices() ? run_->spec : workspace_.choices()->spec();
  try {
    plan_ = plan_for_kernels(spec_);
  } catch (const Failure& problem) {
    plan_.reset();
    state_->setText(QString::fromUtf8(problem.what()));
  }
  fillOps();
  if (plan_ && ops_->count() > 0 && (op_.empty() || !chosen_)) return showOp(firstOp());
  showContract();
  if (!file_.isEmpty()) build();
}

// The op for which the run has a kernel of one's own, else the first one.
QString KernelPanel::firstOp() const {
  for (const own::KernelChoice& choice : own::kernel_choices(spec_.exec.kernels))
    if (ops_->findText(text(choice.op)) >= 0) return text(choice.op);
  return ops_->currentText();
}

void KernelPanel::fillOps() {
  ops_->clear();
  if (!plan_) return;
  for (const std::string& name : own::op_names(*plan_)) ops_->addItem(text(name));
  if (ops_->findText(text(op_)) < 0) op_.clear();
  else ops_->setCurrentText(text(op_));
}

void KernelPanel::fillFiles() {
  files_->clear();
  for (const KernelFile& file : kernel_files()) files_->addItem(text(file.name));
  if (files_->findText(file_) < 0 && !file_.isEmpty()) files_->addItem(file_);
  files_->insertSeparator(files_->count());
  for (const auto& [name, language] : {std::pair(tr("New in CUDA"), own::KernelLanguage::Cuda), {tr("New in PTX"), own::KernelLanguage::Ptx}, {tr("New in Triton"), own::KernelLanguage::Triton}})
    files_->addItem(name, static_cast<int>(language));
  files_->setCurrentText(file_);
}

// A first version for the op, in a file that is not there yet.
void KernelPanel::newIn(own::KernelLanguage language) {
  fillFiles();
  if (!plan_ || op_.empty()) return;
  const char* const ending = language == own::KernelLanguage::Ptx ? ".ptx" : language == own::KernelLanguage::Triton ? ".py" : ".cu";
  try {
    const std::string first = first_kernel(own::contract_of(*plan_, own::find_op(*plan_, op_)), language);
    chosen_ = true;
    openText(text(new_kernel_name(op_, ending)), text(first));
    build();
  } catch (const Failure& problem) {
    say(QString::fromUtf8(problem.what()), true);
  }
}

void KernelPanel::openOp(const QString& op) {
  if (!plan_) takePlan();
  if (!plan_) return;
  chosen_ = true;
  showOp(op);
}

// Shows the kernel that the run uses for this op, else a new first version.
void KernelPanel::showOp(const QString& op) {
  try {
    op_ = plan_->ops[own::find_op(*plan_, op.toStdString())].name;
    const own::KernelContract contract = own::contract_of(*plan_, own::find_op(*plan_, op_));
    QString name = text(new_kernel_name(op_)), first = text(own::first_version(contract));
    for (const own::KernelChoice& choice : own::kernel_choices(spec_.exec.kernels)) {
      if (choice.op != op_) continue;
      name = text(choice.file);
      if (run_)
        if (const auto ran = run_->sources.find(choice.name()); ran != run_->sources.end()) first = text(ran->second);  // the file may be on another machine
    }
    openText(name, first);
  } catch (const Failure& problem) {
    return say(QString::fromUtf8(problem.what()), true);
  }
  ops_->setCurrentText(text(op_));
  showContract();
  build();
}

void KernelPanel::openExercise(const QString& name) {
  try {
    if (name.isEmpty()) {
      if (!strip_->exercise()) return;
      strip_->setExercise({});
      chosen_ = false;
      return takePlan();
    }
    const Exercise exercise = find_exercise(name.toStdString());
    const Plan plan = plan_for_kernels(spec_of(exercise));
    spec_ = spec_of(exercise), plan_ = plan, op_ = exercise.op, chosen_ = true;
    strip_->setExercise(exercise);
    exercises_->setCurrentText(text(exercise.name));
    fillOps();
    openText(text(exercise.name) + QStringLiteral(".cu"), text(starter_file(exercise)));
  } catch (const Failure& problem) {
    return say(QString::fromUtf8(problem.what()), true);
  }
  exercise_result_.reset();
  showContract();
  build();
}

void KernelPanel::openFile(const QString& name) {
  chosen_ = true;
  openText(name, {});
  build();
}

// `first_text`: of a file that is not there yet. It is written with the first build.
void KernelPanel::openText(const QString& name, const QString& first_text) {
  if (!watcher_.files().isEmpty()) watcher_.removePaths(watcher_.files());
  file_ = name, saved_.clear(), results_.clear(), facts_.reset(), good_ = false;
  const std::string path = kernel_path(name.toStdString());
  code_->setLanguage(own::language_of(path));
  if (QFileInfo::exists(text(path)) || first_text.isEmpty()) {
    try {
      saved_ = text(own::read_source({{}, path, {}}).text);
    } catch (const Failure& problem) {
      say(QString::fromUtf8(problem.what()), true);
    }
    code_->setText(saved_);
    watcher_.addPath(text(path));
  } else {
    code_->setText(first_text);
  }
  fillFiles();
  showResults(), showUse(), showStalls();
}

bool KernelPanel::save() {
  if (file_.isEmpty() || code_->text() == saved_) return !file_.isEmpty();
  const std::string path = kernel_path(file_.toStdString());
  try {
    if (!prof::write_shared(path, code_->text().toStdString())) throw Failure(path + ": this file cannot be written. Check the folder's permissions.");
  } catch (const Failure& problem) {
    say(QString::fromUtf8(problem.what()), true);
    return false;
  }
  saved_ = code_->text();
  if (!watcher_.files().contains(text(path))) watcher_.addPath(text(path));
  if (files_->findText(file_) < 0) fillFiles();
  return true;
}

// Another editor saved the file, or it is gone. Many editors replace a file, so it is watched again.
void KernelPanel::fileChanged() {
  const QString path = text(kernel_path(file_.toStdString()));
  if (!QFileInfo::exists(path)) return say(tr("%1 was removed. Its text is still in the editor; the next change writes it again.").arg(file_), true);
  if (!watcher_.files().contains(path)) watcher_.addPath(path);
  QString now;
  try {
    now = text(own::read_source({{}, path.toStdString(), {}}).text);
  } catch (const Failure&) {
    return;  // another editor is writing it
  }
  if (now == saved_) return;
  saved_ = now;
  code_->replaceText(now);
  soon_.stop();
  cuda_ ? buildAndCheck() : build();
}

void KernelPanel::build() {
  soon_.stop();
  if (!plan_ || op_.empty() || (chosen_ && !save())) return;
  building_.drop();
  const OwnKernelSource source{kernel_path(file_.toStdString()), code_->text().toStdString()};
  building_.start(
      [this, plan = *plan_, op = op_, source, compute = compute()](const Job::Side& side) {
        QElapsedTimer timer;
        timer.start();
        const own::KernelBuild made = build_own_kernel(plan, op, source, compute);
        side.post([this, made, seconds = static_cast<double>(timer.nsecsElapsed()) * 1e-9] { takeBuild(made, seconds); });
      },
      [this](const QString& problem) {
        if (problem.isEmpty()) return;
        state_->setText(problem);
        facts_.reset();
        showFacts();
      });
}

void KernelPanel::takeBuild(const own::KernelBuild& build, double seconds) {
  code_->setNotes(build.notes);
  const auto errors = std::ranges::count(build.notes, true, &own::BuildNote::error), warnings = std::ssize(build.notes) - errors;
  QStringList parts{build.good() ? tr("built for %1 in %2 s").arg(computes_->currentText(), fixed_text(seconds, 2)) : tr("does not compile for %1").arg(computes_->currentText())};
  if (errors > 0) parts << (errors == 1 ? tr("1 error") : tr("%1 errors").arg(errors));
  if (warnings > 0) parts << (warnings == 1 ? tr("1 warning") : tr("%1 warnings").arg(warnings));
  if (!build.good() && used_) parts << tr("the last good kernel stays in use");
  state_->setText(parts.join(QStringLiteral(" · ")));
  facts_ = build.facts, code_built_ = build.code, entry_ = build.entry;
  showFacts(), showStalls();
}

void KernelPanel::showInstructions(bool shown) {
  instructions_shown_->setChecked(shown);
  instructions_->setVisible(shown);
  fillInstructions();
}

// The run if it sampled this text, else the build, gives the instructions.
void KernelPanel::fillInstructions() {
  if (instructions_->isHidden()) return;
  const std::string file = QFileInfo(file_).fileName().toStdString();
  sampled_kernel_.clear();
  if (run_ && !file.empty() && sampledThisText())
    for (const prof::StallRow& row : prof::stalls_by_kernel(run_->trace))
      if (sampled_kernel_.empty() && prof::same_file(row.file, file)) sampled_kernel_ = row.kernel;
  if (sampled_kernel_.empty() && code_built_.empty()) return instructions_->setRows({}, tr("A build fills this."));
  const std::vector<prof::SampledCode> codes = sampled_kernel_.empty() ? std::vector<prof::SampledCode>() : prof::code_of(run_->trace, sampled_kernel_);
  std::string of(code_built_.begin(), code_built_.end());
  if (!sampled_kernel_.empty()) {
    of = sampled_kernel_;
    for (const prof::SampledCode& code : codes) of += " " + std::to_string(code.module);
  }
  if (of == texts_of_) return disassembling_.running() ? void() : takeInstructions();
  texts_of_ = of, texts_.clear();
  disassembling_.drop();
  disassembling_.start(
      [this, codes, cubin = code_built_, entry = entry_, sampled = !sampled_kernel_.empty()](const Job::Side& side) {
        std::vector<prof::Disassembly> texts;
        for (const prof::SampledCode& code : codes) texts.push_back(prof::disassembled(code));
        if (!sampled) texts.push_back(prof::disassembled(std::string_view(cubin.data(), cubin.size()), entry));
        side.post([this, texts] { texts_ = texts; });
      },
      [this](const QString&) { takeInstructions(); });
}

void KernelPanel::takeInstructions() {
  const QString missing = texts_.empty() ? QString() : text(texts_.front().missing);
  if (!sampled_kernel_.empty() && run_) return instructions_->setRows(prof::stalls_by_instruction(run_->trace, sampled_kernel_, texts_), missing);
  instructions_->setRows(texts_.empty() ? std::vector<prof::StallRow>() : prof::rows_of(texts_.front(), entry_), missing);
}

// How many the GPU of the run, or of this machine, has. 0: not known.
int KernelPanel::multiprocessors() const {
  const prof::Card card = run_ && run_->reader ? prof::card_of(run_->reader->summary()) : prof::Card();
  const bool same = card.major * 10 + card.minor == compute();
  return same ? card.multiprocessors : cuda_ ? device_info().multiprocessors : 0;
}

// "100 of 132 multiprocessors get no block". Empty if each gets one.
QString KernelPanel::spreadText() const {
  constexpr int kMostKnown = 192;  // multiprocessors of a GPU
  const int all = multiprocessors();
  const auto blocks = static_cast<int64_t>(facts_->blocks);
  if (blocks >= (all > 0 ? all : kMostKnown)) return {};
  return all > 0 ? tr("%1 of %2 multiprocessors get no block").arg(all - blocks).arg(all)
                 : tr("%1 blocks: at most %1 multiprocessors have one").arg(blocks);
}

void KernelPanel::showFacts() {
  const auto occupancy = facts_ && facts_->has_kernel ? own::occupancy_of(*facts_, compute()) : std::nullopt;
  const QString spread = occupancy ? spreadText() : QString();
  occupancy_->setOccupancy(occupancy, occupancy ? static_cast<int64_t>(facts_->blocks) : 0, multiprocessors());
  const auto fit = [](const own::Occupancy& o) {
    const QString warps = tr("at most %1 of %2 warps of a multiprocessor").arg(o.warps).arg(o.most_warps);
    return o.warps == o.most_warps ? warps : tr("%1, limit: %2").arg(warps, text(o.limit()));
  };
  if (!occupancy) occupancy_pane_->setTitle(tr("Theoretical occupancy"), tr("warps that a multiprocessor holds, after a build"));
  else if (!spread.isEmpty() && multiprocessors() > 0) occupancy_pane_->setTitle(tr("Theoretical occupancy"), spread);
  else occupancy_pane_->setTitle(tr("Theoretical occupancy"), fit(*occupancy), tr("at most %1 of %2 warps").arg(occupancy->warps).arg(occupancy->most_warps));
  if (!facts_) return facts_text_->clear();
  if (!facts_->has_kernel) return facts_text_->setText(tr("The source has no kernel named %1.").arg(QString::fromUtf8(own::kEntry)));
  QStringList lines{tr("%1 blocks × %2 threads · %3 instructions").arg(facts_->blocks).arg(facts_->threads).arg(facts_->instructions),
                    tr("%1 registers per thread · %2 of shared memory per block").arg(facts_->registers).arg(bytes_text(facts_->shared_bytes + facts_->dynamic_bytes))};
  if (multiprocessors() == 0 && !spread.isEmpty()) lines << spread;
  if (facts_->local_bytes > 0) lines << tr("%1 bytes of each thread are in local memory").arg(facts_->local_bytes);
  if (occupancy)
    facts_text_->setToolTip(tr("Blocks that a multiprocessor holds: %1 by registers, %2 by shared memory, %3 by threads.")
                                .arg(occupancy->by_registers).arg(occupancy->by_shared).arg(occupancy->by_threads));
  facts_text_->setText(lines.join('\n'));
}

void KernelPanel::showContract() {
  if (!plan_ || op_.empty()) {
    op_pane_->setTitle(tr("The op"), QString());
    return contract_->setText(tr("Choose an op of the plan: its kernel is what you write."));
  }
  const own::KernelContract contract = own::contract_of(*plan_, own::find_op(*plan_, op_));
  op_pane_->setTitle(tr("The op"), text(contract.meaning));
  contract_->setText(tr("reads %1\nwrites %2\nwork %3 FLOP · %4").arg(operands_text(contract, false), operands_text(contract, true),
                                                                       count_text(flops(*plan_, contract.op)), text(to_string(spec_.exec.precision))));
}

void KernelPanel::buildAndCheck() {
  chosen_ = true;
  build();
  if (!plan_ || op_.empty() || file_.isEmpty()) return;
  if (!cuda_) return say(tr("A check needs an NVIDIA GPU. Here the kernel is compiled, for the GPU chosen above it."), false);
  checking_.drop();
  results_.clear();
  const std::optional<Exercise> exercise = strip_->exercise();
  const KernelToCheck kernel{op_, kernel_path(file_.toStdString()), exercise ? checked_shapes_of(*exercise) : checked_shapes(spec_)};
  verdict_->setText(tr("Checking…"));
  checking_.start(
      [this, kernel, exercise, program = checker_](const Job::Side& side) {
        const auto arrived = [this, &side](const ShapeResult& result) {
          side.post([this, result] { takeResult(result); });
          return !*side.cancelled();
        };
        const std::vector<ShapeResult> results = check_kernel(kernel, arrived, {}, program);
        std::optional<ExerciseResult> made;
        if (exercise && !results.empty()) made = exercise_result(*exercise, kernel.file, results);
        side.post([this, made, shapes = kernel.shapes.size()] { takeEnd(made, shapes); });
      },
      [this](const QString& problem) {
        if (!problem.isEmpty()) verdict_->setText(problem);
      });
}

// A kernel in use that is right on the shapes of the run goes on with its new text at once. The other shapes follow.
void KernelPanel::takeResult(const ShapeResult& result) {
  results_.push_back(result);
  showResults();
  if (used_ && results_.size() == 1 && result.good()) switchTo(withKernel(true));
}

void KernelPanel::takeEnd(const std::optional<ExerciseResult>& exercise, size_t shapes) {
  good_ = results_.size() == shapes && results_.back().good();
  exercise_result_ = exercise;
  if (exercise) strip_->setResult(*exercise);
  if (used_ && !good_) {
    used_ = false;
    switchTo(withKernel(false));
    say(tr("%1 is no longer used: %2").arg(file_, text(results_.empty() ? "" : results_.back().sentence)), true);
  }
  showResults(), showUse();
}

void KernelPanel::showResults() {
  check_model_.setTable(check_table(results_));
  fit_columns(*check_table_, check_model_);
  time_model_.setTable(time_table(results_.empty() ? OwnKernelVerdict{} : results_.front().verdict, spec_.exec.precision));
  fit_columns(*time_table_, time_model_);
  const bool checks = checking_.running() && !results_.empty() && results_.back().good();
  const QString state = results_.empty() ? tr("the results of your kernel, shape by shape") : good_ ? tr("passed") : checks ? tr("running") : tr("failed");
  check_pane_->setTitle(tr("Check"), cuda_ ? state : QString());
  check_table_->setVisible(cuda_);
  time_pane_->setVisible(cuda_);
  verdict_->setAlignment(cuda_ ? Qt::AlignLeft | Qt::AlignVCenter : Qt::AlignCenter);
  if (results_.empty())
    return verdict_->setText(cuda_ ? tr("Ctrl+Enter compares it with the op on the CPU, on several shapes.")
                                   : tr("Check and time need an NVIDIA GPU. Here the kernel is compiled: see its occupancy, and Machine code."));
  const ShapeResult& last = results_.back();
  verdict_->setText(last.good() ? tr("Right on %1 shapes. No access outside of its buffers.").arg(results_.size()) : text(last.shape + ": " + last.sentence));
}

std::string KernelPanel::withKernel(bool used) const {
  std::vector<own::KernelChoice> choices = own::kernel_choices(workspace_.session()->busy() && run_ && run_->live() ? run_->spec.exec.kernels : workspace_.choices()->spec().exec.kernels);
  std::erase_if(choices, [this](const own::KernelChoice& choice) { return choice.op == op_; });
  if (used) choices.push_back({op_, file_.toStdString(), {}});
  return own::kernel_choices_text(choices);
}

QString KernelPanel::whyNotUsed() const {
  if (!cuda_) return tr("Needs an NVIDIA GPU.");
  if (strip_->exercise()) return tr("An exercise has its own shapes. Choose No exercise to train with this kernel.");
  if (!good_) return tr("The switch opens when the check passes.");
  if (workspace_.session()->busy() && workspace_.session()->remote()) return tr("The training is on another machine, which does not have this file.");
  RunSpec with = spec_;
  with.exec.kernels = withKernel(true);
  const auto why = why_invalid(with, cuda_);
  return why ? text(why->text) : QString();
}

void KernelPanel::setUsed(bool used) {
  before_use_ = withKernel(!used);
  used_ = used;
  switchTo(withKernel(used));
  showUse();
}

void KernelPanel::undoUse() {
  used_ = !used_;
  switchTo(before_use_);
  showUse();
}

// Takes effect at the next step of the training, and in every next one.
void KernelPanel::switchTo(const std::string& kernels) {
  const bool training = workspace_.session()->busy() && !workspace_.session()->remote() && run_ && run_->live();
  if (training) workspace_.session()->change(QStringLiteral("exec.kernels"), text(kernels));
  workspace_.choices()->set(QStringLiteral("exec.kernels"), text(kernels));
}

void KernelPanel::showUse() {
  const QString why = whyNotUsed();
  use_->setEnabled(why.isEmpty() || used_);
  use_->setChecked(used_);
  undo_->setEnabled(used_);
  const auto changed = run_ ? kernel_change(*run_) : std::nullopt;
  if (!used_) return use_text_->setText(why);
  use_text_->setText(changed ? tr("used from step %1 on").arg(count_text(*changed + 1)) : tr("used in the next training"));
}

// False if the run used another text of this file: its lines are not those that were sampled.
bool KernelPanel::sampledThisText() const {
  for (const own::KernelChoice& choice : own::kernel_choices(run_->spec.exec.kernels))
    if (QFileInfo(text(choice.file)).fileName() == QFileInfo(file_).fileName())
      if (const auto ran = run_->sources.find(choice.name()); ran != run_->sources.end()) return ran->second == code_->text().toStdString();
  return true;
}

// The samples of this file in the run. Another kernel's file has none.
void KernelPanel::showStalls() {
  fillInstructions();
  const std::vector<prof::StallRow> lines = run_ && !file_.isEmpty() ? prof::stalls_of_file(run_->trace, QFileInfo(file_).fileName().toStdString()) : std::vector<prof::StallRow>{};
  code_->setStalls(lines);
  if (!lines.empty() && !sampledThisText()) {
    code_->setStalls({});
    return stalls_->setSentence(tr("The text has changed since it was sampled."));
  }
  if (!lines.empty()) return stalls_->setLines(lines);
  const bool others = run_ && !run_->trace.stalls.instructions().empty();
  stalls_->setSentence(others ? tr("This run has samples, but none of this file. Train with the kernel in use, and with X-ray in the box of trace levels.")
                              : text(prof::no_samples_text(run_ ? run_->xray_note.toStdString() : std::string())));
}

void KernelPanel::showSteps() {
  const auto changed = run_ ? kernel_change(*run_) : std::nullopt;
  std::vector<PathPicture> pictures = changed ? pictures_around(*run_, *changed) : std::vector<PathPicture>{};
  steps_pane_->setVisible(!pictures.empty());
  if (pictures.empty()) return steps_->setPictures({});
  const double saved = pictures[0].length_us - pictures[1].length_us;
  steps_pane_->setTitle(tr("The step, before and after"), tr("%1 → %2: %3 µs").arg(step_time_text(pictures[0].length_us), step_time_text(pictures[1].length_us), fixed_text(-saved, 1)));
  steps_->setPictures(std::move(pictures));
}

}  // namespace ws::app
