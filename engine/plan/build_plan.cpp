// Builds the plan of one step layer by layer, as a simple library would run it: one op and one buffer per operation.
#include <algorithm>
#include <set>
#include <utility>

#include "engine/plan/model.h"

namespace ws {
namespace {

DType activation_type(Precision precision) {
  if (precision == Precision::Bf16) return DType::Bf16;
  return precision == Precision::Fp16 ? DType::F16 : DType::F32;
}

// A layer's buffers that its gradient reads.
struct Kept {
  BufferId given = BufferId::None;  // what the layer before it left; `input` is the same or has the other layout
  BufferId input = BufferId::None, output = BufferId::None;
  BufferId saved = BufferId::None;                              // activation: what its slope is a function of
  BufferId mean = BufferId::None, deviation = BufferId::None;  // norms
  BufferId qkv = BufferId::None, heads = BufferId::None, lse = BufferId::None;  // attention
  BufferId shares = BufferId::None;                                             // attention of several ops
  DropoutMask mask;
};

class Builder {
 public:
  // `rows`: of the plan, which are all rows of a step, or the part of one rank.
  Builder(const RunSpec& spec, const Model& model, RankRows rows, int rank)
      : model_(model), batch_(rows.count), first_row_(rows.first), rank_(rank) {
    plan_.spec = spec;
    plan_.batch = plan_.step_rows = batch_;
    plan_.predictions = model.predictions;
    plan_.layer_names = model.layer_names;
    plan_.layer_parts = model.layer_parts;
    type_ = activation_type(spec.exec.precision);
    for (size_t i = 0; i < model.parameters.size(); ++i) add_parameter(static_cast<ParamId>(i));
    metrics_ = add("metrics", Role::Metric, 1, 2, DType::F32);
    kept_.resize(model.layers.size());
  }

  Plan training() && {
    load();
    prepare(spec().data.crop, spec().data.flip);
    forward(Phase::Forward);
    loss_and_gradient();
    backward();
    update();
    return std::move(plan_);
  }

  Plan evaluation() && {
    load();
    prepare(0, false);
    forward(Phase::Evaluate);
    loss(Phase::Evaluate);
    return std::move(plan_);
  }

  std::vector<BufferId> outputs() && {
    load();
    prepare(0, false);
    forward(Phase::Evaluate);
    std::vector<BufferId> ids;
    for (const Kept& kept : kept_) ids.push_back(kept.output);
    return ids;
  }

 private:
  const RunSpec& spec() const { return plan_.spec; }
  bool classes() const { return spec().model.loss == LossKind::CrossEntropy; }
  const NetworkLayer& layer(size_t i) const { return model_.layers[i]; }
  static std::string number(const NetworkLayer& l) { return std::to_string(l.number + 1); }

  BufferId add(const std::string& name, Role role, int64_t rows, int64_t cols, DType type,
               ParamId param = ParamId::None, int slot = 0) {
    plan_.buffers.push_back({name, role, type, rows, cols, param, slot, -1});
    return static_cast<BufferId>(plan_.buffers.size() - 1);
  }

  BufferId temp(std::string name, int64_t rows, int64_t cols, DType type) {
    while (!names_.insert(name).second) name += "b";  // two activations in a row, for example
    return add(name, Role::Temp, rows, cols, type);
  }

  // True if a linear layer reads the output of layer i. An evaluation leaves out the dropouts between them.
  bool linear_reads(size_t i) const {
    size_t next = i + 1;
    while (next < model_.layers.size() && layer(next).layer.kind == LayerKind::Dropout) ++next;
    return next < model_.layers.size() && layer(next).layer.kind == LayerKind::Linear;
  }

  // The output of layer i. A linear layer reads a picture as one row.
  BufferId output(size_t i, const std::string& name, bool last_of_layer, DType type) {
    const LayerShape& shape = layer(i).out;
    if (last_of_layer && shape.is_picture() && linear_reads(i)) return temp(name, batch_, shape.elements(), type);
    return temp(name, batch_ * shape.rows(), shape.cols(), type);
  }

