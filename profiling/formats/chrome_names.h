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

// Our own words, written beside the categories for what these cannot express.
const char* kind_word(SpanKind kind);
std::optional<SpanKind> kind_of_word(std::string_view word);
const char* row_word(TrackKind kind);
std::optional<TrackKind> row_of_word(std::string_view word);
std::optional<Meaning> meaning_of_word(std::string_view word);

std::string chrome_memset_name(std::string_view place);  // "Memset (Device)"
std::string place_of_chrome_memset(std::string_view name);

}  // namespace ws::prof
