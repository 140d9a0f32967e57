#include "app/pages/lab/lab_sentences.h"

#include <QObject>
#include <algorithm>
#include <set>

#include "app/pages/lab/lab_way_style.h"
#include "app/text/units.h"

namespace ws::app {
namespace {

using lab::LabPoint;
using lab::Way;

QString time_text(double seconds) { return time_axis_text(seconds * 1e6); }

double time_on_gpu(const LabPoint& p) { return p.device_s > 0 ? p.device_s : p.median_s; }

struct Pair {
  const LabPoint* a;
  const LabPoint* b;
};

// The largest size that both variants reached.
std::optional<Pair> last_common(const lab::LabResult& result, Way a, Way b) {
  std::optional<Pair> found;
  for (const LabPoint& p : result.points)
    for (const LabPoint& q : result.points)
      if (p.way == a && q.way == b && p.size == q.size && p.ok && q.ok && (!found || p.size > found->a->size))
        found = Pair{&p, &q};
  return found;
}

QString rate_text(double bytes_s) { return significant_text(bytes_s / 1e12) + " TB/s"; }

// Sentence on what limits the largest point with a bound, and how close it comes.
QString bound_finding(const lab::LabResult& result) {
  const LabPoint* last = nullptr;
  for (const LabPoint& p : result.points)
    if (p.way == Way::GpuResident && p.ok && p.bound_s > 0 && p.device_s > 0 && (!last || p.size > last->size))
      last = &p;
  if (!last) return {};
  const lab::Bound bound = lab::bound_of(result.spec, last->way, last->size, result.ceilings);
  QString text = QObject::tr("At N = %1, the lower bound is %2: ")
                     .arg(lab_size_text(static_cast<double>(last->size)), time_text(last->bound_s));
  QStringList bounds;
  if (last->bytes > 0)
    bounds << QObject::tr("%1 at %2 take %3")
                  .arg(bytes_text(static_cast<double>(last->bytes)), rate_text(result.ceilings.read_write_bytes_s),
                       time_text(bound.bytes_s));
  if (bound.arithmetic_s > 0) bounds << QObject::tr("the arithmetic takes %1").arg(time_text(bound.arithmetic_s));
  text += bounds.join(", ");
  return text + QObject::tr(". The kernel takes %1: it reaches %2 % of the bound.")
                    .arg(time_text(last->device_s))
                    .arg(qRound(100 * last->bound_s / last->device_s));
}

QString pitfall_finding(const lab::LabResult& result) {
  const auto pair = last_common(result, Way::GpuUnsynced, Way::GpuResident);
  if (!pair || pair->b->median_s < 2 * pair->a->median_s) return {};
  return QObject::tr("At N = %1, the clock without a sync shows %2. The work takes %3, %4× as long.")
      .arg(lab_size_text(static_cast<double>(pair->a->size)), time_text(pair->a->median_s),
           time_text(pair->b->median_s), significant_text(pair->b->median_s / pair->a->median_s));
}

// Compares at the smallest size that both variants reached: launches cost the most there.
QString graph_finding(const lab::LabResult& result) {
  std::optional<Pair> first;
  for (const LabPoint& p : result.points)
    for (const LabPoint& q : result.points)
      if (p.way == Way::GpuOpByOp && q.way == Way::GpuGraphOps && p.size == q.size && p.ok && q.ok &&
          (!first || p.size < first->a->size))
        first = Pair{&p, &q};
  if (!first) return {};
  return QObject::tr("At N = %1, the operations take %2 if launched one by one, and %3 as one CUDA graph.")
      .arg(lab_size_text(static_cast<double>(first->a->size)), time_text(first->a->median_s),
           time_text(first->b->median_s));
}

QString gain_finding(const lab::LabResult& result, Way slow, Way fast, const QString& sentence) {
  const auto pair = last_common(result, slow, fast);
  if (!pair) return {};
  return sentence.arg(lab_size_text(static_cast<double>(pair->a->size)), time_text(pair->a->median_s),
                      time_text(pair->b->median_s), significant_text(pair->a->median_s / pair->b->median_s));
}

QString cold_finding(const lab::LabResult& result) {
  const auto pair = last_common(result, Way::GpuCold, Way::GpuResident);
  if (!pair) return {};
  return QObject::tr("The first call of a process at N = %1: %2. A later call takes %3.")
      .arg(lab_size_text(static_cast<double>(pair->a->size)), QString::fromStdString(pair->a->note),
           time_text(pair->b->median_s));
}

// Each of a person's kernels beside the built-in one.
QStringList own_findings(const lab::LabResult& result) {
  QStringList lines;
  for (size_t i = 0; i < result.spec.kernels.size(); ++i) {
    const auto pair = last_common(result, lab::own_way(i), Way::GpuResident);
    if (!pair) continue;
    const double own = time_on_gpu(*pair->a), built_in = time_on_gpu(*pair->b);
    lines << QObject::tr("At N = %1, %2 takes %3 and the built-in kernel %4: %5 of its speed.")
                 .arg(lab_size_text(static_cast<double>(pair->a->size)), lab_short_label(pair->a->way, result.spec), time_text(own),
                      time_text(built_in), significant_text(built_in / own) + "×");
  }
  return lines;
}

// tf32 and fp16 round their inputs, so their errors are of another kind.
QString error_finding(const lab::LabResult& result) {
  double full = 0, tensor = 0;
  for (const LabPoint& p : result.points)
    if (p.ok) {
      double& most = p.way == Way::GpuTf32 || p.way == Way::GpuFp16 ? tensor : full;
      most = std::max(most, p.error);
    }
  if (full <= 0 && tensor <= 0) return {};
  QString text = QObject::tr("Checked against float64 on the CPU: ");
  if (full > 0) text += QObject::tr("largest error %1").arg(full, 0, 'e', 1);
  if (full > 0 && tensor > 0) text += ", ";
  if (tensor > 0) text += QObject::tr("with tf32 or fp16 %1").arg(tensor, 0, 'e', 1);
  return text + ".";
}

QStringList troubles(const lab::LabResult& result) {
  QStringList lines;
  for (const LabPoint& p : result.points)
    if (!p.ok && lines.size() < 3) lines << lab_label(p.way, result.spec) + ": " + QString::fromStdString(p.note);
  return lines;
}

}  // namespace

QString lab_machine(const lab::LabResult& result) {
  if (!result.device.empty()) return QString::fromStdString(result.device);
  const bool gpu = std::ranges::any_of(result.points, [](const LabPoint& p) { return lab::info(p.way).gpu; });
  return gpu ? QObject::tr("a GPU") : QObject::tr("the CPU");
}

QString lab_headline(const lab::LabResult& result) {
  if (!pitfall_finding(result).isEmpty()) return QObject::tr("The dashed curve is not the work");
  return result.points.empty() ? QObject::tr("How to read this") : QObject::tr("Measured on %1").arg(lab_machine(result));
}

QStringList lab_findings(const lab::LabResult& result) {
  QStringList lines{
      pitfall_finding(result),
      gain_finding(result, Way::GpuOpByOp, Way::GpuResident,
                   QObject::tr("At N = %1: %2 op by op, %3 as one kernel, %4× faster.")),
      graph_finding(result),
      bound_finding(result),
      gain_finding(result, Way::GpuPinned, Way::GpuOverlap,
                   QObject::tr("At N = %1: %2 with copies one after another, %3 overlapped, %4× faster.")),
      cold_finding(result),
      error_finding(result)};
  if (!lines.front().isEmpty()) lines << QObject::tr("Measured on %1.").arg(lab_machine(result));  // else it is the headline
  lines += own_findings(result) + troubles(result);
  for (const std::string& text : {result.message, result.unsaved}) lines << QString::fromStdString(text);
  lines.removeAll(QString());
  return lines;
}

}  // namespace ws::app