  // The gradient of a buffer: "dh1" of h1. The gradient of a sum with a bias is named like the sum without: "dz1".
  BufferId gradient_of(BufferId id) {
    const Buffer like = plan_.buffer(id);
    const std::string name = like.name[0] == 's' ? "z" + like.name.substr(1) : like.name;
    return temp("d" + name, like.rows, like.cols, type_);
  }

  Op& op(OpKind kind, Phase phase, int layer, std::string name, std::vector<BufferId> in, std::vector<BufferId> out) {
    Op made;
    made.kind = kind;
    made.phase = phase;
    made.layer = layer;
    made.name = std::move(name);
    made.in = std::move(in);
    made.out = std::move(out);
    plan_.ops.push_back(std::move(made));
    return plan_.ops.back();
  }

  // A weight has a 16-bit shadow if products run in 16 bits. A bias has one if it is added to a 16-bit result. Gains,
  // tables and statistics are read in fp32.
  bool shadowed(const Parameter& p) const {
    const bool of_product = p.start == Start::Weight || p.start == Start::Bias;
    return type_ != DType::F32 && of_product && !(p.is_bias && p.layer == model_.layers.back().number);
  }

  void add_parameter(ParamId id) {
    const Parameter& p = model_.parameters[index(id)];
    master_.push_back(add(p.name, Role::Parameter, p.rows, p.cols, DType::F32, id));
    plan_.buffer(master_.back()).decays = p.decays;
    used_.push_back(shadowed(p) ? add(p.name + "'", Role::Shadow, p.rows, p.cols, type_, id) : master_.back());
    std::vector<BufferId> moments;
    for (int slot = 0; p.trained && slot < moments_of(spec().train.optimizer); ++slot)
      moments.push_back(add((slot ? "v." : "m.") + p.name, Role::State, p.rows, p.cols, DType::F32, id, slot));
    states_.push_back(moments);
    gradient_.push_back(BufferId::None);
  }

  size_t parameter(size_t i, size_t which) const { return index(model_.layer_parameters[i][which]); }
  BufferId used(size_t i, size_t which) const { return used_[parameter(i, which)]; }
  BufferId master(size_t i, size_t which) const { return master_[parameter(i, which)]; }
  bool biased(size_t i) const { return layer(i).layer.bias && spec().model.bias; }

  void load() {
    x_ = add("x", Role::Batch, batch_, model_.inputs, model_.input.is_symbols() ? DType::I32 : type_);
    const int64_t targets = classes() ? model_.predictions : model_.outputs;
    y_ = add("y", Role::Batch, batch_, targets, classes() ? DType::I32 : DType::F32, ParamId::None, 1);
    op(OpKind::LoadBatch, Phase::Input, -1, "batch", {}, {x_, y_});
  }

  // The pictures that the first layer reads. Only a training crops and mirrors them.
  void prepare(int64_t crop, bool flip) {
    output_ = x_;
    if (!model_.input.is_picture()) return;
    if (crop > 0) prepare("crop", "cropped").crop = static_cast<int32_t>(crop);
    if (flip) prepare("flip", "flipped").flip = true;
    if (!spec().data.normalise) return;
    Preparation& normalise = prepare("normalise", "normalised");
    normalise.normalise = true;
    normalise.scale = model_.pixels;
  }

  Preparation& prepare(const char* name, const char* result) {
    const Buffer like = plan_.buffer(x_);
    const BufferId x = std::exchange(output_, temp(result, like.rows, like.cols, like.type));
    Op& made = op(OpKind::Prepare, Phase::Input, -1, name, {x}, {output_});
    made.window = {batch_, model_.input.height, model_.input.width, model_.input.channels};
    made.preparation.first_row = first_row_;
    return made.preparation;
  }

  void forward(Phase phase) {
    for (size_t i = 0; i < model_.layers.size(); ++i) {
      kept_[i].given = output_;
      kept_[i].input = as_read(i, output_, phase);
      output_ = kept_[i].output = as_left(i, forward(i, kept_[i].input, phase), phase);
    }
  }

