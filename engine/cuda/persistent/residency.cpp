#include "engine/cuda/persistent/residency.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ws::cuda::persistent {
namespace {

constexpr int kBlocks = 16;            // per cluster
constexpr int64_t kFlagBytes = 16384;  // same as in common.cuh

int64_t up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

std::string kilobytes(int64_t bytes) { return std::to_string((bytes + 1023) / 1024) + " KB"; }

bool halves(Precision p) { return p == Precision::Bf16 || p == Precision::Fp16; }

int64_t parameters_of(const Network& n) {
  int64_t sum = 0;
  for (size_t l = 0; l + 1 < n.widths.size(); ++l) sum += (n.widths[l] + (n.bias ? 1 : 0)) * n.widths[l + 1];
  return sum;
}

void add_choices(const Network& n, std::vector<Constant>& to) {
  to.push_back({"activation", static_cast<int64_t>(n.activation)});
  to.push_back({"loss", static_cast<int64_t>(n.loss)});
  to.push_back({"optimizer", static_cast<int64_t>(n.optimizer)});
  to.push_back({"precision", static_cast<int64_t>(n.precision)});
  to.push_back({"decays", n.decays});
  to.push_back({"bias", n.bias});
}

void add_widths(const Network& n, std::vector<Constant>& to) {
  to.push_back({"layers", static_cast<int64_t>(n.widths.size()) - 1});
  for (size_t l = 0; l < 7; ++l) to.push_back({"width" + std::to_string(l), l < n.widths.size() ? n.widths[l] : 0});
}

BudgetLine line(std::string what, int64_t used, int64_t limit, bool bytes) {
  BudgetLine made{std::move(what), "", used, limit};
  made.text =
      bytes ? kilobytes(used) + " of " + kilobytes(limit) : std::to_string(used) + " of " + std::to_string(limit);
  return made;
}

// ---- one hidden layer in a cluster of 16 blocks: kernel cluster.cuh ----

// Assigns parts of the shared memory one after the other.
class SharedMemory {
 public:
  explicit SharedMemory(std::vector<Constant>& constants, int64_t alignment = 128)
      : constants_(constants), alignment_(alignment) {}
  void part(const char* name, int64_t bytes) {
    constants_.push_back({name, bytes_});
    bytes_ += up(bytes, alignment_);
  }
  int64_t bytes() const { return bytes_; }

