// The table of every choice: the JSON reader, --set, the spec diff and the window's Setup dock all read it.
#include <array>
#include <nlohmann/json.hpp>

#include "engine/run_spec.h"

namespace ws {
namespace {

using nlohmann::json;

// The names stand in the order of the enumerators.
constexpr FieldValue kDatasets[] = {
    {"mnist", "60 000 handwritten digits of 28 × 28; in the box."},
    {"fashion-mnist", "60 000 pictures of clothes, harder than digits; needs Debian's dataset-fashion-mnist."},
    {"iris", "150 flowers, four measures, three kinds: so small that only overhead is left to see."},
    {"line", "Points on a line with seeded noise, as many as you like."},
    {"blobs", "Round clouds, one a class, in the plane."},
    {"spirals", "Arms wound around each other: needs a hidden layer."},
    {"circles", "A ring around a disc: not separable by a line."},
    {"xor", "Four quarters, opposite ones alike: the classic that a single layer cannot learn."},
    {"csv", "Your own table: name the file and the column to predict."},
    {"idx", "Your own images in the IDX format of MNIST: name the folder."}};
constexpr FieldValue kModelKinds[] = {{"mlp", "Fully connected layers with an activation between them."},
                                      {"linear", "y = wx + b, from the start values you give."}};
constexpr FieldValue kActivations[] = {{"none", "No activation: the layers collapse into one linear map."},
                                       {"relu", "max(0, z): cheap, and half the gradients pass unchanged."},
                                       {"sigmoid", "Squashes to 0…1; gradients fade in deep networks."},
                                       {"tanh", "Squashes to −1…1, centred; fades less than sigmoid."},
                                       {"gelu", "Smooth relu; costs more arithmetic per element."}};
constexpr FieldValue kLosses[] = {{"cross-entropy", "For classes: softmax and the log of the right one."},
                                  {"mean-squared", "For numbers: the mean of the squared differences."}};
constexpr FieldValue kInits[] = {
    {"normal", "N(0, 1) whatever the width: sums grow with it; look at the first loss."},
    {"xavier", "Glorot uniform ±√(6/(in+out)): keeps variance through linear and tanh layers."},
    {"kaiming", "He: variance 2/fan-in keeps relu outputs near unit size."},
    {"zeros", "All zero: every unit of a layer learns the same; look at who learns at all."}};
constexpr FieldValue kOptimizers[] = {{"sgd", "w −= rate · gradient."},
                                      {"momentum", "A running sum of gradients carries the step on."},
                                      {"adam", "Each weight has its own step size from two running means."}};
constexpr FieldValue kSchedules[] = {{"constant", "One rate all along."},
                                     {"step", "The rate is multiplied by a factor every few epochs."},
                                     {"cosine", "The rate falls along half a cosine to zero at the end."}};
constexpr FieldValue kDevices[] = {{"auto", "The GPU when one can be used, else the CPU."},
                                   {"cpu", "The reference interpreter: always right, seldom fast."},
                                   {"cuda", "The NVIDIA GPU."}};
constexpr FieldValue kAllocators[] = {
    {"direct", "cudaMalloc and cudaFree around every intermediate, as a naive library does. Look for red."},
    {"stream-ordered", "cudaMallocAsync: the driver's pool, ordered with the work; no sync."},
    {"caching", "An own pool: size classes, best fit, freed blocks kept."},
    {"arena", "One block, offsets planned ahead; no allocator call in a step."}};
constexpr FieldValue kSyncs[] = {
    {"every-op", "The host waits after each launch, so the GPU idles while the next one is prepared."},
    {"every-step", "The host waits once a step."},
    {"on-read", "The host waits only where a value is read."}};
constexpr FieldValue kFusions[] = {
    {"off", "Each op its own kernel; the bias is broadcast into memory first."},
    {"pointwise", "Bias + activation, softmax + loss + gradient, and the whole update: one kernel each."},
    {"epilogue", "Bias, activation and their gradients inside the matrix product."}};
constexpr FieldValue kLaunches[] = {{"eager", "One launch per op."},
                                    {"graph", "The whole step is one cudaGraphLaunch."},
                                    {"persistent", "One resident kernel runs many steps."}};
constexpr FieldValue kPrecisions[] = {{"fp32", "Full single precision; no tensor cores."},
                                      {"tf32", "Products in tf32 on tensor cores; weights and sums in fp32."},
                                      {"bf16", "Activations in bfloat16; fp32 master weights."},
                                      {"fp16", "Activations in half; fp32 master weights and a loss scale."}};
constexpr FieldValue kAccumulates[] = {{"fp32", "Sums of products in fp32."},
                                       {"fp16", "Sums in half as well: faster on some cards, and visibly coarser."}};
constexpr FieldValue kMatmuls[] = {{"library", "cuBLASLt, or OpenBLAS on the CPU."},
                                   {"tiled", "An own kernel with tiles in shared memory."},
                                   {"naive", "One thread an output, straight from memory."}};
constexpr FieldValue kLoaders[] = {{"resident", "Data set on the GPU; a batch is a view."},
                                   {"pinned", "Batches copied ahead on a second stream, from pinned memory."},
                                   {"pageable", "The naive copy: the host waits for each batch."}};

template <class E>
constexpr std::span<const FieldValue> names();
#define WS_NAMES(E, table)                                                       \
  template <>                                                                    \
  constexpr std::span<const FieldValue> names<E>() {                             \
    return table;                                                                \
  }                                                                              \
  }                                                                              \
  std::string_view to_string(E e) { return table[static_cast<size_t>(e)].name; } \
  namespace {
WS_NAMES(ModelKind, kModelKinds)
WS_NAMES(Activation, kActivations)
WS_NAMES(LossKind, kLosses)
WS_NAMES(Init, kInits)
WS_NAMES(Optimizer, kOptimizers)
WS_NAMES(Schedule, kSchedules)
WS_NAMES(Device, kDevices)
WS_NAMES(Allocator, kAllocators)
WS_NAMES(SyncPolicy, kSyncs)
WS_NAMES(Fusion, kFusions)
WS_NAMES(Launch, kLaunches)
WS_NAMES(Precision, kPrecisions)
WS_NAMES(Accumulate, kAccumulates)
WS_NAMES(Matmul, kMatmuls)
WS_NAMES(Loader, kLoaders)
#undef WS_NAMES

template <class T>
json value_of(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return std::string(to_string(value));
  else
    return value;
}

template <class T>
void assign(T& target, const json& value) {
  if constexpr (std::is_enum_v<T>) {
    const auto& text = value.get_ref<const std::string&>();
    const auto all = names<T>();
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].name == text) target = static_cast<T>(i);
  } else {
    target = value.get<T>();
  }
}

