#include "profiling/analysis/memory_account.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace ws::prof {

namespace {

MemoryAccount account_of(const Trace& trace, const std::string& name, const MemoryFilter& belongs, size_t moments) {
  MemoryAccount account;
  account.allocator = name;
  account.history = memory_history(trace, belongs);
  account.sizes = size_histogram(account.history);
  account.at_peak = memory_moment(account.history, account.history.peak_time);
  account.worst = account.at_peak;
  for (const MemoryMoment& moment : memory_moments(account.history, -kAlways, kAlways, moments))
    if (moment.fragmentation() > account.worst.fragmentation()) account.worst = moment;
  return account;
}

std::string size_text(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[40];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

// An arena takes its block and hands out nothing: its plan says what lies where.
std::string share_text(const MemoryAccount& account, const MemoryMoment& moment) {
  if (account.history.allocations == 0) return "planned";
  char text[20];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * moment.fragmentation());
  return text;
}

std::string sizes_text(const std::vector<MemoryAccount>& accounts) {
  std::map<uint64_t, uint64_t> classes;  // from → to
  for (const MemoryAccount& account : accounts)
    for (const SizeBin& bin : account.sizes) classes[bin.from] = bin.to;
  if (classes.empty()) return "";
  char buffer[120];
  std::string text = "\n       blocks of";
  for (const MemoryAccount& account : accounts) {
    std::snprintf(buffer, sizeof buffer, " %16.16s", account.allocator.c_str());
    text += buffer;
  }
  text += "\n";
  for (const auto& [from, to] : classes) {
    std::snprintf(buffer, sizeof buffer, "%16s", ("< " + size_text(to)).c_str());
    text += buffer;
    for (const MemoryAccount& account : accounts) {
      const auto bin = std::ranges::find(account.sizes, from, &SizeBin::from);
      const uint64_t count = bin == account.sizes.end() ? 0 : bin->count;
      std::snprintf(buffer, sizeof buffer, " %16llu", static_cast<unsigned long long>(count));
      text += count == 0 ? std::string(16, ' ') + "–" : buffer;
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::vector<MemoryAccount> memory_accounts(const Trace& trace, size_t moments) {
  std::vector<MemoryAccount> accounts;
  const auto& names = trace.memory_sources;
  for (size_t i = 0; i < names.size(); ++i)
    if (!is_driver_source(names[i]))
      accounts.push_back(account_of(
          trace, names[i], [i](const MemoryEvent& event) { return event.source == i; }, moments));
  const auto by_driver = [&](const MemoryEvent& event) {
    return event.source < names.size() && is_driver_source(names[event.source]);
  };
  if (std::ranges::any_of(names, is_driver_source))
    accounts.push_back(account_of(trace, MemoryAccount::kDriver, by_driver, moments));
  std::erase_if(accounts, [](const MemoryAccount& account) { return account.history.points.empty(); });
  return accounts;
}

double counter_peak(const Trace& trace, const std::string& name) {
  double most = 0;
  for (const CounterTrack& track : trace.counters())
    if (track.name == name)
      for (const CounterPoint& point : track.points) most = std::max(most, point.value);
  return most;
}

std::string memory_text(const Trace& trace, const std::vector<MemoryAccount>& accounts) {
  std::string text;
  char buffer[200];
  if (!accounts.empty()) {
    std::snprintf(buffer, sizeof buffer, "\n%16s %11s %11s %12s %13s %12s %12s\n", "memory of", "allocated", "freed",
                  "peak live", "peak reserved", "broken up", "at worst");
    text += buffer;
  }
  for (const MemoryAccount& a : accounts) {
    const std::string reserved = a.history.peak_reserved > 0 ? size_text(a.history.peak_reserved) : "–";
    std::snprintf(buffer, sizeof buffer, "%16.16s %11llu %11llu %12s %*s %12s %12s\n", a.allocator.c_str(),
                  static_cast<unsigned long long>(a.history.allocations),
                  static_cast<unsigned long long>(a.history.frees), size_text(a.history.peak_live).c_str(),
                  reserved == "–" ? 15 : 13, reserved.c_str(), share_text(a, a.at_peak).c_str(),
                  share_text(a, a.worst).c_str());
    text += buffer;
  }
  static constexpr const char* kCounters[] = {"pool used", "pool reserved", "device memory used"};
  for (const char* name : kCounters)
    if (const double most = counter_peak(trace, name); most > 0)
      text += std::string(name) + ", at most: " + size_text(static_cast<uint64_t>(most)) + "\n";
  if (!accounts.empty())
    text += "Broken up: 1 - the largest free piece / all that is free, when most was live, and at worst.\n";
  return text + sizes_text(accounts);
}

}  // namespace ws::prof
