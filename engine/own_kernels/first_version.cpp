// The text of a new file: comments that state the contract, the launch geometry, and a kernel with one thread a result.
#include <algorithm>

#include "engine/own_kernels/kernel_contract.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"

namespace ws::own {
namespace {

std::string index_of(const char* matrix, const char* row, const char* col, bool transposed) {
  const std::string cols = std::string(matrix) + "_cols";
  return transposed ? std::string(col) + " * " + cols + " + " + row : std::string(row) + " * " + cols + " + " + col;
}

// What happens to the sum of a product, by its epilogue.
std::string product_result(const KernelContract& contract) {
  const bool bias = contract.operands.size() > 2 && contract.operands[2].name == "bias";
  const bool pre = contract.operands.back().name == "pre";
  switch (contract.op.epilogue) {
    case Epilogue::Bias:
      return "  c[i] = c_t(sum + float(bias[col]));\n";
    case Epilogue::BiasActivate:
      return std::string(bias ? "  sum += float(bias[col]);\n" : "") + (pre ? "  pre[i] = pre_t(sum);\n" : "") +
             "  h[i] = h_t(activation(sum));\n";
    case Epilogue::ActivateGrad:
      return "  dz[i] = dz_t(sum * activation_slope(float(saved[i])));\n";
    case Epilogue::BiasGrad:
      return "  dw[i] = dw_t(sum);\n"
             "  if (row > 0) return;  // the first row of threads also adds up the columns of b\n"
             "  float column = 0;\n"
             "  for (int k = 0; k < b_rows; ++k) column += float(b[k * b_cols + col]);\n"
             "  db[col] = db_t(column);\n";
    case Epilogue::None:
      return "  c[i] = c_t(sum);\n";
  }
  return "";
}

std::string product_body(const KernelContract& contract, const std::string& out) {
  const bool ta = contract.op.transpose_a, tb = contract.op.transpose_b;
  return "  const int row = i / " + out + "_cols, col = i % " + out + "_cols;\n  float sum = 0;\n  for (int k = 0; k < " +
         (ta ? "a_rows" : "a_cols") + "; ++k) sum += float(a[" + index_of("a", "row", "k", ta) + "]) * float(b[" +
         index_of("b", "k", "col", tb) + "]);\n" + product_result(contract);
}

const char* kPlace =
    "  const int channel = i % out_channels, at = i / out_channels, picture = at / (out_height * out_width);\n"
    "  const int top = at / out_width % out_height * stride - padding, left = at % out_width * stride - padding;\n";

std::string window_loop(const std::string& inside) {
  return "  for (int r = 0; r < window_height; ++r)\n    for (int s = 0; s < window_width; ++s) {\n"
         "      const int y0 = top + r, x0 = left + s;\n"
         "      if (y0 < 0 || y0 >= height || x0 < 0 || x0 >= width) continue;\n" + inside + "    }\n";
}

// ---- pictures ----
// The place of result i among the pixels of the pictures.
const char* kPixel =
    "  const int channel = i % channels, pixel = i / channels, picture = pixel / (height * width);\n"
    "  const int y0 = pixel / width % height, x0 = pixel % width;\n";

// Over the outputs whose window covers the pixel, from the last to the first.
std::string covering_loop(const std::string& inside) {
  return "  for (int r = 0; r < window_height; ++r)\n    for (int s = 0; s < window_width; ++s) {\n"
         "      const int down = y0 + padding - r, across = x0 + padding - s, oy = down / stride, ox = across / stride;\n"
         "      if (down < 0 || across < 0 || down % stride || across % stride || oy >= out_height || ox >= out_width) continue;\n"
         "      const int output = (picture * out_height + oy) * out_width + ox;\n" + inside + "    }\n";
}

std::string convolution_result(const KernelContract& contract) {
  if (contract.op.epilogue == Epilogue::None) return "  z[i] = z_t(sum);\n";
  if (contract.op.epilogue == Epilogue::Bias) return "  z[i] = z_t(sum + float(bias[channel]));\n";
  return std::string(contract.operand_named("bias") ? "  sum += float(bias[channel]);\n" : "") + (contract.operand_named("pre") ? "  pre[i] = pre_t(sum);\n" : "") +
         "  h[i] = h_t(activation(sum));\n";
}

std::string weight_gradient_body(const KernelContract& contract) {
  return std::string("  const int c = i % channels, s = i / channels % window_width, r = i / channels / window_width % window_height;\n"
                     "  const int k = i / (channels * window_width * window_height);\n  float sum = 0;\n"
                     "  for (int at = 0; at < pictures * out_height * out_width; ++at) {\n"
                     "    const int y0 = at / out_width % out_height * stride - padding + r, x0 = at % out_width * stride - padding + s;\n"
                     "    if (y0 < 0 || y0 >= height || x0 < 0 || x0 >= width) continue;\n"
                     "    sum += float(x[((at / (out_height * out_width) * height + y0) * width + x0) * channels + c]) * float(dz[at * out_channels + k]);\n  }\n"
                     "  dw[i] = dw_t(sum);\n") +
         (contract.op.epilogue == Epilogue::BiasGrad ? "  if (i % dw_cols > 0) return;  // the first value of each row also adds up the gradients of its channel\n"
                                                       "  float all = 0;\n  for (int at = 0; at < pictures * out_height * out_width; ++at) all += float(dz[at * out_channels + k]);\n"
                                                       "  db[k] = db_t(all);\n"
                                                     : "");
}

// ---- transformers ----
std::string embed_gradient_body(const KernelContract& contract) {
  return std::string("  const int row = i / dtable_cols, col = i % dtable_cols;\n  float sum = 0;\n"
                     "  for (int at = 0; at < symbols_rows * symbols_cols; ++at)\n    if (int(symbols[at]) == row) sum += float(dh[at * dtable_cols + col]);\n"
                     "  if (row < dtable_rows) dtable[i] = dtable_t(sum);\n") +
         (contract.operand_named("dpositions") ? "  if (row >= dpositions_rows) return;\n  float place = 0;\n"
                                                 "  for (int n = 0; n < symbols_rows; ++n) place += float(dh[(n * symbols_cols + row) * dtable_cols + col]);\n"
                                                 "  dpositions[i] = dpositions_t(place);\n"
                                               : "");
}

std::string norm_body(const KernelContract& contract) {
  const bool more = contract.operand_named("more");
  const std::string value = more ? "float(sum[i * gain_cols + col])" : "float(x[i * gain_cols + col])";
  return std::string(more ? "  for (int col = 0; col < gain_cols; ++col)\n    sum[i * gain_cols + col] = sum_t(float(x[i * gain_cols + col]) + float(more[i * gain_cols + col]));\n" : "") +
         "  float total = 0, squares = 0;\n  for (int col = 0; col < gain_cols; ++col) total += " + value + ";\n  const float middle = total / gain_cols;\n"
         "  for (int col = 0; col < gain_cols; ++col) {\n    const float apart = " + value + " - middle;\n    squares += apart * apart;\n  }\n"
         "  const float inverse = rsqrtf(squares / gain_cols + 1e-5f);\n  for (int col = 0; col < gain_cols; ++col)\n"
         "    y[i * gain_cols + col] = y_t((" + value + " - middle) * inverse * float(gain[col]) + float(shift[col]));\n"
         "  mean[i] = mean_t(middle);\n  inv[i] = inv_t(inverse);\n";
}

std::string norm_gradient_body(const KernelContract& contract) {
  const std::string more = contract.operand_named("more") ? " + float(more[i * gain_cols + col])" : "";
  return "  if (i < gain_cols) {  // a column\n    float gains = 0, shifts = 0;\n    for (int row = 0; row < mean_rows; ++row) {\n"
         "      const float g = float(dy[row * gain_cols + i]);\n      shifts += g;\n"
         "      gains += g * (float(x[row * gain_cols + i]) - float(mean[row])) * float(inv[row]);\n    }\n"
         "    dgain[i] = dgain_t(gains);\n    dshift[i] = dshift_t(shifts);\n  }\n"
         "  if (i >= mean_rows) return;\n  const float middle = float(mean[i]), inverse = float(inv[i]);  // a row\n  float sum = 0, product = 0;\n"
         "  for (int col = 0; col < gain_cols; ++col) {\n    const float g = float(dy[i * gain_cols + col]) * float(gain[col]);\n    sum += g;\n"
         "    product += g * (float(x[i * gain_cols + col]) - middle) * inverse;\n  }\n  for (int col = 0; col < gain_cols; ++col)\n"
         "    dx[i * gain_cols + col] = dx_t(inverse * (float(dy[i * gain_cols + col]) * float(gain[col]) - sum / gain_cols -\n"
         "                                              (float(x[i * gain_cols + col]) - middle) * inverse * product / gain_cols)" + more + ");\n";
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

// The body with `i` as the number of the result, or of the row where a row is one thread's work.
std::string body(const KernelContract& contract, const std::string& out) {
  switch (contract.op.kind) {
    case OpKind::MatMul:
      return product_body(contract, out);
    case OpKind::Conv:
      return kPlace + std::string("  float sum = 0;\n") +
             window_loop("      for (int c = 0; c < channels; ++c)\n"
                         "        sum += float(x[((picture * height + y0) * width + x0) * channels + c]) *\n"
                         "               float(w[((channel * window_height + r) * window_width + s) * channels + c]);\n") +
             convolution_result(contract);
    case OpKind::ConvDataGrad:
      return kPixel + std::string("  float sum = 0;\n") +
             covering_loop("      for (int k = 0; k < out_channels; ++k)\n"
                           "        sum += float(dz[output * out_channels + k]) * float(w[((k * window_height + r) * window_width + s) * channels + channel]);\n") +
             (contract.op.epilogue == Epilogue::ActivateGrad ? "  dx[i] = dx_t(sum * activation_slope(float(saved[i])));\n" : "  dx[i] = dx_t(sum);\n");
    case OpKind::ConvWeightGrad:
      return weight_gradient_body(contract);
    case OpKind::AvgPoolGrad:
      return kPixel + std::string("  float sum = 0;\n") +
             covering_loop("      const int rows = min(oy * stride - padding + window_height, height) - max(oy * stride - padding, 0);\n"
                           "      const int columns = min(ox * stride - padding + window_width, width) - max(ox * stride - padding, 0);\n"
                           "      sum += float(dy[output * channels + channel]) / (rows * columns);\n") +
             "  dx[i] = dx_t(sum);\n";
    case OpKind::MaxPoolGrad:
      return kPixel + std::string("  float sum = 0;\n") +
             covering_loop("      const float most = float(y[output * channels + channel]);\n"
                           "      bool first = float(x[i]) == most;  // the first maximum of a window, row by row, takes the gradient\n"
                           "      for (int q = 0; q < r * window_width + s; ++q) {\n"
                           "        const int y1 = oy * stride - padding + q / window_width, x1 = ox * stride - padding + q % window_width;\n"
                           "        if (y1 < 0 || y1 >= height || x1 < 0 || x1 >= width) continue;\n"
                           "        first = first && float(x[((picture * height + y1) * width + x1) * channels + channel]) != most;\n      }\n"
                           "      if (first) sum += float(dy[output * channels + channel]);\n") +
             (contract.op.activation == Activation::None ? "  dx[i] = dx_t(sum);\n" : "  dx[i] = dx_t(sum * activation_slope(float(x[i])));\n");
    case OpKind::SquaredErrorGrad:
      return "  dz[i] = dz_t(2 * gradient_scale / dz_cols * (float(z[i]) - float(y[i])));\n";
    case OpKind::Embed:
      return std::string("  const int row = i / table_cols, col = i % table_cols;\n  float sum = float(table[int(symbols[row]) * table_cols + col]);\n") +
             (contract.operands.size() > 3 ? "  sum += float(positions[row % symbols_cols * table_cols + col]);\n" : "") + "  h[i] = h_t(sum);\n";
    case OpKind::EmbedGrad:
      return embed_gradient_body(contract);
    case OpKind::LayerNormGrad:
      return norm_gradient_body(contract);
    case OpKind::MaxPool:
      return kPlace + std::string("  float best = -INFINITY;\n") +
             window_loop("      best = fmaxf(best, float(x[((picture * height + y0) * width + x0) * channels + channel]));\n") +
             "  y[i] = y_t(best);\n";
    case OpKind::AvgPool:
      return kPlace + std::string("  float sum = 0;\n  int count = 0;\n") +
             window_loop("      sum += float(x[((picture * height + y0) * width + x0) * channels + channel]), ++count;\n") +
             "  y[i] = y_t(sum / count);\n";
    case OpKind::BroadcastBias:
      return "  c[i] = c_t(float(bias[i % bias_cols]));\n";
    case OpKind::Add:
      return "  c[i] = c_t(float(a[i]) + float(b[i]));\n";
    case OpKind::Activate:
      return "  h[i] = h_t(activation(float(z[i])));\n";
    case OpKind::ActivateGrad:
      return "  dz[i] = dz_t(float(dh[i]) * activation_slope(float(saved[i])));\n";
    case OpKind::BiasActivate:
      return std::string("  const float sum = float(z[i]) + float(bias[i % bias_cols]);\n") +
             (contract.operands.back().name == "pre" ? "  pre[i] = pre_t(sum);\n" : "") + "  h[i] = h_t(activation(sum));\n";
    case OpKind::SoftmaxGrad:
      return "  const int row = i / dz_cols, col = i % dz_cols;\n"
             "  dz[i] = dz_t((float(p[i]) - (int(y[row]) == col ? 1.f : 0.f)) * gradient_scale);\n";
    case OpKind::ColumnSum:
      return "  float sum = 0;\n  for (int row = 0; row < dz_rows * dz_cols / db_cols; ++row) sum += float(dz[row * db_cols + i]);\n"
             "  db[i] = db_t(sum);\n";
    case OpKind::Softmax:
      return "  float most = -INFINITY, sum = 0;\n"
             "  for (int col = 0; col < z_cols; ++col) most = fmaxf(most, float(z[i * z_cols + col]));\n"
             "  for (int col = 0; col < z_cols; ++col) sum += expf(float(z[i * z_cols + col]) - most);\n"
             "  for (int col = 0; col < z_cols; ++col) p[i * z_cols + col] = p_t(expf(float(z[i * z_cols + col]) - most) / sum);\n";
    case OpKind::LayerNorm:
      return norm_body(contract);
    case OpKind::Update:
    case OpKind::UpdateAll:
      return update_body(contract);
    default:
      throw Failure("There is no first version for the op " + contract.op_name + ".");
  }
}

std::string threads_needed(const KernelContract& contract, const std::string& out) {
  if (contract.op.kind == OpKind::Softmax) return "z_rows";
  if (contract.op.kind == OpKind::LayerNorm) return "mean_rows";
  if (contract.op.kind == OpKind::LayerNormGrad) return "(mean_rows > gain_cols ? mean_rows : gain_cols)";
  if (contract.op.kind == OpKind::EmbedGrad && contract.operand_named("dpositions"))
    return "(dtable_rows > dpositions_rows ? dtable_rows : dpositions_rows) * dtable_cols";
  return out + "_rows * " + out + "_cols";
}

const Operand& first_result(const KernelContract& contract) { return *std::ranges::find_if(contract.operands, &Operand::written); }

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
  const std::string out = first_result(contract).name, count = threads_needed(contract, out), made = body(contract, out);
  const bool loops = contract.takes_step();  // over all values, with as many threads as the first parameter has
  return comments_of(contract) + "constexpr int kThreads = 256, kBlocks = (" + count + " + kThreads - 1) / kThreads, kSharedBytes = 0;\n\n" +
         (loops ? update_rule(contract.train) : "") + "extern \"C\" __global__ void " + kEntry + "(" + parameters_of(contract) + ") {\n" +
         "  const int i = blockIdx.x * kThreads + threadIdx.x;\n" + (loops ? "" : "  if (i >= " + count + ") return;\n") + made + "}\n";
}

}  // namespace ws::own
