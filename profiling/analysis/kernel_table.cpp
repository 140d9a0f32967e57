#include "profiling/analysis/kernel_table.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <sstream>
#include <unordered_map>

#include "profiling/analysis/launch_stacks.h"
#include "profiling/analysis/program_tables.h"
#include "profiling/base/sort_rows.h"
#include "profiling/trace/trace.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {

namespace {

int64_t rank(const std::vector<int64_t>& sorted, double share) {
  const auto at = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(at, 1, sorted.size()) - 1];
}

// Removes template arguments and parameter lists, at any nesting depth.
std::string without_brackets(const std::string& name) {
  std::string out;
  int depth = 0;
  for (char c : name) {
    if (c == '<' || c == '(') ++depth;
    if (depth == 0) out += c;
    if ((c == '>' || c == ')') && depth > 0) --depth;
  }
  return out;
}

std::string shape_text(const Trace& trace, const Span& span) {
  const Detail& d = trace.detail(span.detail);
  if (d.grid[0] == 0) return trace.name(span.name);  // not a kernel
  const auto triple = [](const int(&v)[3]) {
    return std::to_string(v[0]) + "×" + std::to_string(v[1]) + "×" + std::to_string(v[2]);
  };
  return trace.name(span.name) + " ⟨" + triple(d.grid) + ", " + triple(d.block) + "⟩";
}

// Returns the same number for spans of one row. Names of ops, layers and phases are interned as numbers. Ops with equal
// name, layer and phase share a row: ops of a program's ranges may differ only in the line.
struct Grouping {
  const Trace& trace;
  GroupBy by;
  const JoinedLayers& joined;
  std::unordered_map<std::string, uint64_t> texts;
  std::unordered_map<uint32_t, uint64_t> ops;

  uint64_t number(const Span& span) {
    switch (by) {
      case GroupBy::Name:
        return static_cast<uint64_t>(span.name);
      case GroupBy::Shape:
        return static_cast<uint64_t>(span.name) << 16 | static_cast<uint64_t>(span.detail);
      case GroupBy::Op:
        return op_number(span);
      default:
        return texts.try_emplace(key(span), texts.size()).first->second;
    }
  }
  uint64_t op_number(const Span& span) {
    const auto [at, fresh] = ops.try_emplace(uint32_t{span.op} << 1 | (span.span_meaning() == Meaning::Communication));
    if (fresh) {
      const OpInfo op = charged_op(trace, span.span_meaning(), span.op);
      at->second = texts.try_emplace(key(span) + '\0' + op.phase, texts.size()).first->second;
    }
    return at->second;
  }
  std::string key(const Span& span) const {
    if (by == GroupBy::Name) return trace.name(span.name);
    if (by == GroupBy::Shape) return shape_text(trace, span);
    const std::string name = group_name(charged_op(trace, span.span_meaning(), span.op), by);
    const auto block = by == GroupBy::Layer ? joined.find(name) : joined.end();
    return block == joined.end() ? name : block->second;
  }
};

struct Group {
  KernelRow row;
  DetailId first_shape{};
  std::vector<int64_t> durations;
  MeaningTimes by_meaning{};
};

}  // namespace

const char* to_string(GroupBy by) {
  static constexpr const char* kNames[] = {"name", "op", "layer", "phase", "shape", "line", "block"};
  return kNames[static_cast<size_t>(by)];
}

OpTag charged_tag(const Trace& trace, Meaning meaning, OpTag op) {
  if (op >= trace.ops.size()) return kNoOp;
  return meaning == Meaning::Communication && trace.ops[op].meaning != Meaning::Communication ? kNoOp : op;
}

OpInfo charged_op(const Trace& trace, Meaning meaning, OpTag op) {
  OpInfo info = trace.ops[charged_tag(trace, meaning, op)];
  if (meaning == Meaning::Communication && info.meaning != Meaning::Communication) info.name = info.layer = kCollectives;
  return info;
}

std::string group_of(const OpInfo& op, GroupBy by) {
  if (op.name.empty()) return "";
  switch (by) {
    case GroupBy::Layer:
    case GroupBy::Block:
      return op.layer;
    case GroupBy::Phase:
      return op.phase;
    case GroupBy::Line:
      return op.name == kCollectives ? kCollectives : line_of(op);
    default:
      return op.layer.empty() || op.layer == op.name ? op.name : op.layer + " · " + op.name;
  }
}

std::string group_name(const OpInfo& op, GroupBy by) {
  if (std::string known = group_of(op, by); !known.empty()) return known;
  return op.name.empty() ? "(no op)" : "(no " + std::string(to_string(by)) + ")";
}

