#include "app/core/report/rank_figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <ranges>
#include <set>
#include <span>

#include "app/core/report/report_sections.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

using prof::RankReport;

constexpr size_t kFewRanks = 4;
constexpr double kLeastBars = 36, kThinRow = 22, kAxisWidth = 44;
constexpr double kMapTop = 20, kMapBottom = 20, kMapEdge = 10, kHostGap = 4, kGapFrom = 7, kLetter = 6.3;
constexpr size_t kLongestHost = 18;

// The smallest of 1, 2, 5, 10, 20, … that is at least `least`.
int64_t round_number(double least) {
  int64_t decade = 1;
  for (;; decade *= 10)
    for (const int64_t factor : {1, 2, 5})
      if (static_cast<double>(factor * decade) >= least) return factor * decade;
}

bool has_hosts(const RankReport& report) {
  return std::ranges::any_of(report.ranks, [](const auto& r) { return !r.host.empty(); });
}

std::string short_host(const std::string& host) {
  return host.size() <= kLongestHost ? host : host.substr(0, kLongestHost - 3) + "…";
}

double hosts_width(const RankReport& report) {
  size_t longest = 0;
  for (const auto& r : report.ranks) longest = std::max(longest, std::min(kLongestHost, r.host.size()));
  return longest > 0 ? static_cast<double>(longest) * kLetter + 12 : 0;
}

double ranks_width(const RankReport& report) {
  return static_cast<double>(rank_name(report, report.ranks.size() - 1).size()) * kLetter + 10;
}

bool is_straggler(const RankReport& report, size_t row) {
  return report.straggler.rank >= 0 && report.ranks[row].rank == report.straggler.rank;
}

size_t host_count(const RankReport& report) {
  std::set<std::string> hosts;
  for (const auto& r : report.ranks) hosts.insert(r.host);
  return hosts.size();
}

// The straggler sets the scale: one step that was far later, often the first, would hide all others.
void set_scale(const RankReport& report, LatenessMap& map) {
  double most = 0;
  for (const float late : report.lateness)
    if (late > most) most = late;
  const double typical = 2 * report.straggler.late_us;
  map.capped = typical > 0 && most > typical;
  constexpr double kLittle = 0.05;  // of a step: less has no strong colour
  map.scale_us = std::max({map.capped ? typical : most, report.clock_error_us, kLittle * report.step_us, 1e-3});
}

constexpr double kLine = 13;  // from one label to the next

double label_y(const LatenessMap& map, size_t row) {
  if (map.bars()) return map.tops[row] + 11;  // above the ticks of the row
  return std::max(map.tops[row] + map.heights[row] / 2 + 4, kMapTop + 9);
}

bool is_never_late(const RankReport& report, size_t rank) {
  for (size_t step = 0; step < report.steps.size(); ++step)
    if (!(static_cast<double>(report.late(rank, step)) <= report.clock_error_us)) return false;
  return report.ranks[rank].recorded;
}

// Such a rank has no row of bars beside a late one: the caption names it.
bool has_no_row(const RankReport& report, size_t rank) {
  if (report.ranks.size() > kFewRanks || !is_never_late(report, rank)) return false;
  for (size_t r = 0; r < report.ranks.size(); ++r)
    if (!is_never_late(report, r)) return true;
  return false;
}

std::string never_late_text(const RankReport& report) {
  std::vector<std::string> names;
  for (size_t r = 0; r < report.ranks.size(); ++r)
    if (has_no_row(report, r)) names.push_back(std::to_string(report.ranks[r].rank));
  if (names.empty()) return "";
  return (names.size() == 1 ? "Rank " : "Ranks ") + joined_names(names) + (names.size() == 1 ? " is never late." : " are never late.");
}

double highest_row(size_t ranks) { return ranks <= kFewRanks ? 320 : 28; }

// The straggler has its label in any case.
void add_rank_labels(const RankReport& report, const LatenessMap& map, const FigureInk& ink, Drawing& drawing) {
  const size_t ranks = report.ranks.size(), rows = map.grid.rows;
  double late_y = -2 * kLine, free_from = 0;
  for (size_t r = 0; r < ranks; ++r)
    if (is_straggler(report, r)) {
      late_y = label_y(map, part_of(r, rows, ranks));
      drawing.text(map.left - map.axis_width - 8, late_y, rank_name(report, r), Anchor::End, 11, hex_colour(ink.text), 600);
    }
  for (size_t row = 0; row < rows; ++row) {
    const double y = label_y(map, row);
    if (map.heights[row] <= 0) continue;
    if (y < free_from || std::abs(y - late_y) < kLine) continue;
    free_from = y + kLine;
    const size_t first = first_of(row, rows, ranks);
    drawing.text(map.left - map.axis_width - 8, y, rank_name(report, first), Anchor::End, 11, hex_colour(ink.secondary));
    if (rows == ranks && !report.ranks[first].recorded)
      drawing.text(map.left + 8, y, "not recorded", Anchor::Start, 10.5, hex_colour(ink.quiet));
  }
}