  // ---- layouts of pictures ----
  // With nchw, a picture between two layers has one plane for each channel. The data set has nhwc, and the first
  // convolution reads it as it is. A picture of one pixel or one channel is the same in both.
  bool has_planes(BufferId id) const { return planes_.contains(id); }
  bool may_have_planes(const LayerShape& shape) const {
    return spec().exec.layout == PictureLayout::Nchw && shape.is_picture() && shape.channels > 1 && shape.rows() > 1;
  }
  // True if the layer works along the channels of a pixel. Other layers work on single values or planes.
  bool reads_pixels(size_t i) const {
    const LayerKind kind = layer(i).layer.kind;
    return kind == LayerKind::Linear || kind == LayerKind::Conv || kind == LayerKind::BatchNorm || kind == LayerKind::LayerNorm;
  }

  // Turns a picture to the other layout. `row`: the result has one row for each picture.
  BufferId turned(size_t i, BufferId x, const LayerShape& shape, bool to_planes, bool row, Phase phase) {
    const int64_t pixels = shape.rows(), channels = shape.channels;
    const std::string name = "t" + plan_.buffer(x).name;
    const DType type = plan_.buffer(x).type;
    const BufferId y = row         ? temp(name, batch_, shape.elements(), type)
                       : to_planes ? temp(name, batch_ * channels, pixels, type)
                                   : temp(name, batch_ * pixels, channels, type);
    Op& made = op(OpKind::Transpose, phase, layer(i).number, (to_planes ? "to nchw " : "to nhwc ") + layer(i).name, {x}, {y});
    made.window.n = batch_, made.window.h = to_planes ? pixels : channels, made.window.w = to_planes ? channels : pixels;
    if (to_planes) planes_.insert(y);
    return y;
  }

  BufferId as_read(size_t i, BufferId x, Phase phase) {
    const LayerShape& shape = layer(i).in;
    if (reads_pixels(i))
      return has_planes(x) ? turned(i, x, shape, false, layer(i).layer.kind == LayerKind::Linear, phase) : x;
    return may_have_planes(shape) && !has_planes(x) ? turned(i, x, shape, true, false, phase) : x;
  }

  BufferId as_left(size_t i, BufferId y, Phase phase) {
    const LayerShape& shape = layer(i).out;
    if (!may_have_planes(shape) || has_planes(y)) return y;
    if (reads_pixels(i)) return linear_reads(i) ? y : turned(i, y, shape, true, false, phase);
    planes_.insert(y);
    return y;
  }

  // The gradient of a layer's result in the layout in which the layer wrote it.
  BufferId gradient_as_left(size_t i) {
    if (!reads_pixels(i) || !has_planes(kept_[i].output)) return dz_;
    return turned(i, dz_, layer(i).out, false, false, Phase::Backward);
  }
  // The gradient of a layer's input in the layout of the layer before it.
  BufferId gradient_as_given(size_t i) {
    if (kept_[i].given == kept_[i].input || !passes_on(i)) return dz_;
    return turned(i, dz_, layer(i).in, has_planes(kept_[i].given), false, Phase::Backward);
  }

  BufferId forward(size_t i, BufferId x, Phase phase) {
    switch (layer(i).layer.kind) {
      case LayerKind::Linear:
        return linear(i, x, phase);
      case LayerKind::Conv:
        return convolve(i, x, phase);
      case LayerKind::MaxPool:
        return pool(i, OpKind::MaxPool, x, phase);
      case LayerKind::AvgPool:
        return pool(i, OpKind::AvgPool, x, phase);
      case LayerKind::BatchNorm:
        return phase == Phase::Evaluate ? apply_norm(i, x) : batch_norm(i, x);
      case LayerKind::LayerNorm:
        return layer_norm(i, x, phase);
      case LayerKind::Activate:
        return activate(i, x, phase);
      case LayerKind::Dropout:
        return phase == Phase::Evaluate ? x : drop(i, x);
      case LayerKind::Embed:
        return embed(i, x, phase);
      case LayerKind::Attention:
        return attend(i, x, phase);
      case LayerKind::Branch:
        branches_.push_back(x);
        return x;
      case LayerKind::Join:
        return join(i, x, phase);
      case LayerKind::Residual:
      case LayerKind::Block:
      case LayerKind::Group:
        break;  // a resolved network has none
    }
    return x;
  }

