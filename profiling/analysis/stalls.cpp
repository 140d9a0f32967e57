#include "profiling/analysis/stalls.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <tuple>

#include "profiling/analysis/kernel_table.h"
#include "profiling/base/failure.h"
#include "profiling/base/sort_rows.h"
#include "profiling/base/text.h"
#include "profiling/base/version.h"

namespace ws::prof {

namespace {

std::string file_name(std::string_view path) { return std::filesystem::path(path).filename().string(); }

void add(StallRow& row, const SampledInstruction& one) {
  for (size_t i = 0; i < kStalls; ++i) row.counts[i] += one.samples[i];
  row.samples += sum_of(one.samples);
}

void set_shares(std::vector<StallRow>& rows) {
  uint64_t all = 0;
  for (const StallRow& row : rows) all += row.samples;
  for (StallRow& row : rows) row.share = all > 0 ? static_cast<double>(row.samples) / static_cast<double>(all) : 0;
}

using KernelKey = std::pair<NameId, uint64_t>;  // function, module
KernelKey key_of(const SampledInstruction& one) { return {one.function, one.module}; }

struct NamedKernel {
  StallRow row;
  std::map<NameId, uint64_t> files;  // samples
};

std::map<KernelKey, NamedKernel> kernels_of(const Trace& trace) {
  std::map<KernelKey, NamedKernel> all;
  std::map<NameId, int> modules;
  for (const SampledInstruction& one : trace.stalls.instructions()) {
    const auto [at, fresh] = all.try_emplace(key_of(one));
    if (fresh) ++modules[one.function];
    add(at->second.row, one);
    at->second.files[one.file] += sum_of(one.samples);
  }
  for (auto& [key, kernel] : all) {
    const auto most = std::ranges::max_element(kernel.files, {}, [](const auto& entry) { return entry.second; });
    kernel.row.kernel = trace.name(key.first), kernel.row.file = trace.name(most->first);
    if (modules[key.first] == 1) continue;
    kernel.row.kernel += kernel.row.file.empty() ? formatted(" · module {:x}", key.second) : " · " + file_name(kernel.row.file);
  }
  return all;
}

std::vector<StallRow> most_first(std::vector<StallRow> rows) {
  std::erase_if(rows, [](const StallRow& row) { return row.samples == 0; });
  set_shares(rows);
  sort_rows(rows, [](const StallRow& a, const StallRow& b) { return a.samples > b.samples; });
  return rows;
}

std::vector<KernelKey> keys_of(const Trace& trace, const std::string& kernel) {
  std::vector<KernelKey> keys;
  for (const auto& [key, known] : kernels_of(trace))
    if (known.row.kernel == kernel) keys.push_back(key);
  return keys;
}

// A row for each line of the instructions that are wanted.
template <class Wanted>
std::vector<StallRow> lines_where(const Trace& trace, const Wanted& wanted) {
  std::map<std::pair<NameId, int>, StallRow> lines;
  for (const SampledInstruction& one : trace.stalls.instructions()) {
    if (!wanted(one)) continue;
    StallRow& row = lines[{one.file, one.line}];
    row.kernel = trace.name(one.function), row.file = trace.name(one.file), row.line = one.line;
    add(row, one);
  }
  std::vector<StallRow> rows;
  for (auto& [place, row] : lines) rows.push_back(std::move(row));
  return rows;
}

// "global_memory"
std::string key_of_reason(Stall reason) {
  std::string key = stall_name(reason);
  std::ranges::replace(key, ' ', '_');
  return key;
}

nlohmann::json windows_json(const std::vector<SampledWindow>& windows) {
  auto list = nlohmann::json::array();
  for (const SampledWindow& w : windows) {
    list.push_back({{"begin_ns", w.begin}, {"end_ns", w.end}, {"cycles", int64_t{1} << w.period}, {"samples", w.samples}, {"dropped", w.dropped}, {"hidden", w.hidden}});
    if (w.first_step > 0) list.back().update({{"first_step", w.first_step - 1}, {"steps", w.end_step > w.first_step ? w.end_step - w.first_step : 0}});
  }
  return list;
}

}  // namespace

bool same_file(std::string_view path, std::string_view name) {
  return path == name || (path.ends_with(name) && path[path.size() - name.size() - 1] == '/') || (name.ends_with(path) && !path.empty() && name[name.size() - path.size() - 1] == '/');
}

std::string StallRow::place() const { return line > 0 ? file_name(file) + ":" + std::to_string(line) : std::string(); }

std::vector<StallRow> stalls_by_kernel(const Trace& trace) {
  std::vector<StallRow> rows;
  for (auto& [key, kernel] : kernels_of(trace)) rows.push_back(std::move(kernel.row));
  return most_first(std::move(rows));
}

std::vector<StallRow> stalls_by_line(const Trace& trace, const std::string& name) {
  const std::vector<KernelKey> wanted = keys_of(trace, name);
  return most_first(lines_where(trace, [&](const SampledInstruction& one) { return std::ranges::count(wanted, key_of(one)) > 0; }));
}

std::vector<SampledCode> code_of(const Trace& trace, const std::string& kernel) {
  const std::vector<KernelKey> wanted = keys_of(trace, kernel);
  std::vector<SampledCode> found;
  for (const SampledCode& code : trace.stalls.code())
    if (std::ranges::count(wanted, KernelKey(code.function, code.module)) > 0) found.push_back(code);
  return found;
}

std::vector<StallRow> rows_of(const Disassembly& text, const std::string& kernel) {
  std::vector<StallRow> rows;
  for (const Instruction& one : text.instructions) rows.push_back({.kernel = kernel, .file = one.file, .line = one.line, .offset = one.offset, .instruction = one.text});
  return rows;
}

std::vector<StallRow> stalls_by_instruction(const Trace& trace, const std::string& kernel, const std::vector<Disassembly>& texts) {
  const std::vector<KernelKey> wanted = keys_of(trace, kernel);
  std::map<std::pair<uint64_t, uint32_t>, StallRow> all;  // by module and offset
  for (const Disassembly& text : texts)
    for (StallRow& row : rows_of(text, kernel)) {
      const std::pair place(text.module, row.offset);
      all.emplace(place, std::move(row));
    }
  for (const SampledInstruction& one : trace.stalls.instructions()) {
    if (std::ranges::count(wanted, key_of(one)) == 0) continue;
    StallRow& row = all[{one.module, one.offset}];
    row.kernel = kernel, row.offset = one.offset;
    if (one.line > 0) row.file = trace.name(one.file), row.line = one.line;
    add(row, one);
  }
  std::vector<StallRow> rows;
  for (auto& [place, row] : all) rows.push_back(std::move(row));
  set_shares(rows);
  return rows;
}

namespace {

using CallPlace = std::pair<std::string, std::string>;  // "path:line" and the function that is inlined there

struct CallNode {
  std::map<CallPlace, CallNode> calls;
  StallRow row;
};

// The places around the instruction, from the kernel inwards. `calls`: SampledCode::calls.
std::vector<CallPlace> places_at(const std::map<uint32_t, std::string_view>& calls, uint32_t offset) {
  auto at = calls.upper_bound(offset);
  std::vector<CallPlace> places;
  if (at == calls.begin()) return places;
  std::istringstream words{std::string((--at)->second)};
  for (std::string place, function; std::getline(words, place, '\t'); function.clear()) {
    std::getline(words, function, '\t');
    places.insert(places.begin(), {place, function});
  }
  return places;
}

std::map<uint32_t, std::string_view> by_offset(std::string_view calls) {
  std::map<uint32_t, std::string_view> all;
  while (!calls.empty()) {
    const std::string_view line = calls.substr(0, calls.find('\n'));
    calls.remove_prefix(std::min(calls.size(), line.size() + 1));
    uint32_t offset = 0;
    const size_t tab = line.find('\t');
    if (tab != line.npos && std::from_chars(line.data(), line.data() + tab, offset).ec == std::errc()) all[offset] = line.substr(tab + 1);
  }
  return all;
}

void flatten(std::map<CallPlace, CallNode>& nodes, int depth, uint64_t least, std::vector<StallRow>& rows) {
  std::vector<std::pair<CallPlace, CallNode*>> order;
  for (auto& [place, node] : nodes) order.emplace_back(place, &node);
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.second->row.samples > b.second->row.samples; });
  for (auto& [place, node] : order) {
    if (node->row.samples == 0 || node->row.samples < least) continue;
    const size_t colon = place.first.rfind(':');
    node->row.depth = depth, node->row.file = place.first.substr(0, colon), node->row.function = place.second;
    std::from_chars(place.first.data() + colon + 1, place.first.data() + place.first.size(), node->row.line);
    rows.push_back(node->row);
    flatten(node->calls, depth + 1, least, rows);
  }
}

}  // namespace

