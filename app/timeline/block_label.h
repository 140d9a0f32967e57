// What a block of the timeline is called, and which of its names fits into it. Pure but for the font metrics given in.
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
// The longest of {full, short, layer} that fits with 4 px on each side. From 62 px on it may end in an ellipsis after at
// least 6 letters. Empty if nothing fits.
QString fitting_label(const BlockNames& names, double width, const Measure& measure);

// The op's line for the card and the panels: "gemm dW1 = xᵀ·dz1", or empty.
QString op_text(const prof::Trace& trace, prof::OpTag op);
const prof::OpInfo* op_of(const prof::Trace& trace, prof::OpTag op);

}  // namespace ws::app
