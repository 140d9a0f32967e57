#include "profiling/formats/inner_events.h"

#include <algorithm>
#include <charconv>

#include "profiling/trace/span_walk.h"

namespace ws::prof {
namespace {

// Takes "KEY123" from the front of the text, and returns the number.
std::optional<uint32_t> take_number(std::string_view& text, std::string_view key) {
  uint32_t number = 0;
  if (!text.starts_with(key)) return std::nullopt;
  const char* begin = text.data() + key.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

// Rows are sorted by name.
std::string place_text(uint32_t multiprocessor, uint32_t block, const std::string& rest) {
  const std::string number = std::to_string(multiprocessor);
  return "SM " + std::string(3 - std::min<size_t>(3, number.size()), '0') + number + " CTA " + std::to_string(block) +
         rest;
}

std::optional<InnerPlace> proton_place(std::string_view process, std::string_view thread) {
  const size_t core = process.rfind(" Core");
  if (core == process.npos) return std::nullopt;
  std::string_view rest = process.substr(core);
  const auto multiprocessor = take_number(rest, " Core");
  const auto block = multiprocessor ? take_number(rest, " CTA") : std::nullopt;
  const auto warp = take_number(thread, "warp ");
  if (!block || !warp) return std::nullopt;
  return InnerPlace{place_text(*multiprocessor, *block, " warp " + std::to_string(*warp)),
                    std::string(process.substr(0, core))};
}

std::optional<InnerPlace> flashinfer_place(std::string_view process, std::string_view thread) {
  const auto multiprocessor = take_number(process, "SM_");
  const auto block = take_number(thread, "blk");
  const auto group = block ? take_number(thread, "_g") : std::nullopt;
  if (!multiprocessor || !group) return std::nullopt;
  return InnerPlace{place_text(*multiprocessor, *block, " group " + std::to_string(*group)), ""};
}

}  // namespace

std::optional<InnerPlace> inner_place(std::string_view process, std::string_view thread) {
  auto place = proton_place(process, thread);
  return place ? place : flashinfer_place(process, thread);
}

bool is_multiprocessor(std::string_view process) { return take_number(process, "SM_") && process.empty(); }

// A kernel around a span exists if the latest end of all kernels that begin before it is behind its own.
std::string inner_problem(const TraceBuilder& builder) {
  constexpr TimeNs kTolerance = 1'000;
  std::vector<std::pair<TimeNs, TimeNs>> kernels;
  for (const auto& [row, spans] : builder.rows())
    for (const Span& span : spans)
      if (row.kind == TrackKind::Stream && is_kernel(span)) kernels.emplace_back(span.start, span.end());
  if (kernels.empty()) return "";
  std::ranges::sort(kernels);
  for (size_t i = 1; i < kernels.size(); ++i) kernels[i].second = std::max(kernels[i].second, kernels[i - 1].second);
  size_t outside = 0, all = 0;
  for (const auto& [row, spans] : builder.rows()) {
    if (row.kind != TrackKind::Inner) continue;
    for (const Span& span : spans) {
      const auto after =
          std::ranges::upper_bound(kernels, span.start + kTolerance, {}, &std::pair<TimeNs, TimeNs>::first);
      outside += after == kernels.begin() || std::prev(after)->second + kTolerance < span.end();
    }
    all += spans.size();
  }
  if (outside == 0) return "";
  return std::to_string(outside) + " of " + std::to_string(all) +
         " spans inside kernels lie outside of every kernel of this file. Their times come from another clock.";
}

}  // namespace ws::prof
