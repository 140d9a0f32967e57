#include "profiling/analysis/memory_account.h"

#include <algorithm>
#include <map>

#include "profiling/base/safe_text.h"
#include "profiling/base/sort_rows.h"
#include "profiling/base/text.h"

namespace ws::prof {

namespace {

MemoryAccount account_of(const Trace& trace, const std::string& name, const MemoryFilter& belongs, GroupBy by,
                         size_t moments) {
  MemoryAccount account;
  account.allocator = name;
  account.history = memory_history(trace, belongs);
  account.sizes = size_histogram(account.history);
  account.held_by = memory_grouping(trace, by);
  account.held = held_at_peak(trace, account.history, account.held_by);
  if (std::ranges::all_of(account.held, [](const MemoryHolder& row) { return row.op == kNoOp; })) account.held.clear();
  account.at_peak = memory_moment(account.history, account.history.peak_time);
  account.worst = account.at_peak;
  for (const MemoryMoment& moment : memory_moments(account.history, -kAlways, kAlways, moments))
    if (moment.fragmentation() > account.worst.fragmentation()) account.worst = moment;
  return account;
}

MemoryFilter by_driver(const Trace& trace) {
  return [&names = trace.memory_sources](const MemoryEvent& event) {
    return event.source < names.size() && is_driver_source(names[event.source]);
  };
}

std::string live_text(const MemoryAccount& account) {
  return account.planned() ? "planned" : bytes_text(static_cast<double>(account.history.peak_live));
}
std::string share_text(const MemoryAccount& account, const MemoryMoment& moment) {
  return account.planned() ? "planned" : percent(moment.fragmentation());
}

std::string plan_text(const MemoryAccount& account) {
  if (!account.planned()) return "";
  return table_row("{}: reserves {} before the first step and allocates nothing while training. The plan places every buffer in it.",
                   account.allocator, bytes_text(static_cast<double>(account.history.peak_reserved)));
}

std::string sizes_text(const std::vector<MemoryAccount>& accounts) {
  std::map<uint64_t, uint64_t> classes;  // from → to
  for (const MemoryAccount& account : accounts)
    for (const SizeBin& bin : account.sizes) classes[bin.from] = bin.to;
  if (classes.empty()) return "";
  std::string names;
  for (const MemoryAccount& account : accounts) names += formatted(" {:>16.16}", account.allocator);
  std::string text = "\n" + table_row("       blocks of{}", names);
  for (const auto& [from, to] : classes) {
    text += formatted("{:>16}", "< " + bytes_text(static_cast<double>(to)));
    for (const MemoryAccount& account : accounts) {
      const auto bin = std::ranges::find(account.sizes, from, &SizeBin::from);
      const uint64_t count = bin == account.sizes.end() ? 0 : bin->count;
      text += formatted(" {:>16}", count == 0 ? "–" : std::to_string(count));
    }
    text += "\n";
  }
  return text;
}

std::string gap_text(const MemoryAccount& account) {
  const MemoryGap& gap = account.gap;
  if (!gap.known()) return "";
  const auto bytes = [](uint64_t number) { return bytes_text(static_cast<double>(number)); };
  return table_row("{}: {} live at the peak, in {} of the driver's memory ({} at most).", account.allocator, bytes(gap.live),
                   bytes(gap.taken), bytes(gap.most_taken)) +
         table_row("Unused of it: {} beside live blocks, {} in segments without one.", bytes(gap.beside), bytes(gap.empty));
}

std::string held_text(const MemoryAccount& account) {
  constexpr size_t kRows = 12;
  if (account.held.empty()) return "";
  const std::string what = "live at the peak of " + account.allocator + ", by " + to_string(account.held_by);
  Table table = holder_rows(account.held, account.history.peak_live, what);
  table.rows.resize(std::min(kRows, table.rows.size()));
  return "\n" + to_text(table) + (account.held.size() > kRows ? formatted("{:>38}  {} more\n", "", account.held.size() - kRows) : "");
}

}  // namespace

std::vector<MemoryHolder> held_at_peak(const Trace& trace, const MemoryHistory& history, GroupBy by) {
  std::map<std::string, MemoryHolder> rows;
  std::map<std::string, std::map<std::string, uint64_t>> phases;
  each_live_at_peak(history, [&](const MemoryBlock& block) {
    const OpTag op = block.op < trace.ops.size() ? block.op : kNoOp;
    const std::string name = group_name(trace.ops[op], by);
    MemoryHolder& row = rows.try_emplace(name, MemoryHolder{.name = name, .op = op, .meaning = trace.ops[op].meaning}).first->second;
    row.bytes += block.bytes, ++row.blocks;
    phases[name][trace.ops[op].phase] += block.bytes;
  });
  std::vector<MemoryHolder> holders;
  for (auto& [name, row] : rows) {
    row.phase = std::ranges::max_element(phases[name], {}, [](const auto& phase) { return phase.second; })->first;
    holders.push_back(std::move(row));
  }
  sort_rows(holders, [](const MemoryHolder& a, const MemoryHolder& b) { return a.bytes > b.bytes; });
  return holders;
}

Table holder_rows(const std::vector<MemoryHolder>& held, uint64_t peak, const std::string& what) {
  using Kind = Table::Kind;
  Table table{{{"bytes", "bytes", "", Kind::Bytes, 0, 16, ""},
               {"share", "share", "%", Kind::Percent, 2, 8, "Share of all bytes that were live."},
               {"blocks", "blocks", "", Kind::Count, 0, 12, ""},
               {"name", what, "", Kind::Text, 0, 1, ""}}, {}};
  for (const MemoryHolder& row : held) {
    Table::Cell name(row.name);
    name.swatch = static_cast<int>(row.meaning);
    table.rows.push_back({{row.bytes, static_cast<double>(row.bytes) / static_cast<double>(peak), row.blocks, name}});
  }
  return table;
}

HeldMemory held_memory(const Trace& trace, GroupBy by, std::string_view allocator) {
  HeldMemory held;
  const auto& names = trace.memory_sources;
  for (size_t i = 0; i < names.size(); ++i) {
    if (is_driver_source(names[i]) || (!allocator.empty() && allocator != names[i])) continue;
    const MemoryHistory history = memory_history(trace, static_cast<int>(i));
    if (history.peak_live > held.peak)
      held = {names[i], history.peak_live, history.peak_time, memory_gap(history, driver_history(trace)), held_at_peak(trace, history, by),
              held_at_peak(trace, history, GroupBy::Phase)};
  }
  return held;
}

GroupBy memory_grouping(const Trace& trace, GroupBy by) {
  if (by != GroupBy::Name && by != GroupBy::Shape) return by;
  return std::ranges::any_of(trace.ops, [](const OpInfo& op) { return !op.layer.empty(); }) ? GroupBy::Layer : GroupBy::Op;
}

MemoryHistory driver_history(const Trace& trace) { return memory_history(trace, by_driver(trace)); }

MemoryGap memory_gap(const MemoryHistory& own, const MemoryHistory& driver) {
  struct Segment {
    uint64_t end, used = 0;
  };
  const bool reports = own.peak_reserved > 0;
  std::map<uint64_t, Segment> segments;  // by address
  for (const MemoryBlock& block : (reports ? own : driver).blocks)
    if (block.reserved == reports && block.begin <= own.peak_time && (!block.freed || block.end > own.peak_time))
      segments[block.address] = {block.address + block.bytes};
  uint64_t inside = 0, live = 0;
  each_live_at_peak(own, [&](const MemoryBlock& block) {
    live += block.bytes;
    const auto after = segments.upper_bound(block.address);
    if (after == segments.begin()) return;
    Segment& segment = std::prev(after)->second;
    if (block.address + block.bytes <= segment.end) segment.used += block.bytes, inside += block.bytes;
  });
  if (live == 0 || inside < live) return {};
  MemoryGap gap{.live = live, .most_taken = reports ? own.peak_reserved : driver.peak_live};
  for (const auto& [address, segment] : segments) {
    gap.taken += segment.end - address;
    (segment.used > 0 ? gap.beside : gap.empty) += segment.end - address - segment.used;
  }
  return gap;
}

std::vector<MemoryAccount> memory_accounts(const Trace& trace, GroupBy by, size_t moments) {
  std::vector<MemoryAccount> accounts;
  const auto& names = trace.memory_sources;
  for (size_t i = 0; i < names.size(); ++i)
    if (!is_driver_source(names[i]))
      accounts.push_back(account_of(
          trace, names[i], [i](const MemoryEvent& event) { return event.source == i; }, by, moments));
  if (std::ranges::any_of(names, is_driver_source))
    accounts.push_back(account_of(trace, MemoryAccount::kDriver, by_driver(trace), by, moments));
  std::erase_if(accounts, [](const MemoryAccount& account) { return account.history.points.empty(); });
  const MemoryHistory none, &driver = !accounts.empty() && accounts.back().driver() ? accounts.back().history : none;
  for (MemoryAccount& account : accounts)
    if (!account.driver()) account.gap = memory_gap(account.history, driver);
  return accounts;
}

namespace {

constexpr std::string_view kDeviceMemory = "device memory used";

double most_of(const CounterTrack& track) {
  double most = 0;
  for (const CounterPoint& point : track.points) most = std::max(most, point.value);
  return most;
}

bool counts(const CounterTrack& track, std::string_view name) { return track.name == name || track.name.ends_with(" · " + std::string(name)); }

// "device memory used, at most: 2.16 GiB", for each rank that has the counter.
std::string counter_peaks(const Trace& trace, std::string_view name) {
  std::string text;
  for (const CounterTrack& track : trace.counters()) {
    if (!counts(track, name)) continue;
    if (const double most = most_of(track); most > 0) text += track.name + ", at most: " + bytes_text(most) + "\n";
  }
  return text;
}

}  // namespace

double most_device_memory(const Trace& trace) {
  double most = 0;
  size_t gpus = 0;
  for (const CounterTrack& track : trace.counters())
    if (counts(track, kDeviceMemory)) most = most_of(track), ++gpus;
  return gpus == 1 ? most : 0;
}

std::string memory_text(const Trace& trace, const std::vector<MemoryAccount>& accounts) {
  std::string text;
  if (!accounts.empty())
    text += formatted("\n{:>16} {:>11} {:>11} {:>12} {:>13} {:>12} {:>12}\n", "memory of", "allocated", "freed",
                      "peak live", "peak reserved", "fragmented", "at worst");
  for (const MemoryAccount& a : accounts) {
    const auto reserved = static_cast<double>(a.history.peak_reserved);
    text += table_row("{:>16.16} {:>11} {:>11} {:>12} {:>13} {:>12} {:>12}", a.allocator, a.history.allocations,
                      a.history.frees, live_text(a),
                      reserved > 0 ? bytes_text(reserved) : "–", share_text(a, a.at_peak), share_text(a, a.worst));
  }
  static constexpr std::string_view kCounters[] = {"memory used", "memory reserved", "pool used", "pool reserved", kDeviceMemory};
  for (const std::string_view name : kCounters) text += counter_peaks(trace, name);
  if (!accounts.empty())
    text += "Fragmented: 1 - the largest free piece / all that is free, when most was live, and at worst.\n";
  for (const MemoryAccount& account : accounts) text += plan_text(account) + gap_text(account);
  for (const MemoryAccount& account : accounts)
    text += held_text(account);
  return text + sizes_text(accounts);
}

}  // namespace ws::prof
