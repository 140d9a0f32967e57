// Imports losses and accuracies from the CSV files of TensorBoard.
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

RunData import_scalars_csv(const std::string& path);
RunData parse_scalars_csv(std::string_view text, const std::string& name = {});  // throws ws::Failure

}  // namespace ws::prof