  // Adds a bias to z as a library without fusion does: the bias is spread over all rows first.
  BufferId plus_bias(size_t i, BufferId z, BufferId bias, BufferId sum, const std::string& n, Phase phase) {
    const Buffer like = plan_.buffer(z);
    const BufferId spread = temp("c" + n, like.rows, like.cols, like.type);
    op(OpKind::BroadcastBias, phase, layer(i).number, "broadcast b" + n, {bias}, {spread});
    op(OpKind::Add, phase, layer(i).number, "+ b" + n, {z, spread}, {sum});
    return sum;
  }

  BufferId linear(size_t i, BufferId x, Phase phase) {
    const std::string n = number(layer(i));
    const DType type = i + 1 == model_.layers.size() ? DType::F32 : type_;
    const BufferId z = output(i, "z" + n, !biased(i), type);
    op(OpKind::MatMul, phase, layer(i).number, layer(i).name, {x, used(i, 0)}, {z});
    return biased(i) ? plus_bias(i, z, used(i, 1), output(i, "s" + n, true, type), n, phase) : z;
  }

  // A pool of planes sees each channel as a picture of its own.
  Window pool_window(size_t i) const {
    Window w = window(i);
    if (has_planes(kept_[i].input)) w.n *= w.c, w.c = w.k = 1;
    return w;
  }

  Window window(size_t i) const {
    const NetworkLayer& l = layer(i);
    return {batch_,          l.in.height,      l.in.width,   l.in.channels, l.layer.window_h,
            l.layer.window_w, l.layer.stride, l.layer.pad, l.out.height,  l.out.width,
            l.out.channels};
  }

  BufferId convolve(size_t i, BufferId x, Phase phase) {
    const std::string n = number(layer(i));
    const BufferId z = output(i, "z" + n, !biased(i), type_);
    op(OpKind::Conv, phase, layer(i).number, layer(i).name, {x, used(i, 0)}, {z}).window = window(i);
    return biased(i) ? plus_bias(i, z, used(i, 1), output(i, "s" + n, true, type_), n, phase) : z;
  }

  BufferId pool(size_t i, OpKind kind, BufferId x, Phase phase) {
    const BufferId y = output(i, "h" + number(layer(i)), true, type_);
    op(kind, phase, layer(i).number, layer(i).name, {x}, {y}).window = pool_window(i);
    return y;
  }

  void make_statistics(size_t i, int64_t rows, int64_t cols) {
    kept_[i].mean = temp("mu" + number(layer(i)), rows, cols, DType::F32);
    kept_[i].deviation = temp("is" + number(layer(i)), rows, cols, DType::F32);
  }

  BufferId batch_norm(size_t i, BufferId x) {
    const BufferId y = output(i, "y" + number(layer(i)), true, type_);
    make_statistics(i, 1, layer(i).in.cols());
    const BufferId mean = master(i, 2), variance = master(i, 3);
    op(OpKind::BatchNorm, Phase::Forward, layer(i).number, layer(i).name, {x, master(i, 0), master(i, 1), mean, variance},
       {y, kept_[i].mean, kept_[i].deviation, mean, variance});
    return y;
  }

  BufferId apply_norm(size_t i, BufferId x) {
    const BufferId y = output(i, "y" + number(layer(i)), true, type_);
    op(OpKind::BatchNormApply, Phase::Evaluate, layer(i).number, layer(i).name,
       {x, master(i, 0), master(i, 1), master(i, 2), master(i, 3)}, {y});
    return y;
  }

  BufferId layer_norm(size_t i, BufferId x, Phase phase) {
    const BufferId y = output(i, "y" + number(layer(i)), true, type_);
    make_statistics(i, plan_.buffer(y).rows, 1);
    op(OpKind::LayerNorm, phase, layer(i).number, layer(i).name, {x, master(i, 0), master(i, 1)},
       {y, kept_[i].mean, kept_[i].deviation});
    return y;
  }