std::string shortened(const std::string& name, size_t most) {
  std::vector<size_t> letters;  // start of each letter
  for (size_t at = 0; at < name.size(); ++at)
    if ((name[at] & 0xc0) != 0x80) letters.push_back(at);
  if (letters.size() <= most) return name;
  const size_t head = most / 2, tail = most - head - 1;
  return name.substr(0, letters[head]) + "…" + (tail > 0 ? name.substr(letters[letters.size() - tail]) : "");
}

std::string plain_kernel_name(const std::string& name) {
  constexpr std::string_view kShared[] = {"(anonymous namespace)::", "ws::cuda::", "at::native::"};
  std::string plain;
  for (std::string_view rest = std::string_view(name).substr(name.starts_with("void ") ? 5 : 0); !rest.empty();) {
    const auto* const part = std::ranges::find_if(kShared, [&](std::string_view one) { return rest.starts_with(one); });
    if (part == std::end(kShared)) plain += rest[0];
    rest.remove_prefix(part == std::end(kShared) ? 1 : part->size());
  }
  int depth = 0;
  for (size_t i = 1; i < plain.size(); ++i) {
    depth += (plain[i] == '<') - (plain[i] == '>');
    if (plain[i] == '(' && depth == 0) return plain.substr(0, i);
  }
  return plain;
}

namespace {

std::string without(std::string text, std::initializer_list<std::string_view> begins,
                    std::initializer_list<std::string_view> ends) {
  for (const std::string_view begin : begins)
    if (text.starts_with(begin) && text.size() > begin.size()) text.erase(0, begin.size());
  for (const std::string_view end : ends)
    if (text.ends_with(end) && text.size() > end.size()) text.erase(text.size() - end.size());
  return text;
}

// PyTorch kernels are templates whose arguments say what they compute: "add" in "vectorized_elementwise_kernel<4,
// at::native::CUDAFunctor_add<float>, …>".
std::string torch_functor(const std::string& name) {
  const auto letter = [&name](size_t i) { return std::isalnum(static_cast<unsigned char>(name[i])) || name[i] == '_'; };
  for (size_t at = std::min(name.find('<'), name.size()); at < name.size(); ++at) {
    size_t end = at;
    while (end < name.size() && letter(end)) ++end;
    const std::string word = name.substr(at, end - at);
    if (word.find("Functor") != std::string::npos || word.ends_with("_kernel_cuda") || word.ends_with("_functor") ||
        (word.ends_with("Ops") && word.size() > 3))
      return without(word, {"CUDAFunctorOnSelf_", "CUDAFunctor_"}, {"Functor", "_kernel_cuda", "_functor"});
    at = std::max(at, end);
  }
  return {};
}

// "gemm 64x32x8 nn_n stage3_warpsize2x2x1 f32f32_f32f32_f32 sm80" for "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x32x8_stage3_
// warpsize2x2x1_ffma_…_cublas". What separates such kernels of cuBLAS and cuDNN stands in the middle of their names, which a narrow
// column leaves out: operation, tile and layout come first. Empty for another name.
std::string xmma_name(const std::string& name) {
  constexpr std::string_view kBegin = "_xmma_", kTile = "_tilesize", kRun = "_execute_", kDigits = "0123456789";
  const size_t begin = name.find(kBegin), tile = name.find(kTile);
  if (begin == std::string::npos || tile == std::string::npos || tile < begin + kBegin.size()) return {};
  std::string operation, more, types, layout;
  std::istringstream words(name.substr(begin + kBegin.size(), tile - begin - kBegin.size()));
  const auto append = [](std::string& to, const std::string& word) { to += (to.empty() ? "" : "_") + word; };
  for (std::string word; std::getline(words, word, '_');) {
    const bool type = layout.empty() && word.find_first_of(kDigits) != std::string::npos;  // "tf32f32"
    std::string& part = types.empty() ? more : layout;
    if (operation.empty())
      operation = word;
    else
      append(type ? types : part, word);
  }
  if (types.empty() || layout.empty()) return {};
  const size_t sizes = tile + kTile.size(), stage = std::min(name.find('_', sizes), name.size()), warps = name.find("_warp", sizes);
  const size_t end = warps == std::string::npos ? name.size() : std::min(name.size(), name.find('_', warps + 1));
  const size_t run = name.find(kRun, end), how = run == std::string::npos ? name.size() : run + kRun.size();
  std::string parts = name.substr(how, std::max(how, std::min(name.size(), name.find("_kernel", how))) - how);  // "split_k"
  if (parts.starts_with("kernel")) parts.clear();
  std::string text = operation;
  for (const std::string& part : {name.substr(sizes, stage - sizes), layout, stage < end ? name.substr(stage + 1, end - stage - 1) : std::string(), parts, types, more, name.substr(0, begin)})
    if (!part.empty()) text += " " + part;
  return text;
}

constexpr std::string_view kGenericNames[] = {"Kernel", "Kernel2", "kernel", "device_kernel"};
bool is_generic(std::string_view name) { return std::ranges::find(kGenericNames, name) != std::end(kGenericNames); }

// "ImplicitGemmConvolution" for "_ZN7cutlass6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS1_…": a symbol that no
// demangler reads.
std::string name_in_symbol(std::string_view symbol) {
  std::string_view last;
  for (size_t at = 2; at < symbol.size();) {
    size_t length = 0;
    const char c = symbol[at];
    if (c >= '1' && c <= '9') {
      const auto [end, failed] = std::from_chars(symbol.data() + at, symbol.data() + symbol.size(), length);
      at = static_cast<size_t>(end - symbol.data());
      if (failed != std::errc() || length > symbol.size() - at) break;
      last = symbol.substr(at, length), at += length;
    } else if (c == 'S') {  // a name that stood there before: S_, S1_
      at = std::min(symbol.find('_', at), symbol.size() - 1) + 1;
    } else if ((c == 'I' || c == 'E') && !last.empty() && !is_generic(last)) {
      break;
    } else {
      ++at;
    }
  }
  return std::string(last.empty() ? symbol : last);
}

bool is_number_or_its_type(const std::string& argument) {
  constexpr std::string_view kTypes[] = {"bool", "char", "short", "int", "long", "unsigned", "float", "double", "__half", "__nv_bfloat16"};
  return std::isdigit(static_cast<unsigned char>(argument[0])) || std::ranges::find(kTypes, argument.substr(0, argument.find(' '))) != std::end(kTypes);
}

}  // namespace