std::vector<StallRow> stalls_by_call(const Trace& trace, const std::string& kernel) {
  std::map<KernelKey, std::map<uint32_t, std::string_view>> calls;
  const std::vector<KernelKey> wanted = keys_of(trace, kernel);
  for (const SampledCode& code : trace.stalls.code())
    if (!code.calls.empty() && std::ranges::count(wanted, KernelKey(code.function, code.module)) > 0) calls[{code.function, code.module}] = by_offset(code.calls);
  if (calls.empty()) return {};
  std::map<CallPlace, CallNode> roots;
  uint64_t all = 0;
  for (const SampledInstruction& one : trace.stalls.instructions()) {
    if (std::ranges::count(wanted, key_of(one)) == 0) continue;
    all += sum_of(one.samples);
    const auto known = calls.find(key_of(one));
    std::vector<CallPlace> places = known == calls.end() ? std::vector<CallPlace>() : places_at(known->second, one.offset);
    if (places.empty()) places = {{":0", ""}};
    std::map<CallPlace, CallNode>* level = &roots;
    for (const CallPlace& place : places) {
      CallNode& node = (*level)[place];
      node.row.kernel = kernel;
      add(node.row, one);
      level = &node.calls;
    }
  }
  std::vector<StallRow> rows;
  flatten(roots, 0, (all + 199) / 200, rows);
  for (StallRow& row : rows) row.share = all > 0 ? static_cast<double>(row.samples) / static_cast<double>(all) : 0;
  return rows;
}

