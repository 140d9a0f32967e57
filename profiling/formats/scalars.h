// Imports and exports losses and accuracies in TensorBoard formats.
#pragma once
#include <string>
#include <string_view>

#include "profiling/trace/run_data.h"

namespace ws::prof {

// What a tag measures: "train/loss", "val_acc", "run-.-tag-test_accuracy".
enum class ScalarKind : uint8_t { Loss, Accuracy, Other };
struct ScalarTag {
  ScalarKind kind = ScalarKind::Other;
  bool test = false;   // measured on data not used for training
  bool named = false;  // the file name contains the tag
  bool operator==(const ScalarTag& other) const { return kind == other.kind && test == other.test; }
};
ScalarTag tag_of(std::string_view tag);
ScalarTag tag_of_file(const std::string& path);  // training loss if the name says nothing

// An events file, or a new one in `path` if that is a folder.
void export_tensorboard(const RunData& run, const std::string& path);
// Wall time,Step,Value; Tag if there are several tags
void export_scalars_csv(const RunData& run, const std::string& path);
RunData import_scalars_csv(const std::string& path);
RunData parse_scalars_csv(std::string_view text, const std::string& name = {});  // throws ws::Failure
// checksum in TensorFlow's record files
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace ws::prof