// A row with bars has an axis. Where no rank is late, each row says so.
void add_axes(const RankReport& report, const LatenessMap& map, const FigureInk& ink, Drawing& drawing) {
  constexpr double kPitch = 36;
  const int64_t every = round_number(map.scale_us * kPitch / map.row_height);
  const bool ms = map.scale_us >= 1000;
  for (size_t r = 0; r < report.ranks.size(); ++r) {
    if (map.heights[r] <= 0) continue;
    if (is_never_late(report, r)) {
      drawing.text(map.left + 8, label_y(map, r), "never late", Anchor::Start, 11, hex_colour(ink.quiet));
      continue;
    }
    const double ground = map.tops[r] + map.heights[r] - 0.5;
    for (int64_t us = 0; static_cast<double>(us) <= map.scale_us; us += every) {
      const double y = us == 0 ? ground : ground - map.bar_height(static_cast<double>(us));
      drawing.line(map.left - 4, y, us == 0 ? map.right : map.left, y, hex_colour(ink.axis));
      drawing.text(map.left - 7, y + 4, us == 0 ? "0" : formatted("{:g} {}", static_cast<double>(us) / (ms ? 1e3 : 1), ms ? "ms" : "µs"), Anchor::End, 11, hex_colour(ink.secondary));
    }
    drawing.line(map.left - 0.5, map.tops[r] + 4, map.left - 0.5, ground, hex_colour(ink.axis));
  }
}

void add_host_labels(const RankReport& report, const LatenessMap& map, const FigureInk& ink, Drawing& drawing) {
  if (!has_hosts(report)) return;
  const size_t ranks = report.ranks.size(), rows = map.grid.rows;
  double free_from = 0;
  for (size_t begin = 0, end = 0; begin < rows; begin = end) {
    const auto host = [&](size_t row) -> const std::string& { return report.ranks[first_of(row, rows, ranks)].host; };
    while (end < rows && host(end) == host(begin)) ++end;
    const double y = std::max((map.tops[begin] + map.tops[end - 1] + map.heights[end - 1]) / 2 + 4, kMapTop + 9);
    if (y < free_from) continue;
    free_from = y + kLine;
    const bool late = std::any_of(report.ranks.begin(), report.ranks.end(), [&](const auto& r) {
      return r.rank == report.straggler.rank && r.host == host(begin);
    });
    drawing.text(kMapEdge, y, short_host(host(begin)), Anchor::Start, 11, hex_colour(late ? ink.text : ink.secondary),
                 late ? 600 : 400);
  }
}

void add_step_labels(const RankReport& report, const LatenessMap& map, const FigureInk& ink, Drawing& drawing) {
  constexpr double kPitch = 64;
  if (report.steps.empty()) return;
  const double y = map.bottom() + 15, span = static_cast<double>(report.steps.back() - report.steps.front() + 1);
  const int64_t every = round_number(span * kPitch / (map.right - map.left));
  drawing.text(kMapEdge, y, "step", Anchor::Start, 11, hex_colour(ink.quiet));
  double free_from = map.left;
  for (size_t i = 0; i < report.steps.size(); ++i) {
    if (report.steps[i] % every != 0) continue;
    const size_t column = part_of(i, map.grid.columns, report.steps.size());
    const double x = (map.x(column) + map.x(column + 1)) / 2;
    const std::string text = count_text(static_cast<double>(report.steps[i]));
    const double half = static_cast<double>(text.size()) * kLetter / 2;
    if (x - half < free_from || x + half > map.right + kMapEdge) continue;
    free_from = x + half + 8;
    drawing.text(x, y, text, Anchor::Middle, 11, hex_colour(ink.secondary));
  }
}

void add_scale(const LatenessMap& map, double clock_error_us, const FigureInk& ink, Drawing& drawing) {
  constexpr int kParts = 24;
  constexpr double kWidth = 96;
  const std::string most = time_text(map.scale_us) + (map.capped ? " late or more" : " late");
  const double right = map.right - static_cast<double>(most.size()) * kLetter - 4, left = right - kWidth;
  for (int i = 0; i < kParts; ++i) {  // the first part has the colour of no lateness
    const double late_us = i == 0 ? 0 : map.scale_us * (i + 0.5) / kParts;
    drawing.rect(left + kWidth / kParts * i, 6, kWidth / kParts + 0.5, 8,
                 hex_colour(lateness_colour(map, clock_error_us, late_us, ink)));
  }
  drawing.text(left - 6, 14, "0", Anchor::End, 11, hex_colour(ink.secondary));
  drawing.text(right + 6, 14, most, Anchor::Start, 11, hex_colour(ink.secondary));
}

struct LogAxis {
  double low, high;  // powers of ten
  double left, width;
  double x(double value) const {
    const double share = (std::log10(std::max(value, 1e-9)) - low) / (high - low);
    return left + std::clamp(share, 0.0, 1.0) * width;
  }
};

