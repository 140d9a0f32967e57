// The table of every choice: the JSON reader, --set, the spec diff and the window's Setup dock all read it.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "engine/plan/run_spec.h"

namespace ws {
namespace {

using nlohmann::json;

// Names are in the order of the enumerators.
constexpr FieldValue kDatasets[] = {
    {"mnist", "60 000 handwritten digits of 28 × 28; included. Look at the misread digits under Weights."},
    {"fashion-mnist",
     "60 000 pictures of clothes; needs Debian's dataset-fashion-mnist. Look at the accuracy: lower than for digits."},
    {"iris",
     "150 flowers, four measures, three kinds. Look at Step time: so little arithmetic that only overhead is left."},
    {"line", "Points near a line, with seeded noise. Look at the line under Weights: it moves to the points."},
    {"blobs", "Round clouds in the plane, one for each class. Look at the decision boundary under Weights."},
    {"spirals", "Spiral arms: they need a hidden layer. Look at the boundary under Weights: it bends."},
    {"circles", "A ring around a disc: no straight line separates them. Look at the boundary under Weights: it "
                "closes."},
    {"xor",
     "Four quarters; opposite ones have the same class. Look at the accuracy without a hidden layer: it stays low."},
    {"csv", "Your own table: name the file and the column to predict. Look at the test loss: its rows were held out."},
    {"idx", "Your own images in the IDX format of MNIST: name the folder. Look at the guesses under Weights."},
    {"cifar-10", "60 000 coloured pictures of 32 × 32; name the folder of its binary version. Look at the test accuracy."},
    {"pictures", "Your own PNG and JPEG files: name a folder that has one folder for each class. Look at the misread ones under Weights."},
    {"shapes", "Made pictures of ten kinds of shapes, 32 × 32 in colour. Look at the test accuracy as the noise grows."},
    {"austen", "Two novels by Jane Austen, 1.6 million characters; included. Look at the loss: guessing costs ln(80) = 4.38."},
    {"text", "Your own text by characters: name the file. Look at the test loss: the end of the text was held out."},
    {"sentences", "Made sentences of a small grammar. Look at the loss: it falls to that of the grammar within seconds."}};
constexpr FieldValue kModelKinds[] = {
    {"mlp", "Fully connected layers with an activation between them. Look at the Plan: a few ops for each layer."},
    {"linear", "y = wx + b, from your start values. Look at the line under Weights: it turns."}};
constexpr FieldValue kActivations[] = {
    {"none",
     "No activation: the layers collapse into one linear map. Look at a boundary under Weights: it stays straight."},
    {"relu", "max(0, z): cheap, and many gradients pass unchanged. Look at the loss: it falls early."},
    {"sigmoid",
     "Maps to 0…1; gradients fade in deep networks. Look at the first layer under Weights: it hardly moves."},
    {"tanh", "Squashes to −1…1, centred; fades less than sigmoid. Look at the first layer under Weights."},
    {"gelu", "Smooth relu with more arithmetic per element. Look at the time of its op under Kernels."}};
constexpr FieldValue kLosses[] = {
    {"cross-entropy",
     "For classes: softmax and the log of the right one. Look at the first loss: guessing costs ln(classes)."},
    {"mean-squared",
     "For numbers: the mean of the squared differences. Look at where the loss levels off: the noise of the data."}};
constexpr FieldValue kInits[] = {
    {"normal", "N(0, 1) for every width: the sums grow with the width. Look at the first loss: far above a guess."},
    {"xavier", "Glorot uniform ±√(6/(in+out)), for linear and tanh layers. Look at the first loss, and at Weights."},
    {"kaiming", "He: variance 2/fan-in keeps relu outputs near unit size. Look at the first loss: near a guess."},
    {"zeros", "All zero: every unit of a layer learns the same. Look at which runs learn."},
    {"small", "N(0, 0.02), less at the end of a residual, as GPT does. Look at the first loss: that of a guess."}};
constexpr FieldValue kOptimizers[] = {
    {"sgd",
     "w −= rate · gradient, without memory. Look at the loss beside that of momentum, and at the short update."},
    {"momentum",
     "Each step adds a share of the last one. Look at the loss, and at the bytes of the update in the Plan."},
    {"adam",
     "Two running means give each weight its own step size. Look at the loss, and at the update under Kernels."},
    {"adamw",
     "Adam with a weight decay that its step sizes do not scale. Look at the histograms under Weights beside adam's."}};
constexpr FieldValue kSchedules[] = {
    {"constant", "The same rate in every step. Look at the end of the loss curve: it jitters."},
    {"step", "The rate is multiplied by a factor every few epochs. Look for a drop of the loss there."},
    {"cosine", "The rate falls along half a cosine to zero. Look at the end of the loss curve: it becomes smooth."},
    {"linear", "The rate falls along a line to zero. Look at the end of the loss curve: it becomes smooth."}};
constexpr FieldValue kDevices[] = {
    {"auto", "The GPU if one can be used, otherwise the CPU. Look at the right end of the menu bar: it names the "
             "device."},
    {"cpu", "The reference interpreter: correct, but slow. Look at the row “CPU ops” in the timeline."},
    {"cuda", "The NVIDIA GPU. Look at its streams in the timeline, and at the calls that feed them."}};
constexpr FieldValue kAllocators[] = {
    {"direct",
     "cudaMalloc and cudaFree around every intermediate. Look for red in the timeline and for allocation in Step "
     "time."},
    {"stream-ordered",
     "cudaMallocAsync: the driver's pool, ordered with the work. Look at the red calls: many, but short, and none waits for the GPU."},
    {"caching",
     "Our own pool: size classes, best fit; it keeps freed blocks. Look at reserved memory above used memory, and at "
     "the red: it disappears."},
    {"arena",
     "One block, planned ahead. Look at Allocator calls: none. Look at Memory: buffers share addresses."}};
constexpr FieldValue kSyncs[] = {
    {"every-op",
     "A sync after each launch. Look at the grey syncs, and at the idle GPU between kernels."},
    {"every-step", "One sync per step. Look at the grey sync at the end of each step, and at the gap after it."},
    {"on-read", "A sync only where a value is read. Look at the launches: they run ahead of their kernels."}};
constexpr FieldValue kFusions[] = {
    {"off", "Each op its own kernel; the bias is broadcast into memory first. Look at the bytes in the Plan."},
    {"pointwise",
     "Bias + activation, softmax + loss + gradient, the whole update: one kernel each. Look at Kernels: far fewer."},
    {"epilogue",
     "Bias, activation and their gradients inside the matrix product. Look at the timeline: few other kernels are "
     "left."}};
constexpr FieldValue kAttentionForms[] = {
    {"fused", "One kernel forward and one backward keep the scores on the chip. Look at Memory: no scores."},
    {"plain",
     "Scores, softmax and products are ops of their own, three forward and five backward. Look at Memory: the scores of "
     "all heads."}};
constexpr FieldValue kPictureLayouts[] = {
    {"nhwc", "The channels of a pixel lie side by side, as tensor cores read them. Look at the Plan: no op turns a picture."},
    {"nchw",
     "Each channel is a plane of its own; convolutions and norms turn it before and after. Look at the turns in the "
     "timeline."}};
constexpr FieldValue kLaunches[] = {
    {"eager", "One launch per op. Look at the launch gaps, while the host prepares the next."},
    {"graph", "Whole steps are one cudaGraphLaunch. Look at the launch gaps: they close."},
    {"persistent", "One kernel runs many steps and keeps the weights on the chip. Look for a single long block in the timeline."},
    {"auto",
     "The fastest launch that the other settings allow: persistent, then graph, then eager. Look at the Plan: it names "
     "the launch."}};
constexpr FieldValue kPrecisions[] = {
    {"fp32", "Full single precision; no tensor cores. Look at the matrix products in Step time."},
    {"tf32",
     "Products in tf32 on tensor cores; the rest in fp32. Look at the matrix products in Step time, and compare the "
     "loss."},
    {"bf16", "Activations in bfloat16; fp32 master weights. Look at the bytes in the Plan, and at Roofline."},
    {"fp16",
     "Activations in half; fp32 master weights and a loss scale. Look at the bytes in the Plan, and at the loss."}};
constexpr FieldValue kAccumulates[] = {
    {"fp32", "Sums of products in fp32. Look at its loss for comparison."},
    {"fp16", "Sums also in half precision: faster on some cards. Look at the loss: visibly less exact."}};
constexpr FieldValue kMatmuls[] = {
    {"library", "cuBLASLt, or products for the widest vectors of the CPU. Look at Roofline: the distance to the roof."},
    {"tiled", "Our own kernel with tiles in shared memory. Look at its occupancy in Details, and at Roofline."},
    {"naive", "One thread for each output, directly from memory. Look at the matrix products in Step time."}};
constexpr FieldValue kLoaders[] = {
    {"resident", "Data set on the GPU; a batch is a view. Look at the timeline: no copy from the host."},
    {"pinned", "Batches copied ahead on a second stream. Look at the copies in the timeline: kernels run above them."},
    {"pageable",
     "The naive copy: the host waits for each batch. Look at the copy before each step and the GPU idle around it."}};
constexpr FieldValue kComms[] = {
    {"bucket",
     "All gradients are averaged together after the backward phase. Look at the transfer between backward and update."},
    {"layers", "Each layer's gradients are averaged when they are ready, on the same stream. Look at the many transfers."},
    {"overlap",
     "The same on its own stream, during the backward phase of earlier layers. Look at transfers beside kernels."}};
constexpr FieldValue kCommBys[] = {
    {"auto", "Peer for up to four GPUs of one process that NVLink connects, otherwise NCCL. Look at the Plan: it names which."},
    {"nccl", "NVIDIA's library, also between processes and hosts. Look at the time of its kernel for small networks."},
    {"peer",
     "Our own kernel: each GPU reads and writes the memory of the others. Look at the time of its kernel under Kernels."}};

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
WS_NAMES(AttentionForm, kAttentionForms)
WS_NAMES(PictureLayout, kPictureLayouts)
WS_NAMES(Launch, kLaunches)
WS_NAMES(Precision, kPrecisions)
WS_NAMES(Accumulate, kAccumulates)
WS_NAMES(Matmul, kMatmuls)
WS_NAMES(Loader, kLoaders)
WS_NAMES(Comm, kComms)
WS_NAMES(CommBy, kCommBys)
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
      make<&RunSpec::data, &DataSpec::name>(
          "data.name", "Data", "data set", FieldKind::Choice, kAny, kFixed,
          "What to learn from. Look at the loss, the accuracy, and the guesses under Weights.", kDatasets),
      FIELD(data, DataSpec, path, "Data", "file or folder", Text, kAny, kFixed,
            "Your CSV file, text, or folder of pictures. Look at the status line: it names what cannot be read."),
      FIELD(data, DataSpec, label_column, "Data", "label column", Text, kAny, kFixed,
            "The CSV column to predict. Look at the confusion matrix under Weights."),
      FIELD(data, DataSpec, points, "Data", "points", Integer, (Limits{2, 2e9}), kFixed,
            "Rows of a synthetic set. Look at the step time: with many rows, the overhead is hidden."),
      FIELD(data, DataSpec, classes, "Data", "classes", Integer, (Limits{2, 64}), kFixed,
            "Clouds or arms of a synthetic set. Look at the colours of the boundary under Weights."),
      FIELD(data, DataSpec, noise, "Data", "noise", Number, (Limits{0, 1e6}), kFixed,
            "Spread of a synthetic set. Look at the lowest test loss: the noise limits it."),
      FIELD(data, DataSpec, slope, "Data", "slope", Number, kAny, kFixed,
            "The slope w that training should find. Look at the line under Weights."),
      FIELD(data, DataSpec, intercept, "Data", "intercept", Number, kAny, kFixed,
            "The offset b that training should find. Look at the line under Weights."),
      FIELD(data, DataSpec, validation, "Data", "held out", Number, (Limits{0, 0.9}), kFixed,
            "Share kept for testing when the set has no test part. Look at test against train accuracy."),
      FIELD(data, DataSpec, context, "Data", "context", Integer, (Limits{1, 65536}), kFixed,
            "Characters of a row of text: the network sees no farther back. Look at the loss, and at the attention's time."),
      FIELD(data, DataSpec, side, "Data", "side", Integer, (Limits{0, 4096}), kFixed,
            "Each picture is cut to a square of so many pixels; 0 keeps the size of the files. Look at the step time: it grows with the area."),
      FIELD(data, DataSpec, skip_broken, "Data", "leave out broken files", Flag, kAny, kFixed,
            "Trains on the other files when some cannot be read. Look at the Log: it names them."),
      FIELD(data, DataSpec, crop, "Data", "crop", Integer, (Limits{0, 4096}), kFixed,
            "Training pictures move at random by up to so many pixels, with black behind them; 0 leaves them. "
            "Look at test against train accuracy."),
      FIELD(data, DataSpec, flip, "Data", "flip", Flag, kAny, kFixed,
            "Half of the training pictures are mirrored, at random. Look at test against train accuracy."),
      FIELD(data, DataSpec, normalise, "Data", "normalise", Flag, kAny, kFixed,
            "Each colour gets mean 0 and deviation 1 over the training pictures. Look at the loss: it falls earlier."),
      FIELD(data, DataSpec, limit, "Data", "rows at most", Integer, kFrom0, kFixed,
            "Train on the first rows only; 0 takes all. Look at the test accuracy: with few rows, it is lower than "
            "the train accuracy."),
      FIELD(data, DataSpec, seed, "Data", "data seed", Integer, (Limits{0, 9e15}), kFixed,
            "Seed of synthetic points and of the split. Look at two seeds: the difference is chance."),
  };
}