  BufferId activate(size_t i, BufferId x, Phase phase) {
    const Activation kind = layer(i).layer.activation;
    const BufferId h = output(i, "h" + number(layer(i)), true, type_);
    op(OpKind::Activate, phase, layer(i).number, std::string(to_string(kind)) + number(layer(i)), {x}, {h}).activation = kind;
    kept_[i].saved = needs_preactivation(kind) ? x : h;
    return h;
  }

  BufferId drop(size_t i, BufferId x) {
    constexpr uint32_t kStreamsOfARank = 1 << 16;
    const uint32_t stream = ++dropouts_ + static_cast<uint32_t>(rank_) * kStreamsOfARank;
    kept_[i].mask = {static_cast<float>(layer(i).layer.rate), stream};
    const BufferId y = output(i, "o" + number(layer(i)), true, type_);
    op(OpKind::Dropout, Phase::Forward, layer(i).number, "dropout" + number(layer(i)), {x}, {y}).dropout = kept_[i].mask;
    return y;
  }

  Heads heads(size_t i) const {
    const int64_t count = std::max<int64_t>(1, layer(i).layer.heads);
    return {layer(i).in.time, count, layer(i).out.features / count};
  }

  BufferId embed(size_t i, BufferId x, Phase phase) {
    std::vector<BufferId> in{x, master(i, 0)};
    if (layer(i).layer.positions) in.push_back(master(i, 1));
    const BufferId h = output(i, "h" + number(layer(i)), true, type_);
    op(OpKind::Embed, phase, layer(i).number, layer(i).name, std::move(in), {h}).heads = heads(i);
    return h;
  }

  BufferId attend(size_t i, BufferId x, Phase phase) {
    const std::string n = number(layer(i));
    const int64_t rows = plan_.buffer(x).rows, width = layer(i).in.features;
    Kept& kept = kept_[i];
    const BufferId z = temp("z" + n, rows, 3 * width, type_);
    op(OpKind::MatMul, phase, layer(i).number, "qkv" + n, {x, used(i, 0)}, {z});
    kept.qkv = biased(i) ? plus_bias(i, z, used(i, 1), temp("q" + n, rows, 3 * width, type_), n, phase) : z;
    kept.heads = temp("a" + n, rows, width, type_);
    if (spec().exec.attention == AttentionForm::Plain) {
      attend_plainly(i, phase);
    } else {
      kept.lse = temp("lse" + n, batch_ * layer(i).layer.heads, layer(i).in.time, DType::F32);
      op(OpKind::Attention, phase, layer(i).number, layer(i).name, {kept.qkv}, {kept.heads, kept.lse}).heads = heads(i);
    }
    const size_t out = biased(i) ? 2 : 1;
    const BufferId p = output(i, "p" + n, !biased(i), type_);
    op(OpKind::MatMul, phase, layer(i).number, "proj" + n, {kept.heads, used(i, out)}, {p});
    return biased(i) ? plus_bias(i, p, used(i, out + 1), output(i, "s" + n, true, type_), n, phase) : p;
  }

  // The scores of all heads of layer i: a square for each head of each text.
  BufferId scores(size_t i, const std::string& name) {
    const Heads of = heads(i);
    return temp(name + number(layer(i)), batch_ * of.heads * of.time, of.time, type_);
  }

  Op& head_product(size_t i, Phase phase, const std::string& name, std::vector<BufferId> in, BufferId out, HeadParts parts) {
    Op& made = op(OpKind::HeadProduct, phase, layer(i).number, name + number(layer(i)), std::move(in), {out});
    made.heads = heads(i), made.parts = parts;
    return made;
  }