// The rows that fit, in the order of the ranks. The latest ones stay.
std::vector<size_t> shown_ranks(const RankReport& report, size_t most) {
  std::vector<size_t> rows;
  for (size_t r = 0; r < report.ranks.size(); ++r)
    if (report.ranks[r].recorded) rows.push_back(r);
  if (rows.size() <= most) return rows;
  std::ranges::stable_sort(rows, [&](size_t a, size_t b) {
    return std::pair(is_straggler(report, a), report.ranks[a].late) >
           std::pair(is_straggler(report, b), report.ranks[b].late);
  });
  rows.resize(most);
  std::ranges::sort(rows);
  return rows;
}

constexpr size_t kBinsOfDecade = 7;
constexpr double kFirst = 52;  // the column of the arrivals that are not late, or by less than the axis begins with

bool is_first(double late, const LogAxis& axis) { return !(late >= std::pow(10, axis.low)); }

double first_arrivals(const RankReport& report, size_t rank, const LogAxis& axis) {
  double count = 0;
  for (size_t step = 0; step < report.steps.size(); ++step)
    if (const double late = report.late(rank, step); !std::isnan(late) && is_first(late, axis)) ++count;
  return count;
}

std::vector<double> bins_of(const RankReport& report, size_t rank, const LogAxis& axis) {
  const auto bins = static_cast<size_t>((axis.high - axis.low) * kBinsOfDecade);
  std::vector<double> counts(bins, 0);
  for (size_t step = 0; step < report.steps.size(); ++step) {
    const double late = report.late(rank, step);
    if (std::isnan(late) || is_first(late, axis)) continue;
    const double at = (std::log10(std::max(late, 1e-9)) - axis.low) * kBinsOfDecade;
    counts[static_cast<size_t>(std::clamp(at, 0.0, static_cast<double>(bins) - 1))] += 1;
  }
  return counts;
}

LogAxis arrival_axis(const RankReport& report, double left, double width) {
  double least = 1e9, most = 1;
  for (const float late : report.lateness)
    if (late > 0) least = std::min<double>(least, late), most = std::max<double>(most, late);
  const double low = std::clamp(std::floor(std::log10(least)), -1.0, 6.0);
  return {low, std::max(low + 1, std::ceil(std::log10(most) + 0.05)), left, width};
}

std::string steps_text(int64_t count, double late_us) {
  return "late in " + std::to_string(count) + (count == 1 ? " step: " : " steps: median ") + time_text(late_us);
}

std::string size_tick(double bytes) {
  const std::string text = bytes_text(bytes);
  const size_t dot = text.find('.'), space = text.find(' ');
  return dot == text.npos ? text : text.substr(0, dot) + text.substr(space);  // powers of two have no decimals
}

// Names often begin alike, and end with what differs.
std::string name_of_label(const std::string& name) {
  constexpr size_t kLongest = 24, kEnd = 11;
  const auto letter_at = [&](size_t at) {
    while (at < name.size() && (static_cast<unsigned char>(name[at]) & 0xc0) == 0x80) ++at;
    return at;
  };
  if (name.size() <= kLongest) return name;
  return name.substr(0, letter_at(kLongest - kEnd - 1)) + "…" + name.substr(letter_at(name.size() - kEnd));
}

struct Box {
  double x, y, width, height;
  bool meets(const Box& o) const {
    return x < o.x + o.width && o.x < x + width && y < o.y + o.height && o.y < y + height;
  }
};

// Where the histograms of arrivals stand: one row for each rank, one axis for all.
struct ArrivalRows {
  LogAxis axis;
  double left, pitch, top;  // top: the most arrivals in a bin
};

// Draws the bars of a rank above `y`. The bars that make a straggler have another colour.
void add_arrivals_of(const RankReport& report, size_t rank, const ArrivalRows& rows, double y, const FigureInk& ink,
                     Drawing& drawing) {
  const LogAxis& axis = rows.axis;
  const double left = axis.left, right_end = left + axis.width;
  const bool late = is_straggler(report, rank);
  drawing.text(rows.left - 8, y - 2, rank_name(report, rank), Anchor::End, 11, hex_colour(late ? ink.text : ink.secondary),
               late ? 600 : 400);
  drawing.line(rows.left, y - 0.5, right_end, y - 0.5, hex_colour(ink.grid));
  const auto height = [&rows](double count) { return std::max(2.0, std::round(count / rows.top * (rows.pitch - 3))); };
  if (const double count = first_arrivals(report, rank, axis); count > 0)
    drawing.rect(rows.left, y - height(count) - 1, kFirst - 12, height(count), hex_colour(ink.bar));
  const std::vector<double> counts = bins_of(report, rank, axis);
  const double bin = axis.width / static_cast<double>(counts.size());
  double first_late = right_end;
  std::vector<double> highs(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] <= 0) continue;
    const double high = height(counts[i]);
    const double end_us = std::pow(10, axis.low + static_cast<double>(i + 1) / kBinsOfDecade);
    const bool marked = late && end_us > report.straggler.late_us / 2 && end_us > report.clock_error_us;
    if (marked) first_late = std::min(first_late, left + bin * static_cast<double>(i));
    highs[i] = high;
    drawing.rect(left + bin * static_cast<double>(i), y - high - 1, std::max(1.0, bin - 1), high,
                 hex_colour(marked ? ink.late : ink.bar));
  }
  if (!late) return;
  const std::string label = steps_text(report.straggler.late_steps, report.straggler.late_us);
  const double wide = static_cast<double>(label.size()) * kLetter;
  const auto below = [&](double right) {  // the highest bar under a label that ends there
    double highest = 0;
    for (size_t i = 0; i < highs.size(); ++i)
      if (const double at = left + bin * static_cast<double>(i); at < right && at + bin > right - wide)
        highest = std::max(highest, highs[i]);
    return highest;
  };
  const double before = first_late - 6;
  const double right = before - wide > left && below(before) <= below(right_end) ? before : right_end;
  drawing.text(right, y - 3 - std::min(below(right), rows.pitch - 13), label, Anchor::End, 11, hex_colour(ink.text));
}

