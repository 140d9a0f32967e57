// Names of a timeline block, and the choice of the name that fits. Pure, except for the font metrics passed in.
#pragma once
#include <QColor>
#include <QString>
#include <functional>

#include "profiling/trace/trace.h"

namespace ws::app {

struct BlockNames {
  QString full, shorter, layer;  // "cudaMalloc", "malloc", ""
};
BlockNames block_names(const prof::Trace& trace, const prof::Track& track, const prof::Span& span);

// "void cutlass::Kernel<float, 4>(Params)" → "Kernel"; "cudaLaunchKernel_v7000" → "cudaLaunchKernel".
QString short_kernel_name(const std::string& name);
QString short_call_name(const QString& call);  // "cudaMallocAsync" → "malloc"

using Measure = std::function<double(const QString&)>;
// Returns the longest of {full, short, layer} that fits with 4 px on each side. From 62 px on, it may be elided after
// at least 6 letters. Empty if nothing fits.
QString fitting_label(const BlockNames& names, double width, const Measure& measure);

// Text of the op for the card and the panels: "gemm dW1 = xᵀ·dz1", or empty.
QString op_text(const prof::Trace& trace, prof::OpTag op);
const prof::OpInfo* op_of(const prof::Trace& trace, prof::OpTag op);

}  // namespace ws::app
