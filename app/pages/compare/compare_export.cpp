#include "app/pages/compare/compare_export.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>

#include "app/pages/compare/bars_view.h"
#include "app/pages/compare/compare_samples.h"
#include "app/pages/compare/compare_tables.h"
#include "app/pages/compare/step_view.h"
#include "app/pages/compare/waterfall_view.h"
#include "app/report/report_pages.h"
#include "app/report/share_export.h"
#include "app/widgets/chart_file.h"
#include "app/widgets/theme.h"
#include "app/timeline/range_export.h"
#include "app/text/units.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {

QByteArray waterfall_csv(const prof::Waterfall& w) {
  QByteArray out = "cause,baseline_us,candidate_us,difference_us\n";
  const auto us = [](int64_t ps) { return QByteArray::number(static_cast<double>(ps) * 1e-6, 'f', 6); };
  for (const prof::Cause& c : w.causes)
    out += '"' + QByteArray::fromStdString(prof::cause_name(c)).replace('"', "\"\"") + "\"," + us(c.a_ps) + ',' +
           us(c.b_ps) + ',' + us(c.delta_ps()) + '\n';
  return out + "sum," + us(w.a_ps) + ',' + us(w.b_ps) + ',' + us(w.b_ps - w.a_ps) + '\n';
}

}  // namespace

CompareExport::CompareExport(const ComparedRuns* compared, Views views, QWidget* parent)
    : QPushButton(tr("Export"), parent), compared_(compared), views_(views) {
  setIcon(theme_icon("export"));
  setProperty("menu", true);
  auto* menu = new QMenu(this);
  menu->addAction(tr("Report as HTML or PDF…"), this, &CompareExport::chooseReport);
  menu->addAction(tr("Page to share…"), this, [this] {
    ask_and_share_runs(this, {compared_->runs.begin(), compared_->runs.end()}, page_,
                       [this](const QString& path, const QString& problem) { problem.isEmpty() ? emit wrote(path) : emit said(problem, true); });
  });
  menu->addSeparator();
  menu->addAction(tr("Timelines as a picture…"), this, [this] { exportChart(timelinePicture()); });
  menu->addAction(tr("Timelines as Chrome JSON…"), this, &CompareExport::chooseRange);
  menu->addAction(tr("Where it went…"), this, [this] { exportChart(waterfallPicture()); });
  menu->addAction(tr("Bars…"), this, [this] { exportChart(barsPicture()); });
  menu->addAction(tr("Measures as CSV…"), this, [this] {
    exportTable(tr("Measures"), "measures.csv", CompareTables::measuresCsv(*compared_));
  });
  menu->addAction(tr("Kernels as CSV…"), this, [this] {
    exportTable(tr("Kernels"), "kernels.csv", CompareTables::kernelsCsv(compared_->comparison));
  });
  setMenu(menu);
}

QString CompareExport::captions() const {
  QStringList lines;
  for (const Run* run : compared_->runs) lines << run_caption(*run);
  return lines.join('\n');
}

ChartPicture CompareExport::timelinePicture() const {
  return {"timelines",
          captions(),
          QSize(views_.steps->width(), static_cast<int>(views_.steps->contentHeight())),
          [this](QPainter& painter, const QRectF& area) { views_.steps->render(painter, area); },
          {}};
}

ChartPicture CompareExport::waterfallPicture() const {
  const WaterfallView* view = views_.waterfall;
  return {"waterfall", captions(), view->size(),
          [view](QPainter& painter, const QRectF& area) { view->render(painter, area); },
          [this, view] {
            return waterfall_csv(view->byOp() ? compared_->comparison.by_op : compared_->comparison.by_kind);
          }};
}

ChartPicture CompareExport::barsPicture() const {
  const BarsView* view = views_.bars;
  const int height = 60 + 38 * static_cast<int>(view->runs().size());
  return {"bars", captions(), QSize(1000, height),
          [view](QPainter& painter, const QRectF& area) { view->render(painter, area); },
          [view] { return view->csv(); }};
}

void CompareExport::exportChart(ChartPicture chart) {
  try {
    if (const QString done = ask_and_write(this, std::move(chart)); !done.isEmpty()) emit said(done, false);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
}

void CompareExport::exportTable(const QString& title, const QString& name, const QByteArray& csv) {
  const QString path = QFileDialog::getSaveFileName(this, title, name, tr("CSV (*.csv)"));
  if (path.isEmpty()) return;
  try {
    prof::write_whole(path.toStdString(), csv.toStdString());
    emit wrote(path);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
}

void CompareExport::writeReport(const QString& path) {
  try {
    write_report({compared_->runs.begin(), compared_->runs.end()}, path);
    emit wrote(path);
  } catch (const std::exception& failure) {
    emit said(QString::fromUtf8(failure.what()), true);
  }
}

void CompareExport::chooseReport() {
  const QString path =
      QFileDialog::getSaveFileName(this, tr("Export report"), "report.html", tr("Reports (*.html *.pdf)"));
  if (!path.isEmpty()) writeReport(path);
}

void CompareExport::writeRange(const QString& path) {
  const TimeRange view = views_.steps->selected().value_or(views_.steps->range());
  const auto& runs = compared_->runs;
  const QFileInfo file(path);
  const QString ending = path.endsWith(".json.gz") ? ".json.gz" : ".json";
  QStringList written;
  try {
    for (size_t i = 0; i < runs.size(); ++i) {
      if (!runs[i] || runs[i]->trace.span_count() == 0) continue;
      const QString name = file.baseName() + (runs.size() > 1 ? "-" + run_letter(runs[i]->slot) : "") + ending;
      write_range_json(*runs[i], views_.steps->runRange(i, view), file.dir().filePath(name));
      written << name;
    }
    if (written.isEmpty())
      emit said(tr("None of the runs has a trace to write."), true);
    else
      emit said(written_text(file.dir().filePath(written.join(", "))), false);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
}

void CompareExport::chooseRange() {
  const QString path = QFileDialog::getSaveFileName(this, tr("Timelines as Chrome JSON"), "timeline.json",
                                                    tr("Chrome trace (*.json *.json.gz)"));
  if (!path.isEmpty()) writeRange(path);
}

}  // namespace ws::app
