#include "app/core/report/multiprocessor_figure.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/base/statistics.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

using prof::InnerBar;
using prof::Meaning;
using prof::MultiprocessorReport;

constexpr double kRulerTop = 16, kNamesTop = 20, kPhaseHigh = 15, kNamesHigh = 33, kLegendGap = 10, kMargin = 10, kLetterWide = 6.3;
constexpr double kLegendLine = 16, kRowText = 13, kApart = 5;

bool waits(const MultiprocessorReport& report, size_t part) { return report.phases[part].meaning == Meaning::Sync; }

double text_width(const std::string& text) {
  const auto letters = std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
  return static_cast<double>(letters) * kLetterWide;
}

// "fc1 forward": the head names the layer, the tail the phase. The tail may be empty.
std::pair<std::string, std::string> split_name(const std::string& name) {
  const size_t space = name.find(' ');
  if (space == std::string::npos) return {name, {}};
  return {name.substr(0, space), name.substr(space + 1)};
}

struct LegendEntry {
  std::string name;
  size_t part;
  std::optional<size_t> shade = {};  // a part of the same meaning in the other shade
};

// Parts of this step in their order. Parts of one meaning are one entry, as the names above the picture tell them apart.
// A range that a program named has no meaning: each has its entry. All waits are one.
std::vector<LegendEntry> legend_of(const MultiprocessorReport& report, size_t step) {
  std::vector<bool> seen(report.phases.size(), false);
  for (const InnerBar& bar : report.bars_of(step)) seen[bar.part] = true;
  std::vector<LegendEntry> entries;
  std::optional<size_t> wait;
  std::map<Meaning, size_t> named;  // the entry of a meaning
  for (size_t part = 0; part < seen.size(); ++part) {
    const Meaning meaning = report.phases[part].meaning;
    if (!seen[part]) continue;
    if (waits(report, part)) {
      wait = part;
    } else if (meaning == Meaning::Other) {
      entries.push_back({prof::shortened(report.phases[part].name, 28), part});
    } else if (const auto [entry, first] = named.emplace(meaning, entries.size()); first) {
      entries.push_back({prof::meaning_name(meaning), part});
    } else if (auto& shade = entries[entry->second].shade; !shade) {
      shade = part;
    }
  }
  const auto shaded = std::ranges::find_if(entries, [](const LegendEntry& entry) { return entry.shade.has_value(); });
  if (shaded != entries.end()) shaded->name += " (neighbours in two shades)";
  if (wait) entries.push_back({prof::part_name({Meaning::Sync, prof::PartKind::InnerWait}), *wait});
  return entries;
}

double entry_width(const LegendEntry& entry) { return 14 + text_width(entry.name) + 14; }

size_t legend_lines(const std::vector<LegendEntry>& entries, double width) {
  size_t lines = 1;
  double x = kMargin;
  for (const LegendEntry& entry : entries) {
    if (x + entry_width(entry) > width && x > kMargin) ++lines, x = kMargin;
    x += entry_width(entry);
  }
  return lines;
}

void add_ruler(const StepMap& map, const FigureInk& ink, Drawing& drawing) {
  const double us = static_cast<double>(map.end - map.begin) * 1e-3;
  const auto about = static_cast<int>(std::clamp((map.right - map.left) / 90, 2.0, 10.0));
  for (const double tick : ticks(0, us, false, about)) {
    const double x = std::round(map.x(map.begin + static_cast<prof::TimeNs>(std::llround(tick * 1e3)))) + 0.5;
    const std::string text = tick_text(tick) + (tick > 0 ? "" : " µs");
    drawing.line(x, kRulerTop + 4, x, map.bottom(), hex_colour(ink.grid));
    if (x + text_width(text) / 2 > map.right + kMargin) continue;
    drawing.text(x, kRulerTop - 3, text, tick > 0 ? Anchor::Middle : Anchor::Start, 11, hex_colour(ink.secondary));
  }
}

struct PlacedPart {
  size_t part;
  double from, to;  // where half of the multiprocessors do it
  std::string head, tail;
};