template <auto Section, auto Member>
json get(const RunSpec& spec) {
  return value_of((spec.*Section).*Member);
}
template <auto Section, auto Member>
void set(RunSpec& spec, const json& value) {
  assign((spec.*Section).*Member, value);
}

struct Limits {
  double least = 0, most = 0;
  bool above = false;
};
constexpr Limits kAbove0{0, 1e12, true};
constexpr Limits kFrom0{0, 1e12, false};
constexpr Limits kShare{0, 1, false};
constexpr Limits kAny{};
enum Live { kFixed, kLive };

template <auto Section, auto Member>
Field make(std::string_view key, std::string_view group, std::string_view label, FieldKind kind, Limits limits,
           Live live, std::string_view explain, std::span<const FieldValue> values = {}) {
  return {key,
          group,
          label,
          kind,
          explain,
          values,
          limits.least,
          limits.most,
          limits.above,
          live == kLive,
          get<Section, Member>,
          set<Section, Member>};
}

#define FIELD(section, Type, member, group, label, kind, limits, live, explain) \
  make<&RunSpec::section, &Type::member>(#section "." #member, group, label, FieldKind::kind, limits, live, explain)
#define CHOICE(section, Type, member, Enum, group, label, live, explain)                                             \
  make<&RunSpec::section, &Type::member>(#section "." #member, group, label, FieldKind::Choice, kAny, live, explain, \
                                         names<Enum>())

std::vector<Field> data_fields() {
  using data::DataSpec;
  return {
      make<&RunSpec::data, &DataSpec::name>("data.name", "Data", "data set", FieldKind::Choice, kAny, kFixed,
                                            "What to learn from.", kDatasets),
      FIELD(data, DataSpec, path, "Data", "file or folder", Text, kAny, kFixed,
            "Where an own CSV file or IDX folder is."),
      FIELD(data, DataSpec, label_column, "Data", "label column", Text, kAny, kFixed, "The CSV column to predict."),
      FIELD(data, DataSpec, points, "Data", "points", Integer, (Limits{2, 2e9}), kFixed, "Rows of a synthetic set."),
      FIELD(data, DataSpec, classes, "Data", "classes", Integer, (Limits{2, 64}), kFixed,
            "Clouds or arms of a synthetic set."),
      FIELD(data, DataSpec, noise, "Data", "noise", Number, (Limits{0, 1e6}), kFixed, "Spread of a synthetic set."),
      FIELD(data, DataSpec, slope, "Data", "slope", Number, kAny, kFixed, "The w that the line should find."),
      FIELD(data, DataSpec, intercept, "Data", "intercept", Number, kAny, kFixed, "The b that the line should find."),
      FIELD(data, DataSpec, validation, "Data", "held out", Number, (Limits{0, 0.9}), kFixed,
            "Share kept for testing when the set has no test part."),
      FIELD(data, DataSpec, limit, "Data", "rows at most", Integer, kFrom0, kFixed,
            "Train on the first rows only; 0 takes all."),
      FIELD(data, DataSpec, seed, "Data", "data seed", Integer, (Limits{0, 9e15}), kFixed,
            "Of synthetic points and of the split."),
  };
}

std::vector<Field> model_fields() {
  return {
      CHOICE(model, ModelSpec, kind, ModelKind, "Model", "model", kFixed, "The shape of the function to fit."),
      FIELD(model, ModelSpec, hidden, "Model", "hidden layers", IntegerList, (Limits{1, 65536}), kFixed,
            "Widths of the layers between input and output."),
      CHOICE(model, ModelSpec, activation, Activation, "Model", "activation", kFixed, "What bends the layers."),
      FIELD(model, ModelSpec, bias, "Model", "bias", Flag, kAny, kFixed, "Whether each layer adds a learned offset."),
      CHOICE(model, ModelSpec, loss, LossKind, "Model", "loss", kFixed, "What is made small."),
      CHOICE(model, ModelSpec, init, Init, "Execution", "init", kFixed,
             "How the first weights are drawn; the same on CPU and GPU."),
      FIELD(model, ModelSpec, start_w, "Model", "start w", Number, kAny, kFixed,
            "Where the slope of a linear model starts."),
      FIELD(model, ModelSpec, start_b, "Model", "start b", Number, kAny, kFixed, "Where its offset starts."),
  };
}

std::vector<Field> train_fields() {
  return {
      CHOICE(train, TrainSpec, optimizer, Optimizer, "Training", "optimizer", kFixed, "How a gradient becomes a step."),
      FIELD(train, TrainSpec, lr, "Training", "rate", Number, (Limits{0, 1e6, true}), kLive,
            "The learning rate: too small crawls, too large diverges."),
      FIELD(train, TrainSpec, batch, "Training", "batch", Integer, (Limits{0, 2e9}), kFixed,
            "Rows of one step; 0 takes the whole training set."),
      FIELD(train, TrainSpec, epochs, "Training", "epochs", Integer, (Limits{1, 1e9}), kFixed,
            "Passes over the training rows."),
      FIELD(train, TrainSpec, momentum, "Training", "momentum", Number, (Limits{0, 0.9999}), kFixed,
            "How much of the last step is kept."),
      FIELD(train, TrainSpec, beta1, "Training", "beta 1", Number, (Limits{0, 0.9999}), kFixed,
            "Adam: decay of the mean."),
      FIELD(train, TrainSpec, beta2, "Training", "beta 2", Number, (Limits{0, 0.999999}), kFixed,
            "Adam: decay of the squares."),
      FIELD(train, TrainSpec, epsilon, "Training", "epsilon", Number, (Limits{0, 1, true}), kFixed,
            "Adam: keeps the division finite."),
      FIELD(train, TrainSpec, weight_decay, "Training", "weight decay", Number, (Limits{0, 1}), kFixed,
            "Pulls weights towards zero; biases are left alone."),
      CHOICE(train, TrainSpec, schedule, Schedule, "Training", "schedule", kLive, "How the rate changes over the run."),
      FIELD(train, TrainSpec, warmup_steps, "Training", "warm-up steps", Integer, kFrom0, kFixed,
            "Steps over which the rate rises from zero."),
      FIELD(train, TrainSpec, step_epochs, "Training", "drop every", Integer, (Limits{1, 1e9}), kFixed,
            "Epochs between drops of the step schedule."),
      FIELD(train, TrainSpec, step_factor, "Training", "drop factor", Number, (Limits{0, 1, true}), kFixed,
            "What a drop multiplies the rate by."),
      FIELD(train, TrainSpec, shuffle, "Training", "shuffle", Flag, kAny, kFixed, "A new row order every epoch."),
      FIELD(train, TrainSpec, seed, "Training", "seed", Integer, (Limits{0, 9e15}), kFixed,
            "Of the first weights and the row order."),
      FIELD(train, TrainSpec, target_accuracy, "Training", "target", Number, kShare, kLive,
            "Stop at this test accuracy; 0 goes on."),
      FIELD(train, TrainSpec, time_limit_s, "Training", "time limit", Number, kFrom0, kLive,
            "Stop after so many seconds; 0 goes on."),
      FIELD(train, TrainSpec, eval_every, "Training", "test every", Integer, (Limits{0, 1e9}), kLive,
            "Epochs between tests; 0 tests at the end only."),
  };
}

std::vector<Field> exec_fields() {
  return {
      CHOICE(exec, ExecSpec, device, Device, "Execution", "device", kFixed, "What runs the plan."),
      CHOICE(exec, ExecSpec, allocator, Allocator, "Execution", "allocator", kLive,
             "Where the buffers of a step come from."),
      CHOICE(exec, ExecSpec, sync, SyncPolicy, "Execution", "sync", kLive, "When the host waits for the GPU."),
      CHOICE(exec, ExecSpec, fusion, Fusion, "Execution", "fusion", kLive, "How many ops share a kernel."),
      CHOICE(exec, ExecSpec, launch, Launch, "Execution", "launch", kLive, "How work reaches the GPU."),
      CHOICE(exec, ExecSpec, precision, Precision, "Execution", "precision", kLive,
             "The numbers that the products use."),
      CHOICE(exec, ExecSpec, accumulate, Accumulate, "Execution", "accumulate", kLive,
             "The numbers that products are summed in."),
      CHOICE(exec, ExecSpec, matmul, Matmul, "Execution", "product", kLive, "Which kernel multiplies matrices."),
      CHOICE(exec, ExecSpec, loader, Loader, "Execution", "loader", kLive, "How a batch gets to the GPU."),
      FIELD(exec, ExecSpec, streams, "Execution", "streams", Integer, (Limits{1, 4}), kLive,
            "Queues that the work is split over."),
      FIELD(exec, ExecSpec, graph_steps, "Execution", "steps a graph", Integer, (Limits{1, 4096}), kLive,
            "Most steps that one graph launch runs; one where the host copies or waits between steps."),
      FIELD(exec, ExecSpec, pool_threshold_mib, "Execution", "pool keeps", Number, (Limits{-1, 1e7}), kLive,
            "Stream-ordered: MiB that the driver's pool keeps at a sync; −1 keeps all."),
      FIELD(exec, ExecSpec, cache_cap_mib, "Execution", "cache cap", Number, kFrom0, kLive,
            "Caching: MiB that the pool may hold; 0 sets no cap."),
  };
}

const std::vector<Field>& table() {
  static const std::vector<Field> all = [] {
    std::vector<Field> fields;
    for (auto group : {data_fields(), model_fields(), train_fields(), exec_fields()})
      fields.insert(fields.end(), group.begin(), group.end());
    return fields;
  }();
  return all;
}
#undef FIELD
#undef CHOICE

}  // namespace

std::span<const Field> fields() { return table(); }

const Field& field(std::string_view key) {
  for (const Field& f : table())
    if (f.key == key) return f;
  throw SpecError(std::string(key) + ": there is no such choice");
}

}  // namespace ws
