#include "app/text/units.h"

#include <QDir>
#include <QFileInfo>
#include <QObject>
#include <QRegularExpression>
#include <QString>
#include <cmath>

#include "profiling/base/text.h"

namespace ws::app {
namespace {

// Turns "-12345.6" into "−12 345.6" with no-break spaces, and "3.2e-05" into "3.2·10⁻⁵".
QString for_window(const std::string& plain) {
  static const QString raised = QString::fromUtf8("⁰¹²³⁴⁵⁶⁷⁸⁹");
  QString text = QString::fromStdString(plain);
  if (text == QString::fromUtf8("–")) return QStringLiteral("—");
  if (const auto power = text.indexOf("e-"); power > 0) {
    QString digits;
    for (QChar digit : QString::number(text.mid(power + 2).toInt())) digits += raised[digit.digitValue()];
    text = text.left(power) + QString::fromUtf8("·10⁻") + digits;
  }
  const qsizetype first = text.startsWith('-');
  if (first) text[0] = QChar(0x2212);
  qsizetype whole = first;
  while (whole < text.size() && text[whole].isDigit()) ++whole;
  for (auto at = whole - 3; at > first; at -= 3) text.insert(at, QChar(0x202F));
  return text;
}

}  // namespace

QString count_text(int64_t value) { return for_window(std::to_string(value)); }
QString fixed_text(double value, int decimals) { return for_window(fixed(value, decimals)); }
QString significant_text(double value, int digits) { return for_window(significant(value, digits)); }
QString duration_text(double seconds) { return for_window(ws::duration_text(seconds)); }
QString us_text(double us) { return fixed_text(us, std::abs(us) >= 1000 ? 0 : 1); }
QString bytes_text(double bytes) { return for_window(ws::bytes_text(bytes)); }
QString time_axis_text(double us) { return for_window(time_text(us)); }

ByteUnit byte_unit(double largest) {
  constexpr double kKiB = 1024;
  if (largest < kKiB * kKiB) return {kKiB, "KiB"};
  if (largest < 10 * kKiB * kKiB * kKiB) return {kKiB * kKiB, "MiB"};
  return {kKiB * kKiB * kKiB, "GiB"};
}

QString with_units(QString text) {
  static const QRegularExpression before_unit(QStringLiteral("(?<=\\d) (?=(?:[µmn]?s|[KMG]?i?B)\\b|%|±)|(?<=±) (?=\\d)"));
  return text.replace(before_unit, QStringLiteral("\u00a0")).replace(QChar(0x202F), QChar::Nbsp);  // rich text breaks at a narrow space
}

QString bytes_in(double bytes, const ByteUnit& unit) { return fixed_text(bytes / unit.bytes, unit.bytes > 1024 ? 2 : 1) + ' ' + unit.name; }

QString step_time_text(double us) { return us > 0 ? time_axis_text(us) : QStringLiteral("—"); }

QString written_text(const QString& path) {
  const QFileInfo file(path);
  QString folder = file.absolutePath();
  if (const QString home = QDir::homePath(); folder == home || folder.startsWith(home + '/')) folder.replace(0, home.size(), "~");
  return QObject::tr("Written: %1 in %2").arg(file.fileName(), folder);
}

QString step_time_name() { return QObject::tr("step time"); }

QString step_time_tip(double p5_us, double p95_us) {
  const QString spread = step_spread_text(p5_us, p95_us), median = QObject::tr("Median of the measured steps: whole ones, without the first steps and the open last one.");
  return spread.isEmpty() ? median : median + ' ' + spread + '.';
}

QString step_range_text(double p5_us, double p95_us) {
  const QStringList low = step_time_text(p5_us).split(' '), high = step_time_text(p95_us).split(' ');
  return (low.back() == high.back() ? low.front() : low.join(' ')) + QStringLiteral("–") + high.join(' ');
}

QString step_spread_text(double p5_us, double p95_us) {
  if (!(p95_us >= p5_us)) return {};
  return QObject::tr("90 % of the steps took %1 to %2").arg(time_axis_text(p5_us), time_axis_text(p95_us));
}

QString run_letter(int slot) {
  return slot < 0 ? QString() : QString::fromStdString(column_letters(static_cast<size_t>(slot)));
}

}  // namespace ws::app