std::vector<Field> model_fields() {
  return {
      CHOICE(model, ModelSpec, kind, ModelKind, "Model", "model", kFixed,
             "The shape of the function to fit. Look at the Plan."),
      FIELD(
          model, ModelSpec, hidden, "Model", "hidden layers", IntegerList, (Limits{1, 65536}), kFixed,
          "Widths of the layers between input and output. Look at the matrix products in Step time, and at the Plan."),
      FIELD(model, ModelSpec, layers, "Model", "network", Text, kAny, kFixed,
            "The network as a list: conv 3x3 16 | relu | maxpool 2 | linear. Empty: the hidden layers. Look at the Plan."),
      CHOICE(model, ModelSpec, activation, Activation, "Model", "activation", kFixed,
             "The function after each hidden layer. Look at the loss, and at the boundary under Weights."),
      FIELD(model, ModelSpec, bias, "Model", "bias", Flag, kAny, kFixed,
            "Each layer adds a learned offset. Look at the Plan: it has fewer ops without."),
      CHOICE(model, ModelSpec, loss, LossKind, "Model", "loss", kFixed, "The error that training reduces. Look at the "
                                                                        "loss curve."),
      CHOICE(model, ModelSpec, init, Init, "Model", "init", kFixed,
             "The distribution of the first weights; the same on CPU and GPU. Look at the first loss, and at the "
             "outlines under Weights."),
      FIELD(model, ModelSpec, start_w, "Model", "start w", Number, kAny, kFixed,
            "First slope of a linear model. Look at the first line under Weights."),
      FIELD(model, ModelSpec, start_b, "Model", "start b", Number, kAny, kFixed,
            "First offset of a linear model. Look at the first line under Weights."),
  };
}

