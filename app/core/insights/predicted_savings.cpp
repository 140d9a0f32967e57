#include "app/core/insights/predicted_savings.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>

#include "app/core/proofs/proved_predictions.h"
#include "engine/plan/run_spec.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/base/failure.h"
#include "profiling/base/sort_rows.h"
#include "profiling/base/text.h"
#include "profiling/causes/what_if.h"

namespace ws::app {
namespace {

constexpr double kAbout = 0.1;             // a saving that differs less from what the step shows is "about that"
constexpr double kMostUnexplained = 0.10;  // share of a step that the GPU idles without a recorded cause

// The host waits while the GPU works anyway: without the sync, the step takes as long.
bool is_harmless_sync(const Insight& insight) {
  const bool sync = insight.rule == "syncs" || insight.rule == "sync at this line";
  return sync && insight.saves_us.known() && !(insight.saves_us.value > insight.saves_us.half_width);
}

using Part = std::pair<std::string, double>;  // its name in the split, µs of the median step

// The part of the split that an edit takes away.
std::optional<Part> part_of(const prof::Edit& edit, const Insight& insight, const RunFacts& facts) {
  const auto of = [&facts](prof::Meaning meaning) { return Part{prof::meaning_name(meaning), facts.part(meaning)}; };
  switch (edit.kind) {
    case prof::EditKind::NoAllocator:
      return of(prof::Meaning::Allocation);
    case prof::EditKind::NoWaits:
      return edit.name.empty() ? std::optional(of(prof::Meaning::Sync)) : std::nullopt;
    case prof::EditKind::OneGraph:
      return of(prof::Meaning::Launch);
    case prof::EditKind::PinnedCopies:
    case prof::EditKind::OverlappedCopies:
      return of(prof::Meaning::Copy);
    case prof::EditKind::LoaderReady:
      return Part{prof::part_name({prof::Meaning::Idle, prof::PartKind::HostData}), facts.data_wait_us};
    case prof::EditKind::RankOnTime:
      return Part{prof::part_name({prof::Meaning::Communication, prof::PartKind::RankWait}), insight.of_median ? insight.part_us : 0};
    default:
      return std::nullopt;
  }
}

void relate(Insight& insight, const std::vector<prof::Edit>& edits, const prof::WhatIf& result, const RunFacts& facts) {
  insight.gpu_waits.clear();
  if (facts.whole_trace) return;
  for (const prof::Edit& edit : edits)
    if (const auto part = part_of(edit, insight, facts); part && part->second > 0) insight.gpu_waits.push_back(*part);
  if (!facts.gpu || edits.size() != 1 || edits[0].kind != prof::EditKind::NoAllocator) return;
  const auto calls = std::ranges::find(result.path, prof::path_cause_name({prof::PathCause::AllocatorCalls}), &prof::PathShare::name);
  if (calls != result.path.end()) insight.calls_us = calls->lasts_us, insight.calls_work_us = calls->work_us;
}

std::string sentences(std::initializer_list<std::string> all) {
  std::string text;
  for (const std::string& one : all) text += (text.empty() || one.empty() ? "" : " ") + one;
  return text;
}

double saving_us(const Insight& insight, double step_us) {
  if (insight.saves_us.known()) return insight.saves_us.value;
  return insight.predicted_us > 0 ? step_us - insight.predicted_us : insight.at_most_us;
}

// What spoils the whole training comes first, then the largest saving. What has no saving keeps its order. What changes little is last.
void order_by_saving(std::vector<Insight>& insights, double step_us) {
  std::ranges::stable_sort(insights, std::ranges::greater{}, [&](const Insight& one) { return std::tuple(one.spoils_training, !one.changes_little, std::max(0.0, saving_us(one, step_us))); });
}

// A finding about the median step that names no action is one with an insight about the same part of the split.
bool has_the_part_of(const Insight& insight, const Insight& finding) {
  const bool same = insight.look_at == finding.look_at && insight.part == finding.part && insight.rank == finding.rank;
  return &insight != &finding && same && insight.several_parts.empty() && (insight.of_median || !action_of(insight).empty());
}

void join_findings(std::vector<Insight>& insights) {
  for (auto one = insights.begin(); one != insights.end();) {
    const auto other = std::ranges::find_if(insights, [&](const Insight& insight) { return has_the_part_of(insight, *one); });
    if (!one->of_median || one->spoils_training || !action_of(*one).empty() || other == insights.end()) {
      ++one;
      continue;
    }
    other->same_part.push_back(*one);
    one = insights.erase(one);
  }
}

// True if the edits of `all` do what `one` does, too.
bool covers(const Insight& all, const Insight& one) {
  if (all.edits.empty() || one.edits.empty()) return false;
  const std::vector<prof::Edit> wide = prof::parse_edits(all.edits);
  return std::ranges::all_of(prof::parse_edits(one.edits), [&wide](const prof::Edit& edit) {
    return std::ranges::any_of(wide, [&edit](const prof::Edit& each) {
      const bool every_sync = each.kind == prof::EditKind::NoWaits && each.name.empty();
      return each.text == edit.text || (every_sync && edit.kind == prof::EditKind::NoWaits);
    });
  });
}

// What changes little alone may be what a larger saving needs: it belongs to that advice.
void join_small_parts(std::vector<Insight>& insights) {
  for (auto one = insights.begin(); one != insights.end();) {
    const auto larger = std::ranges::find_if(insights, [&](const Insight& insight) { return one->changes_little && !insight.changes_little && covers(insight, *one); });
    if (larger == insights.end()) {
      ++one;
      continue;
    }
    larger->includes.push_back(*one);
    one = insights.erase(one);
  }
}

// "but the GPU works for most of it: a step saves 0.61 ms"; empty if the step saves about what the host waits.
std::string shorter_than_the_wait(const Insight& insight) {
  const double saves = insight.saves_us.value;
  if (!(insight.host_waits_us > 0) || !insight.saves_us.known() || insight.host_waits_us - saves <= std::max(insight.saves_us.half_width, kAbout * insight.host_waits_us)) return {};
  return std::string("but the GPU works for ") + (saves < insight.host_waits_us / 2 ? "most" : "a part") + " of it: a step saves " + time_text(std::max(0.0, saves), insight.replayed_us.value);
}

// The headline is what to do and what a step saves then, or why that is not known. What was found comes second. Without anything
// to do it is the finding.
void put_action_first(Insight& insight, double step_us) {
  const std::string action = action_of(insight), found = insight.headline;
  std::string saving = saving_us(insight, step_us) > 0 ? saving_text(insight, step_us) : insight.no_saving;
  if (saving.empty() && !action.empty()) saving = "saving unknown without a replay";
  if (!action.empty()) insight.why = sentences({with_capital(found) + ".", insight.why});
  for (const Insight& finding : insight.same_part) insight.more = sentences({insight.more, with_capital(finding.headline) + "."});
  for (const Insight& part : insight.includes) {
    const std::string saves = shorter_than_the_wait(part);
    insight.more = sentences({insight.more, "Part of it: " + part.headline + (saves.empty() ? "" : ", " + saves + " without this sync alone") + "."});
    if (const std::string first = action_of(part); !first.empty()) insight.how = sentences({with_capital(first) + ": " + part.how, insight.how});
  }
  if (!action.empty()) insight.headline = action + ": " + saving;
  else if (!saving.empty()) insight.headline = saving + ": " + found;
}

std::string names_of(const std::vector<Part>& parts) {
  std::string names;
  for (const auto& [name, us] : parts) names += (names.empty() ? "“" : " and “") + name + "”";
  return names;
}

double sum_of(const std::vector<Part>& parts) {
  double sum = 0;
  for (const auto& [name, us] : parts) sum += us;
  return sum;
}

// What a step shows now of the thing that the edits take away.
struct Now {
  double us = 0;
  std::string what;
};
Now now_of(const Insight& insight) {
  if (insight.calls_us > 0) return {insight.calls_us, calls_text(insight)};
  if (insight.host_waits_us > 0) return {insight.host_waits_us, "The host waits " + time_text(insight.host_waits_us) + " there"};
  const double us = sum_of(insight.gpu_waits);
  return {us, names_of(insight.gpu_waits) + (insight.gpu_waits.size() > 1 ? " take " : " takes ") + time_text(us) + " in the split"};
}

std::string saving_and_split(const Insight& insight, const Now& now) {
  if (!(now.us > 0)) return {};
  if (const std::string saves = shorter_than_the_wait(insight); !saves.empty()) return now.what + ", " + saves + ".";
  const double more = insight.saves_us.value - now.us;
  std::string saves = std::abs(more) <= kAbout * now.us ? "about that" : prof::interval_text(insight.saves_us);
  if (more > insight.saves_us.half_width) saves = "more, because what follows begins earlier";
  if (more < -insight.saves_us.half_width) saves = time_text(std::max(0.0, insight.saves_us.value)) + " of that: for the rest it then waits for something else";
  return now.what + ". A step saves " + saves + ".";
}

// Empty if the run can measure the saving.
std::string doubt_of(const Insight& insight) {
  const Interval& step = insight.replayed_us;
  if (!insight.changes_little || !insight.saves_us.known() || !(step.half_width > 0)) return {};
  return "This run cannot measure so small a saving: its median step is known to ± " + time_text(step.half_width, step.value) + ".";
}

std::string number_text(const Interval& us, const StepUnit& unit) {
  if (us.value < us.half_width) return "< " + unit.text(us.value + us.half_width);
  const bool whole = !unit.ms && (us.value >= 1000 || us.half_width >= 100);
  const auto text = [&](double value) { return whole ? count_text(std::round(value)) : unit.text(value); };
  return text(us.value) + (us.half_width > 0 ? " ± " + text(us.half_width) : "");
}

// Replays the steps with the edits of each insight. Leaves it if nothing can be replayed, or if the trace has no calls, or lost them.
void replay_edits(std::vector<Insight>& insights, const std::function<prof::StepCauses()>& causes, const prof::Trace& trace, const RunFacts& facts) {
  std::optional<prof::StepCauses> known;
  try {
    known = causes();
  } catch (const Failure&) {
    return;
  }
  for (Insight& insight : insights) {
    if (insight.edits.empty()) continue;
    try {
      const std::vector<prof::Edit> edits = prof::parse_edits(insight.edits);
      const prof::WhatIf result = prof::what_if(*known, trace, edits, 0);
      if (result.unexplained_us > kMostUnexplained * result.measured_us.value) return;
      insight.saves_us = result.saves_us, insight.replayed_us = result.measured_us;
      insight.changes_little = !insight.spoils_training && result.saves_us.value < result.measured_us.half_width;
      if (insight.predicted_us > 0) insight.predicted_us = facts.step_us * result.predicted_us.value / result.measured_us.value;
      relate(insight, edits, result, facts);
    } catch (const Failure&) {  // the newest steps have nothing that the edits could change
    }
  }
  std::erase_if(insights, is_harmless_sync);
}

// Empty without a prediction. A rule predicts some without a replay.
std::string kind_of_prediction(const Insight& insight) {
  if (insight.saves_us.known()) return kind_of_edits(insight.edits);
  return insight.predicted_us > 0 ? action_of(insight) : "";
}

}  // namespace

void predict_savings(std::vector<Insight>& insights, const std::function<prof::StepCauses()>& causes, const prof::Trace& trace, const RunFacts& facts) {
  if (!std::ranges::all_of(insights, [](const Insight& insight) { return insight.edits.empty(); })) replay_edits(insights, causes, trace, facts);
  order_by_saving(insights, facts.step_us);
  join_findings(insights);
  join_small_parts(insights);
  for (Insight& insight : insights) put_action_first(insight, facts.step_us);
}

std::string saving_text(const Insight& insight, double step_us) {
  const Interval us = insight.saves_us.known() ? insight.saves_us : Interval{saving_us(insight, step_us)};
  const bool at_most = us.value < us.half_width || (!insight.saves_us.known() && insight.predicted_us <= 0);  // the interval holds 0, or it is a limit
  const double most = us.value < us.half_width ? us.value + us.half_width : us.value;
  if (!insight.saves_us.known() && insight.predicted_us <= 0 && insight.at_most_us <= 0) return {};
  if (!(most > 0)) return "a step would take as long";
  return prof::change_text(most, step_us, at_most);
}

std::string relation_text(const Insight& insight) {
  if (!insight.saves_us.known()) return {};
  return sentences({saving_and_split(insight, now_of(insight)), doubt_of(insight)});
}

std::string sure_text(const Interval& saves_us, double step_us, const std::string& kind, const ProvedPredictions& proved) {
  const std::string noise = saves_us.half_width > 0 ? prof::interval_text({saves_us.half_width}, step_us) : "unknown";
  return "± " + noise + " · " + proved.brief_text(kind);
}

AdviceLines advice_lines(const Insight& insight, const ProvedPredictions& proved) {
  AdviceLines lines{insight.why, insight.how, sentences({insight.more, relation_text(insight)}), "no saving predicted", sentences({checked_text(insight, proved), doubt_of(insight)})};
  if (const std::string kind = kind_of_prediction(insight); !kind.empty()) lines.sure = sure_text(insight.saves_us, insight.replayed_us.value, kind, proved);
  else if (insight.at_most_us > 0) lines.sure = "an upper limit, not a prediction";
  return lines;
}

std::string whole_why(const Insight& insight) {
  std::string text = sentences({insight.why, insight.how, insight.more});
  std::erase(text, '`');
  return text;
}

std::string calls_text(const Insight& insight) {
  if (insight.calls_us <= 0 || insight.gpu_waits.empty()) return {};
  return "Allocator calls take the host " + time_text(insight.calls_us) + ": " + time_text(insight.calls_work_us) + " are their own work, and for " +
         time_text(sum_of(insight.gpu_waits)) + " the GPU waits (" + names_of(insight.gpu_waits) + " in the split)";
}

std::string checked_text(const Insight& insight, const ProvedPredictions& proved) {
  const std::string kind = kind_of_prediction(insight);
  return kind.empty() ? kind : with_capital(proved.checked_text(std::set{kind})) + ".";
}

PredictionsNote predictions_note(const std::vector<Insight>& insights, const ProvedPredictions& proved) {
  std::set<std::string> kinds;
  int savings = 0;
  Interval step;
  for (const Insight& insight : insights) {
    const std::string kind = kind_of_prediction(insight);
    if (kind.empty()) continue;
    ++savings;
    if (insight.replayed_us.known()) step = insight.replayed_us;
    kinds.insert(kind);
  }
  if (savings == 0) return {};
  PredictionsNote note{known_text(step) + (savings > 1 ? "Savings may overlap." : ""), with_capital(proved.checked_text(kinds)) + ".\n"};
  for (const std::string& kind : kinds) note.checked += proved.checked_text(kind) + ".\n";
  return note;
}

std::string action_of(const Insight& insight) {
  if (prof::can_be_done(insight.edits)) return prof::edits_phrase(insight.edits);
  std::string action;
  for (const auto& [key, value] : insight.change) action += (action.empty() ? "" : ", ") + std::string(field(key).label) + " " + value;
  return action.empty() ? insight.action : "choose " + action;
}

std::vector<Insight> remedies(const std::vector<Insight>& insights, double step_us) {
  std::vector<Insight> can;
  // A change that is about the loss has no part of a step.
  std::ranges::copy_if(insights, std::back_inserter(can), [&](const Insight& insight) {
    return !action_of(insight).empty() && (saving_us(insight, step_us) > 0 || insight.look_at != prof::Meaning::Other);
  });
  return can;
}

Table remedy_table(const std::vector<Insight>& remedies, double step_us, bool with_noise) {
  using Kind = Table::Kind;
  const StepUnit unit(step_us);
  Table table;
  table.columns = {{.key = "action", .name = "what to do", .kind = Kind::Text, .tip = "The page Suggestions says why and how."},
                   {.key = "saves_us", .name = "saved per step", .unit = unit.name(), .kind = Kind::Time, .width = 20, .tip = "Each saving is predicted alone."},
                   {.key = "", .name = "what to do", .kind = Kind::Text, .width = 1}};
  for (const Insight& one : remedies) {
    const double saves = saving_us(one, step_us);
    Table::Cell saving = saves > 0 ? unit.cell(saves) : Table::Cell();
    if (!(saves > 0)) saving.text = "not predicted", saving.tip = one.no_saving;
    if (one.saves_us.known() && (with_noise || one.saves_us.value < one.saves_us.half_width)) saving.text = number_text(one.saves_us, unit);
    else if (one.at_most_us > 0) saving.text = "≤ " + unit.text(one.at_most_us);
    const std::string action = action_of(one);
    Table::Cell what(action);
    what.tip = whole_why(one);
    table.rows.push_back({{what, saving, action + (one.edits.empty() ? "" : "  (" + one.edits + ")")}});
  }
  return table;
}

}  // namespace ws::app
