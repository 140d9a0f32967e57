#include "app/timeline/block_label.h"

#include <algorithm>

#include "app/text/units.h"
#include "app/text/qt_text.h"
#include "profiling/analysis/collectives.h"
#include "profiling/analysis/kernel_table.h"

namespace ws::app {
namespace {

using prof::SpanKind;
using prof::TrackKind;

constexpr double kPadding = 4, kEllipsisWidth = 62, kNarrowestLetter = 2;
constexpr int kLettersKept = 6;

BlockNames step_names(const prof::Trace& trace, const prof::Span& span) {
  if (span.step == 0) return {text(trace.name(span.name)), {}, {}};
  const QString number = count_text(static_cast<int64_t>(span.step) - 1);
  return {QStringLiteral("step ") + number, number, {}};
}

BlockNames copy_names(const prof::Trace& trace, const prof::Span& span) {
  const QString name = text(trace.name(span.name));
  const uint64_t bytes = trace.detail(span.detail).bytes;
  const QString word =
      name.startsWith(QLatin1String("Memcpy ")) ? name.mid(7).section(' ', 0, 0) : name.section(' ', 0, 0);
  if (bytes == 0) return {name, word, {}};
  return {word + " " + bytes_text(static_cast<double>(bytes)), word, {}};
}

BlockNames op_names(const prof::OpInfo& op) { return {text(op.name), text(op.layer), {}}; }

QString short_phase(const QString& phase) {
  if (phase == QLatin1String("forward")) return QStringLiteral("fwd");
  if (phase == QLatin1String("backward")) return QStringLiteral("bwd");
  return {};
}

bool on_device(SpanKind kind) { return kind == SpanKind::Kernel || kind == SpanKind::Inner || kind == SpanKind::Op; }

}  // namespace

const prof::OpInfo* op_of(const prof::Trace& trace, prof::OpTag op) {
  return op != prof::kNoOp && op < trace.ops.size() ? &trace.ops[op] : nullptr;
}

QString op_text(const prof::Trace& trace, prof::OpTag op) {
  const prof::OpInfo* info = op_of(trace, op);
  if (!info) return {};
  return text(info->detail.empty() ? info->name : info->detail);
}

QString short_kernel_name(const std::string& name) { return text(prof::short_kernel_name(name)); }

QString short_call_name(const QString& call) {
  struct Short {
    const char *part, *word;
  };
  static constexpr Short kShorts[] = {{"Malloc", "malloc"},
                                      {"MemAlloc", "malloc"},
                                      {"Free", "free"},
                                      {"Synchronize", "sync"},
                                      {"GraphLaunch", "graph launch"},
                                      {"LaunchCooperative", "launch"},
                                      {"LaunchKernel", "launch"},
                                      {"Memcpy", "copy"},
                                      {"Memset", "set"},
                                      {"EventRecord", "record"},
                                      {"StreamWait", "wait"}};
  for (const auto& [part, word] : kShorts)
    if (call.contains(QLatin1String(part))) return QString::fromLatin1(word);
  return {};
}

BlockNames block_names(const prof::Trace& trace, const prof::Track& track, const prof::Span& span) {
  if (track.kind == TrackKind::Steps || span.span_kind() == SpanKind::Step) return step_names(trace, span);
  if (span.span_kind() == SpanKind::Copy || span.span_kind() == SpanKind::Memset) return copy_names(trace, span);
  if (on_device(span.span_kind()))
    if (const prof::OpInfo* op = op_of(trace, prof::charged_tag(trace, span))) return op_names(*op);
  const QString name = text(trace.name(span.name));
  if (span.span_kind() == SpanKind::Kernel && span.span_meaning() == prof::Meaning::Communication)
    return {short_kernel_name(trace.name(span.name)), text(prof::short_collective_name(prof::name_of_collective(trace.name(span.name)))), {}};
  if (span.span_kind() == SpanKind::Kernel) return {short_kernel_name(trace.name(span.name)), {}, {}};
  if (prof::broad_kind(track.kind) == TrackKind::Phases) return {name, short_phase(name), {}};
  return {name, short_call_name(name), {}};
}

QString fitting_label(const BlockNames& names, double width, const Measure& measure) {
  const double space = width - 2 * kPadding;
  if (space < 6) return {};
  // A stack's name has thousands of letters. Those that cannot fit are never measured.
  const auto most = static_cast<qsizetype>(space / kNarrowestLetter);
  const auto fits = [&](const QString& text) { return text.size() <= most && measure(text) <= space; };
  for (const QString* name : {&names.full, &names.shorter, &names.layer})
    if (!name->isEmpty() && fits(*name)) return *name;
  if (width <= kEllipsisWidth) return {};
  const auto cut = [&](qsizetype keep) { return names.full.left(keep).trimmed() + QChar(0x2026); };
  qsizetype fitting = kLettersKept - 1, first_not = std::min(names.full.size(), most + 1);
  while (first_not - fitting > 1) {
    const qsizetype keep = (fitting + first_not) / 2;
    (fits(cut(keep)) ? fitting : first_not) = keep;
  }
  return fitting < kLettersKept ? QString() : cut(fitting);
}

}  // namespace ws::app
