#include "app/core/gate/claims.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/core/comparison/measures.h"
#include "profiling/analysis/memory_history.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"
#include "profiling/base/version.h"
#include "profiling/causes/cause_graph.h"
#include "profiling/causes/what_if.h"

namespace ws::app {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kWithoutNoise = 0.05;  // a figure of unknown noise must differ by so much of the limit

// Numbers are kept in µs, bytes, shares of 1, samples per second and GB a second.
enum class Unit : uint8_t { None, Time, Bytes, Share, Rate, Bandwidth };

struct Figure {
  double value = kUnknown, noise = 0;  // noise: half of the 95 % interval; NaN: not known; 0: exact
  Unit unit = Unit::None;
  std::string place{}, missing{};  // missing: why there is no value
  double lost = 0;                 // lost records may change the value by so much
};

struct UnitName {
  std::string_view name;
  Unit unit;
  double factor;
};
constexpr UnitName kUnits[] = {
    {"ns", Unit::Time, 1e-3},        {"us", Unit::Time, 1},       {"µs", Unit::Time, 1},       {"ms", Unit::Time, 1e3},
    {"s", Unit::Time, 1e6},          {"min", Unit::Time, 60e6},   {"B", Unit::Bytes, 1},       {"KiB", Unit::Bytes, 1024},
    {"MiB", Unit::Bytes, 1048576},   {"GiB", Unit::Bytes, 1073741824},                         {"kB", Unit::Bytes, 1e3},
    {"MB", Unit::Bytes, 1e6},        {"GB", Unit::Bytes, 1e9},    {"%", Unit::Share, 0.01},    {"samples/s", Unit::Rate, 1},
    {"GB/s", Unit::Bandwidth, 1},
};

std::string value_text(double value, Unit unit) {
  switch (unit) {
    case Unit::Time:
      return time_text(value);
    case Unit::Bytes:
      return bytes_text(value);
    case Unit::Share:
      return percent(value, std::abs(value) < 0.1 ? 2 : 1);
    case Unit::Rate:
      return significant(value, 4) + " samples/s";
    case Unit::Bandwidth:
      return significant(value) + " GB/s";
    case Unit::None:
      break;
  }
  return significant(value, 4);
}

std::string figure_text(const Figure& figure) {
  std::string value = value_text(figure.value, figure.unit);
  if (!std::isfinite(figure.value)) return value;
  if (const double width = (std::isnan(figure.noise) ? 0 : figure.noise) + figure.lost; width > 0) value += " ± " + value_text(width, figure.unit);
  return std::isnan(figure.noise) ? value + " (no interval)" : value;
}

struct NamedMeasure {
  std::string_view name, text;
  MeasureKind kind;
  std::string_view of = {};  // what it is taken from, if not from the measured steps
};
// The first name of each is the one that the help shows.
constexpr NamedMeasure kMeasures[] = {
    {"median step", "median time of a step", MeasureKind::StepTime},
    {"step time", "", MeasureKind::StepTime},
    {"step", "", MeasureKind::StepTime},
    {"p5 step", "P5 of the step times: 5 of 100 are shorter", MeasureKind::StepP5},
    {"p95 step", "P95: 95 of 100 are shorter", MeasureKind::StepP95},
    {"p99 step", "P99", MeasureKind::StepP99},
    {"mean step", "mean of the measured steps, without pauses", MeasureKind::SampleMean},
    {"throughput", "samples per second, of runs whose batch is known", MeasureKind::Throughput},
    {"training time", "of the training with its tests", MeasureKind::TrainingTime, "the whole run"},
    {"program ran", "a recorded program, from its start to its end", MeasureKind::TrainingTime, "the whole run"},
    {"kernels per step", "kernels of the GPU", MeasureKind::Kernels},
    {"allocations per step", "blocks of the program's allocator; of the driver if it has none", MeasureKind::Allocations},
    {"driver allocations per step", "blocks of the driver: cudaMalloc and similar calls", MeasureKind::DriverAllocations},
    {"allocator calls per step", "allocations and frees of the driver, over the whole run", MeasureKind::DriverCalls, "the whole run"},
    {"gpu busy", "share of the median step in which a kernel or a copy ran and did not wait for a rank", MeasureKind::Busy},
    {"launch delay", "median time from a call to its kernel", MeasureKind::LaunchDelay},
    {"hidden copies", "share of the copies beside kernels", MeasureKind::HiddenCopies},
    {"tracing cost", "what recording costs, as a share of a step", MeasureKind::TracingCost, "the whole run"},
    {"rank wait", "longest wait of a rank for the last one, in the median step", MeasureKind::RankWait, "all ranks"},
    {"exposed transfer", "transfers between ranks beside no computation, the longest of a rank in the median step", MeasureKind::ExposedTransfer, "all ranks"},
    {"bus bandwidth", "of the collective that takes most time", MeasureKind::BusBandwidth, "all ranks"},
    {"peak memory", "greatest memory in use", MeasureKind::PeakMemory, "the whole run"},
    {"first loss", "loss of the first step", MeasureKind::FirstLoss, "the first step"},
    {"test loss", "of the last test", MeasureKind::TestLoss, "the last test"},
    {"test accuracy", "of the last test", MeasureKind::TestAccuracy, "the last test"},
};
struct NamedFunction {
  std::string_view name, text;
};
constexpr NamedFunction kFunctions[] = {
    {"share", "share of the median step: share(communication), share(waits for a rank), share(launch gaps); of an op, of the mean step: share(fc1)"},
    {"time", "mean time of an op, module, line or kernel in a step: time(fc1), time(*gemm*)"},
    {"count", "how often it runs in a step: count(fc1)"},
    {"path", "share of the critical path: path(launch calls)"},
    {"gain", "what a step saves if it is free: gain(fc1)"},
    {"predicted", "time of a step after edits, as whatif predicts it: predicted(no sync; fc1 /2)"},
};

Unit unit_of(const std::string& measure_unit) {
  for (const UnitName& unit : kUnits)
    if (unit.name == measure_unit) return unit.unit;
  return Unit::None;
}
// "dW1" of "fc1 · dW1"
std::string without_module(const std::string& op) {
  constexpr std::string_view kBetween = " · ";
  const size_t at = op.find(kBetween);
  return at == op.npos ? op : op.substr(at + kBetween.size());
}
double factor_of(const std::string& measure_unit) {
  for (const UnitName& unit : kUnits)
    if (unit.name == measure_unit) return unit.factor;
  return 1;
}

}  // namespace