std::vector<Field> train_fields() {
  return {
      CHOICE(train, TrainSpec, optimizer, Optimizer, "Training", "optimizer", kFixed,
             "How a gradient becomes a step. Look at the loss, and at the update in the timeline."),
      FIELD(train, TrainSpec, lr, "Training", "lr", Number, (Limits{0, 1e6, true}), kLive,
            "The learning rate. Look at the loss: it falls slowly if it is too small, and rises if it is too "
            "large."),
      FIELD(train, TrainSpec, batch, "Training", "batch", Integer, (Limits{0, 2e9}), kFixed,
            "Rows of one step; 0 takes the whole training set. Look at samples/s rising with it, and at the loss per "
            "epoch."),
      FIELD(train, TrainSpec, epochs, "Training", "epochs", Integer, (Limits{1, 1e9}), kFixed,
            "Passes over the training rows. Look at the circles of the test loss: if they rise, the network only "
            "memorises."),
      FIELD(train, TrainSpec, momentum, "Training", "momentum", Number, (Limits{0, 0.9999}), kFixed,
            "The share of the last step that is added. Look at the loss: near 1 it oscillates."),
      FIELD(train, TrainSpec, nesterov, "Training", "nesterov", Flag, kAny, kFixed,
            "Momentum that takes the gradient's share a step ahead. Look at the loss of the first epoch."),
      FIELD(train, TrainSpec, beta1, "Training", "beta 1", Number, (Limits{0, 0.9999}), kFixed,
            "Adam: decay of the mean. Look at the jitter of the loss."),
      FIELD(train, TrainSpec, beta2, "Training", "beta 2", Number, (Limits{0, 0.999999}), kFixed,
            "Adam: decay of the squares. Look at the loss of the first hundred steps."),
      FIELD(train, TrainSpec, epsilon, "Training", "epsilon", Number, (Limits{0, 1, true}), kFixed,
            "Adam: keeps the division finite. Look at the first losses: larger values make smaller jumps."),
      FIELD(
          train, TrainSpec, weight_decay, "Training", "weight decay", Number, (Limits{0, 1}), kFixed,
          "Pulls weights towards zero, but not biases. Look at the histograms under Weights: they become narrower."),
      FIELD(train, TrainSpec, label_smoothing, "Training", "smoothing", Number, (Limits{0, 0.9}), kFixed,
            "The share of each target that all classes divide. Look at the training loss: it no longer reaches zero."),
      FIELD(train, TrainSpec, clip, "Training", "clip", Number, kFrom0, kFixed,
            "Scales all gradients down if their joint norm is larger; 0: never. Look at the jumps of the loss."),
      CHOICE(train, TrainSpec, schedule, Schedule, "Training", "schedule", kLive,
             "The change of the rate during the run. Look at the end of the loss curve."),
      FIELD(train, TrainSpec, warmup_steps, "Training", "warm-up steps", Integer, kFrom0, kFixed,
            "Steps in which the rate rises from zero. Look at the first losses: they do not jump."),
      FIELD(train, TrainSpec, step_epochs, "Training", "drop every", Integer, (Limits{1, 1e9}), kFixed,
            "Epochs between two drops of the rate. Look at the steps in the loss curve."),
      FIELD(train, TrainSpec, step_factor, "Training", "drop factor", Number, (Limits{0, 1, true}), kFixed,
            "Each drop multiplies the rate by this. Look at the steps in the loss curve."),
      FIELD(train, TrainSpec, shuffle, "Training", "shuffle", Flag, kAny, kFixed,
            "A new row order in every epoch. Look at the loss without it: each epoch repeats the last."),
      FIELD(train, TrainSpec, seed, "Training", "seed", Integer, (Limits{0, 9e15}), kFixed,
            "Seed of the first weights and the row order. Look at two seeds: the difference is chance."),
      FIELD(train, TrainSpec, target_accuracy, "Training", "target", Number, kShare, kLive,
            "Stop at this test accuracy; 0: no limit. Look at the time it took, in the Library."),
      FIELD(train, TrainSpec, time_limit_s, "Training", "time limit", Number, kFrom0, kLive,
            "Stop after this many seconds; 0: no limit. Look at the number of steps."),
      FIELD(train, TrainSpec, eval_every, "Training", "test every", Integer, (Limits{0, 1e9}), kLive,
            "Epochs between tests; 0 tests at the end only. Look at the gaps of the timeline between epochs."),
  };
}