  void attend_plainly(size_t i, Phase phase) {
    using enum HeadPart;
    Kept& kept = kept_[i];
    const BufferId s = scores(i, "sc");
    kept.shares = scores(i, "sh");
    head_product(i, phase, "scores", {kept.qkv, kept.qkv}, s, {Query, Key, Scores, true}).transpose_b = true;
    op(OpKind::CausalSoftmax, phase, layer(i).number, "softmax" + number(layer(i)), {s}, {kept.shares}).heads = heads(i);
    head_product(i, phase, "values", {kept.shares, kept.qkv}, kept.heads, {Scores, Value, Output});
  }

  void attend_plainly_grad(size_t i, BufferId dqkv) {
    using enum HeadPart;
    const Kept& kept = kept_[i];
    const BufferId dshares = scores(i, "dsh"), dscores = scores(i, "dsc");
    head_product(i, Phase::Backward, "dv", {kept.shares, dz_}, dqkv, {Scores, Output, Value}).transpose_a = true;
    head_product(i, Phase::Backward, "dshares", {dz_, kept.qkv}, dshares, {Output, Value, Scores}).transpose_b = true;
    op(OpKind::CausalSoftmaxGrad, Phase::Backward, layer(i).number, "softmax′" + number(layer(i)), {dshares, kept.shares}, {dscores})
        .heads = heads(i);
    head_product(i, Phase::Backward, "dq", {dscores, kept.qkv}, dqkv, {Scores, Key, Query, true});
    head_product(i, Phase::Backward, "dk", {dscores, kept.qkv}, dqkv, {Scores, Query, Key, true}).transpose_a = true;
  }

  BufferId join(size_t i, BufferId x, Phase phase) {
    const BufferId sum = output(i, "r" + number(layer(i)), true, type_);
    op(OpKind::Add, phase, layer(i).number, "residual" + number(layer(i)), {x, branches_.back()}, {sum});
    branches_.pop_back();
    return sum;
  }

  void loss(Phase phase) {
    if (classes())
      op(OpKind::CrossEntropy, phase, -1, "cross-entropy", {output_, y_}, {metrics_});
    else
      op(OpKind::SquaredError, phase, -1, "mse", {output_, y_}, {metrics_});
  }

  BufferId probabilities() {
    const Buffer z = plan_.buffer(output_);
    const BufferId p = temp("p", z.rows, z.cols, DType::F32);
    op(OpKind::Softmax, Phase::Loss, -1, "softmax", {output_}, {p});
    return p;
  }

  void loss_and_gradient() {
    const BufferId p = classes() ? probabilities() : BufferId::None;
    loss(Phase::Loss);
    dz_ = gradient_of(output_);
    if (classes())
      op(OpKind::SoftmaxGrad, Phase::Loss, -1, "cross-entropy grad", {p, y_}, {dz_});
    else
      op(OpKind::SquaredErrorGrad, Phase::Loss, -1, "mse grad", {output_, y_}, {dz_});
  }

  // The layers below the first one with parameters need no gradient.
  void backward() {
    first_trained_ = 0;
    while (model_.layer_parameters[first_trained_].empty()) ++first_trained_;
    for (size_t i = model_.layers.size(); i-- > first_trained_;) {
      dz_ = gradient_as_left(i);
      backward(i);
      dz_ = gradient_as_given(i);
    }
  }

  bool passes_on(size_t i) const { return i > first_trained_; }

  void backward(size_t i) {
    switch (layer(i).layer.kind) {
      case LayerKind::Linear:
        return product_grad(i, 0, kept_[i].input, "W", number(layer(i)), passes_on(i) ? gradient_of(kept_[i].input) : BufferId::None);
      case LayerKind::Conv:
        return convolve_grad(i);
      case LayerKind::MaxPool:
      case LayerKind::AvgPool:
        return pool_grad(i);
      case LayerKind::BatchNorm:
      case LayerKind::LayerNorm:
        return norm_grad(i);
      case LayerKind::Activate:
        return activate_grad(i);
      case LayerKind::Dropout:
        return drop_grad(i);
      case LayerKind::Embed:
        return embed_grad(i);
      case LayerKind::Attention:
        return attend_grad(i);
      case LayerKind::Join:
        branches_.push_back(dz_);
        return;
      case LayerKind::Branch:
        return branch_grad(i);
      case LayerKind::Residual:
      case LayerKind::Block:
      case LayerKind::Group:
        return;  // a resolved network has none
    }
  }