void add_decades(const LogAxis& axis, double y, const FigureInk& ink, Drawing& drawing) {
  const bool narrow = axis.width / (axis.high - axis.low) < 44;
  for (int decade = static_cast<int>(axis.low); decade <= static_cast<int>(axis.high); ++decade) {
    const double us = std::pow(10.0, decade);
    const std::string text = us >= 1e6   ? formatted("{:g} s", us / 1e6)
                             : us >= 1e3 ? formatted("{:g} ms", us / 1e3)
                                         : formatted("{:g} µs", us);
    if (narrow && (decade - static_cast<int>(axis.low)) % 2 != 0) continue;
    drawing.text(axis.x(us), y, text, Anchor::Middle, 11, hex_colour(ink.secondary));
  }
}

// Notes which ranks are left out, and below which time their order is not known.
std::string arrivals_note(const RankReport& report, size_t shown) {
  const std::string hidden = shown < report.ranks.size()
                                 ? formatted("the {} latest of {} ranks", shown, report.ranks.size())
                                 : std::string();
  const std::string unsure = report.clock_error_us >= 0.05
                                 ? "under " + time_text(report.clock_error_us) + " the order is not known"
                                 : std::string();
  return hidden + (hidden.empty() || unsure.empty() ? "" : " · ") + unsure;
}

bool has_bandwidth_of(const prof::CollectiveRow& row) { return row.bus_gb_s > 0 && row.bytes > 0; }

// Bus bandwidth against message size, on a log axis.
class BandwidthChart {
 public:
  BandwidthChart(const RankReport& report, double width, double height, const FigureInk& ink)
      : report_(report), ink_(ink), right_(width - kRight), bottom_(height - kFoot) {
    drawing_.width = width, drawing_.height = height;
    double least = 1e30, most = 1;
    for (const auto& c : report.collectives) {
      if (!has_bandwidth_of(c)) continue;
      const auto bytes = static_cast<double>(c.bytes);
      least = std::min(least, bytes), most = std::max(most, bytes), most_gb_s_ = std::max(most_gb_s_, c.bus_gb_s);
    }
    if (most_gb_s_ <= 0) return;
    low_ = std::floor(std::log2(least) / kDoublings) * kDoublings;
    high_ = std::max(low_ + kDoublings, std::ceil((std::log2(most) + 0.3) / kDoublings) * kDoublings);
    most_gb_s_ = std::max(most_gb_s_, peak(std::exp2(high_)));
  }

  Drawing draw(int chosen) {
    if (most_gb_s_ <= 0) return std::move(drawing_);
    add_axes();
    add_peak();
    for (const auto& c : report_.collectives)
      if (has_bandwidth_of(c)) taken_.push_back({x(static_cast<double>(c.bytes)) - 5, y(c.bus_gb_s) - 5, 10, 10});
    const std::vector<std::string> names = short_collective_names(report_);
    for (size_t i = 0; i < report_.collectives.size(); ++i) {
      const prof::CollectiveRow& row = report_.collectives[i];
      if (!has_bandwidth_of(row)) continue;
      const bool alone = std::ranges::count(names, names[i]) == 1;  // otherwise the size differs
      const std::string name = name_of_label(names[i]) + (alone ? "" : ", " + bytes_text(static_cast<double>(row.bytes)));
      add_collective(row, name, alone ? name : bytes_text(static_cast<double>(row.bytes)), static_cast<int>(i) == chosen);
    }
    return std::move(drawing_);
  }

 private:
  static constexpr double kLeft = 44, kRight = 24, kTop = 12, kFoot = 24;
  static constexpr int kDoublings = 5;  // from one tick to the next

  double x(double bytes) const { return kLeft + (std::log2(bytes) - low_) / (high_ - low_) * (right_ - kLeft); }
  double y(double gb_s) const { return bottom_ - gb_s / top_gb_s_ * (bottom_ - kTop); }
  double peak(double bytes) const { return bus_rate(report_.peak, static_cast<int>(report_.ranks.size()), bytes); }