// In their order in time, without waits.
std::vector<PlacedPart> placed_parts(const MultiprocessorReport& report, const StepMap& map) {
  std::map<size_t, std::pair<std::vector<double>, std::vector<double>>> times;  // by part: begins and ends
  for (const InnerBar& bar : report.bars_of(map.step)) {
    if (waits(report, bar.part)) continue;
    times[bar.part].first.push_back(map.x(bar.begin)), times[bar.part].second.push_back(map.x(bar.end));
  }
  std::vector<PlacedPart> parts;
  for (auto& [part, both] : times) {
    auto [head, tail] = split_name(report.phases[part].name);
    parts.push_back({part, median(both.first), median(both.second), std::move(head), std::move(tail)});
  }
  std::ranges::stable_sort(parts, {}, &PlacedPart::from);
  return parts;
}

// A phase over its layers: "forward" over "fc1", "fc2" and "fc3". Where it does not fit, the layers stand alone.
void add_phase_name(const std::vector<PlacedPart>& parts, size_t first, size_t last, const FigureInk& ink, Drawing& drawing) {
  const std::string& name = parts[first].tail;
  const double from = parts[first].from, to = parts[last].to, wide = text_width(name), y = kNamesTop + kPhaseHigh - 8;
  if (wide + 4 > to - from) return;
  drawing.text((from + to - wide) / 2, y, name, Anchor::Start, 10.5, hex_colour(ink.secondary));
  drawing.line(from, y + 4.5, to, y + 4.5, hex_colour(ink.grid));
}

// The name of each part over the time in which half of the multiprocessors do it.
void add_names(const MultiprocessorReport& report, const StepMap& map, const FigureInk& ink, Drawing& drawing) {
  const std::vector<PlacedPart> parts = placed_parts(report, map);
  constexpr double kOver = 6;  // a name may be wider than its part
  double free_from = map.left;
  size_t last = 0;
  for (size_t i = 0; i < parts.size(); i = last + 1) {
    for (last = i; last + 1 < parts.size() && !parts[i].tail.empty() && parts[last + 1].tail == parts[i].tail;) ++last;
    const bool phase = last > i;
    if (phase) add_phase_name(parts, i, last, ink, drawing);
    for (size_t at = i; at <= last; ++at) {
      const PlacedPart& one = parts[at];
      drawing.rect(one.from, map.top - 4, std::max(1.0, one.to - one.from - 1), 2, hex_colour(part_colour(report, one.part, ink)));
      for (const std::string& name : {phase ? one.head : report.phases[one.part].name, one.head}) {
        const double wide = text_width(name), x = (one.from + one.to - wide) / 2;
        if (x < std::max(free_from, one.from - kOver) || x + wide > map.right) continue;
        drawing.text(x, map.top - 7, name, Anchor::Start, 10.5, hex_colour(ink.secondary));
        free_from = x + wide + 8;
        break;
      }
    }
  }
}

// Dark text on a pale fill, the text of the theme on a dark one.
std::string label_ink(uint32_t fill, const FigureInk& ink) {
  constexpr double kPale = 100;
  const double light = 0.2126 * (fill >> 16 & 0xFF) + 0.7152 * (fill >> 8 & 0xFF) + 0.0722 * (fill & 0xFF);
  return light < kPale ? hex_colour(ink.text) : kInk;
}

void add_bars(const MultiprocessorReport& report, const StepMap& map, const FigureInk& ink, Drawing& drawing) {
  std::vector<std::string> fills, inks;
  for (size_t part = 0; part < report.phases.size(); ++part) {
    const uint32_t fill = part_colour(report, part, ink);
    fills.push_back(hex_colour(fill)), inks.push_back(label_ink(fill, ink));
  }
  for (const InnerBar& bar : report.bars_of(map.step)) {
    const BarBox box = bar_box(report, map, bar);
    drawing.rect(box.x, box.y, box.width, box.height, fills[bar.part]);
    const std::string& name = report.phases[bar.part].name;
    if (box.height >= kRowText && text_width(name) + 8 <= box.width)
      drawing.text(box.x + 4, box.y + box.height / 2 + 3.8, name, Anchor::Start, 10.5, inks[bar.part]);
  }
}