 private:
  std::vector<Constant>& constants_;
  int64_t alignment_, bytes_ = 0;
};

// Slices of the inputs, one for each block of a cluster of 16. With biases, an input that is always 1 follows the last.
struct Slices {
  int64_t inputs_each, tiles, row_values, row_bytes;
};

Slices slices_of(const Network& n) {
  Slices s{};
  s.inputs_each = up(n.widths[0] + (n.bias ? 1 : 0), kBlocks) / kBlocks;
  s.tiles = up(s.inputs_each, 8) / 8;
  s.row_values = halves(n.precision) ? up(s.inputs_each, 16) : s.tiles * 8;
  s.row_bytes = s.row_values * (halves(n.precision) ? 2 : 4);
  return s;
}

void add_slices(const Network& n, const Slices& s, std::vector<Constant>& to) {
  to.push_back({"inputs", n.widths[0]});
  to.push_back({"hidden", n.widths[1]});
  to.push_back({"outputs", n.widths.back()});
  to.push_back({"inputs_each", s.inputs_each});
  to.push_back({"tiles", s.tiles});
  to.push_back({"row_values", s.row_values});
  to.push_back({"row_bytes", s.row_bytes});
}

// A number of the network that a residency limits.
struct Limited {
  const char* what;
  int64_t has, most;
};

// Returns one sentence about the first number that is too large, or nothing.
std::string too_large(const char* who, const std::vector<Limited>& numbers) {
  for (const Limited& n : numbers)
    if (n.has > n.most)
      return std::string(who) + " holds at most " + std::to_string(n.most) + " " + n.what + ", this network has " +
             std::to_string(n.has);
  return {};
}

int64_t widest_hidden(const Network& n) {
  return n.widths.size() < 3 ? 0 : *std::max_element(n.widths.begin() + 1, n.widths.end() - 1);
}

struct ClusterShape : Slices {
  int64_t hidden, outputs, batch, rows_each;  // batch: rows of a cluster
  int clusters, math_groups, threads;
  bool half_partials;
};

ClusterShape cluster_shape(const Network& n, const Limits& limits) {
  ClusterShape s{slices_of(n)};
  s.hidden = n.widths[1], s.outputs = n.widths[2];
  // Clusters that share a batch add their gradients through the L2 cache. Some values lose their last bits, which fp32
  // needs, and in fp16 all clusters would have to agree about values that are not finite.
  const bool shares = n.precision == Precision::Tf32 || n.precision == Precision::Bf16;
  s.clusters = n.batch <= 128 || !shares ? 1 : limits.clusters_of_16;
  s.batch = up((n.batch + s.clusters - 1) / s.clusters, 64);
  s.rows_each = s.batch / kBlocks;
  s.math_groups = static_cast<int>(up(s.hidden, 64) / 64);
  s.threads = 128 * (s.math_groups + 1);
  s.half_partials = halves(n.precision) || n.precision == Precision::Tf32;
  return s;
}

void share_cluster_memory(const Network& n, const ClusterShape& s, Placement& out) {
  const int64_t hidden = s.math_groups * 64, batch = s.batch, rows = s.rows_each, warps = 4 * s.math_groups;
  const int64_t outputs_padded = up(s.outputs, 4), own = hidden / kBlocks;
  const int64_t rows_bytes = batch * s.row_bytes;
  const int64_t turned_stride = s.tiles * 8 * 16 + 16, turned_bytes = up(batch / 4 * turned_stride, 128);
  const int64_t partials_each = hidden * rows * (s.half_partials ? 2 : 4) + (rows == 4 ? 64 : 0);
  const bool turns = !halves(n.precision), splits = n.precision == Precision::Fp32;
  const bool bits = n.activation == Activation::Relu, slopes = !bits && n.activation != Activation::None;
  const int64_t output_steps = up(s.outputs, 8) / 8, gradient_stride = batch * 16 + 64;
  SharedMemory memory(out.constants);
  memory.part("at_rows", 3 * rows_bytes);
  memory.part("at_rest", splits ? 2 * rows_bytes : 0);
  memory.part("at_turned", turns ? 2 * turned_bytes : 0);
  memory.part("at_turned_rest", splits ? 2 * turned_bytes : 0);
  memory.part("at_partials", kBlocks * partials_each);
  memory.part("at_gradients",
              2 * output_steps * gradient_stride);  // four outputs each; those that no output fills stay zero
  const int64_t slopes_each = bits ? rows * 2 : slopes ? (rows * 16 + 4) * 4 : 0;
  memory.part("at_slopes", kBlocks * warps * slopes_each);
  memory.part("at_targets", 4 * rows * (n.loss == LossKind::CrossEntropy ? 1 : s.outputs) * 4);
  memory.part("at_outputs", rows * 64);
  memory.part("at_hidden", batch * own * 4);
  memory.part("at_w2", (n.precision == Precision::Fp16 ? 2 : 1) * (16 * (hidden + 4) * 4 + 64));
  memory.part("at_dead", 20);
  memory.part("at_sums", warps * rows * 64);
  memory.part("at_small", 4 * 16 * 48);
  memory.part("at_barriers", 16 * 8);
  out.shared_bytes = memory.bytes();
  add_slices(n, s, out.constants);
  for (const Constant& c : std::vector<Constant>{{"batch", batch},
                                                 {"clusters", s.clusters},
                                                 {"hidden_padded", hidden},
                                                 {"outputs_padded", outputs_padded},
                                                 {"rows_bytes", rows_bytes},
                                                 {"turned_stride", turned_stride},
                                                 {"turned_bytes", turned_bytes},
                                                 {"partials_each", partials_each},
                                                 {"half_partials", s.half_partials},
                                                 {"shared_bytes", out.shared_bytes},
                                                 {"gradient_stride", gradient_stride},
                                                 {"output_steps", output_steps}})
    out.constants.push_back(c);
}

// Returns the registers of a thread in the products, by what it must hold at once. The constant covers addresses and
// counters, and was read from the compiler's output for sm_90.
int64_t cluster_registers(const Network& n, const ClusterShape& s) {
  const int64_t weights = 4 * s.tiles * (1 + moments_of(n.optimizer));
  const int64_t passes = n.precision == Precision::Fp32 ? 2 : 1, width = halves(n.precision) ? 2 : 1;
  const int64_t forward = s.batch / 2 + passes * 4 * s.tiles / width;
  const int64_t backward = passes * s.batch / 2 / width + 4 * s.tiles;
  return weights + std::max(forward, backward) + 18;
}

// The registers that a thread can have.
int64_t most_registers(const Limits& limits, int threads) {
  return std::min<int64_t>(255, limits.registers / threads / 8 * 8);
}

// Returns one sentence if there is not enough shared memory, or nothing.
std::string lacks_shared_memory(const std::string& who, int64_t bytes, const Limits& limits) {
  if (bytes <= limits.shared_bytes) return {};
  return who + " would need " + kilobytes(bytes) + " of shared memory and has " + kilobytes(limits.shared_bytes);
}
// Puts the shared memory of a block into the budget. False, with the reason, if there is not enough.
bool fits_shared_memory(const std::string& who, const std::string& use, const Limits& limits, Placement& out) {
  out.budget.push_back(line("shared memory of " + use, out.shared_bytes, limits.shared_bytes, true));
  out.why_not = lacks_shared_memory(who, out.shared_bytes, limits);
  return out.why_not.empty();
}

// Returns one sentence about a thread or a block that would need more than it has, or nothing. `in_memory`: so many
// values of a thread may be in local memory, which still costs less than another launch mode.
std::string too_much(const std::string& whose, int64_t registers, int64_t most, int64_t in_memory, int64_t shared_bytes,
                     const Limits& limits) {
  if (registers > most + in_memory)
    return "a thread " + whose + " would need " + std::to_string(registers) + " registers and has " + std::to_string(most);
  return lacks_shared_memory("a block " + whose, shared_bytes, limits);
}

constexpr const char* kNeedsClusters = "clusters of blocks need compute capability 9.0";

Placement place_cluster(const Network& n, const Limits& limits) {
  Placement out;
  if (limits.compute < 90) out.why_not = kNeedsClusters;
  if (n.widths.size() != 3)
    out.why_not = "a cluster holds networks of one hidden layer, this one has " + std::to_string(n.widths.size() - 2);
  if (!out.why_not.empty()) return out;
  const ClusterShape s = cluster_shape(n, limits);
  out.why_not = too_large(
      "a cluster",
      {{"hidden units", s.hidden, 128}, {"outputs", s.outputs, 16}, {"rows of a batch", n.batch, 128 * s.clusters}});
  if (!out.why_not.empty()) return out;
  out.cluster = kBlocks, out.blocks = kBlocks * s.clusters, out.threads = s.threads;
  out.row_bytes = kBlocks * s.row_bytes;
  add_choices(n, out.constants);
  share_cluster_memory(n, s, out);
  const int64_t registers = cluster_registers(n, s), most = most_registers(limits, s.threads);
  out.budget.push_back(line("registers per thread (weights, state, sums)", registers, most, false));
  out.budget.push_back(
      line("shared memory per block (rows, messages, output weights)", out.shared_bytes, limits.shared_bytes, true));
  // Gradients of the first layer, of the output layer, and their biases, for two steps.
  const int64_t gradient_bytes = 128 * s.math_groups * s.tiles * 16 + 128 * 16;
  out.constants.push_back({"gradient_bytes", gradient_bytes});
  if (s.clusters > 1) {
    out.exchange_bytes = kFlagBytes + 2 * out.blocks * gradient_bytes;
    out.budget.push_back(line("L2 cache (gradients of " + std::to_string(s.clusters) + " clusters)", out.exchange_bytes,
                              limits.l2_bytes, true));
  }
  out.why_not = too_much("of the cluster", registers, most, 32, out.shared_bytes, limits);
  if (out.why_not.empty()) out.residency = Residency::Cluster;
  return out;
}

// ---- several hidden layers, the upper ones in every block of a cluster: kernel copies.cuh ----

Placement place_copies(const Network& n, const Limits& limits) {
  constexpr int64_t kUnits = 128, kThreads = 256;  // units of a layer, padded
  Placement out;
  const auto layers = static_cast<int64_t>(n.widths.size()) - 2;  // hidden
  if (limits.compute < 90)
    out.why_not = kNeedsClusters;
  else if (!halves(n.precision))
    out.why_not = "copies of layers in every block need fp16 or bf16";
  else if (layers < 2)
    out.why_not = "this network has no layers to copy";
  else
    out.why_not = too_large("a block with copies", {{"hidden layers", layers, 5},
                                                    {"units of a hidden layer", widest_hidden(n), kUnits},
                                                    {"outputs", n.widths.back(), 16},
                                                    {"rows of a batch", n.batch, 64}});
  if (!out.why_not.empty()) return out;
  const Slices slices = slices_of(n);
  const int64_t batch = up(n.batch, 32), chunk = batch * 16, units = kUnits / 8 * chunk,
                partials = chunk + (batch == 32 ? 64 : 0), moments = moments_of(n.optimizer);
  const bool slopes = n.activation != Activation::Relu && n.activation != Activation::None;
  int64_t tiles = 0;
  for (int64_t l = 2; l <= layers; ++l) tiles += up(n.widths[static_cast<size_t>(l - 1)], 16) / 8;
  out.blocks = out.cluster = kBlocks, out.threads = kThreads, out.row_bytes = kBlocks * slices.row_bytes;
  add_choices(n, out.constants);
  add_widths(n, out.constants);
  add_slices(n, slices, out.constants);
  SharedMemory memory(out.constants);
  memory.part("at_rows", 3 * batch * slices.row_bytes);
  memory.part("at_partials", kBlocks * partials);
  memory.part("at_stage", 2 * chunk);
  memory.part("at_first", 2 * units);
  memory.part("at_slopes", slopes ? units : 0);
  memory.part("at_units", (layers - 1) * units);
  memory.part("at_gradients", layers * units);
  memory.part("at_weights", (layers - 1) * kUnits * kUnits * 2);
  memory.part("at_output", kUnits * 16 * 2);
  memory.part("at_dz", 2 * chunk);
  memory.part("at_targets", 4 * batch * (n.loss == LossKind::CrossEntropy ? 1 : n.widths.back()) * 4);
  memory.part("at_sums", 64);
  memory.part("at_dead", 8);
  memory.part("at_barriers", 16);
  out.shared_bytes = memory.bytes();
  out.constants.push_back({"batch", batch});
  out.constants.push_back({"partials_each", partials});
  out.constants.push_back({"shared_bytes", out.shared_bytes});
  // The constant covers the sums of a product, addresses and counters. It was read from the compiler's output for
  // sm_90.
  const int64_t registers = (4 * slices.tiles + 4 * tiles + 10 + 2 * (layers - 1)) * (1 + moments) +
                            (slopes ? layers * batch / 8 : layers) + batch / 2 + 56,
                most = most_registers(limits, kThreads);
  out.budget.push_back(line("registers per thread (weights, state, sums)", registers, most, false));
  out.budget.push_back(
      line("shared memory per block (rounded weights, units, messages)", out.shared_bytes, limits.shared_bytes, true));
  out.why_not = too_much("with copies of layers", registers, most, 24, out.shared_bytes, limits);
  if (out.why_not.empty()) out.residency = Residency::Copies;
  return out;
}

// ---- all weights in every thread: kernel rows.cuh ----

Placement place_rows(const Network& n, const Limits& limits) {
  constexpr int64_t kMostParameters = 64, kMostUnits = 40;
  Placement out;
  int64_t units = 0;
  for (const int64_t w : n.widths) units += w;
  const int64_t parameters = parameters_of(n), sums = up(parameters + 2, 4);
  if (parameters > kMostParameters || units > kMostUnits) {
    out.why_not = "a thread holds at most " + std::to_string(kMostParameters) + " parameters, this network has " +
                  std::to_string(parameters);
    return out;
  }
  const int64_t values = n.widths.front() + (n.loss == LossKind::CrossEntropy ? 1 : n.widths.back());
  // A thread of 512 has 128 registers for parameters, their sums, units with slopes and gradients, and rows.
  const int64_t most_kept = std::max<int64_t>(24, 76 - 2 * sums - 3 * units);
  // Few sums reach the other blocks fastest in packets of three, without a cluster. Many sums would be too much
  // traffic.
  constexpr int copies = 2, packet_bytes = 64;  // copies of each packet; 64 bytes hold one
  const int cluster = sums <= 8 ? 1 : 4, clusters = cluster == 1 ? limits.multiprocessors : limits.clusters_of_4;
  const auto rows_of = [&](int blocks, int threads) { return up(n.batch, blocks * threads) / (blocks * threads); };
  int64_t fours = 0;
  if (n.batch > 1024 && limits.compute >= 90) {
    out.blocks = out.cluster = kBlocks;
    if (n.all_rows && rows_of(kBlocks, 512) * values > 24 && clusters > 1)
      out.blocks = cluster * clusters, out.cluster = cluster;
  }
  out.threads = static_cast<int>(std::clamp<int64_t>(up((n.batch + out.blocks - 1) / out.blocks, 32), 64, 512));
  int64_t rows_each = rows_of(out.blocks, out.threads);
  if (out.blocks > out.cluster && rows_each * values > most_kept) {
    fours = up(rows_each - most_kept / values, 4) / 4;
    rows_each = std::max<int64_t>(0, rows_each - 4 * fours);
    out.shared_bytes = fours * 4 * values * 4 * out.threads;
  }
  const int64_t own = (2 * out.cluster + out.threads / 32 + 1) * sums * 4 + 1024, kept = rows_each * values;
  const int64_t all = (rows_each + 4 * fours) * values;
  out.budget.push_back(line("parameters in each thread", parameters, kMostParameters, false));
  out.budget.push_back(line("values of the batch in each thread", kept * (n.all_rows ? 1 : 2), most_kept, false));
  if (fours > 0)
    out.budget.push_back(line("shared memory of a block (rows)", out.shared_bytes + own, limits.shared_bytes, true));
  if ((kept * (n.all_rows ? 1 : 2) > most_kept && rows_each > 1) || out.shared_bytes + own > limits.shared_bytes) {
    out.why_not = "a batch of " + std::to_string(n.batch) + " rows needs " + std::to_string(all) +
                  " values in each thread of " + std::to_string(out.blocks) + " blocks, at most " +
                  std::to_string(out.blocks > out.cluster ? most_kept + (limits.shared_bytes - own) / (4 * out.threads)
                                                          : most_kept) +
                  " fit";
    return out;
  }
  out.residency = Residency::Rows;
  if (out.blocks > out.cluster)
    out.exchange_bytes = kFlagBytes + 2 * (out.blocks / out.cluster) *
                                          (out.cluster == 1 ? up(sums, 3) / 3 * copies * packet_bytes : sums * 8);
  add_choices(n, out.constants);
  add_widths(n, out.constants);
  out.constants.push_back({"rows_each", rows_each});
  out.constants.push_back({"fours_shared", fours});
  out.constants.push_back({"threads", out.threads});
  out.constants.push_back({"cluster", out.cluster});
  out.constants.push_back({"clusters", out.blocks / out.cluster});
  out.constants.push_back({"copies", copies});
  out.constants.push_back({"packet_bytes", packet_bytes});
  out.constants.push_back({"all_rows", n.all_rows});
  return out;
}

// ---- all multiprocessors: kernel grid.cuh ----

constexpr int kGridCluster = 8, kGridThreads = 512;

// Units of a layer that one of so many clusters owns.
int64_t grid_units(int64_t width, int64_t clusters) { return up(up(width, clusters) / clusters, 4); }

// The fewest clusters that give each the same units: fewer take part in each exchange.
int64_t grid_clusters(const Network& n, const Limits& limits) {
  int64_t clusters = limits.clusters_of_8;
  const auto same = [&](int64_t fewer) {
    return std::all_of(n.widths.begin() + 1, n.widths.end() - 1,
                       [&](int64_t width) { return grid_units(width, fewer) == grid_units(width, clusters); });
  };
  int64_t found = clusters;
  while (limits.compute >= 90 && found > 1 && same(found - 1)) --found;
  return found;
}

// Computes the slices of the layers and the parts of the shared memory.
// `in_memory`: wgmma reads the weights of the forward products from shared memory, which takes a few zeros there.
void share_grid_memory(const Network& n, const Limits& limits, bool state_shared, bool in_memory, Placement& out) {
  const int64_t layers = static_cast<int64_t>(n.widths.size()) - 2, batch = up(n.batch, 32), clusters = grid_clusters(n, limits),
                rows = batch / kGridCluster, outputs = n.widths.back(), moments = moments_of(n.optimizer);
  const bool wide = limits.compute == 90 && n.precision != Precision::Fp32;  // products with wgmma
  const int64_t inputs_own = up(n.widths[0], kGridCluster) / kGridCluster;
  int64_t values = up(inputs_own, 4), tile = 0, zeros = 0, row = 0, region = 0, biases = 0, top = 0, exchange = 0;
  out.constants.push_back({"inputs_own", inputs_own});
  out.constants.push_back({"inputs_each", values});
  out.row_bytes = kGridCluster * values * 4;
  for (int64_t l = 1; l <= 5; ++l) {
    const int64_t units = l <= layers ? grid_units(n.widths[static_cast<size_t>(l)], clusters) : 0;
    out.constants.push_back({"units" + std::to_string(l), units});
    if (l > layers) continue;
    tile += values * units;
    zeros = values / 4 % 2 ? std::max(zeros, units * 16) : zeros;
    row = std::max(row, values / 4 * (4 * batch + 4));
    region = std::max({region, units / 4 * (4 * batch + 4), batch / 4 * (4 * units + 4), kGridCluster * (units * rows + 4)});
    if (l > 1) exchange += clusters * clusters * batch * top / (wide ? 2 : 1);
    exchange += batch * clusters * units;
    biases += units, top = units;
    values = up(up(n.widths[static_cast<size_t>(l)], kGridCluster) / kGridCluster, 4);
  }
  exchange += 2 * clusters * batch * outputs * 2;
  const bool scales = n.precision == Precision::Fp16;
  const int64_t own_rows = up(top + 1, kGridCluster) / kGridCluster;
  const int64_t targets = n.loss == LossKind::CrossEntropy ? 1 : outputs;
  SharedMemory memory(out.constants, 16);
  memory.part("at_tiles", tile * 4);
  memory.part("at_zeros", in_memory ? zeros : 0);
  memory.part("at_moments", state_shared ? tile * moments * 4 : 0);
  memory.part("at_slots", (scales ? layers + 1 : std::max<int64_t>(layers, 2)) * row * 4);
  memory.part("at_regions", (scales ? 2 + layers : 2) * region * 4);
  memory.part("at_biases", (1 + moments) * biases * 4);
  memory.part("at_top", rows * top * 4);
  memory.part("at_output", (top + 1) * outputs * 4);
  memory.part("at_output_inbox", kGridCluster * own_rows * outputs * 4);
  memory.part("at_dz", rows * outputs * 4);
  memory.part("at_sums", rows * 8);
  memory.part("at_targets", 2 * rows * targets * 4);
  memory.part("at_places", 2 * batch * 4);
  memory.part("at_barriers", (2 * layers + 2) * 8);
  memory.part("at_dead", 8);
  out.shared_bytes = memory.bytes();
  out.exchange_bytes = kFlagBytes + exchange * 4;
  for (const Constant& c : std::vector<Constant>{{"batch", batch},
                                                 {"outputs", outputs},
                                                 {"threads", kGridThreads},
                                                 {"cluster", kGridCluster},
                                                 {"clusters", clusters},
                                                 {"state_shared", state_shared},
                                                 {"forward_in_memory", in_memory},
                                                 {"wide", wide},
                                                 {"tile_floats", tile},
                                                 {"slot_floats", row},
                                                 {"region_floats", region},
                                                 {"shared_bytes", out.shared_bytes}})
    out.constants.push_back(c);
}

Placement place_grid(const Network& n, const Limits& limits) {
  Placement out;
  const auto layers = static_cast<int64_t>(n.widths.size()) - 2;
  const int64_t clusters = grid_clusters(n, limits);
  if (limits.compute < 90)
    out.why_not = kNeedsClusters;
  else if (layers < 1)
    out.why_not = "a grid needs a hidden layer";
  else
    out.why_not = too_large(
        "a grid", {{"hidden layers", layers, 5}, {"outputs", n.widths.back(), 32}, {"rows of a batch", n.batch, 128}});
  if (!out.why_not.empty()) return out;
  // The last row of a block's output weights holds the biases. A thread updates one of these weights.
  const int64_t top = grid_units(n.widths[n.widths.size() - 2], clusters),
                moved = up(top + 1, kGridCluster) / kGridCluster * n.widths.back();
  if (moved > kGridThreads) {
    out.why_not = "a block of the grid moves at most " + std::to_string(kGridThreads) +
                  " output weights, this network has " + std::to_string(moved) + " for each";
    return out;
  }
  const bool moments = moments_of(n.optimizer) > 0;
  constexpr std::pair<bool, bool> tries[] = {{true, true}, {true, false}, {false, true}, {false, false}};
  for (const auto& [state_shared, in_memory] : tries) {
    if (!state_shared && !moments) break;
    out = Placement{};
    add_choices(n, out.constants);
    add_widths(n, out.constants);
    share_grid_memory(n, limits, state_shared && moments, in_memory, out);
    if (out.shared_bytes <= limits.shared_bytes) break;
  }
  out.cluster = kGridCluster, out.blocks = static_cast<int>(clusters) * kGridCluster, out.threads = kGridThreads;
  if (!fits_shared_memory("a block of the grid", "a block (weights, rows, messages)", limits, out)) return out;
  out.budget.push_back(
      line("L2 cache (units and gradients between clusters)", out.exchange_bytes, limits.l2_bytes, true));
  out.residency = Residency::Grid;
  out.most_steps = 400;
  return out;
}

// ---- all rows as one batch: kernel flow.cuh ----

// Slices of the inputs for the backward pass: as few as the registers allow, each a multiple of 8, together of 32.
struct FlowSlices {
  int64_t count, columns;
};
FlowSlices flow_slices(int64_t columns) {
  constexpr int64_t kMost = 208;
  for (int64_t count = 1;; ++count)
    for (int64_t each = up((columns + count - 1) / count, 8); each <= kMost; each += 8)
      if (count * each % 32 == 0) return {count, each};
}

std::string why_no_flow(const Network& n, const Limits& limits) {
  if (limits.compute < 90) return "a flow of rows needs compute capability 9.0";
  if (!n.all_rows) return "rows flow only if the batch is the whole data set";
  if (n.widths.size() != 3)
    return "a flow of rows needs one hidden layer, this network has " + std::to_string(n.widths.size() - 2);
  if (n.precision != Precision::Tf32 && n.precision != Precision::Bf16)
    return "a batch of " + std::to_string(n.batch) + " rows needs tf32 or bf16, this network computes in " +
           std::string(to_string(n.precision));
  if (n.precision == Precision::Tf32 && n.loss != LossKind::CrossEntropy)
    return "a batch of " + std::to_string(n.batch) +
           " rows in tf32 needs the cross-entropy loss, whose gradients have a limit";
  // An fp16 value has all its bits down to 2^-29 of the largest. This leaves ten powers of two for each input.
  constexpr float kMostApart = 1 << 19;
  if (n.precision == Precision::Tf32 && !(n.largest_input <= kMostApart * n.smallest_input))
    return "a batch of " + std::to_string(n.batch) +
           " rows needs inputs in 16 bits, and the inputs of this data set differ by a factor of " +
           std::to_string(static_cast<int64_t>(std::min(n.largest_input / n.smallest_input, 1e18f))) + " (at most " +
           std::to_string(static_cast<int64_t>(kMostApart)) + ")";
  return too_large("a flow of rows",
                   {{"hidden units", n.widths[1], 128}, {"outputs", n.widths[2], 16}, {"inputs", n.widths[0], 1600}});
}

constexpr int64_t kFlowHidden = 128, kFlowOutputs = 16, kFlowMath = 256, kFlowGroup = 64, kFlowStageBytes = 172032,
                  kMostFlowBlocks = 512, kFlowTopBytes = kFlowHidden * kFlowOutputs * 2 + kFlowOutputs * 4,
                  kFlowGroupHiddenBytes = kFlowGroup * kFlowHidden * 2;

// `parts`: of the rows, each of which has a block for each slice.
struct FlowShape {
  FlowSlices slices;
  int64_t columns, groups, parts, blocks;
};
FlowShape flow_shape(const Network& n, const Limits& limits) {
  FlowShape shape{};
  shape.slices = flow_slices(n.widths[0] + (n.bias ? 1 : 0));
  shape.columns = shape.slices.count * shape.slices.columns, shape.groups = up(n.batch, kFlowGroup) / kFlowGroup;
  shape.parts = std::min(std::min<int64_t>(limits.multiprocessors, kMostFlowBlocks) / shape.slices.count, shape.groups);
  shape.blocks = shape.slices.count * shape.parts;
  return shape;
}

void share_flow_memory(const Network& n, const FlowShape& shape, Placement& out) {
  const int64_t copies = 1 + moments_of(n.optimizer), pairs = shape.columns * kFlowHidden / 2,
                own_pairs = (pairs + shape.blocks - 1) / shape.blocks,
                own_top_rows = (kFlowHidden + shape.blocks) / shape.blocks,
                stages = kFlowStageBytes / (kFlowGroup * shape.slices.columns * 2 + kFlowGroupHiddenBytes);
  SharedMemory memory(out.constants);
  memory.part("at_stages", kFlowStageBytes);
  memory.part("at_hidden", 2 * kFlowGroupHiddenBytes);
  memory.part("at_outputs", 2 * kFlowGroup * kFlowOutputs * 2);
  memory.part("at_top", kFlowTopBytes);
  memory.part("at_state", copies * own_pairs * 2 * 4);
  memory.part("at_top_state", copies * own_top_rows * kFlowOutputs * 4);
  memory.part("at_small", kFlowMath * 4);
  memory.part("at_barriers", (2 * (kFlowStageBytes / 24576 + stages) + 2) * 8);
  memory.part("at_dead", 8);
  out.shared_bytes = memory.bytes();
  int64_t far = kFlagBytes + kMostFlowBlocks * 8;  // flags, and the largest weights of each block
  const auto far_part = [&](const char* name, int64_t bytes) {
    out.constants.push_back({name, far});
    far += up(bytes, 128);
  };
  far_part("far_first", shape.columns * kFlowHidden * 2);
  far_part("far_top", kFlowTopBytes);
  far_part("far_top_sums", shape.blocks * (kFlowHidden + 1) * kFlowOutputs * 4);
  far_part("far_sums", shape.parts * pairs * 8);
  far_part("far_gradients", shape.groups * kFlowGroupHiddenBytes);
  out.exchange_bytes = far;
}

void add_flow_constants(const Network& n, const FlowShape& shape, Placement& out) {
  const float largest = std::max(n.largest_input, n.bias ? 1.f : 0.f);
  const Constant all[] = {{"inputs", n.widths[0]},
                          {"hidden", n.widths[1]},
                          {"outputs", n.widths[2]},
                          {"blocks", shape.blocks},
                          {"slices", shape.slices.count},
                          {"slice_columns", shape.slices.columns},
                          {"row_parts", shape.parts},
                          {"columns", shape.columns},
                          {"groups", shape.groups},
                          {"stage_bytes", kFlowStageBytes},
                          {"top_bytes", kFlowTopBytes},
                          {"row_exponent", largest > 0 ? std::ilogb(largest) + 1 : 0}};
  out.constants.insert(out.constants.end(), std::begin(all), std::end(all));
}

Placement place_flow(const Network& n, const Limits& limits) {
  Placement out;
  out.why_not = why_no_flow(n, limits);
  if (!out.why_not.empty()) return out;
  const FlowShape shape = flow_shape(n, limits);
  if (shape.parts < 1) {
    out.why_not = "a flow of rows needs " + std::to_string(shape.slices.count) + " multiprocessors, this GPU has " +
                  std::to_string(limits.multiprocessors);
    return out;
  }
  out.blocks = static_cast<int>(shape.blocks), out.threads = static_cast<int>(kFlowMath) + 128;
  out.row_bytes = shape.columns * 2, out.row_group = kFlowGroup;
  add_choices(n, out.constants);
  share_flow_memory(n, shape, out);
  add_flow_constants(n, shape, out);
  if (!fits_shared_memory("a block of the flow", "a block (rows under way, state)", limits, out)) return out;
  // Three meetings of all blocks and two passes over the rows, as measured on an H100.
  const double microseconds = 30 + 2 * static_cast<double>(n.batch * out.row_bytes) / 3e6;
  if (microseconds > 20e3) {
    out.why_not = "a step over " + std::to_string(n.batch) + " rows would take about " +
                  std::to_string(std::lround(microseconds / 1e3)) + " ms, and a launch may take 20 ms";
    return out;
  }
  out.most_steps = std::clamp<int64_t>(static_cast<int64_t>(20e3 / microseconds), 1, 2048);
  // The kernel always computes 128 hidden units and all blocks meet three times per step. Measured on an H100: with 784
  // inputs it is faster than a CUDA graph from 1,000 rows on with 128 hidden units, from about 4,000 with 16.
  if (n.batch * (n.widths[1] + 32) < 190 * n.widths[0])
    out.why_slow = "persistent: with " + std::to_string(n.batch) + " rows of " + std::to_string(n.widths[0]) +
                   " inputs a CUDA graph is at least as fast.";
  if (n.precision == Precision::Tf32)
    out.remark =
        "the products take rows, weights, units and gradients in fp16, which has as many bits as tf32; factors that are "
        "powers of two keep them in its range";
  out.residency = Residency::Flow;
  return out;
}

// ---- one block: kernel block.cuh ----

Placement place_block(const Network& n, const Limits& limits) {
  Placement out;
  if (n.widths.size() > 7) {
    out.why_not = "a block holds at most 6 layers, this network has " + std::to_string(n.widths.size() - 1);
    return out;
  }
  const int64_t batch = up(n.batch, 4);
  std::vector<Constant> offsets;
  SharedMemory memory(offsets);
  int64_t parameters = 0, units = 0, hidden_units = 0, work = 0;
  for (size_t l = 0; l < n.widths.size(); ++l) {
    const int64_t width = up(n.widths[l], 4);
    units += width + 4;
    if (l == 0) continue;
    hidden_units += width + 4;
    parameters += (up(n.widths[l - 1], 4) + 1) * width;
    work += 3 * n.batch * up(n.widths[l - 1], 4) * width;
  }
  const int64_t copies = 1 + moments_of(n.optimizer);
  memory.part("at_parameters", parameters * copies * 4);
  memory.part("at_units", batch * (units + up(n.widths[0], 4) + 4 + 2 * hidden_units) * 4);
  memory.part("at_targets", 2 * batch * 4 * (n.loss == LossKind::CrossEntropy ? 1 : n.widths.back()));
  memory.part("at_sums", batch * 2 * 4);
  memory.part("at_places", 2 * batch * 4);
  out.threads = parameters > 1024 ? 512 : 256;
  out.shared_bytes = memory.bytes();
  if (!fits_shared_memory("one block", "the block (weights, state, activations)", limits, out)) return out;
  // Measured on an H200: 2-64-64-3 with a batch of 64 takes 18 µs per step, and 17 µs in a CUDA graph.
  const double microseconds = 3 + static_cast<double>(work) / 56e3;
  if (microseconds > 12) {
    out.why_not = "one block would need about " + std::to_string(std::lround(microseconds)) +
                  " µs per step, which is longer than a CUDA graph takes";
    return out;
  }
  out.residency = Residency::Block;
  add_choices(n, out.constants);
  add_widths(n, out.constants);
  out.constants.insert(out.constants.end(), offsets.begin(), offsets.end());
  out.constants.push_back({"batch", batch});
  out.constants.push_back({"parameters", parameters});
  out.constants.push_back({"threads", out.threads});
  out.constants.push_back({"all_rows", n.all_rows});
  out.constants.push_back({"shared_bytes", out.shared_bytes});
  out.most_steps = std::clamp<int64_t>(static_cast<int64_t>(10e3 / microseconds), 1, 2048);
  return out;
}

// A cluster, all multiprocessors and a flow refuse the network. Returns the reason of the one whose shape it has.
std::string larger_reason(const Network& network, const Placement& cluster, const Placement& grid,
                          const Placement& flow) {
  const bool fits_cluster = network.widths.size() == 3 && network.widths[1] <= 128 && network.widths[2] <= 16;
  if (fits_cluster && network.all_rows) return flow.why_not;
  return fits_cluster ? cluster.why_not : grid.why_not;
}

}  // namespace

