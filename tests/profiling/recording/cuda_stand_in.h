// Stands in for CUDA's driver in tests: a stream is a time, and the GPU's clock runs a little faster than the host's.
#pragma once
#include <cstdint>

extern "C" {
void* stand_in_stream();                            // like a stream that the program made
void stand_in_busy_until(void* stream, int64_t at);  // steady clock, ns: its work so far ends then
void stand_in_capture(void* stream, int on);
int cuProfilerStart();
int cuProfilerStop();
int stand_in_recorded();  // events so far, on streams of the program
}