  BufferId parameter_gradient(size_t id) {
    const Buffer like = plan_.buffer(master_[id]);
    return gradient_[id] = add("d" + like.name, Role::Temp, like.rows, like.cols, DType::F32);
  }

  void bias_grad(size_t i, size_t which) {
    if (!biased(i)) return;
    const BufferId db = parameter_gradient(parameter(i, which));
    op(OpKind::ColumnSum, Phase::Backward, layer(i).number, plan_.buffer(db).name, {dz_}, {db});
  }

  // Gradients of x·W + b; `dx` is None if no layer below needs it.
  void product_grad(size_t i, size_t weight, BufferId x, const std::string& name, const std::string& n, BufferId dx) {
    const BufferId dw = parameter_gradient(parameter(i, weight));
    op(OpKind::MatMul, Phase::Backward, layer(i).number, "d" + name + n, {x, dz_}, {dw}).transpose_a = true;
    bias_grad(i, weight + 1);
    if (dx == BufferId::None) return;
    op(OpKind::MatMul, Phase::Backward, layer(i).number, "dX" + n, {dz_, used(i, weight)}, {dx}).transpose_b = true;
    dz_ = dx;
  }

  void convolve_grad(size_t i) {
    const std::string n = number(layer(i));
    const BufferId dw = parameter_gradient(parameter(i, 0));
    op(OpKind::ConvWeightGrad, Phase::Backward, layer(i).number, "dW" + n, {kept_[i].input, dz_}, {dw}).window = window(i);
    bias_grad(i, 1);
    if (!passes_on(i)) return;
    const BufferId dx = gradient_of(kept_[i].input);
    op(OpKind::ConvDataGrad, Phase::Backward, layer(i).number, "dX" + n, {dz_, used(i, 0)}, {dx}).window = window(i);
    dz_ = dx;
  }

  void pool_grad(size_t i) {
    const Kept& kept = kept_[i];
    const BufferId dx = gradient_of(kept.input);
    const bool max = layer(i).layer.kind == LayerKind::MaxPool;
    std::vector<BufferId> in = max ? std::vector{dz_, kept.input, kept.output} : std::vector{dz_};
    op(max ? OpKind::MaxPoolGrad : OpKind::AvgPoolGrad, Phase::Backward, layer(i).number, "d" + layer(i).name, std::move(in),
       {dx})
        .window = pool_window(i);
    dz_ = dx;
  }

  void norm_grad(size_t i) {
    const Kept& kept = kept_[i];
    const BufferId dx = gradient_of(kept.input);
    const BufferId dgain = parameter_gradient(parameter(i, 0)), dshift = parameter_gradient(parameter(i, 1));
    const bool batch = layer(i).layer.kind == LayerKind::BatchNorm;
    op(batch ? OpKind::BatchNormGrad : OpKind::LayerNormGrad, Phase::Backward, layer(i).number, "d" + layer(i).name,
       {dz_, kept.input, master(i, 0), kept.mean, kept.deviation}, {dx, dgain, dshift});
    dz_ = dx;
  }

  void activate_grad(size_t i) {
    const Activation kind = layer(i).layer.activation;
    const BufferId dz = gradient_of(kept_[i].input);
    op(OpKind::ActivateGrad, Phase::Backward, layer(i).number, std::string(to_string(kind)) + "′" + number(layer(i)),
       {dz_, kept_[i].saved}, {dz})
        .activation = kind;
    dz_ = dz;
  }

  void drop_grad(size_t i) {
    const BufferId dx = gradient_of(kept_[i].input);
    op(OpKind::Dropout, Phase::Backward, layer(i).number, "dropout′" + number(layer(i)), {dz_}, {dx}).dropout = kept_[i].mask;
    dz_ = dx;
  }