const char* truth_name(Truth truth) {
  constexpr const char* kNames[] = {"true", "false", "cannot tell"};
  return kNames[static_cast<size_t>(truth)];
}

// What claims ask of the run.
struct ClaimChecker::Figures {
  explicit Figures(const prof::RunData& data) : run(data), compared(compared_run(data)), measures(measures_of(compared)) {
    const prof::StepWindowNs row = compared.sample.row;
    place = compared.sample.parts.steps > 0 && !compared.one_step ? prof::of_steps(compared.sample) : "the whole run";
    if (row.end > row.begin) place += formatted(", at {:.3f} to {:.3f} s", static_cast<double>(row.begin) * 1e-9, static_cast<double>(row.end) * 1e-9);
  }

  Figure measured(const NamedMeasure& known) const {
    const MeasureValue& value = measure(measures, known.kind);
    const double factor = factor_of(value.unit);
    Figure figure{value.value.value * factor, value.value.half_width * factor, unit_of(value.unit), known.of.empty() ? place : std::string(known.of)};
    figure.lost = lost_in(known.kind, figure.value);
    if (std::isnan(figure.value)) figure.missing = "the run does not have its " + std::string(known.name);
    return figure;
  }

  // Times of whole steps and losses are measured without records. Each lost record may be one more of what is counted; of sums and
  // shares the same share is not known.
  double lost_in(MeasureKind kind, double value) const {
    switch (kind) {
      case MeasureKind::Kernels:
      case MeasureKind::Allocations:
      case MeasureKind::DriverAllocations:
        return lost_per_step;
      case MeasureKind::Busy:
      case MeasureKind::HiddenCopies:
        return lost_share;
      case MeasureKind::RankWait:
      case MeasureKind::ExposedTransfer:
        return lost_us();
      case MeasureKind::PeakMemory:
        return lost_share * value;
      default:
        return 0;
    }
  }
  double lost_us() const { return lost_share > 0 ? lost_share * compared.sample.mean_step_us() : 0; }

