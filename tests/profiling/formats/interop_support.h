// A made run to write in other tools' formats, and Python to read them with.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "profiling/trace/run_data.h"
#include "tests/profiling/trace/made_trace.h"

namespace ws::prof {

class Interop : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder);
    run.summary.name = "arena \"quoted\" · \\graph";
    run.summary.device = "NVIDIA H200";
    run.summary.created = "2026-11-21T05:40:34Z";
    run.trace = std::move(made.trace);
    for (int i = 0; i < 5; ++i) run.metrics.push_back({i, 0.25 * i, 2.0 - 0.1 * i, 0.5});
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string path(const char* name) const { return (folder / name).string(); }

  // "group / track: name start+duration step 8" of each span, in order of the letters.
  static std::vector<std::string> said(const Trace& trace) {
    std::vector<std::string> lines;
    for (const Track& track : trace.tracks())
      for (const SpanBlock& block : track.blocks)
        for (const Span& s : block.spans)
          lines.push_back(track.group + " / " + track.name + ": " + trace.name(s.name) + " " + std::to_string(s.start) +
                          "+" + std::to_string(s.duration) + (s.step ? " step " + std::to_string(s.step - 1) : ""));
    std::ranges::sort(lines);
    return lines;
  }

  // Runs a Python program on a file; what it prints is what we know of it.
  std::string python(const std::string& program, const std::string& file) const {
    std::ofstream(path("check.py")) << program;
    const std::string out = path("out.txt");
    const int code = std::system(("python3 " + path("check.py") + " " + file + " > " + out + " 2>&1").c_str());
    std::stringstream text;
    text << std::ifstream(out).rdbuf();
    EXPECT_EQ(code, 0) << text.str();
    return text.str();
  }

  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("interop_test_" + std::to_string(getpid()));
  MadeTrace made{200};
  RunData run;
};

}  // namespace ws::prof