  void add_axes() {
    const std::vector<double> lines = ticks(0, most_gb_s_ * 1.1, false, 4);
    top_gb_s_ = std::max(most_gb_s_ * 1.1, lines.back());
    for (const double value : lines) {
      drawing_.line(kLeft, std::round(y(value)) + 0.5, right_, std::round(y(value)) + 0.5,
                    hex_colour(value > 0 ? ink_.grid : ink_.axis));
      drawing_.text(kLeft - 6, y(value) + 4, tick_text(value), Anchor::End, 11, hex_colour(ink_.secondary));
    }
    drawing_.line(kLeft + 0.5, kTop, kLeft + 0.5, bottom_, hex_colour(ink_.axis));
    const bool narrow = (right_ - kLeft) / (high_ - low_) * kDoublings < 56;
    for (double power = low_; power <= high_; power += narrow ? 2 * kDoublings : kDoublings)
      drawing_.text(x(std::exp2(power)), bottom_ + 16, size_tick(std::exp2(power)), Anchor::Middle, 11,
                    hex_colour(ink_.secondary));
  }

  // The measured line, and what it is.
  void add_peak() {
    static constexpr char kWords[] = "peak when nothing else runs";
    constexpr double kThick = 1.5, kSample = 24;
    const std::vector<double> dash{4, 3};
    std::vector<std::pair<double, double>> curve;
    for (double power = low_; power <= high_; power += 0.5)
      if (const double rate = peak(std::exp2(power)); rate > 0) curve.emplace_back(x(std::exp2(power)), y(rate));
    if (curve.size() < 2) return;
    drawing_.polyline(curve, hex_colour(ink_.secondary), kThick, dash);
    for (size_t i = 1; i < curve.size(); ++i)
      line_.push_back({curve[i - 1].first, curve[i].second - 2, curve[i].first - curve[i - 1].first,
                       std::max(0.0, curve[i - 1].second - curve[i].second) + 4});
    const Box box{kLeft + 8, kTop, kLetter * static_cast<double>(std::size(kWords) - 1), 14};
    const double sample = box.x + box.width + 4;
    drawing_.text(box.x, box.y + 11, kWords, Anchor::Start, 11, hex_colour(ink_.secondary));
    drawing_.polyline({{sample, box.y + 7}, {sample + kSample, box.y + 7}}, hex_colour(ink_.secondary), kThick, dash);
    taken_.push_back({box.x, box.y, sample + kSample - box.x, box.height});
  }

  // The short name is for a label that has no other place.
  void add_collective(const prof::CollectiveRow& row, const std::string& name, const std::string& short_name, bool chosen) {
    const double at_x = x(static_cast<double>(row.bytes)), at_y = y(row.bus_gb_s), r = chosen ? 6.5 : 4.5;
    drawing_.rect(at_x - r, at_y - r, 2 * r, 2 * r, hex_colour(ink_.point), hex_colour(chosen ? ink_.text : ink_.ground));
    const std::string rate = ": " + significant(row.bus_gb_s) + (row.peak_gb_s > 0 ? " of " + significant(row.peak_gb_s) : std::string());
    const auto place_of = [&](const std::string& words, bool near) { return place_beside(at_x, at_y, static_cast<double>(words.size()) * kLetter, near); };
    std::string label = name + rate;
    std::optional<Box> place = place_of(label, true);
    if (!place) place = place_of(label, false);
    if (!place && short_name != name) {
      label = short_name + rate;
      place = place_of(label, false);
    }
    if (!place) return;
    taken_.push_back(*place);
    drawing_.text(place->x, place->y + 11, label, Anchor::Start, 11, hex_colour(chosen ? ink_.text : ink_.secondary),
                  chosen ? 600 : 400);
  }

  // A label crosses the line of the peak only where there is no other place. `near`: at the height of its point.
  std::optional<Box> place_beside(double at_x, double at_y, double wide, bool near) const {
    static constexpr std::array kDown{-7.0, 8.0, -22.0, 23.0, -37.0, 38.0, -52.0, 53.0};
    for (const bool may_cross : {false, true})
      for (const double down : std::span(kDown).first(near ? 1 : kDown.size()))
        for (const double left : {at_x + 10, at_x - 10 - wide})
          if (const Box box{left, at_y + down, wide, 14}; is_free(box, may_cross)) return box;
    return std::nullopt;
  }
  bool is_free(const Box& box, bool may_cross) const {
    const auto meets = [&](const Box& other) { return box.meets(other); };
    return box.x >= kLeft && box.x + box.width <= drawing_.width - 2 && box.y >= 0 && box.y + box.height <= bottom_ &&
           std::ranges::none_of(taken_, meets) && (may_cross || std::ranges::none_of(line_, meets));
  }

  const RankReport& report_;
  const FigureInk& ink_;
  Drawing drawing_;
  double right_, bottom_, low_ = 0, high_ = 1;  // low, high: powers of two
  double most_gb_s_ = 0, top_gb_s_ = 1;
  std::vector<Box> taken_, line_;  // line: of the peak
};

}  // namespace

