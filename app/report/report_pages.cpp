#include "app/report/report_pages.h"

#include <QBuffer>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <algorithm>
#include <cmath>

#include "app/core/report/report_sections.h"
#include "app/core/report/report_figures.h"
#include "app/report/drawing_painter.h"
#include "app/workspace/compared_live_run.h"
#include "app/workspace/run.h"
#include "app/workspace/trace_source.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {

constexpr double kPageMargin = 56, kWidth = 794, kHeight = 1123;  // A4 at 96 dpi

class Page {
 public:
  explicit Page(QPdfWriter& pdf) : pdf_(pdf), painter_(&pdf) {}

  void text(const QString& text, double px, int weight = 400) {
    painter_.setFont(letters(px, weight));
    const QRectF space(kPageMargin, y_, kWidth - 2 * kPageMargin, 400);
    const QRectF used = painter_.boundingRect(space, Qt::TextWordWrap, text);
    turn(used.height());
    painter_.drawText(QRectF(kPageMargin, y_, space.width(), used.height() + 2), Qt::TextWordWrap, text);
    y_ += used.height() + 6;
  }

  // Title, picture and caption stay together.
  void figure(const ReportFigure& figure) {
    constexpr double kPageSpace = kHeight - 2 * kPageMargin - 90;  // page height without title and caption
    constexpr double kWords = 74, kLeastScale = 0.82;         // shrink a little to avoid a new page
    const double whole = figure.drawing.height, left = kHeight - kPageMargin - y_ - kWords - 1;
    const double scale = std::min(1.0, (left >= kLeastScale * whole ? left : kPageSpace) / whole), height = whole * scale;
    turn(height + kWords);
    text(QString::fromStdString(figure.title), 15, 600);
    paint_drawing(painter_, figure.drawing, {kPageMargin, y_}, scale);
    y_ += height + 10;
    text(QString::fromStdString(figure.caption), 11);
    y_ += 12;
  }

  void kernels(const KernelTable& table) {
    turn(120);
    text(QObject::tr("%1, kernels by difference").arg(QString::fromStdString(from_to(table.a, table.b))), 15, 600);
    const QString a = QString::fromStdString(table.a), b = QString::fromStdString(table.b);
    cells(QObject::tr("kernel"),
          {QObject::tr("%1, µs per step").arg(a), QObject::tr("%1, µs per step").arg(b), QObject::tr("%1 − %2, µs").arg(b, a)});
    for (const prof::KernelDelta& k : table.rows)
      cells(QString::fromStdString(prof::plain_kernel_name(k.name)),
            {QString::fromStdString(figure::fixed(k.a_us, 2)), QString::fromStdString(figure::fixed(k.b_us, 2)),
             QString::fromStdString(figure::signed_fixed(k.delta_us(), 2))});
    if (table.left_out > 0)
      cells(QObject::tr("%1 more").arg(table.left_out),
            {"", "", QString::fromStdString(figure::signed_fixed(table.left_out_us, 2))});
    y_ += 12;
  }

 private:
  // A row: a name, elided if it is long, and figures in columns.
  void cells(const QString& name, const QStringList& figures) {
    constexpr double kColumn = 78, kLine = 16;
    turn(kLine);
    const QFont font = letters(10, 400);
    painter_.setFont(font);
    const double space = kWidth - 2 * kPageMargin - kColumn * static_cast<double>(figures.size());
    painter_.drawText(QRectF(kPageMargin, y_, space, kLine), Qt::AlignLeft | Qt::AlignVCenter,
                      QFontMetricsF(font, painter_.device()).elidedText(name, Qt::ElideRight, space - 8));
    double x = kPageMargin + space;
    for (const QString& figure : figures) {
      painter_.drawText(QRectF(x, y_, kColumn, kLine), Qt::AlignRight | Qt::AlignVCenter, figure);
      x += kColumn;
    }
    y_ += kLine;
  }

  static QFont letters(double px, int weight) {
    QFont font("Inter");
    font.setPixelSize(static_cast<int>(px));
    font.setWeight(static_cast<QFont::Weight>(weight));
    font.setStyleStrategy(QFont::PreferNoShaping);  // text search does not find ligatures
    return font;
  }

  void turn(double needed) {
    if (y_ + needed < kHeight - kPageMargin) return;
    pdf_.newPage();
    y_ = kPageMargin;
  }
  QPdfWriter& pdf_;
  QPainter painter_;
  double y_ = kPageMargin;
};