std::string_view to_string(Residency residency) {
  constexpr std::string_view names[] = {"none", "rows", "block", "cluster", "copies", "grid", "flow"};
  return names[static_cast<size_t>(residency)];
}

Limits limits_of(const DeviceInfo& device) {
  return {static_cast<int>(std::lround(10 * std::atof(device.compute.c_str()))),  // "9.0"
          device.shared_per_block,
          device.registers_per_sm,
          device.multiprocessors,
          std::max(1, device.multiprocessors / 4 - 3),
          std::max(1, device.multiprocessors / 8 - 1),
          static_cast<int>(std::bit_floor(static_cast<unsigned>(std::clamp(device.multiprocessors / 16 - 2, 1, 4)))),
          device.l2_bytes};
}

Network network_of(const RunSpec& spec, const Plan& plan, int64_t train_rows) {
  Network n;
  for (const Buffer& b : plan.buffers) {
    if (b.role != Role::Parameter || !b.decays) continue;  // biases do not decay
    if (n.widths.empty()) n.widths.push_back(b.rows);
    n.widths.push_back(b.cols);
  }
  n.batch = plan.batch;
  n.all_rows = plan.batch >= train_rows;
  n.bias = spec.model.bias;
  n.activation = spec.model.activation;
  n.loss = spec.model.loss;
  n.optimizer = spec.train.optimizer;
  n.precision = spec.exec.precision;
  n.decays = spec.train.weight_decay != 0;
  return n;
}