std::string rank_headline(const RankReport& report) {
  if (std::string text = costliest_text(report); !text.empty()) {
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text;
  }
  if (report.collectives.empty() || report.steps.empty())
    return report.notes.empty() ? "No collective was found that all ranks take part in, so lateness is not known."
                                : "Lateness is not known.";  // the notes say why
  return "No rank is late by more than the usual spread.";  // the caption says how exact the clocks are
}

std::string step_text(const RankReport& report, size_t step) {
  if (step >= report.steps.size()) return "";
  std::optional<size_t> first, last;
  for (size_t r = 0; r < report.ranks.size(); ++r) {
    const float late = report.late(r, step);
    if (std::isnan(late)) continue;
    if (!first || late < report.late(*first, step)) first = r;
    if (!last || late > report.late(*last, step)) last = r;
  }
  if (!first || first == last) return "";
  const double us = static_cast<double>(report.late(*last, step));
  const std::string number = "Step " + count_text(static_cast<double>(report.steps[step])) + ": ";
  if (us <= report.clock_error_us) return number + "all ranks come within the error of the clocks.";
  return number + rank_name(report, *last) + " comes last, " + time_text(us) + " after " + rank_name(report, *first) + ".";
}

std::string rank_name(const RankReport& report, size_t row) { return "rank " + std::to_string(report.ranks[row].rank); }

std::string rank_caption(const RankReport& report) {
  std::string text = count_text(static_cast<double>(report.ranks.size())) + " ranks";
  if (const size_t hosts = host_count(report); hosts > 1) text += " on " + std::to_string(hosts) + " hosts";
  const size_t steps = report.steps.size();
  if (steps > 0) text += " · " + count_text(static_cast<double>(steps)) + (steps == 1 ? " step" : " steps");
  if (report.median_step_us > 0 || report.step_us > 0) text += " · " + prof::step_shown_text(report);
  const std::string clocks = clocks_text(report);
  return clocks.empty() ? text : text + " · " + clocks;
}

LatenessGrid lateness_grid(const RankReport& report, size_t most_rows, size_t most_columns) {
  const size_t ranks = report.ranks.size(), steps = report.steps.size();
  LatenessGrid grid{std::min(ranks, most_rows), std::min(steps, most_columns), {}};
  grid.late.assign(grid.rows * grid.columns, std::numeric_limits<float>::quiet_NaN());
  for (size_t row = 0; row < grid.rows; ++row)
    for (size_t r = first_of(row, grid.rows, ranks); r < first_of(row + 1, grid.rows, ranks); ++r)
      for (size_t column = 0; column < grid.columns; ++column)
        for (size_t s = first_of(column, grid.columns, steps); s < first_of(column + 1, grid.columns, steps); ++s) {
          float& cell = grid.late[row * grid.columns + column];
          if (const float late = report.late(r, s); std::isnan(cell) || late > cell) cell = late;
        }
  return grid;
}

double LatenessMap::x(size_t column) const {
  const double share = static_cast<double>(column) / static_cast<double>(std::max<size_t>(1, grid.columns));
  return std::round(left + (right - left) * share);
}

std::pair<double, double> LatenessMap::bar(size_t column) const {
  constexpr double kShare = 0.6, kApart = 5;
  const double begin = x(column), wide = x(column + 1) - begin;
  if (wide < kApart) return {begin, std::max(1.0, wide - 1)};
  return {begin + std::round(wide * (1 - kShare) / 2), std::round(wide * kShare)};
}

double most_lateness_height(const RankReport& report) {
  const size_t ranks = report.ranks.size();
  double height = 0;
  for (size_t r = 0; r < ranks; ++r) height += has_no_row(report, r) ? 0 : ranks <= kFewRanks && is_never_late(report, r) ? kThinRow : highest_row(ranks);
  return height;
}

double LatenessMap::bar_height(double late_us) const {
  constexpr double kLeast = 2, kAbove = 8;
  return bars() ? std::max(kLeast, std::round((row_height - kAbove) * std::min(1.0, late_us / scale_us))) : row_height;
}

namespace {

// The ranks that come late share the height.
void lay_out_bars(const RankReport& report, double space, LatenessMap& map) {
  map.axis_width = kAxisWidth, map.left += kAxisWidth;
  const auto late = std::ranges::count_if(std::views::iota(size_t{0}, report.ranks.size()), [&](size_t r) { return !is_never_late(report, r); });
  if (late > 0) map.row_height = std::floor(std::min(space / static_cast<double>(late), highest_row(report.ranks.size())));
  for (size_t r = 0; r < report.ranks.size(); ++r) map.heights[r] = has_no_row(report, r) ? 0 : late == 0 ? kThinRow : map.row_height;
}

}  // namespace