void write_runs(Page& page, const std::vector<ReportRun>& runs) {
  for (size_t i = 0; i < runs.size(); ++i) {
    const ComparedRun& r = runs[i].run;
    page.text(QString::fromStdString(letter(runs, i) + "  " + r.name), 13, 600);
    QStringList facts;
    if (!r.device.empty()) facts << QString::fromStdString(r.device);
    if (r.time.known())
      facts << QObject::tr("step time %1 µs").arg(r.time.us.value, 0, 'f', 1) +
                   QString::fromStdString(step_against_first(runs, i));
    if (r.whole_run_us > 0 && r.sample.traced())
      facts << QObject::tr("%1 µs, mean with pauses").arg(r.whole_run_us, 0, 'f', 1);
    if (const double speed = r.samples_per_s(); speed > 0)
      facts << QObject::tr("%1 samples/s").arg(QString::fromStdString(figure::grouped(speed)));
    if (r.steps > 0) facts << QObject::tr("%1 steps").arg(r.steps);
    if (!runs[i].accuracy.empty())
      facts << QObject::tr("%1 % test accuracy").arg(runs[i].accuracy.back().value, 0, 'f', 2);
    if (!std::isnan(r.driver_calls)) facts << QObject::tr("%1 allocator calls per step").arg(r.driver_calls, 0, 'f', 1);
    if (r.peak_bytes > 0) facts << QObject::tr("peak memory %1").arg(QString::fromStdString(figure::bytes_text(r.peak_bytes)));
    page.text(facts.join(QStringLiteral(" · ")), 11);
  }
  const auto warnings = unfair(runs);
  if (!warnings.empty()) page.text(QObject::tr("Read with care"), 15, 600);
  for (const std::string& sentence : warnings) page.text(QString::fromStdString(sentence), 11);
  const auto rows = choices_that_differ(runs);
  if (!rows.empty()) page.text(QObject::tr("What differs"), 15, 600);
  for (const ChoiceRow& choice : rows) {
    QStringList values;
    for (size_t i = 0; i < choice.values.size(); ++i)
      values << QString::fromStdString(letter(runs, i) + " " + choice.values[i]);
    page.text(QString::fromStdString(choice.key) + ":  " + values.join(", "), 11);
  }
}

// Writes to memory first, because QPdfWriter does not report a failed write. An old file is
// replaced only by a complete report.
void write_pdf(const std::vector<ReportRun>& runs, const QString& path) {
  QBuffer memory;
  memory.open(QIODevice::WriteOnly);
  {
    QPdfWriter pdf(&memory);
    pdf.setResolution(96);
    pdf.setPageSize(QPageSize(QPageSize::A4));
    pdf.setPageMargins({});
    pdf.setTitle("Warpsight report");
    Page page(pdf);
    page.text("Warpsight report", 11);
    page.text(QString::fromStdString(headline(runs)), 22, 600);
    write_runs(page, runs);
    for (const ReportFigure& figure : figures(runs)) page.figure(figure);
    for (const ReportFigure& figure : rank_figures(runs)) page.figure(figure);
    for (const ReportFigure& figure : multiprocessor_figures(runs)) page.figure(figure);
    for (const KernelTable& table : kernel_tables(runs)) page.kernels(table);
  }
  prof::write_whole(path.toStdString(), memory.data().toStdString());
}

}  // namespace

ReportRun report_run(const Run& run) {
  ReportRun out;
  out.run = compared_run(run);
  out.letter = run.letter;
  out.created = run.created.toString(Qt::ISODate).toStdString();
  out.status = run.summary ? std::string(to_string(run.summary->status)) : run.live() ? "running" : "file";
  for (const StepPoint& p : run.steps) out.loss.push_back({p.step, p.wall_s, static_cast<double>(p.loss)});
  if (!run.regression())
    for (const EvalPoint& p : run.evals) out.accuracy.push_back({p.step, p.wall_s, 100 * p.accuracy});
  out.step = step_picture(run.marks(), run.trace, out.run.sample);
  out.ranks = TraceSource(run).ranks();  // all spans of a file, as the page Ranks
  take_ranks(out.run, out.ranks);
  out.inside = TraceSource(run).multiprocessors();
  return out;
}

void write_report(const std::vector<const Run*>& runs, const QString& path) {
  std::vector<ReportRun> all;
  for (const Run* run : runs) all.push_back(report_run(*run));
  save_report(all, path);
}

void save_report(const std::vector<ReportRun>& runs, const QString& path) {
  if (path.endsWith(".pdf")) return write_pdf(runs, path);
  prof::write_whole(path.toStdString(), report_html(runs));
}

}  // namespace ws::app