  Figure named(std::string_view name) const {
    for (const NamedMeasure& known : kMeasures)
      if (known.name == name) return measured(known);
    if (name == "steps")
      return {static_cast<double>(compared.steps), 0, Unit::None, "the whole run", compared.steps > 0 ? "" : "the run has no steps", run.summary.said("steps_from").empty() ? 0 : lost_records};
    if (name == "allocations") return counted(allocations.program);
    if (name == "driver allocations") return counted(allocations.driver);
    if (name == "loss") return {run.summary.train_loss, 0, Unit::None, "last step", std::isnan(run.summary.train_loss) ? "the run has no loss" : ""};
    return {kUnknown, 0, Unit::None, {}, {}};
  }

  // The same count as in `stats`.
  Figure counted(uint64_t count) const {
    const bool known = !run.trace.memory().empty();
    return {known ? static_cast<double>(count) : kUnknown, 0, Unit::None, "the whole trace", known ? "" : "the run has no allocations", lost_records};
  }

  // Ops, modules and lines by name; kernels by a pattern of their names.
  std::optional<prof::WorkUse> use_of(const std::string& name) const {
    prof::WorkUse sum;
    bool found = false;
    const auto add = [&](const std::map<std::string, prof::WorkUse>& uses, bool short_name) {
      for (const auto& [key, use] : uses)
        if (prof::matches(name, short_name ? prof::short_kernel_name(key) : key) || prof::matches(name, without_module(key))) sum.count += use.count, sum.us += use.us, found = true;
    };
    for (const prof::GroupBy by : {prof::GroupBy::Op, prof::GroupBy::Layer, prof::GroupBy::Line})
      if (const auto uses = compared.sample.grouped.find(by); !found && uses != compared.sample.grouped.end()) add(uses->second, false);
    for (const bool short_name : {true, false})
      if (!found) add(compared.sample.work, short_name);
    return found ? std::optional(sum) : std::nullopt;
  }

  Figure of_use(const std::string& name, Unit unit, double prof::WorkUse::*value) const {
    const auto use = use_of(name);
    if (!use) return {kUnknown, 0, unit, place, "no op, module, line or kernel is called " + name};
    const bool time = unit == Unit::Time;
    return {(*use).*value, time ? kUnknown : 0, unit, place, {}, time ? lost_us() : lost_per_step};
  }

  // A part of the split of the median step, as `stats` shows it. It is there in each run, though it may be 0.
  Figure share(const std::string& asked) const {
    const std::string name = asked == "allocation" ? prof::part_name({prof::Meaning::Allocation}) : asked;  // its name before version 6 of run files
    const prof::Breakdown& parts = compared.sample.median_parts;
    if (parts.wall() <= 0) return {kUnknown, 0, Unit::Share, place, "the run has no traced step"};
    int64_t ns = 0;
    bool known = false;
    for (size_t meaning = 0; meaning < prof::kMeanings; ++meaning)
      known |= prof::matches(name, prof::meaning_name(static_cast<prof::Meaning>(meaning)));
    for (const prof::BreakdownPart& part : prof::parts_of(parts))
      if (prof::matches(name, prof::part_name(part.id))) ns += part.ns, known = true;
    for (const prof::PartId& part : {prof::PartId{prof::Meaning::Communication, prof::PartKind::RankWait}, prof::PartId{prof::Meaning::Sync, prof::PartKind::InnerWait}})
      known |= prof::matches(name, prof::part_name(part));
    if (known) return {static_cast<double>(ns) / static_cast<double>(parts.wall()), ns > 0 ? kUnknown : 0, Unit::Share, place, {}, lost_share};
    Figure time = of_use(name, Unit::Time, &prof::WorkUse::us);
    time.value /= compared.sample.mean_step_us(), time.unit = Unit::Share, time.lost = lost_share;
    return time;
  }

