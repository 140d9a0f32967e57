// Losses for and from TensorBoard.
#pragma once
#include <string>
#include <string_view>

#include "profiling/formats/run_data.h"

namespace ws::prof {

void export_tensorboard(const RunData& run, const std::string& path);  // an events file; into a folder when path is one
void export_scalars_csv(const RunData& run, const std::string& path);  // Wall time,Step,Value of the loss
RunData import_scalars_csv(const std::string& path);
RunData parse_scalars_csv(std::string_view text);  // throws ws::Failure
uint32_t masked_crc32c(std::string_view bytes);    // as TensorFlow's record files hold it

}  // namespace ws::prof
