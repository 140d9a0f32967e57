// What the Compare tab writes: reports, pictures, numbers, traces for other viewers.
#include <QFileDialog>
#include <QFileInfo>

#include "app/pages/compare/bars_view.h"
#include "app/pages/compare/compare_tab.h"
#include "app/pages/compare/step_view.h"
#include "app/pages/compare/waterfall_view.h"
#include "app/widgets/theme.h"
#include "app/widgets/chart_file.h"
#include "app/timeline/range_export.h"
#include "app/core/report/report.h"
#include "app/report/report_pages.h"
#include "app/text/units.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {

QByteArray quoted(const std::string& text) { return '"' + QByteArray::fromStdString(text).replace('"', "\"\"") + '"'; }

QByteArray waterfall_csv(const prof::Waterfall& w) {
  QByteArray out = "cause,baseline_us,candidate_us,difference_us\n";
  const auto us = [](int64_t ps) { return QByteArray::number(static_cast<double>(ps) * 1e-6, 'f', 6); };
  for (const prof::Cause& c : w.causes)
    out += quoted(prof::cause_name(c)) + ',' + us(c.a_ps) + ',' + us(c.b_ps) + ',' + us(c.delta_ps()) + '\n';
  return out + "sum," + us(w.a_ps) + ',' + us(w.b_ps) + ',' + us(w.b_ps - w.a_ps) + '\n';
}

}  // namespace

QString CompareTab::captions() const {
  QStringList lines;
  for (const Run* run : ordered()) lines << run_caption(*run);
  return lines.join('\n');
}

ChartPicture CompareTab::timelinePicture() const {
  return {"timelines",
          captions(),
          QSize(step_->width(), static_cast<int>(step_->contentHeight())),
          [this](QPainter& painter, const QRectF& area) { step_->render(painter, area); },
          {}};
}

ChartPicture CompareTab::waterfallPicture() const {
  return {"waterfall", captions(), waterfall_->size(),
          [this](QPainter& painter, const QRectF& area) { waterfall_->render(painter, area); },
          [this] { return waterfall_csv(waterfall_->byOp() ? comparison_.by_op : comparison_.waterfall); }};
}

ChartPicture CompareTab::barsPicture() const {
  const int height = 60 + 38 * static_cast<int>(bars_->runs().size());
  return {"bars", captions(), QSize(1000, height),
          [this](QPainter& painter, const QRectF& area) { bars_->render(painter, area); },
          [this] { return bars_->csv(); }};
}

void CompareTab::exportChart(ChartPicture chart) {
  try {
    if (const QString done = ask_and_write(this, std::move(chart)); !done.isEmpty()) emit said(done, false);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
}

QByteArray CompareTab::kernelsCsv() const {
  QByteArray out = "kernel,baseline_calls,candidate_calls,baseline_us,candidate_us,difference_us\n";
  for (const prof::KernelDelta& k : comparison_.kernels) {
    out += quoted(k.name);
    for (const double value : {k.a_count, k.b_count, k.a_us, k.b_us, k.delta_us()})
      out += ',' + QByteArray::number(value, 'g', 10);
    out += '\n';
  }
  return out;
}

void CompareTab::exportTable(const QString& title, const QString& name, const QByteArray& csv) {
  const QString path = QFileDialog::getSaveFileName(this, title, name, tr("CSV (*.csv)"));
  if (path.isEmpty()) return;
  try {
    prof::write_whole(path.toStdString(), csv.toStdString());
    emit said(tr("Written: %1").arg(QFileInfo(path).fileName()), false);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
}

void CompareTab::exportReport(const QString& path) {
  const std::vector<Run*> runs = ordered();
  try {
    write_report({runs.begin(), runs.end()}, path);
    emit said(tr("Report written: %1").arg(QFileInfo(path).fileName()), false);
  } catch (const std::exception& failure) {
    emit said(QString::fromUtf8(failure.what()), true);
  }
}

void CompareTab::chooseReport() {
  const QString path =
      QFileDialog::getSaveFileName(this, tr("Export report"), "report.html", tr("Reports (*.html *.pdf)"));
  if (!path.isEmpty()) exportReport(path);
}

void CompareTab::exportRange(const QString& path) {
  const TimeRange view = step_->selected().value_or(step_->range());
  const std::vector<Run*> runs = ordered();
  QStringList written;
  try {
    for (size_t i = 0; i < runs.size(); ++i) {
      if (runs[i]->trace.span_count() == 0) continue;
      const QFileInfo file(path);
      const QString ending = path.endsWith(".json.gz") ? ".json.gz" : ".json";
      const QString name = file.baseName() + (runs.size() > 1 ? "-" + QString(run_letter(runs[i]->slot)) : "") + ending;
      write_range_json(*runs[i], step_->runRange(i, view), file.dir().filePath(name));
      written << name;
    }
    if (written.isEmpty())
      emit said(tr("None of the runs has a trace to write."), true);
    else
      emit said(tr("Written: %1").arg(written.join(", ")), false);
  } catch (const std::exception& problem) {
    emit said(QString::fromUtf8(problem.what()), true);
  }
}

void CompareTab::chooseRange() {
  const QString path = QFileDialog::getSaveFileName(this, tr("Timelines as Chrome JSON"), "timeline.json",
                                                    tr("Chrome trace (*.json *.json.gz)"));
  if (!path.isEmpty()) exportRange(path);
}

}  // namespace ws::app