  const prof::StepCauses& steps() {
    if (!causes) causes = prof::step_causes(run);
    return *causes;
  }
  const prof::WhatIf& unchanged() {
    if (!plain) plain = prof::what_if(steps(), run.trace, {}, 1000);
    return *plain;
  }

  Figure on_path(const std::string& name, bool gain) {
    const prof::WhatIf& all = unchanged();
    const std::string where = "critical path of " + fixed(all.steps, 0) + " steps";
    double sum = 0, length = 0;
    bool found = false;
    for (const prof::PathShare& share : all.path) length += share.path_us;
    for (const prof::PathShare& share : all.path)  // causes, as `whatif` shows them
      if (!gain && prof::matches(name, share.name) && !found) sum = share.path_us / length, found = true;
    for (const prof::HelpRow& row : all.rows)
      if (prof::matches(name, row.name) && !found) sum = gain ? row.gain_us : row.path_us / length, found = true;
    if (!found && !use_of(name) && std::isnan(share(name).value)) return {kUnknown, 0, gain ? Unit::Time : Unit::Share, where, "nothing is called " + name};
    return {sum, kUnknown, gain ? Unit::Time : Unit::Share, where, {}, gain ? lost_us() : lost_share};
  }

  Figure predicted(const std::string& edits) {
    const prof::WhatIf result = prof::what_if(steps(), run.trace, prof::parse_edits(edits));
    return {result.predicted_us.value, result.predicted_us.half_width, Unit::Time, "prediction from " + fixed(result.steps, 0) + " steps", {}};
  }

  Figure function(std::string_view name, const std::string& argument) {
    if (name == "share") return share(argument);
    if (name == "time") return of_use(argument, Unit::Time, &prof::WorkUse::us);
    if (name == "count") return of_use(argument, Unit::None, &prof::WorkUse::count);
    if (name == "predicted") return predicted(argument);
    return on_path(argument, name == "gain");
  }

  const prof::RunData& run;
  const ComparedRun compared;
  const Measures measures;
  const prof::AllocationCounts allocations = prof::count_allocations(run.trace);
  const double lost_records = static_cast<double>(prof::lost_count(run.trace)), lost_share = prof::lost_share(run.trace);
  const double lost_per_step = lost_records / std::max(1.0, static_cast<double>(compared.sample.parts.steps));
  std::string place;
  std::optional<prof::StepCauses> causes;
  std::optional<prof::WhatIf> plain;
};

namespace {

using Named = std::function<Figure(const std::string& name)>;
using Function = std::function<Figure(const std::string& name, const std::string& argument)>;

// claim: sum comparison sum. sum: product, + or - product. product: one, * or / one. one: a number with a unit, a measure, a
// function of a name, or a sum in parentheses.
class ClaimParser {
 public:
  ClaimParser(const std::string& text, Named named, Function function) : text_(text), named_(std::move(named)), function_(std::move(function)) {}

  struct Claim {
    Figure left, right;
    std::string sign;
  };
  Claim parse() {
    Claim claim;
    claim.left = sum();
    claim.sign = comparison();
    claim.right = sum();
    space();
    if (at_ < text_.size()) refuse("expected nothing more");
    if (!comparable(claim.left.unit, claim.right.unit)) refuse("both sides need the same unit");
    return claim;
  }

 private:
  static bool comparable(Unit a, Unit b) { return a == b || (a == Unit::None && b == Unit::Share) || (a == Unit::Share && b == Unit::None); }

  [[noreturn]] void refuse(const std::string& reason) const {
    throw Failure("\"" + text_ + "\", character " + std::to_string(at_ + 1) + ": " + reason + ". For example: median step < 500 us. check --measures lists what can be used.");
  }
  void space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view sign) {
    space();
    if (text_.compare(at_, sign.size(), sign) != 0) return false;
    at_ += sign.size();
    return true;
  }