std::vector<Field> exec_fields() {
  return {
      CHOICE(exec, ExecSpec, device, Device, "Execution", "device", kFixed,
             "The device that runs the plan. Look at the step time."),
      CHOICE(exec, ExecSpec, allocator, Allocator, "Execution", "allocator", kLive,
             "The source of the buffers of a step. Look for red in the timeline."),
      CHOICE(exec, ExecSpec, sync, SyncPolicy, "Execution", "sync", kLive,
             "When the host waits for the GPU. Look for grey in the timeline."),
      CHOICE(exec, ExecSpec, fusion, Fusion, "Execution", "fusion", kLive,
             "How many ops share a kernel. Look at the number of kernels."),
      CHOICE(exec, ExecSpec, attention, AttentionForm, "Execution", "attention", kLive,
             "One kernel for attention, or one for each of its parts. Look at the step memory, and at the kernels of a block."),
      CHOICE(exec, ExecSpec, layout, PictureLayout, "Execution", "layout", kLive,
             "The order of pixels and channels in memory. Look at the ops around each convolution."),
      CHOICE(exec, ExecSpec, launch, Launch, "Execution", "launch", kLive,
             "How work reaches the GPU. Look at the launch gaps."),
      CHOICE(exec, ExecSpec, precision, Precision, "Execution", "precision", kLive,
             "The number format of the products. Look at the matrix products in Step time."),
      CHOICE(exec, ExecSpec, accumulate, Accumulate, "Execution", "accumulate", kLive,
             "The number format of the sums in products. Look at the loss."),
      CHOICE(exec, ExecSpec, matmul, Matmul, "Execution", "product", kLive,
             "The kernel that multiplies matrices. Look at Roofline."),
      CHOICE(exec, ExecSpec, loader, Loader, "Execution", "loader", kLive,
             "How a batch gets to the GPU. Look at the copies in the timeline."),
      FIELD(exec, ExecSpec, graph_steps, "Execution", "steps a graph", Integer, (Limits{1, 4096}), kLive,
            "Most steps in one graph launch; 1 if the host copies or syncs between steps. Look at the gaps between "
            "launches."),
      FIELD(exec, ExecSpec, pool_threshold_mib, "Execution", "pool keeps", Number, (Limits{-1, 1e7}), kLive,
            "Stream-ordered: MiB that the driver's pool keeps at a sync; −1 keeps all. Look at reserved memory after "
            "each sync."),
      FIELD(exec, ExecSpec, cache_cap_mib, "Execution", "cache cap", Number, kFrom0, kLive,
            "Caching: MiB that the pool may hold; 0: no limit. Look for red: it returns if the pool is too small."),
      FIELD(exec, ExecSpec, gpus, "Execution", "GPUs", Integer, (Limits{0, 64}), kFixed,
            "Ranks that share each batch, one for each GPU (on the CPU: threads); 0 or all: every GPU. Look at the step time "
            "and at the transfers."),
      CHOICE(exec, ExecSpec, comm, Comm, "Execution", "all-reduce", kLive,
             "When the ranks average their gradients. Look at the transfers in the timeline."),
      CHOICE(exec, ExecSpec, comm_by, CommBy, "Execution", "all-reduce by", kFixed,
             "What averages the gradients of several GPUs. Look at the transfers in the timeline."),
      FIELD(exec, ExecSpec, bucket_mib, "Execution", "bucket", Number, (Limits{0, 1e6}), kLive,
            "MiB of gradients that are averaged together, with all-reduce layers or overlap; 0 takes a layer at a time. "
            "Look at the number of transfers."),
      FIELD(exec, ExecSpec, kernels, "Execution", "own kernels", Text, kAny, kLive,
            "Ops that run your own CUDA kernel, as OP=FILE.cu with ; between several. Look at the op's time under Kernels."),
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

namespace {

// How many letters must be changed, added or taken away.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t before = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j)
      before = std::exchange(row[j + 1], std::min({before + (a[i] != b[j]), row[j + 1] + 1, row[j] + 1}));
  }
  return row[b.size()];
}

// The choice that was meant: by the word that the window shows ("train.rate"), without its section, or misspelled.
std::string_view meant_by(std::string_view key) {
  constexpr size_t kMostMisspelled = 2;
  const std::string_view word = key.substr(key.find('.') + 1);
  for (const Field& f : table())
    if (f.label == word || f.key.substr(f.key.find('.') + 1) == word) return f.key;
  for (const Field& f : table())  // "data.set" is a part of "data set"
    if (f.label.ends_with(" " + std::string(word))) return f.key;
  const bool whole = word.size() < key.size();
  const auto off = [key, whole](const Field& f) { return distance(key, whole ? f.key : f.key.substr(f.key.find('.') + 1)); };
  const auto near = std::ranges::min_element(table(), {}, off);
  if (off(*near) <= kMostMisspelled) return near->key;
  const auto described = std::ranges::find_if(table(), [&](const Field& f) {  // "train.rate": the learning rate
    return whole && f.key.starts_with(key.substr(0, key.find('.') + 1)) && f.explain.find(" " + std::string(word) + ".") != std::string_view::npos;
  });
  return described == table().end() ? std::string_view() : described->key;
}

}  // namespace

const Field& field(std::string_view key) {
  for (const Field& f : table())
    if (f.key == key) return f;
  const std::string_view meant = meant_by(key);
  throw SpecError(std::string(key) + ": there is no such setting" + (meant.empty() ? "" : ". Did you mean " + std::string(meant) + "?"));
}

}  // namespace ws
