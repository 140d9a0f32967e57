// Packs the spans of a track into columns of small numbers, which compress to a few bytes a span. resources/page/data.js
// reads them.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::app {

// Texts of a page, each stored once. Numbers count from 0.
class PageTexts {
 public:
  size_t number(const std::string& text);
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<std::string> texts_;
};

// Names, ops and launch shapes that the packed spans of one run use. Number 0 of ops and shapes stands for none.
class SpanNames {
 public:
  size_t name(const prof::Trace& trace, prof::NameId id);
  size_t op(const prof::Trace& trace, prof::OpTag tag);
  size_t shape(const prof::Trace& trace, prof::DetailId id);
  nlohmann::ordered_json json() const;  // {"names", "short", "ops", "shapes"}

 private:
  PageTexts names_;
  std::vector<std::string> short_{};  // by name; empty: the whole name is short
  nlohmann::ordered_json ops_ = nlohmann::ordered_json::array({nullptr}), shapes_ = ops_;
  using Key = std::pair<const prof::Trace*, uint32_t>;
  struct KeyHash {
    size_t operator()(const Key& key) const { return std::hash<const void*>()(key.first) ^ key.second * 0x9E3779B97F4A7C15; }
  };
  std::unordered_map<Key, size_t, KeyHash> known_names_, known_ops_, known_shapes_;
};

struct LaneColumns {
  size_t spans = 0;
  prof::TimeNs from = 0;          // spans that start earlier are only in the overview
  std::string bytes;              // the columns, one after the other
  std::vector<size_t> lengths{};  // bytes of each column
};
// The spans of the track that are in memory; times count from `origin`.
LaneColumns pack_lane(const prof::Trace& trace, const prof::Track& track, prof::TimeNs origin, SpanNames& names);

inline constexpr int kOverviewColumns = 1024, kOverviewUnits = 8;  // units a column
// The whole track in at most one bar a column: [from the end of the bar before, width, meaning, busy of 255, spans] each,
// in units of a column. It includes blocks whose spans are not in memory.
nlohmann::ordered_json lane_overview(const prof::Track& track, prof::TimeNs begin, prof::TimeNs end);

}  // namespace ws::app