  std::string comparison() {
    for (const std::string_view sign : {"<=", ">=", "==", "!=", "<", ">"})
      if (take(sign)) return std::string(sign);
    refuse("expected <, <=, >, >=, == or !=");
  }

  static Figure joined(Figure figure, const Figure& other) {
    if (figure.place.empty()) figure.place = other.place;
    if (figure.missing.empty()) figure.missing = other.missing;
    return figure;
  }

  Figure sum() {
    Figure left = product();
    for (;;) {
      const double sign = take("+") ? 1 : take("-") ? -1 : 0;
      if (sign == 0) return left;
      const Figure right = product();
      if (!comparable(left.unit, right.unit)) refuse("a sum needs the same unit");
      left.value += sign * right.value, left.noise = std::hypot(left.noise, right.noise), left.lost += right.lost;
      left = joined(left, right);
    }
  }

  Figure product() {
    Figure left = one();
    for (;;) {
      const bool times = take("*"), over = !times && take("/");
      if (!times && !over) return left;
      const Figure right = one();
      const double noise = std::hypot(left.noise / left.value, right.noise / right.value), lost = left.lost / std::abs(left.value) + right.lost / std::abs(right.value);
      if (times && left.unit != Unit::None && right.unit != Unit::None) refuse("only one factor may have a unit");
      if (over && right.unit != Unit::None && right.unit != left.unit) refuse("a quotient needs the same unit, or a number below");
      left.value = times ? left.value * right.value : left.value / right.value;
      left.unit = times ? (left.unit == Unit::None ? right.unit : left.unit) : right.unit == Unit::None ? left.unit : Unit::None;
      left.noise = noise == 0 ? 0 : std::abs(left.value) * noise, left.lost = lost == 0 ? 0 : std::abs(left.value) * lost;
      left = joined(left, right);
    }
  }

  Figure one() {
    space();
    if (take("(")) {
      const Figure inside = sum();
      if (!take(")")) refuse("expected )");
      return inside;
    }
    if (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.' || text_[at_] == '-')) return number();
    const size_t begin = at_;
    const std::string name = words();
    if (name.empty()) refuse("expected a measure or a number");
    if (at_ < text_.size() && text_[at_] == '(') return function_of(name, begin);
    const Figure figure = named_(name);
    if (std::isnan(figure.value) && figure.missing.empty()) at_ = begin, refuse("there is no measure " + name);
    return figure;
  }

  Figure number() {
    Figure figure;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), figure.value);
    if (error != std::errc{} || !std::isfinite(figure.value)) refuse("expected a number");
    at_ = static_cast<size_t>(end - text_.data());
    space();
    const UnitName* longest = nullptr;
    for (const UnitName& unit : kUnits)
      if (text_.compare(at_, unit.name.size(), unit.name) == 0 && (!longest || unit.name.size() > longest->name.size())) longest = &unit;
    if (longest) figure.value *= longest->factor, figure.unit = longest->unit, at_ += longest->name.size();
    if (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_]))) refuse("there is no such unit");
    return figure;
  }

  // In small letters, with one space between words.
  std::string words() {
    std::string name;
    for (;;) {
      space();
      const size_t begin = at_;
      while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
      if (at_ == begin) return name;
      std::string word = text_.substr(begin, at_ - begin);
      std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      name += (name.empty() ? "" : " ") + word;
    }
  }

  Figure function_of(const std::string& name, size_t begin) {
    if (std::ranges::find(kFunctions, name, &NamedFunction::name) == std::end(kFunctions)) at_ = begin, refuse("there is no function " + name);
    const size_t first = ++at_;
    int open = 1;
    for (; at_ < text_.size() && open > 0; ++at_) open += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
    if (open > 0) refuse("expected )");
    const std::string argument(trimmed(std::string_view(text_).substr(first, at_ - first - 1)));
    if (argument.empty()) at_ = first, refuse("expected a name");
    return function_(name, argument);
  }

  const std::string& text_;
  Named named_;
  Function function_;
  size_t at_ = 0;
};

