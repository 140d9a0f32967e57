// Whether a run fits into the memory there is, asked before anything is allocated: the system would grant the memory
// and end the program when it is touched.
#pragma once
#include <optional>
#include <string>

#include "engine/plan/model.h"

namespace ws {

struct FreeMemory {
  int64_t host_bytes = 0;
  int64_t device_bytes = 0;  // of the GPU; 0: the run is on the CPU
  bool on_gpu() const { return device_bytes > 0; }
};

// The size of a data set: its rows may not be loaded yet.
struct DataSize {
  int64_t features = 0, train_rows = 0, test_rows = 0;
  DataSize(int64_t of_a_row, int64_t train, int64_t test) : features(of_a_row), train_rows(train), test_rows(test) {}
  DataSize(const data::Dataset& data) : DataSize(data.features, data.train.rows, data.test.rows) {}
};

inline constexpr int64_t kCpuEvaluationRows = 8192;  // the CPU evaluates so many rows at a time

// The most that is alive at once while the run trains, the data set excepted, which is there already.
int64_t host_bytes_needed(const RunSpec& spec, const Model& model, const DataSize& data, bool on_gpu);
int64_t device_bytes_needed(const RunSpec& spec, const Model& model, const DataSize& data);

// One sentence; empty when the run fits.
std::optional<std::string> why_it_does_not_fit(const RunSpec& spec, const Model& model, const DataSize& data,
                                               FreeMemory free);
// The same for a run that asked the host for more than there was, whatever the count said.
std::string out_of_memory_message(const RunSpec& spec, const Model& model, const DataSize& data, FreeMemory free);

// Wherever a step turns out to be too large: its biggest buffers, and the largest batch that would do.
std::string biggest_buffers(const Plan& plan);  // of a step: three, with their sizes
// Below `below`, in what is left for the steps alone, of which allocators waste some; 0: not even one row fits.
int64_t largest_batch(const RunSpec& spec, const Model& model, int64_t below, int64_t free_bytes);
std::string batch_advice(int64_t batch);  // "a batch of 128 fits"

}  // namespace ws