std::vector<StallRow> stalls_of_file(const Trace& trace, std::string_view file) {
  const auto is_here = [&](const SampledInstruction& one) { return one.line > 0 && same_file(trace.name(one.file), file); };
  std::set<KernelKey> kernels;
  for (const SampledInstruction& one : trace.stalls.instructions())
    if (is_here(one)) kernels.insert(key_of(one));
  std::map<int, StallRow> lines;  // of kernels of several modules
  for (const SampledInstruction& one : trace.stalls.instructions()) {
    if (!kernels.contains(key_of(one))) continue;
    const bool here = is_here(one);
    StallRow& row = lines[here ? one.line : 0];
    if (here) row.line = one.line, row.file = trace.name(one.file);
    row.kernel = trace.name(one.function);
    add(row, one);
  }
  std::vector<StallRow> rows;
  for (auto& [number, line] : lines)
    if (line.samples > 0) rows.push_back(std::move(line));
  set_shares(rows);
  return rows;
}

std::optional<MainReason> main_reason(const StallRow& row) {
  size_t most = kStalls;
  for (size_t i = 0; i < kStalls; ++i)
    if (group_of(static_cast<Stall>(i)) != StallGroup::Issues && row.counts[i] > 0 && (most == kStalls || row.counts[i] > row.counts[most])) most = i;
  if (most == kStalls) return std::nullopt;
  return MainReason{static_cast<Stall>(most), static_cast<double>(row.counts[most]) / static_cast<double>(row.samples)};
}

RunStalls stalls_of_run(const Trace& trace) {
  const std::map<KernelKey, NamedKernel> kernels = kernels_of(trace);
  std::map<std::tuple<KernelKey, NameId, int>, StallRow> lines;
  uint64_t all = 0;
  for (const SampledInstruction& one : trace.stalls.instructions()) {
    all += sum_of(one.samples);
    if (one.line > 0 && sum_of(one.samples) > 0) add(lines[{key_of(one), one.file, one.line}], one);
  }
  RunStalls found{stalls_by_kernel(trace), {}};
  for (auto& [place, row] : lines) {
    row.kernel = kernels.at(std::get<0>(place)).row.kernel, row.file = trace.name(std::get<1>(place)), row.line = std::get<2>(place);
    row.share = all > 0 ? static_cast<double>(row.samples) / static_cast<double>(all) : 0;
    found.lines.push_back(std::move(row));
  }
  return found;
}

