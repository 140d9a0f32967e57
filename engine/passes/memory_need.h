// Checks whether a run fits into memory before anything is allocated. Linux would grant the memory and kill the program
// when it touches it.
#pragma once
#include <optional>
#include <string>

#include "engine/plan/model.h"

namespace ws {

struct FreeMemory {
  int64_t host_bytes = 0;
  int64_t device_bytes = 0;  // free GPU memory; 0: the run uses the CPU
  bool on_gpu() const { return device_bytes > 0; }
};

// The size of a data set, known before its rows are loaded.
struct DataSize {
  int64_t features = 0, train_rows = 0, test_rows = 0;
  DataSize(int64_t of_a_row, int64_t train, int64_t test) : features(of_a_row), train_rows(train), test_rows(test) {}
  DataSize(const data::Dataset& data) : DataSize(data.features, data.train.rows, data.test.rows) {}
};

// Rows that the CPU evaluates at a time: fewer if the layers of a row are large.
int64_t cpu_evaluation_rows(const Model& model);

// Peak bytes while the run trains. The data set is not counted because it is already in memory.
int64_t host_bytes_needed(const RunSpec& spec, const Model& model, const DataSize& data, bool on_gpu);
int64_t device_bytes_needed(const RunSpec& spec, const Model& model, const DataSize& data);

// Returns nullopt if the run fits.
std::optional<Refusal> why_it_does_not_fit(const RunSpec& spec, const Model& model, const DataSize& data, FreeMemory free);
// The same for a run that ran out of host memory, even if our estimate says that it fits.
Refusal out_of_memory(const RunSpec& spec, const Model& model, const DataSize& data, FreeMemory free);

// Parts of the message for a step that is too large.
std::string biggest_buffers(const Plan& plan);  // the step's three largest buffers, with sizes
// Returns the largest batch below `below` whose steps fit into `free_bytes`, with a reserve for allocator waste.
// Returns 0 if not even one row fits.
int64_t largest_batch(const RunSpec& spec, const Model& model, int64_t below, int64_t free_bytes);
std::string batch_advice(int64_t batch);  // "a batch of 128 fits"

}  // namespace ws