bool holds(double left, const std::string& sign, double right) {
  const bool same = std::abs(left - right) <= 1e-6 * std::max(1.0, std::abs(right));
  if (sign == "==" || sign == "!=") return same == (sign == "==");
  if (same) return sign.size() == 2;
  return (left < right) == (sign[0] == '<');
}

Truth truth_of(const ClaimParser::Claim& claim, std::string& reason) {
  const double difference = std::abs(claim.left.value - claim.right.value);
  const double noise = std::hypot(claim.left.noise, claim.right.noise);
  if (!std::isfinite(difference)) {
    reason = claim.left.missing.empty() ? claim.right.missing : claim.left.missing;
    if (reason.empty()) reason = "one side is no finite number, such as a division by 0";
    return Truth::CannotTell;
  }
  const double least = std::isnan(noise) ? kWithoutNoise * std::abs(claim.right.value) : noise;
  if (noise != 0 && difference <= least) {
    reason = std::isnan(noise) ? "the noise is not known, and the difference is below 5 %" : "the difference is within noise";
    return Truth::CannotTell;
  }
  if (const double lost = claim.left.lost + claim.right.lost; lost > 0 && difference <= least + lost) {
    reason = "records were lost while recording, and the difference is not larger than what they may change";
    return Truth::CannotTell;
  }
  return holds(claim.left.value, claim.sign, claim.right.value) ? Truth::True : Truth::False;
}

}  // namespace

ClaimChecker::ClaimChecker(const prof::RunData& run) : figures_(std::make_unique<Figures>(run)) {}
ClaimChecker::~ClaimChecker() = default;

CheckedClaim ClaimChecker::check(const std::string& text) {
  ClaimParser parser(
      text, [this](const std::string& name) { return figures_->named(name); },
      [this](const std::string& name, const std::string& argument) { return figures_->function(name, argument); });
  const ClaimParser::Claim claim = parser.parse();
  CheckedClaim checked{text, Truth::CannotTell, {}, claim.left.place.empty() ? claim.right.place : claim.left.place, {}};
  checked.truth = truth_of(claim, checked.reason);
  checked.figure = figure_text(claim.left) + " " + claim.sign + " " + figure_text(claim.right);
  return checked;
}

std::string claim_help() {
  std::string text = "A claim compares two sides with <, <=, >, >=, == or !=. A side has numbers, measures, + - * / and parentheses.\n\n";
  for (const NamedMeasure& one : kMeasures)
    if (!one.text.empty()) text += formatted("  {:<26} {}\n", one.name, one.text);
  text += formatted("  {:<26} {}\n  {:<26} {}\n  {:<26} {}\n  {:<26} {}\n", "steps", "steps of the run", "loss", "of the last step", "allocations",
                    "of the whole trace, as stats prints them", "driver allocations", "the same, of the driver");
  for (const NamedFunction& one : kFunctions) text += formatted("  {:<26} {}\n", std::string(one.name) + "(NAME)", one.text);
  text += "\nUnits: ns us ms s min, B KiB MiB GiB kB MB GB, %, samples/s, GB/s.\n";
  return text;
}

std::string to_text(const std::vector<CheckedClaim>& claims) {
  std::string text;
  for (const CheckedClaim& claim : claims) {
    text += formatted("{:<12} {}\n{:<12} {}", truth_name(claim.truth), claim.claim, "", claim.figure);
    if (!claim.place.empty()) text += "   (" + claim.place + ")";
    text += claim.reason.empty() ? "\n" : formatted("\n{:<12} {}\n", "", claim.reason);
  }
  return text;
}

std::string to_json(const std::vector<CheckedClaim>& claims) {
  auto list = nlohmann::ordered_json::array();
  for (const CheckedClaim& claim : claims)
    list.push_back({{"claim", claim.claim}, {"truth", truth_name(claim.truth)}, {"figure", claim.figure}, {"place", claim.place}, {"reason", claim.reason}});
  return nlohmann::ordered_json{{"version", kJsonVersion}, {"claims", list}}.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ws::app
