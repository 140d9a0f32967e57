#include "app/core/insights/insight_rules.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "app/core/runs/plan_times.h"
#include "engine/passes/lifetimes.h"
#include "engine/passes/passes.h"
#include "engine/plan/op_tags.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/sort_rows.h"
#include "profiling/base/text.h"

namespace ws::app {

using prof::Meaning;

namespace {

using Found = std::optional<Insight>;

constexpr double kWorthSaying = 0.10;  // share of the step; smaller gains are not reported
constexpr double kGraphNodeUs = 0.6;   // minimum cost of one more kernel in a graph

std::string plain(double value) { return formatted("{:.3g}", value); }

bool can(const RunFacts& f, const std::vector<std::pair<std::string, std::string>>& change) {
  RunSpec spec = f.spec;
  for (const auto& [key, value] : change) set_field(spec, key, value);
  return !why_invalid(spec, f.gpu) && !(spec == f.spec);
}

// "95.5 µs of the median step"
std::string part_text(const RunFacts& f, double us) { return time_text(us, f.step_us) + " of the median step"; }

Found offer(const RunFacts& f, Insight insight, const std::string& edits = {}) {
  if (!insight.change.empty() && !can(f, insight.change)) return {};
  insight.edits = edits;
  return insight;
}

Found allocator_stalls(const RunFacts& f) {
  const double spent = f.part(Meaning::Allocation);
  if (spent < kWorthSaying * f.step_us || f.allocator_calls_per_step < 1) return {};
  return offer(f, {"allocator stalls",
                   f.gpu ? "the GPU waits for allocator calls: " + part_text(f, spent) : "allocator calls take " + part_text(f, spent),
                   "One block that is planned ahead needs no calls.",
                   {{"exec.allocator", "arena"}},
                   f.step_us - spent,
                   Meaning::Allocation},
               "no allocator calls");
}

Found needless_sync(const RunFacts& f) {
  const double spent = f.part(Meaning::Sync);
  if (f.spec.exec.sync == SyncPolicy::OnRead || spent < kWorthSaying * f.step_us) return {};
  return offer(
      f, {"needless syncs",
          "the GPU waits for syncs: " + part_text(f, spent),
          "No value is read there: without these syncs, the next launches queue up meanwhile.",
          {{"exec.sync", "on-read"}},
          f.step_us - spent,
          Meaning::Sync},
          "no sync");
}

Found launch_bound(const RunFacts& f) {
  const double gaps = f.part(Meaning::Launch);
  const double left = std::min(gaps, kGraphNodeUs * f.kernels_per_step);
  if (!f.gpu || f.spec.exec.launch != Launch::Eager || gaps - left < kWorthSaying * f.step_us) return {};
  Insight insight{"launch-bound step",
                  "launch gaps take " + part_text(f, gaps),
                  "A CUDA graph launches all kernels of a step at once.",
                  {{"exec.launch", "graph"}},
                  f.step_us - gaps + left,
                  Meaning::Launch};
  std::string edits = "one graph launch";
  const auto first = [&](const char* key, const char* value, const char* edit) {
    insight.change.insert(insight.change.begin(), {key, value});
    edits = std::string(edit) + "; " + edits;
  };
  if (f.spec.exec.allocator == Allocator::Direct) first("exec.allocator", "arena", "no allocator calls");
  if (f.spec.exec.sync == SyncPolicy::EveryOp) first("exec.sync", "on-read", "no sync");
  return offer(f, std::move(insight), edits);
}

// Each removed op saves its share of the launch gaps and of the kernels between products.
Found unfused_chains(const RunFacts& f) {
  if (f.spec.exec.fusion != Fusion::Off || !f.plan) return {};
  const auto before = static_cast<double>(computing_ops(f.plan->plan)),
             after = static_cast<double>(computing_ops(fuse(f.plan->before, Fusion::Pointwise)));
  const double gone = 1 - after / before;
  const std::vector<Meaning> shrink{Meaning::Pointwise, Meaning::Reduction, Meaning::Loss, Meaning::Optimizer, Meaning::Launch, Meaning::Sync};
  double gain = 0;
  for (const Meaning meaning : shrink) gain += gone * f.part(meaning);
  if (gain < kWorthSaying * f.step_us) return {};
  Insight insight{"unfused chains",
                  "a step has " + plain(before - after) + " more ops than it needs",
                  "Bias, activation, loss and update each read and write memory: fusion makes one kernel of each.",
                  {{"exec.fusion", "pointwise"}},
                  f.step_us - gain,
                  Meaning::Pointwise};
  insight.several_parts = shrink;
  insight.part_us = gain, insight.step_us = f.step_us, insight.of_median = !f.whole_trace;  // the bar shows what is saved: no part of the split is that
  return offer(f, std::move(insight));
}

Found scores_in_memory(const RunFacts& f) {
  if (f.spec.exec.attention != AttentionForm::Plain || !f.plan) return {};
  const Plan& plan = f.plan->plan;
  int64_t scores = 0;
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::CausalSoftmax) scores += plan.buffer(op.in[0]).bytes() + plan.buffer(op.out[0]).bytes();
  if (static_cast<double>(scores) < kWorthSaying * static_cast<double>(live_lower_bound(plan))) return {};
  return offer(f, without_saving("saves memory, not time", {"scores in memory",
                   "the scores of attention and their shares take " + bytes_text(static_cast<double>(scores)) + " in the forward phase of a step",
                   "One number for each pair of characters, head and row. One kernel keeps the scores on the chip and computes them again for the gradient.",
                   {{"exec.attention", "fused"}},
                   0,
                   Meaning::Matrix}));
}

Found turned_pictures(const RunFacts& f) {
  if (f.spec.exec.layout != PictureLayout::Nchw || !f.plan) return {};
  const Plan& plan = f.plan->plan;
  int64_t turned = 0, all = 0, ops = 0;
  for (const Op& op : plan.ops) {
    const int64_t moved = bytes(plan, op);
    all += moved;
    if (op.kind == OpKind::Transpose) turned += moved, ++ops;
  }
  if (ops == 0 || static_cast<double>(turned) < kWorthSaying * static_cast<double>(all)) return {};
  return offer(f, without_saving("saving depends on the new kernels", {"turned pictures",
                   "ops that turn pictures between nchw and nhwc move " + percent(static_cast<double>(turned) / static_cast<double>(all), 0) + " of the bytes of a step",
                   "Convolutions and norms read the channels of a pixel side by side. With nhwc no op turns a picture.",
                   {{"exec.layout", "nhwc"}},
                   0,
                   Meaning::Pointwise}));
}

Found pageable_copies(const RunFacts& f) {
  const double spent = f.part(Meaning::Copy);
  if (f.spec.exec.loader != Loader::Pageable || spent < kWorthSaying * f.step_us) return {};
  return offer(f, {"pageable copies",
                   "copies of batches from pageable memory take " + part_text(f, spent),
                   "The driver copies twice and the host waits; the data set fits on the GPU.",
                   {{"exec.loader", "resident"}},
                   f.step_us - spent,
                   Meaning::Copy});
}

// One kernel runs many steps. Its blocks wait for each other inside, and what it holds limits the batch.
bool one_kernel_runs_steps(const RunFacts& f) { return f.kernels_per_step > 0 && f.kernels_per_step < 0.5; }

Found tiny_batch(const RunFacts& f) {
  if (one_kernel_runs_steps(f)) return {};
  if (!f.gpu || f.spec.train.batch == 0 || f.spec.train.batch >= 256 || f.spec.exec.launch == Launch::Eager) return {};
  if (f.kernel_us() > 0.6 * f.step_us || f.classes == 0) return {};
  const std::string bigger = std::to_string(f.spec.train.batch * 4);
  const double longest = f.step_us + 3 * f.kernel_us();  // upper limit: every kernel takes four times as long; few do
  return offer(f, with_how("Raise the learning rate with it, and watch the accuracy.", without_saving("at least " + plain(4 * f.step_us / longest) + " times the samples per second", {"tiny batch",
                   "kernels fill only " + percent(f.kernel_us() / f.step_us, 0) + " of a step",
                   "A step of a larger batch takes little longer.",
                   {{"train.batch", bigger}},
                   0,
                   Meaning::Idle})));
}

Found memory_peak(const RunFacts& f) {
  if (!f.plan || f.spec.exec.allocator == Allocator::Arena || f.peak_bytes <= 0) return {};
  const Plan packed = place_memory(fuse(f.plan->before, f.spec.exec.fusion), Allocator::Arena);
  const auto wanted = static_cast<double>(packed.arena_bytes), used = static_cast<double>(f.peak_bytes);
  if (used < 1.25 * wanted || used < 64 << 20) return {};
  return offer(f, without_saving("saves memory, not time", {"memory peak",
                   bytes_text(used) + " at the peak, but " + bytes_text(wanted) + " is enough",
                   "Buffers that are never alive together can share an address. The arena plans that from their "
                   "lifetimes.",
                   {{"exec.allocator", "arena"}},
                   f.part(Meaning::Allocation) > 0 ? f.step_us - f.part(Meaning::Allocation) : 0,
                   Meaning::Allocation}));
}

// The bars show the step, so its share stands there too.
std::string share_of_step(const RunFacts& f, const prof::KernelRow& row) { return percent(row.share * f.kernel_us() / f.step_us, 0) + " of a step"; }

Found low_occupancy(const RunFacts& f) {
  if (one_kernel_runs_steps(f)) return {};  // with one block a multiprocessor, by design
  for (size_t i = 0; i < f.kernels.size() && i < f.occupancy.size(); ++i) {
    const prof::KernelRow& row = f.kernels[i];
    if (row.meaning == Meaning::Communication) continue;  // its links limit it, and few blocks saturate them
    if (row.share < 0.3 || f.occupancy[i] < 0 || f.occupancy[i] >= 0.25 || f.kernel_us() < 0.5 * f.step_us) continue;
    Insight low{"low occupancy", row.key + " has " + percent(f.occupancy[i], 0) + " theoretical occupancy", "Its registers or its shared memory leave space for few warps.", {}, 0, row.meaning};
    low.how = "This is often right for products. For other kernels, look at the page Roofline.";
    low.more = "It takes " + share_of_step(f, row) + ", with " + std::to_string(row.detail.registers) + " registers per thread and " +
               std::to_string((row.detail.static_shared + row.detail.dynamic_shared) / 1024) + " KiB of shared memory per block.";
    return low;
  }
  return {};
}

// Rows of layers whose time is added up by block, largest first.
std::vector<prof::KernelRow> rows_of_blocks(const RunFacts& f, const std::map<std::string, std::string>& blocks) {
  std::vector<prof::KernelRow> rows;
  for (const prof::KernelRow& layer : f.layers) {
    const auto block = blocks.find(layer.key);
    if (block == blocks.end()) continue;
    auto row = std::ranges::find(rows, block->second, &prof::KernelRow::key);
    if (row == rows.end()) rows.push_back(layer), rows.back().key = block->second;
    else row->share += layer.share;
  }
  std::ranges::stable_sort(rows, std::greater<>{}, &prof::KernelRow::share);
  return rows;
}

// One layer or block of a long list takes most of the kernel time, forward and backward together.
Found heaviest_layer(const RunFacts& f) {
  constexpr size_t kFewLayers = 3;
  constexpr double kMost = 0.4;
  const auto is_layer = [](const prof::KernelRow& row) { return !row.key.empty() && row.key[0] != '('; };
  if (f.spec.model.layers.empty() || std::ranges::count_if(f.layers, is_layer) <= static_cast<std::ptrdiff_t>(kFewLayers)) return {};
  const auto blocks = f.plan ? blocks_of(f.plan->plan) : std::map<std::string, std::string>();
  const std::vector<prof::KernelRow> of_blocks = rows_of_blocks(f, blocks);
  const prof::KernelRow& layer = *std::ranges::find_if(f.layers, is_layer);
  const bool in_layer = layer.share >= kMost || of_blocks.size() < 2;
  const prof::KernelRow& row = in_layer ? layer : of_blocks[0];
  if (row.share < kMost || f.kernel_us() < 0.5 * f.step_us) return {};
  const auto around = blocks.find(row.key);
  const std::string name = (in_layer ? "layer " + row.key : row.key) + (around == blocks.end() ? "" : " of " + around->second);
  return with_how("Fewer channels there, or a stride or a pool before it, save more than a change of any other layer.", Insight{in_layer ? "one layer" : "one block",
                 name + " takes " + share_of_step(f, row),
                 "Forward and backward phase together. Kernels shows its kernels when it groups by layer.",
                 {},
                 0,
                 row.meaning});
}

// A kernel that also updates the weights gets less from tensor cores than a product alone.
std::string faster_products(const RunFacts& f) {
  const auto updates = [](const Op& op) { return op.kind == OpKind::GradientUpdate; };
  if (!f.plan || std::ranges::none_of(f.plan->plan.ops, updates)) return "matrix product /2";
  std::string edits;
  for (const Op& op : f.plan->plan.ops)
    if (meaning_of(op) == Meaning::Matrix && !updates(op)) edits += (edits.empty() ? "op " : "; op ") + op.name + " /2";
  return edits;
}

Found idle_tensor_cores(const RunFacts& f) {
  const double matrix = f.part(Meaning::Matrix);
  if (!f.gpu || f.spec.exec.precision != Precision::Fp32 || matrix < 0.4 * f.step_us) return {};
  return offer(
      f, {"idle tensor cores",
          "fp32 products take " + part_text(f, matrix),
          "In tf32 they run on tensor cores and take half the time or less; the losses stay close.",
          {{"exec.precision", "tf32"}},
          f.step_us - matrix / 2,
          Meaning::Matrix},
          faster_products(f));
}

// In the split, communication is what no computation hides. A wait for a late rank has a rule of its own.
Found exposed_communication(const RunFacts& f) {
  const double spent = f.part(Meaning::Communication) - f.rank_wait_us;
  if (spent <= 0 || spent < kWorthSaying * f.step_us) return {};
  Insight insight{"exposed communication", "communication that no computation hides takes " + part_text(f, spent)};
  insight.look_at = Meaning::Communication;
  if (f.spec.exec.comm == Comm::Overlap) {
    insight.why = "The transfers begin as early as they can.";
    insight.how = "With a larger batch each GPU computes more for the same transfer.";
  } else {
    insight.why = "The gradients are averaged when the backward phase has ended. With overlap, those of a layer are averaged while the backward phase of earlier layers runs.";
    insight.change = {{"exec.comm", "overlap"}};
    insight.no_saving = "saving depends on the links";
  }
  return offer(f, std::move(insight));
}

Found bad_first_weights(const RunFacts& f) {
  if (f.classes < 2 || f.spec.model.kind != ModelKind::Mlp || (f.spec.model.hidden.empty() && f.spec.model.layers.empty())) return {};
  const double blind = std::log(static_cast<double>(f.classes));
  if (f.spec.model.init == Init::Zeros && f.last_loss > 0.9 * blind)
    return offer(f, without_saving("about the loss, not the time", {"zero weights",
                     "the loss stays at " + plain(f.last_loss) + ", the loss of a blind guess",
                     "With zeros every unit of a layer gets the same gradient, so the layer stays one unit wide.",
                     {{"model.init", "kaiming"}}}));
  if (!(f.first_loss > 4 * blind)) return {};
  return offer(f, without_saving("about the loss, not the time", {"initial weights too large",
                   "the first loss is " + plain(f.first_loss) + ", far above a blind guess",
                   "The sums of a layer grow with its number of inputs. Kaiming divides by it.",
                   {{"model.init", "kaiming"}}}));
}

Found diverging(const RunFacts& f) {
  if (!f.diverged && !(f.last_loss > 2 * f.first_loss && f.first_loss > 0)) return {};
  Insight insight{"diverging loss",
                  f.diverged ? "the loss is no longer a number"
                             : "the loss rose from " + plain(f.first_loss) + " to " + plain(f.last_loss),
                  "The steps are too large.",
                  {{"train.lr", plain(f.spec.train.lr / 4)}}};
  insight.spoils_training = true, insight.how = "Better initial weights may help, too.";
  return offer(f, without_saving("about the loss, not the time", std::move(insight)));
}

Found heavy_tracing(const RunFacts& f) {
  if (!prof::tracing_cost_seen(f.tracing_cost) || f.tracing_cost.value < 0.10) return {};
  Insight cost{"tracing cost", "tracing costs " + prof::tracing_cost_text(f.tracing_cost) + " of a step", "An untraced step is shorter."};
  cost.how = "Trust shares, not absolute times, or choose “20 of 2 000 steps” in the trace box above.";
  cost.more = "Untraced, a step takes at most about " + time_text(f.step_us / (1 + f.tracing_cost.value)) + ".";
  return without_saving("about the recording, not the training", std::move(cost));
}

constexpr Found (*kRules[])(const RunFacts&) = {diverging,    bad_first_weights, allocator_stalls,  needless_sync,
                                                launch_bound, unfused_chains,    scores_in_memory,  turned_pictures, pageable_copies,   tiny_batch,
                                                memory_peak,  low_occupancy,     heaviest_layer,    idle_tensor_cores,
                                                exposed_communication, heavy_tracing};

}  // namespace

