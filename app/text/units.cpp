#include "app/text/units.h"

#include <QStringList>
#include <cmath>

namespace ws::app {
namespace {
constexpr QChar kThin(0x2009), kMinus(0x2212);

// "3.2·10⁻⁵"
QString power_text(double value) {
  static const QString raised = QString::fromUtf8("⁰¹²³⁴⁵⁶⁷⁸⁹");
  const QStringList parts = QString::number(value, 'e', 1).split('e');
  QString text = QString(parts[0]).replace('-', kMinus) + QString::fromUtf8("·10⁻");
  for (QChar digit : QString::number(-parts[1].toInt())) text += raised[digit.digitValue()];
  return text;
}
}  // namespace

QString count_text(int64_t value) {
  QString digits = QString::number(value < 0 ? -value : value);
  for (auto at = digits.size() - 3; at > 0; at -= 3) digits.insert(at, kThin);
  return value < 0 ? kMinus + digits : digits;
}

QString fixed_text(double value, int decimals) {
  if (!std::isfinite(value)) return QStringLiteral("—");
  QString text = QString::number(std::abs(value), 'f', decimals);
  const auto point = text.indexOf('.');
  for (auto at = (point < 0 ? text.size() : point) - 3; at > 0; at -= 3) text.insert(at, kThin);
  bool zero = true;
  for (QChar c : text) zero = zero && (c == '0' || c == '.');
  return value < 0 && !zero ? kMinus + text : text;
}

QString significant_text(double value, int digits) {
  if (!std::isfinite(value)) return QStringLiteral("—");
  if (value == 0) return QStringLiteral("0");
  const double size = std::abs(value);
  if (size >= 1e9) return fixed_text(value / 1e9, 2) + " G";
  if (size >= 1e6) return fixed_text(value / 1e6, 2) + " M";
  if (size < 1e-4) return power_text(value);
  const int before = static_cast<int>(std::floor(std::log10(size))) + 1;
  return fixed_text(value, std::max(0, std::min(6, digits - before)));
}

QString duration_text(double seconds) {
  if (seconds < 0 || !std::isfinite(seconds)) return QStringLiteral("—");
  if (seconds < 10) return QString::number(seconds, 'f', seconds < 1 ? 2 : 1) + " s";
  if (seconds < 60) return QString::number(std::lround(seconds)) + " s";
  const auto whole = static_cast<int64_t>(seconds);
  if (whole >= 20 * 60 && whole < 3600) return QString("%1 min").arg(std::lround(seconds / 60));
  if (whole < 3600) return QString("%1 min %2 s").arg(whole / 60).arg(whole % 60);
  return QString("%1 h %2 min").arg(whole / 3600).arg(whole / 60 % 60);
}

QString us_text(double us) {
  if (!std::isfinite(us)) return QStringLiteral("—");
  return fixed_text(us, std::abs(us) >= 1000 ? 0 : 1);
}

QString bytes_text(double bytes) {
  const double size = std::abs(bytes);
  if (size < 1024) return fixed_text(bytes, 0) + " B";
  if (size < 1024.0 * 1024) return fixed_text(bytes / 1024, 1) + " KiB";
  if (size < 1024.0 * 1024 * 1024) return fixed_text(bytes / (1024.0 * 1024), 2) + " MiB";
  return fixed_text(bytes / (1024.0 * 1024 * 1024), 2) + " GiB";
}

ByteUnit byte_unit(double largest) {
  constexpr double kKiB = 1024;
  if (largest < kKiB * kKiB) return {kKiB, "KiB"};
  if (largest < 10 * kKiB * kKiB * kKiB) return {kKiB * kKiB, "MiB"};
  return {kKiB * kKiB * kKiB, "GiB"};
}

QString time_axis_text(double us) {
  const double size = std::abs(us);
  if (size < 1000) return fixed_text(us, 1) + " µs";
  if (size < 1e6) return fixed_text(us / 1000, 2) + " ms";
  return fixed_text(us / 1e6, 2) + " s";
}

QChar run_letter(int slot) { return QChar('A' + slot % 8); }

}  // namespace ws::app