std::string short_kernel_name(const std::string& name) {
  if (name.starts_with("_Z")) return name_in_symbol(name);
  std::string bare = without_brackets(name);
  while (!bare.empty() && bare.back() == ' ') bare.pop_back();
  const bool words = bare == name && !name.starts_with("void ");  // not a signature: "graph 2", "copy pinned → device"
  if (auto space = bare.find_last_of(' '); space != std::string::npos && !words) bare = bare.substr(space + 1);
  const std::string qualified = bare;
  if (auto colon = bare.rfind("::"); colon != std::string::npos) bare = bare.substr(colon + 2);
  // "Kernel<sm90_gemm_bias>": the argument says more than the name. "gemvx::kernel<int, float>": what stands before does.
  if (is_generic(bare))
    if (const auto at = name.find(bare + '<'); at != std::string::npos) {
      const size_t begin = at + bare.size() + 1;
      std::string argument = name.substr(begin, name.find_first_of("<>,(", begin) - begin);
      if (const auto colon = argument.rfind("::"); colon != std::string::npos) argument = argument.substr(colon + 2);
      if (!argument.empty() && !is_number_or_its_type(argument)) return argument;
      const size_t before = qualified.size() - bare.size();
      const auto colon = before > 2 ? qualified.rfind("::", before - 3) : std::string::npos;
      return before == 0 ? bare : qualified.substr(colon == std::string::npos ? 0 : colon + 2);
    }
  if (name.find("at::native::") != std::string::npos)
    if (const std::string does = torch_functor(name); !does.empty())
      return without(bare, {"vectorized_", "unrolled_"}, {"_kernel_impl", "_kernel"}) + " " + does;
  if (const std::string xmma = xmma_name(bare); !xmma.empty()) return xmma;
  return bare.empty() ? name : bare;
}

DurationStats stats_of(std::vector<int64_t>& durations) {
  DurationStats stats;
  if (durations.empty()) return stats;
  std::ranges::sort(durations);
  stats.count = durations.size();
  for (const int64_t d : durations) stats.total += d;
  const double n = static_cast<double>(durations.size());
  stats.mean = static_cast<double>(stats.total) / n;
  double squares = 0;
  for (const int64_t d : durations)
    squares += (static_cast<double>(d) - stats.mean) * (static_cast<double>(d) - stats.mean);
  stats.stddev = n > 1 ? std::sqrt(squares / (n - 1)) : 0;
  stats.min = durations.front();
  stats.max = durations.back();
  stats.q1 = rank(durations, 0.25), stats.median = rank(durations, 0.5), stats.q3 = rank(durations, 0.75);
  stats.p90 = rank(durations, 0.90), stats.p95 = rank(durations, 0.95);
  stats.p99 = rank(durations, 0.99), stats.p999 = rank(durations, 0.999);
  return stats;
}