Insight without_saving(std::string why, Insight insight) {
  insight.no_saving = std::move(why);
  return insight;
}

Insight with_how(const char* how, Insight insight) {
  insight.how = how;
  return insight;
}

double RunFacts::kernel_us() const {
  double sum = 0;
  for (const Meaning meaning : prof::kPartOrder) sum += prof::is_kernels(meaning) ? part(meaning) : 0;
  return sum;
}

RunFacts facts_of(const RunSpec& spec, const prof::Breakdown& parts, bool gpu) {
  RunFacts facts;
  facts.spec = spec;
  facts.gpu = gpu;
  if (parts.steps == 0) return facts;
  const double per_step = 1e-3 / static_cast<double>(parts.steps);
  facts.step_us = static_cast<double>(parts.wall()) * per_step;
  for (size_t m = 0; m < std::size(facts.part_us); ++m)
    facts.part_us[m] = static_cast<double>(parts.times[m]) * per_step;
  // A wait for data is no launch gap, although a launch ends it.
  const prof::HostGap& data = parts.gaps[static_cast<size_t>(prof::HostWork::Data)];
  facts.part_us[static_cast<size_t>(prof::Meaning::Launch)] -= static_cast<double>(data.launch) * per_step;
  facts.part_us[static_cast<size_t>(prof::Meaning::Idle)] += static_cast<double>(data.launch) * per_step;
  facts.data_wait_us = static_cast<double>(data.launch + data.idle) * per_step;
  facts.inner_wait_us = static_cast<double>(parts.inner_wait) * per_step;
  facts.part_us[static_cast<size_t>(prof::Meaning::Sync)] -= facts.inner_wait_us;
  facts.rank_wait_us = static_cast<double>(parts.rank_wait) * per_step;
  return facts;
}

