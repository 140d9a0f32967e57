// Prints laboratory results: points as they arrive, and the trace of one point.
#pragma once
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "engine/lab/lab.h"

namespace ws::cli {

class LabLines final : public lab::LabSink {
 public:
  LabLines(FILE* out, lab::LabSpec spec) : out_(out), spec_(std::move(spec)) {}
  void point(const lab::LabPoint& point) override;

 private:
  FILE* out_;
  lab::LabSpec spec_;
  bool headed_ = false;
};

std::string seconds_text(double seconds);
// Prints what an experiment's file says about itself, if anything.
void print_page(FILE* out, const nlohmann::json& experiment);
void print_crossovers(const lab::LabResult& result);
void print_ceilings(const lab::LabResult& result);
// `which` is WAY:SIZE. Prints what happened in the recorded calls of that point, in order of time.
void print_point_trace(const std::string& path, const lab::LabResult& result, const std::string& which);

}  // namespace ws::cli