Placement place(const Network& network, const Limits& limits) {
  Placement rows = place_rows(network, limits);
  const bool halved = halves(network.precision);
  if (rows.residency != Residency::None && !halved) return rows;
  Placement cluster = place_cluster(network, limits);
  Placement block = place_block(network, limits);
  // One block is faster as long as its products take less time than the messages of a cluster.
  const bool small = block.residency != Residency::None && !halved && parameters_of(network) <= 2048;
  if (small) return block;
  if (cluster.residency != Residency::None) return cluster;
  if (block.residency != Residency::None && !halved) return block;
  Placement copies = place_copies(network, limits);
  if (copies.residency != Residency::None) return copies;
  Placement grid = place_grid(network, limits);
  if (grid.residency != Residency::None) return grid;
  Placement flow = place_flow(network, limits);
  if (flow.residency != Residency::None) return flow;
  // The reason is the limit of the residency that holds most: all multiprocessors, or without clusters one block.
  Placement none;
  none.why_not = network.widths.size() == 2 ? rows.why_not
                 : limits.compute >= 90     ? larger_reason(network, cluster, grid, flow)
                 : halved                   ? "without clusters one block computes in fp32 or tf32 only"
                                            : block.why_not + ", and " + kNeedsClusters;
  none.why_not = "persistent: " + none.why_not + ". Choose launch graph" +
                 (network.widths.size() == 2 ? "." : ", or a smaller network or batch.");
  return none;
}

std::string summary(const Placement& placement) {
  return "residency " + std::string(to_string(placement.residency)) + ", " + std::to_string(placement.blocks) +
         (placement.blocks == 1 ? " block of " : " blocks of ") + std::to_string(placement.threads) + " threads";
}

std::string text(const Placement& placement) {
  if (placement.residency == Residency::None) return placement.why_not + "\n";
  std::string out = "One kernel trains many steps: " + summary(placement) + "\n";
  for (const BudgetLine& l : placement.budget) out += "  " + l.what + ": " + l.text + "\n";
  if (placement.row_bytes)
    out += "  rows in device memory, cut and padded for the blocks: " + std::to_string(placement.row_bytes) +
           " bytes each\n";
  if (!placement.remark.empty()) out += "  " + placement.remark + "\n";
  return out;
}

}  // namespace ws::cuda::persistent