RunFacts facts_for(const Insight& insight, const RunFacts& run) {
  const bool of_step = insight.step_us > 0, of_program = insight.share > 0, host_waits = insight.host_waits_us > 0;
  if ((!of_step && !of_program) || (host_waits && insight.rank == run.rank)) return run;  // the GPU may work while the host waits: the split says when not
  RunFacts facts = run;
  if (insight.rank >= 0) facts.rank = insight.rank;
  if (of_step) facts.step_us = insight.step_us, facts.whole_trace = false;
  double part = of_step ? insight.part_us : std::min(1.0, insight.share) * run.step_us;
  if (host_waits) part = 0;
  std::fill(std::begin(facts.part_us), std::end(facts.part_us), 0.0);
  facts.part_us[static_cast<size_t>(insight.look_at)] = part;
  facts.part_us[static_cast<size_t>(prof::Meaning::Other)] += facts.step_us - part;
  return facts;
}

std::vector<Insight> insights(const RunFacts& facts) {
  std::vector<Insight> found;
  for (const auto rule : kRules)
    if (auto insight = rule(facts)) found.push_back(std::move(*insight));
  const auto gain = [&](const Insight& i) { return i.predicted_us > 0 ? facts.step_us - i.predicted_us : 0; };
  sort_rows(found, [&](const Insight& a, const Insight& b) { return gain(a) > gain(b); });
  return found;
}

}  // namespace ws::app