struct LateLabel {
  double x, y, width;
  std::string text;
};

// From the usual end of the part to the late one, with its length.
void add_late(const MultiprocessorReport& report, const StepMap& map, const FigureInk& ink, Drawing& drawing) {
  std::vector<LateLabel> labels;
  for (const prof::LateEnd& late : report.steps[map.step].late) {
    const auto at = std::ranges::lower_bound(map.rows, late.row);
    const double from = map.x(late.usual), to = map.x(late.end), high = std::max(3.0, map.row_height - 1);
    const double middle = map.row_top(static_cast<size_t>(at - map.rows.begin())) + map.row_height / 2;
    drawing.rect(from, middle - high / 2, std::max(2.0, to - from), high, hex_colour(ink.late));
    const std::string text = fixed(static_cast<double>(late.end - late.usual) * 1e-3, 2) + " µs late";
    const double wide = text_width(text) + 4, x = to + 6 + wide <= map.right ? to + 6 : from - 6 - wide;
    labels.push_back({x, std::clamp(middle - 8, map.top, map.bottom() - 16), wide, text});
  }
  std::vector<LateLabel> drawn;
  for (const LateLabel& label : labels) {
    if (std::ranges::any_of(drawn, [&](const LateLabel& other) {
          return std::abs(other.y - label.y) < 17 && label.x < other.x + other.width && other.x < label.x + label.width;
        }))
      continue;
    drawn.push_back(label);
    drawing.rect(label.x, label.y, label.width, 16, hex_colour(ink.ground), hex_colour(ink.late));
    drawing.text(label.x + 4, label.y + 12, label.text, Anchor::Start, 11, hex_colour(ink.text), 600);
  }
}

// 1, 2, 5, 10, 20, ... rows, so that their labels do not touch.
size_t labels_apart(double row_height) {
  for (size_t decade = 1;; decade *= 10)
    for (const size_t factor : {1, 2, 5})
      if (static_cast<double>(factor * decade) * row_height >= kRowText) return factor * decade;
}

// The late ones have their label in any case.
void add_labels(const MultiprocessorReport& report, const StepMap& map, const FigureInk& ink, Drawing& drawing) {
  drawing.text(kMargin, kRulerTop - 3, "multiprocessor", Anchor::Start, 11, hex_colour(ink.quiet));
  std::vector<double> taken;
  const auto put = [&](size_t place, bool late) {
    const double y = map.row_top(place) + map.row_height / 2 + 4;
    if (std::ranges::any_of(taken, [y](double other) { return std::abs(other - y) < kRowText; })) return;
    taken.push_back(y);
    drawing.text(map.left - 8, y, short_name(prof::row_name(report, map.rows[place])), Anchor::End, 11,
                 hex_colour(late ? ink.text : ink.secondary), late ? 600 : 400);
  };
  for (const prof::LateEnd& late : report.steps[map.step].late)
    put(static_cast<size_t>(std::ranges::lower_bound(map.rows, late.row) - map.rows.begin()), true);
  for (size_t place = 0; place < map.rows.size(); place += labels_apart(map.row_height)) put(place, false);
}

void add_legend(const MultiprocessorReport& report, const StepMap& map, const FigureInk& ink, Drawing& drawing) {
  double x = kMargin, y = map.bottom() + kLegendGap;
  for (const LegendEntry& entry : legend_of(report, map.step)) {
    if (x + entry_width(entry) > drawing.width && x > kMargin) x = kMargin, y += kLegendLine;
    drawing.rect(x, y, 9, 9, hex_colour(part_colour(report, entry.part, ink)));
    if (entry.shade) drawing.rect(x + 4.5, y, 4.5, 9, hex_colour(part_colour(report, *entry.shade, ink)));
    drawing.text(x + 14, y + 8.5, entry.name, Anchor::Start, 11, hex_colour(ink.secondary));
    x += entry_width(entry);
  }
}

