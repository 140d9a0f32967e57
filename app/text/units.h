// Formats numbers for the window: thin spaces for thousands, a real minus, a space before the unit.
#pragma once
#include <QString>
#include <cstdint>

namespace ws::app {

QString count_text(int64_t value);                       // "56 280"
QString fixed_text(double value, int decimals);          // "−0.31"
QString significant_text(double value, int digits = 3);  // "0.0193", "2.36 M"
QString duration_text(double seconds);                   // "0.4 s", "12 min 5 s"
QString us_text(double us);                              // "27.1", "369.2", "1 842"
QString step_time_text(double us);                       // "27.1 µs", "1.84 ms"; "—" if unknown
QString written_text(const QString& path);              // "Written: report.html in ~/runs"
QString step_time_name();                                // "step time": always the median of the newest steps
QString step_time_tip(double p5_us, double p95_us);      // what the step time is, and its spread if known
QString step_range_text(double p5_us, double p95_us);   // "17.2–19.0 µs"
QString step_spread_text(double p5_us, double p95_us);  // "90 % of the steps took 17.2 µs to 19.0 µs"; empty if unknown
QString bytes_text(double bytes);                        // "0.64 MiB"
struct ByteUnit {
  double bytes;
  const char* name;
};
ByteUnit byte_unit(double largest);  // unit for an axis up to this value: KiB, MiB or GiB
QString with_units(QString text);  // a number stays on one line with its unit, and with its ±
QString bytes_in(double bytes, const ByteUnit& unit);  // "1 208.3 KiB"
QString time_axis_text(double us);   // "27.1 µs", "1.84 ms"
QString run_letter(int slot);        // "A" for slot 0, "AA" for 24; empty for a run that is not ticked

}  // namespace ws::app
