#include "app/pages/kernel_editor/kernel_page.h"

#include <QFileDialog>

#include "app/core/kernels/kernel_library.h"
#include "app/pages/kernel_editor/code_editor.h"
#include "app/pages/kernel_editor/kernel_panel.h"
#include "app/pages/one_run_page.h"
#include "app/pages/plan/plan_panel.h"
#include "app/text/qt_text.h"
#include "engine/own_kernels/kernel_versions.h"
#include "profiling/base/failure.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {

// The op of what is selected in the timeline or on Plan; empty: none.
QString selected_op(const Focus& focus) {
  const auto name_of = [](const Run* run, prof::OpTag op) { return run && op < run->trace.ops.size() ? text(run->trace.ops[op].name) : QString(); };
  if (const auto* span = focus.get<SpanChoice>()) return name_of(span->run, span->span.op);
  if (const auto* op = focus.get<OpChoice>()) return name_of(op->run, op->op);
  return {};
}

void share_copy(Workspace& workspace, KernelPanel& panel) {
  const QString path = QFileDialog::getSaveFileName(&panel, QObject::tr("Save a copy of the kernel"), panel.file(), QObject::tr("Kernels (*.cu *.ptx *.py)"));
  if (path.isEmpty()) return;
  try {
    prof::write_whole(path.toStdString(), panel.code()->text().toStdString());
    workspace.say(QObject::tr("Saved: %1").arg(path), false);
  } catch (const Failure& problem) {
    workspace.say(QString::fromUtf8(problem.what()), true);
  }
}

bool take_file(Workspace& workspace, KernelPanel& panel, const QString& path) {
  if (!own::is_kernel_file(path.toStdString())) return false;
  try {
    const std::string name = add_kernel_file(path.toStdString());
    workspace.bringToFront(&panel);
    panel.openFile(text(name));
  } catch (const Failure& problem) {
    workspace.say(QString::fromUtf8(problem.what()), true);
  }
  return true;
}

}  // namespace

Page kernel_editor_page(Workspace& workspace, QWidget* plan) {
  auto* panel = new KernelPanel(workspace);
  const auto write = [&workspace, panel](const QString& op) {
    workspace.bringToFront(panel);
    panel->openOp(op);
  };
  if (auto* ops = qobject_cast<PlanPanel*>(plan)) QObject::connect(ops, &PlanPanel::kernelWanted, panel, write);
  Page page = one_run_page(workspace, QObject::tr("Own kernel"), panel, [panel](Run* run) { panel->setRun(run); });
  page.of_training = true, page.needs = QObject::tr("It needs a training of Warpsight, or no run.");
  Choices* choices = workspace.choices();
  QObject::connect(choices, &Choices::changed, panel, [panel, choices, known = choices->cuda()]() mutable {
    if (std::exchange(known, choices->cuda()) != choices->cuda()) panel->setCuda(known);
  });
  panel->setCuda(choices->cuda());
  auto* from_timeline = page_action(panel, QObject::tr("Write my own kernel for the selection"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_K), [&workspace, write] {
    const QString op = selected_op(*workspace.focus());
    if (op.isEmpty()) return workspace.say(QObject::tr("Select a kernel of a training in the timeline first."), true);
    write(op);
  });
  auto* share = page_action(panel, QObject::tr("Save a copy of the kernel…"), {}, [&workspace, panel] { share_copy(workspace, *panel); });
  page.menus = {{MenuName::Timeline, {from_timeline}}, {MenuName::File, {share}}};
  page.open = [&workspace, panel](const QString& path) { return take_file(workspace, *panel, path); };
  return page;
}

}  // namespace ws::app