double StallDelta::change() const { return a.samples > 0 ? b.share / a.share - 1 : std::nan(""); }

namespace {

constexpr uint64_t kFewestSamples = 100;

// Wilson's 95 % interval of a share, without its limits at 0 and 1.
struct ShareInterval {
  double low, high;
};
ShareInterval wilson(double share, double count) {
  constexpr double z = 1.96;
  const double middle = (share + z * z / (2 * count)) / (1 + z * z / count);
  const double half = z / (1 + z * z / count) * std::sqrt(share * (1 - share) / count + z * z / (4 * count * count));
  return {middle - half, middle + half};
}

constexpr const char* kNoCode = "This run keeps no machine code of the kernel, so its instructions have offsets only.";

uint64_t samples_of(const RunStalls& run) {
  uint64_t all = 0;
  for (const StallRow& row : run.kernels) all += row.samples;
  return all;
}

void judge(StallDelta& d, double of_a, double of_b) {
  const ShareInterval a = wilson(d.a.share, of_a), b = wilson(d.b.share, of_b);
  d.low = d.delta() - std::hypot(d.b.share - b.low, a.high - d.a.share);
  d.high = d.delta() + std::hypot(b.high - d.b.share, d.a.share - a.low);
  d.differs = std::min(of_a, of_b) >= kFewestSamples && std::max(d.a.samples, d.b.samples) >= kFewestSamples && (d.low > 0 || d.high < 0);
}

std::vector<StallDelta> deltas(const std::vector<StallRow>& a, const std::vector<StallRow>& b, uint64_t of_a, uint64_t of_b) {
  std::map<std::pair<std::string, std::string>, StallDelta> found;
  for (const StallRow& row : a) found[{row.kernel, row.place()}].a = row;
  for (const StallRow& row : b) found[{row.kernel, row.place()}].b = row;
  std::vector<StallDelta> all;
  for (auto& [key, delta] : found) {
    judge(delta, static_cast<double>(of_a), static_cast<double>(of_b));
    all.push_back(std::move(delta));
  }
  sort_rows(all, [](const StallDelta& x, const StallDelta& y) { return std::abs(x.delta()) > std::abs(y.delta()); });
  return all;
}

}  // namespace

StallComparison compare_stalls(const RunStalls& a, const RunStalls& b) {
  if (!a.any() || !b.any()) return {};
  const uint64_t of_a = samples_of(a), of_b = samples_of(b);
  return {deltas(a.kernels, b.kernels, of_a, of_b), deltas(a.lines, b.lines, of_a, of_b)};
}

std::string headline(const StallComparison& compared) {
  for (const std::vector<StallDelta>* rows : {&compared.lines, &compared.kernels})
    for (const StallDelta& d : *rows) {
      if (!d.differs) continue;
      const std::string what = d.row().line > 0 ? d.row().place() : shortened(d.row().kernel);
      if (d.a.samples == 0 || d.b.samples == 0) return what + (d.a.samples == 0 ? " has samples only in B" : " has samples only in A");
      return what + " has " + percent(std::abs(d.change()), 0) + (d.change() < 0 ? " less" : " more") + " of the samples in B";
    }
  return {};
}