LatenessMap lateness_map(const RankReport& report, double width, double height) {
  LatenessMap map;
  if (!report.any()) return map;
  map.left = std::round(kMapEdge + hosts_width(report) + ranks_width(report));
  map.right = std::max(map.left + 20, std::round(width - kMapEdge));
  const double space = std::max(10.0, height - kMapTop - kMapBottom);
  const size_t ranks = report.ranks.size();
  size_t changes = 0;
  for (size_t r = 1; r < ranks; ++r) changes += report.ranks[r].host != report.ranks[r - 1].host;
  const double gaps = static_cast<double>(changes) * kHostGap;
  map.grid = lateness_grid(report, static_cast<size_t>(space), static_cast<size_t>(map.right - map.left));
  const bool apart = (space - gaps) / static_cast<double>(ranks) >= kGapFrom;
  const double pitch = (space - (apart ? gaps : 0)) / static_cast<double>(map.grid.rows);
  map.row_height = apart ? std::floor(std::min(pitch, highest_row(ranks))) : pitch;
  map.heights.assign(map.grid.rows, map.row_height);
  set_scale(report, map);
  if (map.row_height >= kLeastBars) lay_out_bars(report, space - gaps, map);
  double y = kMapTop;
  for (size_t row = 0; row < map.grid.rows; y += map.heights[row], ++row) {
    if (apart && row > 0 && report.ranks[row].host != report.ranks[row - 1].host) y += kHostGap;
    map.tops.push_back(y);
  }
  return map;
}

namespace {

// The other ranks wait for a late one. Transfers have the full colour.
uint32_t waits_colour(const FigureInk& ink) { return mixed_colour(ink.ground, ink.point, 0.4); }

// What the bars or cells are, and how they relate to the wait that the headline names.
std::string lateness_caption(const RankReport& report, const LatenessMap& map) {
  const std::string never = map.bars() ? never_late_text(report) : "";
  double calls = 0;
  for (const prof::CollectiveRow& row : report.collectives) calls += row.count;
  const auto late = std::ranges::find(report.ranks, report.straggler.rank, &prof::RankRow::rank);
  if (report.straggler.of_median && calls > 1.5 && late != report.ranks.end())
    return "How late each rank comes to its latest collective: " + time_text(late->late) + " in the median step. The waits at its " + count_text(std::round(calls)) + " collectives add up to " + time_text(report.straggler.cost_us) + "." + (never.empty() ? "" : " " + never);
  return "How late each rank comes to its latest collective, by step" + (never.empty() ? "" : ". " + never);
}

}  // namespace

uint32_t lateness_colour(const LatenessMap& map, double clock_error_us, double late_us, const FigureInk& ink) {
  constexpr double kLeast = 0.06;  // just above the clock error
  if (!(late_us > clock_error_us)) return ink.grid;
  if (map.bars()) return mixed_colour(ink.ground, ink.late, 0.55);
  return mixed_colour(ink.grid, ink.late, kLeast + (1 - kLeast) * std::min(1.0, late_us / map.scale_us));
}

Drawing lateness_frame(const RankReport& report, const LatenessMap& map, const FigureInk& ink, double width) {
  Drawing drawing;
  drawing.width = width, drawing.height = map.bottom() + kMapBottom;
  if (!report.any()) return drawing;
  drawing.text(kMapEdge, 14, lateness_caption(report, map), Anchor::Start, 11,
               hex_colour(ink.quiet));
  add_rank_labels(report, map, ink, drawing);
  add_host_labels(report, map, ink, drawing);
  add_step_labels(report, map, ink, drawing);
  if (!map.bars()) add_scale(map, report.clock_error_us, ink, drawing);
  else add_axes(report, map, ink, drawing);
  if (map.bars() && map.capped) drawing.text(map.right, 14, "highest bar: " + time_text(map.scale_us) + " or more", Anchor::End, 11, hex_colour(ink.secondary));
  return drawing;
}

Drawing lateness_figure(const RankReport& report, double width, double height, const FigureInk& ink) {
  const LatenessMap map = lateness_map(report, width, height);
  Drawing drawing = lateness_frame(report, map, ink, width);
  const double gap = map.row_height >= kGapFrom ? 1 : 0;
  const auto colour = [&](size_t row, size_t column) {
    const float late = map.grid.at(row, column);
    return std::isnan(late) ? ink.ground : lateness_colour(map, report.clock_error_us, late, ink);
  };
  for (size_t row = 0; row < map.grid.rows; ++row)
    for (size_t begin = 0, end = 0; begin < map.grid.columns; begin = end) {
      const uint32_t fill = colour(row, begin);
      for (end = begin + 1; !map.bars() && end < map.grid.columns && colour(row, end) == fill;) ++end;
      const double high = map.bar_height(static_cast<double>(map.grid.at(row, begin)));
      if (fill != ink.ground && map.heights[row] > 0) {
        const auto [left, wide] = map.bars() ? map.bar(begin) : std::pair(map.x(begin), map.x(end) - map.x(begin));
        drawing.rect(left, map.tops[row] + map.heights[row] - high, wide, high - gap, hex_colour(fill));
      }
    }
  return drawing;
}

bool has_step_of_ranks(const RankReport& report) {
  return report.ranks.size() <= kFewRanks && report.median_step_us > 0 &&
         std::ranges::none_of(report.ranks, [](const prof::RankRow& row) { return std::isnan(row.computes) || std::isnan(row.exposed); });
}

