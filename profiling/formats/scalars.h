// Losses and accuracies for and from TensorBoard.
#pragma once
#include <string>
#include <string_view>

#include "profiling/trace/run_data.h"

namespace ws::prof {

// What a tag is of: "train/loss", "val_acc", "run-.-tag-test_accuracy".
enum class ScalarKind : uint8_t { Loss, Accuracy, Other };
struct ScalarTag {
  ScalarKind kind = ScalarKind::Other;
  bool test = false;   // measured on data that is not trained on
  bool named = false;  // the file's name says the tag
  bool operator==(const ScalarTag& other) const { return kind == other.kind && test == other.test; }
};
ScalarTag tag_of(std::string_view tag);
ScalarTag tag_of_file(const std::string& path);  // losses of the training where the name says nothing

void export_tensorboard(const RunData& run, const std::string& path);  // an events file; into a folder when path is one
void export_scalars_csv(const RunData& run, const std::string& path);  // Wall time,Step,Value and, of several tags, Tag
RunData import_scalars_csv(const std::string& path);
RunData parse_scalars_csv(std::string_view text, const std::string& name = {});  // throws ws::Failure
uint32_t masked_crc32c(std::string_view bytes);                                  // as TensorFlow's record files hold it

}  // namespace ws::prof