Table stall_delta_table(const std::vector<StallDelta>& rows, bool by_line) {
  using Kind = Table::Kind;
  Table table{{{"a_samples", "samples A", "", Kind::Count, 0, 10, ""},
               {"b_samples", "samples B", "", Kind::Count, 0, 10, ""},
               {"a_share", "A", "%", Kind::Percent, 1, 7, "Share of all samples of the run."},
               {"b_share", "B", "%", Kind::Percent, 1, 7, "Share of all samples of the run."},
               {"delta", "B - A", "%", Kind::Percent, 1, 8, "Difference of both shares.", true},
               {"low", "from", "%", Kind::Percent, 1, 8, "95 % interval of the difference; each sample counts as one observation.", true},
               {"high", "to", "%", Kind::Percent, 1, 8, "", true},
               {"change", "change", "%", Kind::Percent, 0, 8, "The candidate's share, relative to the baseline's.", true},
               {"verdict", "verdict", "", Kind::Text, 0, 12, "Cannot tell: fewer than 100 samples, or an interval that holds 0."},
               {"a_reason", "A waits most for", "", Kind::Text, 0, 20, ""},
               {"b_reason", "B waits most for", "", Kind::Text, 0, 20, ""},
               {by_line ? "line" : "kernel", by_line ? "line" : "kernel", "", Kind::Text, 0, 1, ""}}, {}};
  if (by_line) table.columns.push_back({"kernel", "kernel", "", Kind::Text, 0, 0, ""});
  const auto reason = [](const StallRow& row) {
    const auto main = row.samples > 0 ? main_reason(row) : std::nullopt;
    return main ? Table::Cell(stall_name(main->reason)) : Table::Cell();
  };
  for (const StallDelta& d : rows) {
    const char* verdict = !d.differs ? "cannot tell" : d.delta() < 0 ? "less" : "more";
    Table::Row row{{d.a.samples, d.b.samples, d.a.share, d.b.share, d.delta(), d.low, d.high, d.change(), verdict, reason(d.a), reason(d.b)}};
    Table::Cell kernel(d.row().kernel);
    kernel.text = shortened(d.row().kernel), kernel.tip = d.row().kernel;
    if (by_line) row.cells.emplace_back(d.row().place());
    row.cells.push_back(kernel);
    table.rows.push_back(std::move(row));
  }
  return table;
}

StallReport stall_report(const RunData& run, std::string_view kernel, bool instructions) {
  StallReport report{.kernels = stalls_by_kernel(run.trace), .windows = run.trace.stalls.windows(), .said = run.summary.said(kXrayKey)};
  if (kernel.empty()) return report;
  const auto found = std::ranges::find_if(report.kernels, [&](const StallRow& row) { return row.kernel.find(kernel) != std::string::npos; });
  if (found == report.kernels.end()) throw Failure("No sampled kernel has \"" + std::string(kernel) + "\" in its name.");
  report.kernel = found->kernel;
  report.lines = stalls_by_line(run.trace, found->kernel);
  report.calls = stalls_by_call(run.trace, found->kernel);
  if (!instructions) return report;
  std::vector<Disassembly> texts;
  for (const SampledCode& code : code_of(run.trace, found->kernel)) texts.push_back(disassembled(code));
  report.instructions = stalls_by_instruction(run.trace, found->kernel, texts);
  report.no_instructions = texts.empty() ? kNoCode : texts.front().missing;
  return report;
}