  void embed_grad(size_t i) {
    std::vector<BufferId> out{parameter_gradient(parameter(i, 0))};
    if (layer(i).layer.positions) out.push_back(parameter_gradient(parameter(i, 1)));
    op(OpKind::EmbedGrad, Phase::Backward, layer(i).number, "d" + layer(i).name, {x_, dz_}, std::move(out)).heads = heads(i);
  }

  void attend_grad(size_t i) {
    const std::string n = number(layer(i));
    const Kept& kept = kept_[i];
    product_grad(i, biased(i) ? 2 : 1, kept.heads, "Wo", n, gradient_of(kept.heads));
    const BufferId dqkv = gradient_of(kept.qkv);
    if (spec().exec.attention == AttentionForm::Plain)
      attend_plainly_grad(i, dqkv);
    else
      op(OpKind::AttentionGrad, Phase::Backward, layer(i).number, "d" + layer(i).name, {dz_, kept.heads, kept.qkv, kept.lse}, {dqkv})
          .heads = heads(i);
    dz_ = dqkv;
    product_grad(i, 0, kept.input, "Wqkv", n, passes_on(i) ? gradient_of(kept.input) : BufferId::None);
  }

  // The kept input of a residual gets the gradient of the sum, and the layers' gradient.
  void branch_grad(size_t i) {
    const BufferId sum = gradient_of(kept_[i].input);
    op(OpKind::Add, Phase::Backward, layer(i).number, "d residual", {dz_, branches_.back()}, {sum});
    branches_.pop_back();
    dz_ = sum;
  }

  void update() {
    std::vector<BufferId> gradients;
    for (size_t i = 0; i < master_.size(); ++i)
      if (model_.parameters[i].trained) gradients.push_back(gradient_[i]);
    if (spec().exec.precision == Precision::Fp16) op(OpKind::CheckFinite, Phase::Update, -1, "finite?", gradients, {});
    if (spec().train.clip > 0) op(OpKind::ClipGradients, Phase::Update, -1, "clip", gradients, gradients);
    for (size_t i = 0; i < master_.size(); ++i)
      if (model_.parameters[i].trained) update_one(i);
  }

  void update_one(size_t i) {
    std::vector<BufferId> in{master_[i], gradient_[i]}, out{master_[i]};
    in.insert(in.end(), states_[i].begin(), states_[i].end());
    if (used_[i] != master_[i]) out.push_back(used_[i]);
    out.insert(out.end(), states_[i].begin(), states_[i].end());
    op(OpKind::Update, Phase::Update, model_.parameters[i].layer,
       std::string(to_string(spec().train.optimizer)) + " " + model_.parameters[i].name, std::move(in), std::move(out));
  }

  const Model& model_;
  int64_t batch_, first_row_;
  int rank_;
  DType type_ = DType::F32;
  Plan plan_;
  std::set<std::string> names_;
  BufferId x_{}, y_{}, metrics_{}, output_{}, dz_{};
  std::vector<BufferId> master_, used_, gradient_;  // by ParamId
  std::vector<std::vector<BufferId>> states_;       // by ParamId
  std::vector<Kept> kept_;                          // by layer
  std::set<BufferId> planes_;                       // pictures in nchw
  std::vector<BufferId> branches_;                  // inputs of open residuals, or on the way back their gradients
  size_t first_trained_ = 0;
  uint32_t dropouts_ = 0;
};

}  // namespace

Plan build_plan(const RunSpec& spec, const Model& model, int64_t rows, int rank) {
  const int ranks = static_cast<int>(std::max<int64_t>(1, spec.exec.gpus));
  Plan plan = Builder(spec, model, rows_of_rank(rows, rank, ranks), rank).training();
  plan.step_rows = rows;
  plan.ranks = ranks;
  return plan;
}

Plan build_evaluation_plan(const RunSpec& spec, const Model& model, int64_t batch) {
  return Builder(spec, model, {0, batch}, 0).evaluation();
}

std::vector<BufferId> layer_outputs(const RunSpec& spec, const Model& model, int64_t batch) {
  return Builder(spec, model, {0, batch}, 0).outputs();
}

}  // namespace ws