double frame_height(const MultiprocessorReport& report, size_t step, double width) {
  return kNamesTop + kNamesHigh + kLegendGap + kLegendLine * static_cast<double>(legend_lines(legend_of(report, step), width));
}

std::vector<uint32_t> rows_of(const MultiprocessorReport& report, size_t step) {
  std::vector<uint32_t> rows;
  for (const InnerBar& bar : report.bars_of(step))
    if (rows.empty() || rows.back() != bar.row) rows.push_back(bar.row);
  return rows;
}

}  // namespace

std::string short_name(const std::string& multiprocessor) {
  constexpr std::string_view kKind = "multiprocessor ";
  return multiprocessor.starts_with(kKind) ? multiprocessor.substr(kKind.size()) : multiprocessor;
}

double StepMap::x(prof::TimeNs time) const {
  return left + (right - left) * static_cast<double>(time - begin) / static_cast<double>(std::max<prof::TimeNs>(1, end - begin));
}

StepMap step_map(const MultiprocessorReport& report, size_t step, double width, double height) {
  StepMap map;
  if (step >= report.steps.size()) return map;
  map.step = step, map.rows = rows_of(report, step);
  map.begin = report.steps[step].begin, map.end = report.steps[step].end;
  double wide = text_width("multiprocessor");
  for (const uint32_t row : map.rows) wide = std::max(wide, text_width(short_name(prof::row_name(report, row))));
  map.left = std::round(kMargin + wide + 10), map.right = std::max(map.left + 20, width - 2 * kMargin);
  map.top = kNamesTop + kNamesHigh;
  const double space = height - frame_height(report, step, width);
  const double pitch = std::clamp(space / static_cast<double>(std::max<size_t>(1, map.rows.size())), 0.1, 40.0);
  map.row_height = pitch >= kApart ? std::floor(pitch) : pitch;
  return map;
}

BarBox bar_box(const MultiprocessorReport& report, const StepMap& map, const InnerBar& bar) {
  const auto place = static_cast<size_t>(std::ranges::lower_bound(map.rows, bar.row) - map.rows.begin());
  const double gap = map.row_height >= kApart ? 1 : 0, from = map.x(bar.begin), to = map.x(bar.end);
  const double lane = (map.row_height - gap) / static_cast<double>(report.rows[bar.row].lanes.size());
  const double inset = waits(report, bar.part) && lane >= kApart ? std::floor(lane / 4) : 0;
  const double apart = to - from > 3 ? 0.6 : 0;  // from its neighbour
  return {from, map.row_top(place) + lane * bar.lane + inset, std::max(0.4, to - from - apart), lane - 2 * inset};
}

// Neighbours of one meaning alternate between two shades that differ clearly. Their names stand above the picture.
uint32_t part_colour(const MultiprocessorReport& report, size_t part, const FigureInk& ink) {
  constexpr double kShades[] = {1, 0.55};
  const Meaning meaning = report.phases[part].meaning;
  size_t before = 0;
  for (size_t other = 0; other < part; ++other) before += report.phases[other].meaning == meaning;
  const double shade = meaning == Meaning::Sync ? 0.4 : kShades[before % std::size(kShades)];
  return mixed_colour(ink.ground, ink.meaning[static_cast<size_t>(meaning)], shade);
}

double step_figure_height(const MultiprocessorReport& report, size_t step, double width, double row_height) {
  return frame_height(report, step, width) + row_height * static_cast<double>(rows_of(report, step).size());
}

Drawing step_figure(const MultiprocessorReport& report, const StepMap& map, const FigureInk& ink, double width) {
  Drawing drawing;
  drawing.width = width;
  if (map.rows.empty()) return drawing;
  drawing.height = map.bottom() + frame_height(report, map.step, width) - map.top;
  add_ruler(map, ink, drawing);
  add_names(report, map, ink, drawing);
  add_bars(report, map, ink, drawing);
  add_late(report, map, ink, drawing);
  add_labels(report, map, ink, drawing);
  add_legend(report, map, ink, drawing);
  return drawing;
}

}  // namespace ws::app
