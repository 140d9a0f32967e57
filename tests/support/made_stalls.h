// A run with samples of three kernels: one's own with lines and its code, another one, and a library's without lines.
#pragma once
#include <initializer_list>
#include <string>
#include <utility>

#include "profiling/trace/run_data.h"

namespace ws::prof {

struct MadeStalls {
  RunData run;
  MadeStalls() {
    add("bias_relu(float*)", 1, "/home/my.cu", 0, 18, {{Stall::GlobalMemory, 600}, {Stall::FixedLatency, 100}, {Stall::Issued, 30}});
    add("bias_relu(float*)", 1, "/home/my.cu", 16, 18, {{Stall::Issued, 20}});
    add("bias_relu(float*)", 1, "/home/my.cu", 32, 12, {{Stall::Barrier, 200}});
    add("bias_relu(float*)", 1, "/home/my.cu", 48, 14, {{Stall::Fetch, 50}});
    add("scale(float*)", 1, "/home/more.cu", 0, 7, {{Stall::SharedMemory, 400}, {Stall::Issued, 100}});
    add("library_gemm", 9, "", 0, 0, {{Stall::MathPipe, 300}, {Stall::NotSelected, 100}});
    run.trace.stalls.add(SampledInstruction{.module = 1, .offset = 64, .line = 18, .function = run.trace.intern("bias_relu(float*)"), .file = run.trace.intern("/home/my.cu")});
    run.trace.stalls.add(SampledCode{1, run.trace.intern("bias_relu(float*)"), 90, std::string(80, '\1'), "0\t/home/my.cu:18\tadd(float*)\t/home/my.cu:30\t\n32\t/home/my.cu:12\tmeet()\t/home/my.cu:31\t\n48\t/home/my.cu:14\t\n"});
    run.trace.stalls.add(SampledWindow{.begin = 1'000'000, .end = 2'000'000, .first_step = 21, .end_step = 41, .period = 10, .samples = 1900});
  }
  void add(const char* function, uint64_t module, const char* file, uint32_t offset, int line, std::initializer_list<std::pair<Stall, uint64_t>> counts) {
    SampledInstruction one{.module = module, .offset = offset, .line = line, .function = run.trace.intern(function), .file = run.trace.intern(file)};
    for (const auto& [reason, count] : counts) one.samples[static_cast<size_t>(reason)] = count;
    run.trace.stalls.add(one);
  }
};

}  // namespace ws::prof
