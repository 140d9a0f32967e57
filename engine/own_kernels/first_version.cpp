// The text of a new file: comments that state the contract, the launch geometry, and a kernel with one thread a result.
#include "engine/own_kernels/kernel_contract.h"
#include "profiling/base/failure.h"

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
             "  z[i] = z_t(sum);\n";
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
      return "  float sum = 0, squares = 0;\n"
             "  for (int col = 0; col < gain_cols; ++col) sum += float(x[i * gain_cols + col]);\n"
             "  const float middle = sum / gain_cols;\n"
             "  for (int col = 0; col < gain_cols; ++col) {\n"
             "    const float apart = float(x[i * gain_cols + col]) - middle;\n    squares += apart * apart;\n  }\n"
             "  const float inverse = rsqrtf(squares / gain_cols + 1e-5f);\n"
             "  for (int col = 0; col < gain_cols; ++col)\n"
             "    y[i * gain_cols + col] =\n"
             "        y_t((float(x[i * gain_cols + col]) - middle) * inverse * float(gain[col]) + float(shift[col]));\n"
             "  mean[i] = mean_t(middle);\n  inv[i] = inv_t(inverse);\n";
    default:
      throw Failure("There is no first version for the op " + contract.op_name + ".");
  }
}

std::string threads_needed(const KernelContract& contract, const std::string& out) {
  if (contract.op.kind == OpKind::Softmax) return "z_rows";
  if (contract.op.kind == OpKind::LayerNorm) return "mean_rows";
  return out + "_rows * " + out + "_cols";
}

}  // namespace

std::string first_version(const KernelContract& contract) {
  std::string shapes, parameters, out;
  for (const Operand& o : contract.operands) {
    if (o.written && out.empty()) out = o.name;
    shapes += "//   " + o.name + " (" + std::to_string(o.rows) + ", " + std::to_string(o.cols) + ") " + std::string(to_string(o.type)) +
              (o.written ? ", written" : "") + "\n";
    parameters += std::string(parameters.empty() ? "" : ", ") + (o.written ? "" : "const ") + o.name + "_t* " + o.name;
  }
  const std::string count = threads_needed(contract, out);
  return "// " + contract.meaning + "\n// Row-major matrices. Types and shapes are constants: " + out + "_t, " + out + "_rows, " + out +
         "_cols and so on.\n" + shapes +
         "constexpr int kThreads = 256, kBlocks = (" + count + " + kThreads - 1) / kThreads, kSharedBytes = 0;\n\n"
         "extern \"C\" __global__ void " + kEntry + "(" + parameters + ") {\n"
         "  const int i = blockIdx.x * kThreads + threadIdx.x;\n  if (i >= " + count + ") return;\n" + body(contract, out) + "}\n";
}

}  // namespace ws::own
