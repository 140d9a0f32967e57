// Maps spans to names and categories of a Chrome trace, and back.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "profiling/trace/track_names.h"

namespace ws::prof {

const char* chrome_category(const Track& track, const Span& span, const std::string& name);
// The category that PyTorch writes today for one of its earlier versions: "Kernel", "Runtime".
std::string_view category_of_today(std::string_view category, std::string_view name);
CallClass class_of_chrome(std::string_view category, const std::string& name);
// What a device did, by its name: ROCm and XLA write copies, fills and markers beside their kernels, under one category.
CallClass class_of_device_work(const std::string& name);
std::string copy_kind_of_device_work(std::string_view name);  // of a copy that such a name says; empty: none
// The kind of device whose work has this category: "MTIA"; empty: a GPU, or none.
std::string_view device_of_category(std::string_view category);
// The device that a process stands for: {"TPU", 0} for "/device:TPU:0".
struct NamedDevice {
  std::string kind;
  int64_t number = 0;
};
std::optional<NamedDevice> device_of_process(std::string_view name);

// Our own words, written beside the categories for what these cannot express.
const char* kind_word(SpanKind kind);
std::optional<SpanKind> kind_of_word(std::string_view word);
const char* row_word(TrackKind kind);
std::optional<TrackKind> row_of_word(std::string_view word);
std::optional<Meaning> meaning_of_word(std::string_view word);

std::string chrome_memset_name(std::string_view place);  // "Memset (Device)"
std::string place_of_chrome_memset(std::string_view name);

}  // namespace ws::prof
