#include "app/lab/lab_tab.h"

#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPainter>
#include <QPdfWriter>
#include <QPushButton>
#include <QSaveFile>
#include <QSplitter>
#include <QSvgGenerator>
#include <QTableWidget>
#include <QVBoxLayout>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/charts/pane.h"
#include "app/panels/panel_table.h"
#include "app/panels/theme.h"
#include "app/panels/units.h"
#include "app/window/main_window.h"
#include "engine/executor.h"

namespace ws::app {
namespace {

QString label_of(lab::Way way) {
  const auto label = lab::info(way).label;
  return QString::fromUtf8(label.data(), static_cast<int>(label.size()));
}

// What another sweep wrote, ours or that of the PyTorch script: only the points matter.
lab::LabResult result_from_json(const nlohmann::json& object) {
  lab::LabResult result;
  for (const auto& p : object.at("points")) {
    lab::LabPoint point;
    const std::string name = p.at("way").get<std::string>();
    for (const lab::WayInfo& way : lab::ways())
      if (way.name == name) point.way = way.way;
    point.size = p.at("size").get<int64_t>();
    point.median_s = p.at("median_s").get<double>();
    point.flops = p.value("flops", int64_t{0});
    point.bytes = p.value("bytes", int64_t{0});
    result.points.push_back(point);
  }
  return result;
}

}  // namespace

LabTab::LabTab(QWidget* parent) : QWidget(parent), job_(new LabJob(this)) {
  auto* split = new QHBoxLayout(this);
  split->setContentsMargins(5, 5, 5, 5);
  split->setSpacing(5);
  split->addWidget(buildSetup());
  split->addWidget(buildCharts(), 1);
  operations_->setCurrentRow(0);
  connect(job_, &LabJob::changed, this, &LabTab::showResult);
  connect(job_, &LabJob::progressed, this, [this](int done, int of, const QString& what) {
    state_->setText(tr("%1 of %2: %3").arg(done).arg(of).arg(what));
  });
  connect(job_, &LabJob::ended, this, [this](const QString& problem) {
    run_->setText(tr("Measure"));
    const auto& r = job_->result();
    const QString done =
        r.cancelled ? tr("Cancelled; %1 points kept").arg(r.points.size()) : tr("%1 points").arg(r.points.size());
    state_->setText(problem.isEmpty() ? done : problem);
    export_->setEnabled(!r.points.empty());
  });
  if (!device_info().cuda) state_->setText(tr("Only the CPU's curves: no GPU"));
  showStory();
}

QWidget* LabTab::buildCharts() {
  chart_ = new LabChart(LabAxis::Time);
  chart_->setEmptyText(tr("Choose an operation and press Measure: one curve a way, a point a size, as they come."));
  throughput_ = new LabChart(LabAxis::Flops);
  throughput_->setCompact(true);
  throughput_->setEmptyText(tr("Arithmetic a second"));
  for (LabChart* chart : {chart_, throughput_}) connect(chart, &LabChart::cursorMoved, this, &LabTab::setCursorSize);
  auto* top = new Pane(tr("Time of one call"), this);
  top->setTitle(tr("Time of one call"), tr("median · band: 5th to 95th percentile"));
  top->setBody(chart_);
  auto* rate = new Pane(tr("Throughput"), this);
  rate->setTitle(tr("Throughput"), tr("higher is better"));
  rate->setBody(throughput_);
  crossovers_ = new QTableWidget(0, 5, this);
  crossovers_->setHorizontalHeaderLabels(
      {tr("slower below"), tr("faster above"), tr("N"), tr("time"), tr("gain at the end")});
  style_table(*crossovers_, tr("Crossovers"));
  crossovers_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  crossovers_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  auto* crossings = new Pane(tr("Crossovers"), this);
  crossings->setTitle(tr("Crossovers"), tr("from this N on, the second is faster"));
  crossings->setBody(crossovers_);
  auto* note = new Pane(tr("What it says"), this);
  auto* text = new QWidget(note);
  auto* lines = new QVBoxLayout(text);
  lines->setContentsMargins(12, 8, 12, 8);
  story_title_ = new QLabel(text);
  story_title_->setFont(ui_font(12.5, 600));
  story_title_->setWordWrap(true);
  story_ = new QLabel(text);
  story_->setWordWrap(true);
  story_->setTextFormat(Qt::PlainText);
  story_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  lines->addWidget(story_title_);
  lines->addWidget(story_);
  lines->addStretch(1);
  note->setBody(text);
  auto* bottom = new QSplitter(Qt::Horizontal, this);
  for (QWidget* pane : {static_cast<QWidget*>(rate), static_cast<QWidget*>(crossings), static_cast<QWidget*>(note)})
    bottom->addWidget(pane);
  bottom->setSizes({400, 440, 330});
  auto* all = new QSplitter(Qt::Vertical, this);
  all->addWidget(top);
  all->addWidget(bottom);
  all->setStretchFactor(0, 5);
  all->setStretchFactor(1, 2);
  for (QSplitter* s : {bottom, all}) s->setHandleWidth(5);
  return all;
}

void LabTab::run() {
  try {
    const lab::LabSpec wanted = spec();
    if (!job_->result().points.empty() && job_->result().spec.operation == wanted.operation)
      overlays_ = {job_->result()};
    else
      overlays_.clear();
    job_->start(wanted);
    run_->setText(tr("Stop"));
    state_->setText(tr("Measuring the card's ceilings"));
    showResult();
  } catch (const Failure& failure) {
    state_->setText(QString::fromUtf8(failure.what()));
  }
}

void LabTab::showResult() {
  const bool complete = !job_->running();
  chart_->setResult(job_->result(), complete ? overlays_ : std::vector<lab::LabResult>{});
  throughput_->setResult(job_->result(), {});
  showCrossovers();
  showStory();
}

void LabTab::showCrossovers() {
  const auto found = lab::crossovers(job_->result());
  const auto last_time = [&](lab::Way way) {
    double seconds = 0;
    int64_t size = 0;
    for (const lab::LabPoint& p : job_->result().points)
      if (p.way == way && p.ok && p.size > size) size = p.size, seconds = p.median_s;
    return seconds;
  };
  crossovers_->setRowCount(static_cast<int>(found.size()));
  for (int row = 0; row < crossovers_->rowCount(); ++row) {
    const lab::Crossover& c = found[static_cast<size_t>(row)];
    const QString cells[] = {label_of(c.slower_below), label_of(c.faster_above), count_text(std::llround(c.size)),
                             time_axis_text(c.seconds * 1e6),
                             significant_text(last_time(c.slower_below) / last_time(c.faster_above)) + "×"};
    for (int column = 0; column < 5; ++column) {
      auto* item = new QTableWidgetItem(cells[column]);
      if (column > 1) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      crossovers_->setItem(row, column, item);
    }
  }
}

// The page of the chosen sweep, and below it what this machine measured.
void LabTab::showStory() {
  const auto& result = job_->result();
  double launch = 0, work = 0;
  int64_t at = 0;
  for (const lab::LabPoint& p : result.points) {
    if (p.way == lab::Way::GpuUnsynced && p.ok && p.size >= at) at = p.size, launch = p.median_s;
    if (p.way == lab::Way::GpuResident && p.ok && p.size == at) work = p.median_s;
  }
  QStringList lines;
  if (!page_.isEmpty()) lines << page_;
  if (launch > 0 && work > launch)
    lines << tr("At N = %1 the clock that does not wait reads %2; the work takes %3. It shows %4× too little.")
                 .arg(count_text(at), time_axis_text(launch * 1e6), time_axis_text(work * 1e6),
                      significant_text(work / launch));
  for (const lab::LabPoint& p : result.points)
    if (!p.ok) {
      lines << QString::fromStdString(p.note);
      break;
    }
  if (!result.message.empty()) lines << QString::fromStdString(result.message);
  if (lines.isEmpty())
    lines << tr(
        "Each point is checked against the CPU in float64. Dashed curves are pitfalls: they are shown so that you know "
        "them.");
  story_title_->setText(launch > 0 ? tr("The dashed curve is not the work") : tr("How to read this"));
  story_->setText(lines.join("\n\n"));
}

void LabTab::setCursorSize(double size) {
  chart_->setCursorSize(size);
  throughput_->setCursorSize(size);
}

bool LabTab::openResult(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return false;
  const auto object = nlohmann::json::parse(file.readAll().toStdString(), nullptr, false);
  if (!object.is_object() || !object.contains("points")) return false;
  try {
    overlays_.push_back(result_from_json(object));
  } catch (const std::exception&) {
    return false;
  }
  showResult();
  return true;
}

namespace {

bool write_vector(const QString& path, const LabChart& chart, const QSize& size) {
  const QRectF area(QPointF(0, 0), QSizeF(size));
  if (path.endsWith(".svg")) {
    QSvgGenerator svg;
    svg.setFileName(path);
    svg.setSize(size);
    svg.setViewBox(area);
    svg.setTitle("Warpscope");
    QPainter painter;
    if (!painter.begin(&svg)) return false;
    chart.render(painter, area);
    return painter.end();
  }
  QPdfWriter pdf(path);
  pdf.setResolution(96);
  pdf.setPageSize(QPageSize(QSizeF(size) * 72 / 96, QPageSize::Point));
  pdf.setPageMargins({});
  QPainter painter;
  if (!painter.begin(&pdf)) return false;
  chart.render(painter, area);
  return painter.end();
}

bool write_text(const QString& path, const std::string& text) {
  QSaveFile file(path);
  return file.open(QIODevice::WriteOnly) &&
         file.write(text.data(), static_cast<qint64>(text.size())) == static_cast<qint64>(text.size()) && file.commit();
}

}  // namespace

void LabTab::exportTo(const QString& path) {
  bool good = false;
  if (path.endsWith(".csv"))
    good = write_text(path, lab::to_csv(job_->result()));
  else if (path.endsWith(".json"))
    good = write_text(path, to_json(job_->result()).dump(1));
  else if (path.endsWith(".svg") || path.endsWith(".pdf"))
    good = write_vector(path, *chart_, {1100, 620});
  else {
    QImage image(2200, 1240, QImage::Format_RGB32);
    image.setDevicePixelRatio(2);
    QPainter painter(&image);
    chart_->render(painter, QRectF(0, 0, 1100, 620));
    painter.end();
    good = image.save(path, "PNG");
  }
  state_->setText(good ? tr("Written: %1").arg(QFileInfo(path).fileName()) : tr("%1 cannot be written").arg(path));
}

void LabTab::chooseExport() {
  const QString path = QFileDialog::getSaveFileName(this, tr("Export"), "lab.svg",
                                                    tr("Figures and data (*.png *.svg *.pdf *.csv *.json)"));
  if (!path.isEmpty()) exportTo(path);
}

void add_lab(MainWindow& window) {
  auto* tab = new LabTab(&window);
  window.addTab(QObject::tr("Lab"), tab, [](const std::vector<Run*>&) {});
  window.addOpener([tab](const QString& path) { return path.endsWith(".json") && tab->openResult(path); });
}

}  // namespace ws::app