Drawing rank_steps_figure(const RankReport& report, double width, double height, const FigureInk& ink) {
  constexpr double kHead = 26, kFoot = 8, kMostRow = 140, kGap = 10, kTotal = 78, kSwatch = 14, kApart = 18, kLegendLetter = 5.8;
  Drawing drawing;
  drawing.width = width, drawing.height = height;
  const double left = kMapEdge + ranks_width(report), span = std::max(40.0, width - left - kTotal);
  const double pitch = std::min(kMostRow, (height - kHead - kFoot) / static_cast<double>(report.ranks.size())), high = std::max(4.0, pitch - kGap);
  struct Part {
    const char* name;
    uint32_t fill;
  };
  const std::array<Part, 4> parts{{{"computes", ink.meaning[static_cast<size_t>(prof::Meaning::Matrix)]},
                                   {"waits for a rank", waits_colour(ink)},
                                   {"exposed transfer", ink.point},
                                   {"other, idle", ink.grid}}};
  double x = kMapEdge, wanted = 0;
  const auto entry = [](const Part& part) { return kSwatch + static_cast<double>(std::string_view(part.name).size()) * kLegendLetter + kApart; };
  for (const Part& part : parts) wanted += entry(part);
  for (const Part& part : parts) {
    drawing.rect(x, 8, 9, 9, hex_colour(part.fill), hex_colour(ink.axis));
    drawing.text(x + kSwatch, 17, part.name, Anchor::Start, 11, hex_colour(ink.secondary));
    x += entry(part) * std::min(1.0, (width - kMapEdge) / wanted);
  }
  for (size_t r = 0; r < report.ranks.size(); ++r) {
    const prof::RankRow& row = report.ranks[r];
    const double y = kHead + pitch * static_cast<double>(r), middle = y + high / 2 + 4;
    const bool late = is_straggler(report, r);
    drawing.text(left - 8, middle, rank_name(report, r), Anchor::End, 11, hex_colour(late ? ink.text : ink.secondary), late ? 600 : 400);
    const std::array<double, 4> us{row.computes, row.wait, row.exposed, std::max(0.0, row.step - row.computes - row.wait - row.exposed)};
    x = left;
    for (size_t i = 0; i < us.size(); ++i) {
      const double wide = us[i] / report.median_step_us * span;
      if (wide >= 0.5) drawing.rect(x, y, wide, high, hex_colour(parts[i].fill), hex_colour(ink.ground));
      const std::string text = time_text(us[i]);
      if (high >= 14 && wide > static_cast<double>(text.size()) * kLetter + 8)
        drawing.text(x + 5, middle, text, Anchor::Start, 11, i == 0 ? "#0B0E13" : hex_colour(ink.text), 500);
      x += wide;
    }
    drawing.text(left + span + 6, middle, time_text(row.step), Anchor::Start, 11, hex_colour(ink.text), 600);
  }
  return drawing;
}

Drawing arrivals_figure(const RankReport& report, double width, double height, const FigureInk& ink) {
  constexpr double kFoot = 38, kLeastRow = kLine, kMostRow = 420, kHead = 4;
  Drawing drawing;
  drawing.width = width, drawing.height = height;
  if (!report.any() || report.steps.empty()) return drawing;
  const double space = height - kFoot - kHead;
  const std::vector<size_t> shown = shown_ranks(report, static_cast<size_t>(std::max(1.0, space / kLeastRow)));
  if (shown.empty()) return drawing;
  const double left = kMapEdge + ranks_width(report);
  ArrivalRows rows{arrival_axis(report, left + kFirst, std::max(40.0, width - left - kFirst - 24)), left,
                   std::floor(std::clamp(space / static_cast<double>(shown.size()), kLeastRow, kMostRow)), 1};
  for (const size_t r : shown) {
    rows.top = std::max(rows.top, first_arrivals(report, r, rows.axis));
    for (const double count : bins_of(report, r, rows.axis)) rows.top = std::max(rows.top, count);
  }
  const double bottom = kHead + rows.pitch * static_cast<double>(shown.size());
  if (const double error = rows.axis.x(report.clock_error_us); report.clock_error_us > 0 && error > rows.axis.left)
    drawing.rect(left, kHead, error - left, bottom - kHead, hex_colour(ink.grid), "none", 0.5);
  for (size_t i = 0; i < shown.size(); ++i)
    add_arrivals_of(report, shown[i], rows, kHead + rows.pitch * static_cast<double>(i + 1), ink, drawing);
  drawing.text(left + (kFirst - 12) / 2, bottom + 14, "first", Anchor::Middle, 11, hex_colour(ink.secondary));
  add_decades(rows.axis, bottom + 14, ink, drawing);
  drawing.text(kMapEdge, bottom + 30, arrivals_note(report, shown.size()), Anchor::Start, 11, hex_colour(ink.quiet));
  return drawing;
}

bool has_bandwidth(const RankReport& report) {
  return std::ranges::any_of(report.collectives, has_bandwidth_of);
}

Drawing bandwidth_figure(const RankReport& report, double width, double height, const FigureInk& ink, int chosen) {
  return BandwidthChart(report, width, height, ink).draw(chosen);
}

}  // namespace ws::app