namespace {

void add_span(Group& group, bool fresh, const Trace& trace, const Grouping& grouping, const Span& span) {
  const Detail& shape = trace.detail(span.detail);
  if (fresh) {
    group.row.key = grouping.key(span);
    group.row.name = span.name, group.row.meaning = span.span_meaning(), group.row.op = span.op;
    group.row.detail = shape, group.row.kind = span.span_kind();
    group.first_shape = span.detail;
  }
  group.row.several_shapes |= span.detail != group.first_shape;
  group.durations.push_back(static_cast<int64_t>(span.duration));
  add_time(group.by_meaning, span);
}

void give_shares(std::vector<KernelRow>& rows) {
  int64_t all = 0;
  for (const KernelRow& row : rows) all += row.time.total;
  for (KernelRow& row : rows) row.share = all > 0 ? static_cast<double>(row.time.total) / static_cast<double>(all) : 0;
  sort_rows(rows, [](const KernelRow& a, const KernelRow& b) {
    return a.time.total != b.time.total ? a.time.total > b.time.total : a.key < b.key;
  });
}

std::vector<KernelRow> with_callers(std::vector<KernelRow> rows, const Trace& trace, TimeRange range, GroupBy by) {
  if (by == GroupBy::Line) add_calling_lines(rows, trace, range);
  return rows;
}

// True if a GPU was used, even if none of its records were requested.
bool of_a_gpu(const Trace& trace) {
  return std::ranges::any_of(trace.tracks(), [](const Track& track) {
    return track.spans > 0 && (on_gpu(track) || track.kind == TrackKind::Api);
  });
}

}  // namespace

std::vector<KernelRow> kernel_table(const Trace& trace, TimeNs begin, TimeNs end, GroupBy by, SpanKind kind, bool in_steps,
                                    const JoinedLayers& joined) {
  Grouping grouping{trace, by, joined, {}, {}};
  std::unordered_map<uint64_t, Group> groups;
  for (const Track& track : trace.tracks()) {
    if (kind == SpanKind::Kernel && track.kind == TrackKind::Inner) continue;
    each_span(track, begin, end, [&](const Span& span) {
      if (span.span_kind() != kind || (in_steps && span.step == 0)) return;
      auto [at, fresh] = groups.try_emplace(grouping.number(span));
      add_span(at->second, fresh, trace, grouping, span);
    });
  }
  std::vector<KernelRow> rows;
  for (auto& [number, group] : groups) {
    group.row.time = stats_of(group.durations);
    const auto most = std::ranges::max_element(group.by_meaning);
    if (*most > 0) group.row.meaning = static_cast<Meaning>(most - group.by_meaning.begin());
    rows.push_back(std::move(group.row));
  }
  give_shares(rows);
  return rows;
}

std::vector<KernelRow> work_table(const Trace& trace, TimeNs begin, TimeNs end, GroupBy by, bool in_steps, const JoinedLayers& joined) {
  if (!of_a_gpu(trace)) {
    std::vector<KernelRow> ops = kernel_table(trace, begin, end, by, SpanKind::Op, in_steps, joined);
    return ops.empty() ? with_callers(range_table(trace, begin, end, by), trace, {begin, end}, by) : ops;
  }
  std::vector<KernelRow> rows = with_callers(kernel_table(trace, begin, end, by, SpanKind::Kernel, in_steps, joined), trace, {begin, end}, by);
  std::vector<KernelRow> graphs = kernel_table(trace, begin, end, GroupBy::Name, SpanKind::GraphRun, in_steps);
  if (graphs.empty()) return rows;
  rows.insert(rows.end(), std::make_move_iterator(graphs.begin()), std::make_move_iterator(graphs.end()));
  give_shares(rows);
  return rows;
}

void add_occupancy(std::vector<KernelRow>& rows, const DeviceLimits& card) {
  for (KernelRow& row : rows)
    if (row.kind == SpanKind::Kernel && row.detail.block[0] > 0) row.occupancy = occupancy_of(row.detail, card);
}

std::vector<int64_t> durations_of(const Trace& trace, NameId name, TimeNs begin, TimeNs end) {
  std::vector<int64_t> durations;
  for (const Track& track : trace.tracks()) {
    each_span(track, begin, end, [&](const Span& span) {
      if (span.name == name) durations.push_back(static_cast<int64_t>(span.duration));
    });
  }
  return durations;
}

}  // namespace ws::prof
