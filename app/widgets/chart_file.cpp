#include "app/widgets/chart_file.h"

#include <QDialog>
#include <QDialogButtonBox>
#include <QDir>
#include <QDoubleSpinBox>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QSpinBox>
#include <QSvgGenerator>
#include <cmath>

#include "app/text/units.h"
#include "app/widgets/theme.h"
#include "profiling/base/failure.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {

constexpr double kMargin = 12;

double caption_height(const ChartPicture& chart) {
  if (chart.caption.isEmpty()) return 0;
  const QFontMetricsF metrics(ui_font(11));
  const QRectF space(0, 0, chart.size.width() - 2 * kMargin, 400);
  return metrics.boundingRect(space, Qt::TextWordWrap, chart.caption).height() + 2 * kMargin;
}

QSize whole_size(const ChartPicture& chart) {
  return {chart.size.width(), chart.size.height() + static_cast<int>(std::ceil(caption_height(chart)))};
}

void paint_whole(QPainter& painter, const ChartPicture& chart) {
  const PaintTheme white(ThemeName::Light);
  const QRectF area(QPointF(0, 0), QSizeF(whole_size(chart)));
  painter.fillRect(area, theme().base);
  painter.save();
  chart.paint(painter, QRectF(QPointF(0, 0), QSizeF(chart.size)));
  painter.restore();
  painter.setFont(ui_font(11));
  painter.setPen(theme().secondary);
  painter.drawText(area.adjusted(kMargin, chart.size.height() + kMargin / 2, -kMargin, 0), Qt::TextWordWrap,
                   chart.caption);
}

bool write_png(const ChartPicture& chart, const QString& path, double scale) {
  QImage picture(whole_size(chart) * scale, QImage::Format_RGB32);
  if (picture.isNull()) return false;
  picture.setDevicePixelRatio(scale);
  QPainter painter(&picture);
  painter.setRenderHint(QPainter::TextAntialiasing);
  paint_whole(painter, chart);
  painter.end();
  return picture.save(path, "PNG");
}

bool write_svg(const ChartPicture& chart, const QString& path) {
  QSvgGenerator svg;
  svg.setFileName(path);
  svg.setResolution(96);
  svg.setSize(whole_size(chart));
  svg.setViewBox(QRect(QPoint(0, 0), whole_size(chart)));
  svg.setTitle(chart.name.toHtmlEscaped());  // Qt does not escape these two
  svg.setDescription(chart.caption.toHtmlEscaped());
  QPainter painter;
  if (!painter.begin(&svg)) return false;
  paint_whole(painter, chart);
  return painter.end();
}

bool write_pdf_page(const ChartPicture& chart, const QString& path) {
  QPdfWriter pdf(path);
  pdf.setResolution(96);
  pdf.setTitle(chart.name);
  pdf.setPageSize(QPageSize(QSizeF(whole_size(chart)) * 72.0 / 96.0, QPageSize::Point));
  pdf.setPageMargins({});
  QPainter painter;
  if (!painter.begin(&pdf)) return false;
  paint_whole(painter, chart);
  return painter.end();
}

// Asks for size and scale, after the name is known.
bool ask_size(QWidget* parent, ChartPicture& chart, double& scale, bool png) {
  QDialog dialog(parent);
  dialog.setWindowTitle(QObject::tr("Size of the picture"));
  auto* form = new QFormLayout(&dialog);
  auto* width = new QSpinBox(&dialog);
  auto* height = new QSpinBox(&dialog);
  auto* factor = new QDoubleSpinBox(&dialog);
  for (QSpinBox* box : {width, height}) box->setRange(120, 8000), box->setSuffix(QObject::tr(" px"));
  width->setValue(chart.size.width());
  height->setValue(chart.size.height());
  factor->setRange(0.5, 6);
  factor->setSingleStep(0.5);
  factor->setValue(scale);
  form->addRow(QObject::tr("Width"), width);
  form->addRow(QObject::tr("Height"), height);
  if (png) form->addRow(QObject::tr("Scale"), factor);
  factor->setVisible(png);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Cancel, &dialog);
  form->addRow(buttons);
  QObject::connect(buttons, &QDialogButtonBox::accepted, &dialog, &QDialog::accept);
  QObject::connect(buttons, &QDialogButtonBox::rejected, &dialog, &QDialog::reject);
  if (dialog.exec() != QDialog::Accepted) return false;
  chart.size = {width->value(), height->value()};
  scale = factor->value();
  return true;
}

}  // namespace

void write_in_place(const QString& path, const std::function<bool(const QString& temporary)>& write) {
  prof::write_whole_file(path.toStdString(), [&](const std::string& part) {
    const QString temporary = QString::fromStdString(part);
    if (!write(temporary) || QFileInfo(temporary).size() == 0)
      throw Failure(part + ": cannot be written; choose a folder that you may write to, on a disk with space.");
  });
}

void write_chart(const ChartPicture& chart, const QString& path, double scale) {
  const QString ending = QFileInfo(path).suffix().toLower();
  if (ending == "csv" && chart.csv) return prof::write_whole(path.toStdString(), chart.csv().toStdString());
  if (ending == "png") return write_in_place(path, [&](const QString& file) { return write_png(chart, file, scale); });
  if (ending == "svg") return write_in_place(path, [&](const QString& file) { return write_svg(chart, file); });
  if (ending == "pdf") return write_in_place(path, [&](const QString& file) { return write_pdf_page(chart, file); });
  throw Failure(QFileInfo(path).fileName().toStdString() + ": name it .png, .svg, .pdf" +
                (chart.csv ? " or .csv." : "."));
}

QString ask_and_write(QWidget* parent, ChartPicture chart) {
  const QString kinds = QObject::tr("PNG (*.png);;SVG (*.svg);;PDF (*.pdf)") + (chart.csv ? ";;CSV (*.csv)" : "");
  QString chosen;
  QString path =
      QFileDialog::getSaveFileName(parent, QObject::tr("Export a chart"), chart.name + ".png", kinds, &chosen);
  if (path.isEmpty()) return {};
  if (QFileInfo(path).suffix().isEmpty()) path += "." + chosen.section("*.", 1).chopped(1);
  double scale = 2;
  const bool picture = !path.endsWith(".csv", Qt::CaseInsensitive);
  if (picture && !ask_size(parent, chart, scale, path.endsWith(".png", Qt::CaseInsensitive))) return {};
  write_chart(chart, path, scale);
  return written_text(path);
}

}  // namespace ws::app