Table stall_table(const std::vector<StallRow>& rows, StallsBy by) {
  using Kind = Table::Kind;
  Table table{{{"samples", "samples", "", Kind::Count, 0, 10, "Each is a warp that was seen at an instruction."},
               {"share", "share", "%", Kind::Percent, 1, 7, "Share of the samples of all rows."}}, {}};
  constexpr const char* kKeys[kStallGroups] = {"memory", "arithmetic", "barrier", "next_instruction", "issues"};
  constexpr const char* kHeadings[kStallGroups] = {"memory", "arithmetic", "barrier", "next", "issues"};
  for (size_t g = 0; g < kStallGroups; ++g)
    table.columns.push_back({std::string(kKeys[g]) + "_share", kHeadings[g], "%", Kind::Percent, 1, g == 1 ? size_t{12} : size_t{9},
                             std::string("Share of the row's samples: ") + stall_group_name(static_cast<StallGroup>(g)) + "."});
  table.columns.push_back({"reason", "waits most for", "", Kind::Text, 0, 34, "The reason why its warps wait most."});
  table.columns.push_back({"reason_share", "", "%", Kind::Percent, 1, 7, "Share of the row's samples with this reason."});
  for (size_t i = 0; i < kStalls; ++i) {
    const auto reason = static_cast<Stall>(i);
    table.columns.push_back({key_of_reason(reason), stall_name(reason), "", Kind::Count, 0, 0, stall_meaning(reason)});
  }
  if (by == StallsBy::Instruction) table.columns.push_back({"offset", "offset", "", Kind::Count, 0, 9, "Place in the kernel, in bytes."});
  if (by != StallsBy::Kernel) table.columns.push_back({"file", "file", "", Kind::Text, 0, 0, ""}), table.columns.push_back({"line", "line", "", Kind::Text, 0, by == StallsBy::Instruction ? size_t{18} : size_t{1}, ""});
  if (by == StallsBy::Call) {
    table.columns.push_back({"depth", "depth", "", Kind::Count, 0, 0, "How many calls are around it."});
    table.columns.push_back({"function", "function", "", Kind::Text, 0, 0, "The inlined function that the line is in."});
  }
  if (by == StallsBy::Instruction) table.columns.push_back({"instruction", "instruction", "", Kind::Text, 0, 1, ""});
  if (by == StallsBy::Kernel) table.columns.push_back({"kernel", "kernel", "", Kind::Text, 0, 1, ""});
  for (const StallRow& row : rows) {
    const auto of_row = [&](uint64_t count) { return row.samples > 0 ? static_cast<double>(count) / static_cast<double>(row.samples) : 0.0; };
    Table::Row cells{{row.samples, row.share}};
    for (const uint64_t count : by_group(row.counts)) cells.cells.emplace_back(of_row(count));
    const auto reason = main_reason(row);
    cells.cells.push_back(reason ? Table::Cell(stall_name(reason->reason)) : Table::Cell());
    if (reason) cells.cells.back().tip = stall_meaning(reason->reason);
    cells.cells.push_back(reason ? Table::Cell(reason->share) : Table::Cell());
    for (const uint64_t count : row.counts) cells.cells.emplace_back(count);
    if (by == StallsBy::Instruction) {
      cells.cells.emplace_back(int64_t{row.offset});
      cells.cells.back().text = formatted("0x{:04x}", row.offset);
    }
    if (by != StallsBy::Kernel) {
      cells.cells.push_back(row.file.empty() ? Table::Cell() : Table::Cell(row.file));
      cells.cells.emplace_back(row.line > 0 ? row.place() : "line not known");
      if (by == StallsBy::Call) {
        cells.cells.back().text = std::string(2 * static_cast<size_t>(row.depth), ' ') + (row.line > 0 ? row.place() : "line not known") +
                                  (row.function.empty() ? "" : " in " + short_kernel_name(row.function));
        cells.cells.emplace_back(int64_t{row.depth});
        cells.cells.push_back(row.function.empty() ? Table::Cell() : Table::Cell(row.function));
      }
      if (by == StallsBy::Instruction) cells.cells.push_back(row.instruction.empty() ? Table::Cell() : Table::Cell(row.instruction));
    } else {
      cells.cells.emplace_back(row.kernel);
      cells.cells.back().text = shortened(row.kernel), cells.cells.back().tip = row.kernel;
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string no_samples_text(const std::string& said) {
  return said.empty() ? "No samples yet. Train or record with X-ray (--xray) to see where kernels wait." : said;
}

std::string to_text(const StallReport& report) {
  if (report.kernels.empty()) return no_samples_text(report.said) + "\n";
  std::string text = (report.said.empty() ? "" : report.said + "\n\n") + to_text(stall_table(report.kernels, StallsBy::Kernel));
  if (report.kernel.empty()) return text + "\nThe lines of one kernel: add --kernel and a part of its name.\n";
  text += "\n" + report.kernel + "\n" + to_text(stall_table(report.lines, StallsBy::Line));
  if (std::ranges::any_of(report.calls, [](const StallRow& row) { return row.depth > 0; }))
    text += "\nBy call: a line with all that it calls\n" + to_text(stall_table(report.calls, StallsBy::Call));
  if (report.instructions.empty()) return text;
  return text + "\n" + to_text(stall_table(report.instructions, StallsBy::Instruction)) + (report.no_instructions.empty() ? "" : "\n" + report.no_instructions + "\n");
}

std::string to_json(const StallReport& report) {
  nlohmann::ordered_json json{{"version", kJsonVersion}, {"xray", report.said}, {"windows", windows_json(report.windows)},
                              {"by_stall", rows_json(stall_table(report.kernels, StallsBy::Kernel))}};
  if (!report.kernel.empty()) json["kernel"] = report.kernel, json["lines"] = rows_json(stall_table(report.lines, StallsBy::Line));
  if (!report.calls.empty()) json["calls"] = rows_json(stall_table(report.calls, StallsBy::Call));
  if (!report.instructions.empty()) json["instructions"] = rows_json(stall_table(report.instructions, StallsBy::Instruction)), json["no_instructions"] = report.no_instructions;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ws::prof
