// The text of a new file: comments that state the contract, the launch geometry, and a kernel with one thread a result.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "engine/own_kernels/kernel_contract.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"

namespace ws::own {
namespace {

using Facts = std::set<std::string, std::less<>>;

constexpr int64_t kLongSum = 1024;  // too long for one thread
constexpr const char* kLongSumFact = "long_sum";

// Writes `result` for "OUT". A line "?fact text" stays only if the fact holds, and "!fact text" only if it does not.
std::string filled(std::string_view text, const Facts& facts, const std::string& result) {
  std::string out;
  while (!text.empty()) {
    std::string line(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    bool kept = !line.empty();
    while (kept && (line[0] == '?' || line[0] == '!')) {
      const size_t space = line.find(' ');
      kept = facts.contains(line.substr(1, space - 1)) == (line[0] == '?');
      line.erase(0, space + 1);
    }
    if (!kept) continue;
    for (size_t mark = line.find("OUT"); mark != line.npos; mark = line.find("OUT", mark + result.size())) line.replace(mark, 3, result);
    out += line + '\n';
  }
  return out;
}

const Operand& first_result(const KernelContract& contract) { return *std::ranges::find_if(contract.operands, &Operand::written); }

// The names of the operands, and what the op's fields say.
Facts facts_of(const KernelContract& contract) {
  Facts facts;
  for (const Operand& operand : contract.operands) facts.insert(operand.name);
  if (contract.op.transpose_a) facts.insert("transposed_a");
  if (contract.op.transpose_b) facts.insert("transposed_b");
  if (contract.op.activation != Activation::None) facts.insert("activated");
  if (contract.sines > 0) facts.insert("sines");
  if (first_result(contract).elements() == 1 && contract.operands.front().elements() >= kLongSum) facts.insert(kLongSumFact);
  constexpr const char* kEpilogues[] = {"plain", "adds_bias", "activates", "takes_slope", "sums_columns"};  // in the order of Epilogue
  facts.insert(kEpilogues[static_cast<size_t>(contract.op.epilogue)]);
  return facts;
}

// The place of result i among the results, and the first place of its window.
constexpr std::string_view kPlace = R"(
  const int channel = i % out_channels, at = i / out_channels, picture = at / (out_height * out_width);
  const int top = at / out_width % out_height * stride - padding, left = at % out_width * stride - padding;
)";
// The place of result i among the pixels.
constexpr std::string_view kPixel = R"(
  const int channel = i % channels, pixel = i / channels, picture = pixel / (height * width);
  const int y0 = pixel / width % height, x0 = pixel % width;
)";
// Over the pixels of the window.
constexpr std::string_view kWindow = R"(
  for (int r = 0; r < window_height; ++r)
    for (int s = 0; s < window_width; ++s) {
      const int y0 = top + r, x0 = left + s;
      if (y0 < 0 || y0 >= height || x0 < 0 || x0 >= width) continue;
)";
// Over the outputs whose window covers the pixel, from the last to the first.
constexpr std::string_view kCovering = R"(
  for (int r = 0; r < window_height; ++r)
    for (int s = 0; s < window_width; ++s) {
      const int down = y0 + padding - r, across = x0 + padding - s, oy = down / stride, ox = across / stride;
      if (down < 0 || across < 0 || down % stride || across % stride || oy >= out_height || ox >= out_width) continue;
      const int output = (picture * out_height + oy) * out_width + ox;
)";
constexpr std::string_view kSum = "  float sum = 0;\n";

std::string joined(std::initializer_list<std::string_view> pieces) {
  std::string text;
  for (const std::string_view piece : pieces) text += piece;
  return text;
}

struct FirstBody {
  std::string text;
  std::string_view threads = "OUT_rows * OUT_cols";  // how many do something
};

// With `i` as the number of the result, or of the row where a thread makes a whole row. OUT is the first result.
const std::map<OpKind, FirstBody>& bodies() {
  static const std::map<OpKind, FirstBody> all{
      {OpKind::MatMul, {R"(
  const int row = i / OUT_cols, col = i % OUT_cols;
  float sum = 0;
?transposed_a   for (int k = 0; k < a_rows; ++k) {
!transposed_a   for (int k = 0; k < a_cols; ++k) {
?transposed_a     const float left = float(a[k * a_cols + row]);
!transposed_a     const float left = float(a[row * a_cols + k]);
?transposed_b     sum += left * float(b[col * b_cols + k]);
!transposed_b     sum += left * float(b[k * b_cols + col]);
  }
?plain   c[i] = c_t(sum);
?adds_bias   c[i] = c_t(sum + float(bias[col]));
?activates ?bias   sum += float(bias[col]);
?activates ?pre   pre[i] = pre_t(sum);
?activates   h[i] = h_t(activation(sum));
?takes_slope   dz[i] = dz_t(sum * activation_slope(float(saved[i])));
?sums_columns   dw[i] = dw_t(sum);
?sums_columns   if (row > 0) return;  // the first row of threads also adds up the columns of b
?sums_columns   float column = 0;
?sums_columns   for (int k = 0; k < b_rows; ++k) column += float(b[k * b_cols + col]);
?sums_columns   db[col] = db_t(column);
)"}},
      {OpKind::Conv, {joined({kPlace, kSum, kWindow, R"(
      for (int c = 0; c < channels; ++c)
        sum += float(x[((picture * height + y0) * width + x0) * channels + c]) *
               float(w[((channel * window_height + r) * window_width + s) * channels + c]);
    }
?plain   z[i] = z_t(sum);
?adds_bias   z[i] = z_t(sum + float(bias[channel]));
?activates ?bias   sum += float(bias[channel]);
?activates ?pre   pre[i] = pre_t(sum);
?activates   h[i] = h_t(activation(sum));
)"})}},
      {OpKind::ConvDataGrad, {joined({kPixel, kSum, kCovering, R"(
      for (int k = 0; k < out_channels; ++k)
        sum += float(dz[output * out_channels + k]) * float(w[((k * window_height + r) * window_width + s) * channels + channel]);
    }
?takes_slope   dx[i] = dx_t(sum * activation_slope(float(saved[i])));
!takes_slope   dx[i] = dx_t(sum);
)"})}},
      {OpKind::ConvWeightGrad, {R"(
  const int c = i % channels, s = i / channels % window_width, r = i / channels / window_width % window_height;
  const int k = i / (channels * window_width * window_height);
  float sum = 0;
  for (int at = 0; at < pictures * out_height * out_width; ++at) {
    const int y0 = at / out_width % out_height * stride - padding + r, x0 = at % out_width * stride - padding + s;
    if (y0 < 0 || y0 >= height || x0 < 0 || x0 >= width) continue;
    sum += float(x[((at / (out_height * out_width) * height + y0) * width + x0) * channels + c]) * float(dz[at * out_channels + k]);
  }
  dw[i] = dw_t(sum);
?sums_columns   if (i % dw_cols > 0) return;  // the first value of each row also adds up the gradients of its channel
?sums_columns   float all = 0;
?sums_columns   for (int at = 0; at < pictures * out_height * out_width; ++at) all += float(dz[at * out_channels + k]);
?sums_columns   db[k] = db_t(all);
)"}},
      {OpKind::MaxPool, {joined({kPlace, "  float best = -INFINITY;\n", kWindow, R"(
      best = fmaxf(best, float(x[((picture * height + y0) * width + x0) * channels + channel]));
    }
  y[i] = y_t(best);
)"})}},
      {OpKind::MaxPoolGrad, {joined({kPixel, kSum, kCovering, R"(
      const float most = float(y[output * channels + channel]);
      bool first = float(x[i]) == most;  // the first maximum of a window, row by row, takes the gradient
      for (int q = 0; q < r * window_width + s; ++q) {
        const int y1 = oy * stride - padding + q / window_width, x1 = ox * stride - padding + q % window_width;
        if (y1 < 0 || y1 >= height || x1 < 0 || x1 >= width) continue;
        first = first && float(x[((picture * height + y1) * width + x1) * channels + channel]) != most;
      }
      if (first) sum += float(dy[output * channels + channel]);
    }
?activated   dx[i] = dx_t(sum * activation_slope(float(x[i])));
!activated   dx[i] = dx_t(sum);
)"})}},
      {OpKind::AvgPool, {joined({kPlace, kSum, "  int count = 0;\n", kWindow, R"(
      sum += float(x[((picture * height + y0) * width + x0) * channels + channel]), ++count;
    }
  y[i] = y_t(sum / count);
)"})}},
      {OpKind::AvgPoolGrad, {joined({kPixel, kSum, kCovering, R"(
      const int rows = min(oy * stride - padding + window_height, height) - max(oy * stride - padding, 0);
      const int columns = min(ox * stride - padding + window_width, width) - max(ox * stride - padding, 0);
      sum += float(dy[output * channels + channel]) / (rows * columns);
    }
  dx[i] = dx_t(sum);
)"})}},
      {OpKind::Embed, {R"(
  const int row = i / table_cols, col = i % table_cols;
  float sum = float(table[int(symbols[row]) * table_cols + col]);
?positions   sum += float(positions[row % symbols_cols * table_cols + col]);
  h[i] = h_t(sum);
)"}},
      {OpKind::EmbedGrad, {R"(
  const int row = i / dtable_cols, col = i % dtable_cols;
  float sum = 0;
  for (int at = 0; at < symbols_rows * symbols_cols; ++at)
    if (int(symbols[at]) == row) sum += float(dh[at * dtable_cols + col]);
  if (row < dtable_rows) dtable[i] = dtable_t(sum);
?dpositions   if (row >= dpositions_rows) return;
?dpositions   float place = 0;
?dpositions   for (int n = 0; n < symbols_rows; ++n) place += float(dh[(n * symbols_cols + row) * dtable_cols + col]);
?dpositions   dpositions[i] = dpositions_t(place);
)", "?dpositions (dtable_rows > dpositions_rows ? dtable_rows : dpositions_rows) * dtable_cols\n!dpositions OUT_rows * OUT_cols"}},
      {OpKind::LayerNorm, {R"(
?more   for (int col = 0; col < gain_cols; ++col)
?more     sum[i * gain_cols + col] = sum_t(float(x[i * gain_cols + col]) + float(more[i * gain_cols + col]));
?more   const sum_t* in = sum;
!more   const x_t* in = x;
  float total = 0, squares = 0;
  for (int col = 0; col < gain_cols; ++col) total += float(in[i * gain_cols + col]);
  const float middle = total / gain_cols;
  for (int col = 0; col < gain_cols; ++col) {
    const float apart = float(in[i * gain_cols + col]) - middle;
    squares += apart * apart;
  }
  const float inverse = rsqrtf(squares / gain_cols + 1e-5f);
  for (int col = 0; col < gain_cols; ++col)
    y[i * gain_cols + col] = y_t((float(in[i * gain_cols + col]) - middle) * inverse * float(gain[col]) + float(shift[col]));
  mean[i] = mean_t(middle);
  inv[i] = inv_t(inverse);
)", "mean_rows"}},
      {OpKind::LayerNormGrad, {R"(
  if (i < gain_cols) {  // a column
    float gains = 0, shifts = 0;
    for (int row = 0; row < mean_rows; ++row) {
      const float g = float(dy[row * gain_cols + i]);
      shifts += g;
      gains += g * (float(x[row * gain_cols + i]) - float(mean[row])) * float(inv[row]);
    }
    dgain[i] = dgain_t(gains);
    dshift[i] = dshift_t(shifts);
  }
  if (i >= mean_rows) return;
  const float middle = float(mean[i]), inverse = float(inv[i]);  // a row
  float sum = 0, product = 0;
  for (int col = 0; col < gain_cols; ++col) {
    const float g = float(dy[i * gain_cols + col]) * float(gain[col]);
    sum += g;
    product += g * (float(x[i * gain_cols + col]) - middle) * inverse;
  }
  for (int col = 0; col < gain_cols; ++col) {
    const float g = float(dy[i * gain_cols + col]) * float(gain[col]), away = (float(x[i * gain_cols + col]) - middle) * inverse;
    float d = inverse * (g - sum / gain_cols - away * product / gain_cols);
?more     d += float(more[i * gain_cols + col]);
    dx[i * gain_cols + col] = dx_t(d);
  }
)", "(mean_rows > gain_cols ? mean_rows : gain_cols)"}},
      {OpKind::Softmax, {R"(
  float most = -INFINITY, sum = 0;
  for (int col = 0; col < z_cols; ++col) most = fmaxf(most, float(z[i * z_cols + col]));
  for (int col = 0; col < z_cols; ++col) sum += expf(float(z[i * z_cols + col]) - most);
  for (int col = 0; col < z_cols; ++col) p[i * z_cols + col] = p_t(expf(float(z[i * z_cols + col]) - most) / sum);
)", "z_rows"}},
      {OpKind::SoftmaxGrad, {R"(
  const int row = i / dz_cols, col = i % dz_cols;
  dz[i] = dz_t((float(p[i]) - (int(y[row]) == col ? 1.f : 0.f)) * gradient_scale);
)"}},
      {OpKind::SquaredErrorGrad, {"  dz[i] = dz_t(2 * gradient_scale / dz_cols * (float(z[i]) - float(y[i])));\n"}},
      {OpKind::BroadcastBias, {"  c[i] = c_t(float(bias[i % bias_cols]));\n"}},
      {OpKind::Add, {"  c[i] = c_t(float(a[i]) + float(b[i]));\n"}},
      {OpKind::Activate, {R"(
!sines   h[i] = h_t(activation(float(z[i])));
?sines   float value = float(z[i]);
?sines   for (int level = 0; level < depth; ++level) value = sinf(value);
?sines   h[i] = h_t(value);
)"}},
      {OpKind::ActivateGrad, {"  dz[i] = dz_t(float(dh[i]) * activation_slope(float(saved[i])));\n"}},
      {OpKind::BiasActivate, {R"(
  const float sum = float(z[i]) + float(bias[i % bias_cols]);
?pre   pre[i] = pre_t(sum);
  h[i] = h_t(activation(sum));
)"}},
      {OpKind::ColumnSum, {R"(
?long_sum   __shared__ float part[kThreads];
?long_sum   part[i] = 0;
?long_sum   for (int at = i; at < dz_rows * dz_cols; at += kThreads) part[i] += float(dz[at]);
?long_sum   for (int half = kThreads / 2; half > 0; half /= 2) {
?long_sum     __syncthreads();
?long_sum     if (i < half) part[i] += part[i + half];
?long_sum   }
?long_sum   if (i == 0) db[0] = db_t(part[0]);
!long_sum   float sum = 0;
!long_sum   for (int row = 0; row < dz_rows * dz_cols / db_cols; ++row) sum += float(dz[row * db_cols + i]);
!long_sum   db[i] = db_t(sum);
)"}},
  };
  return all;
}

// The rule of the optimizer for one value, as a function.
std::string update_rule(const TrainSpec& t) {
  const bool adam = is_adam(t.optimizer);
  std::string text = "// One value of a parameter: its gradient g, and what the optimizer keeps of it.\n__device__ void update(float& w, float g" +
                     std::string(moments_of(t.optimizer) > 0 ? ", float& m" : "") + (adam ? ", float& v" : "") + ", float rate, float decay" +
                     (adam ? ", float updates" : "") + ") {\n";
  const auto number = [](double value) { return formatted("{:.9e}f", value); };
  if (t.optimizer == Optimizer::AdamW) text += "  w -= rate * decay * w;\n";
  else text += "  g += decay * w;\n";
  if (t.optimizer == Optimizer::Sgd) return text + "  w -= rate * g;\n}\n\n";
  if (t.optimizer == Optimizer::Momentum)
    return text + "  constexpr float momentum = " + number(t.momentum) + ";\n  m = momentum * m + g;\n  w -= rate * " +
           (t.nesterov ? "(g + momentum * m)" : "m") + ";\n}\n\n";
  return text + "  constexpr float beta1 = " + number(t.beta1) + ", beta2 = " + number(t.beta2) + ";\n" +
         "  m = beta1 * m + (1 - beta1) * g;\n  v = beta2 * v + (1 - beta2) * g * g;\n"
         "  const float mean = m / (1 - powf(beta1, updates)), square = v / (1 - powf(beta2, updates));\n"
         "  w -= rate * mean / (sqrtf(square) + " + number(t.epsilon) + ");\n}\n\n";
}

// One loop over all values of each parameter.
std::string update_body(const KernelContract& contract) {
  const bool adam = is_adam(contract.train.optimizer);
  std::string text = "  const int all = kBlocks * kThreads;\n  const float rate = learning_rate(step);\n";
  if (adam) text += "  const float updates = step_number(step) + 1;\n";
  for (const UpdateItem& item : contract.updates) {
    const Operand& master = *contract.operand(item.master);
    const std::string w = master.name, g = contract.operand(item.gradient)->name;
    text += "  for (int at = i; at < " + w + "_rows * " + w + "_cols; at += all) {\n    update(" + w + "[at], float(" + g + "[at])";
    for (const BufferId moment : item.moment)
      if (const Operand* o = contract.operand(moment)) text += ", " + o->name + "[at]";
    text += ", rate, " + (master.decays ? formatted("{:.9e}f", contract.train.weight_decay) : std::string("0.f")) + (adam ? ", updates" : "") + ");\n";
    if (const Operand* shadow = contract.operand(item.shadow)) text += "    " + shadow->name + "[at] = " + shadow->name + "_t(" + w + "[at]);\n";
    text += "  }\n";
  }
  return text;
}

std::string comments_of(const KernelContract& contract) {
  const std::string out = first_result(contract).name;
  std::string text = std::string(kForOp) + contract.signature() + "\n// " + contract.meaning +
                     "\n// Row-major matrices. Types and shapes are constants: " + out + "_t, " + out + "_rows, " + out + "_cols and so on.\n";
  for (const Operand& o : contract.operands)
    text += "//   " + o.name + " (" + std::to_string(o.rows) + ", " + std::to_string(o.cols) + ") " + std::string(to_string(o.type)) +
            (o.written ? o.read ? ", changed in place" : ", written" : "") + "\n";
  return text;
}

std::string parameters_of(const KernelContract& contract) {
  std::string text;
  for (const Operand& o : contract.operands) text += std::string(text.empty() ? "" : ", ") + (o.written ? "" : "const ") + o.name + "_t* " + o.name;
  return text + (contract.takes_step() ? ", step_t step" : "");
}

}  // namespace

std::string first_version(const KernelContract& contract) {
  const std::string begin = comments_of(contract), result = first_result(contract).name;
  const std::string declaration = std::string("extern \"C\" __global__ void ") + kEntry + "(" + parameters_of(contract) + ") {\n" +
                                  "  const int i = blockIdx.x * kThreads + threadIdx.x;\n";
  const auto geometry = [](const std::string& count) {
    return "constexpr int kThreads = 256, kBlocks = (" + count + " + kThreads - 1) / kThreads, kSharedBytes = 0;\n\n";
  };
  if (contract.takes_step())  // over all values, with as many threads as the first parameter has
    return begin + geometry(result + "_rows * " + result + "_cols") + update_rule(contract.train) + declaration + update_body(contract) + "}\n";
  const auto found = bodies().find(contract.op.kind);
  if (found == bodies().end()) throw Failure("There is no first version for the op " + contract.op_name + ".");
  const Facts facts = facts_of(contract);
  if (facts.contains(kLongSumFact))  // one block
    return begin + "constexpr int kThreads = 256, kBlocks = 1, kSharedBytes = 0;\n\n" + declaration + filled(found->second.text, facts, result) + "}\n";
  std::string count = filled(found->second.threads, facts, result);
  count.pop_back();
  return begin + geometry(count) + declaration + "  if (i >= " + count + ") return;\n" + filled(found->second.text, facts, result) + "}\n";
}

}  // namespace ws::own
