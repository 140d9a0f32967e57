#include "app/core/kernels/kernel_check_process.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "datasets/dataset.h"
#include "engine/devices/own_kernels.h"
#include "engine/own_kernels/kernel_contract.h"
#include "engine/own_kernels/kernel_versions.h"
#include "profiling/base/json_fields.h"
#include "profiling/base/paths.h"
#include "profiling/base/process.h"
#include "profiling/base/temporary_folder.h"
#include "profiling/base/whole_file.h"

namespace ws::app {
namespace {

using nlohmann::json;

OwnKernelFault fault_named(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(OwnKernelFault::Endless); ++i)
    if (to_string(static_cast<OwnKernelFault>(i)) == name) return static_cast<OwnKernelFault>(i);
  return OwnKernelFault::None;
}

ShapeResult fault_result(const std::string& shape, OwnKernelFault fault, const std::string& sentence) {
  ShapeResult result{.shape = shape, .sentence = sentence, .verdict = {}, .failure = {}};
  result.verdict.fault = fault;
  return result;
}

ShapeResult check_shape(const CheckedShape& shape, const data::Dataset& data, const std::string& op, const OwnKernelSource& source) {
  const auto ready = [] {
    std::printf("{}\n");
    std::fflush(stdout);
  };
  try {
    const CheckedPlan planned = plan_of(shape.spec, data);
    ShapeResult result{.shape = shape.name, .sentence = {}, .verdict = check_own_kernel(planned.plan, planned.model, data, op, source, ready), .failure = {}};
    result.sentence = result.verdict.sentence();
    return result;
  } catch (const OwnKernelRefused& refused) {
    return fault_result(shape.name, refused.fault, refused.what());
  } catch (const CallFailure& problem) {
    if (const OwnKernelFault fault = fault_of_call(problem.code); fault != OwnKernelFault::None) return fault_result(shape.name, fault, sentence_of(fault));
    return {.shape = shape.name, .sentence = problem.what(), .verdict = {}, .failure = problem.what()};
  } catch (const std::exception& problem) {
    return {.shape = shape.name, .sentence = problem.what(), .verdict = {}, .failure = problem.what()};
  }
}

json to_json(const KernelToCheck& kernel) {
  json shapes = json::array();
  for (const CheckedShape& shape : kernel.shapes) shapes.push_back({{"name", shape.name}, {"spec", to_json(shape.spec)}});
  return {{"op", kernel.op}, {"file", kernel.file}, {"shapes", shapes}};
}

// A file for the checking process, removed at the end.
class RequestFile {
 public:
  explicit RequestFile(const KernelToCheck& kernel) : path_((folder_.path() / "request.json").string()) {
    prof::write_whole(path_, to_json(kernel).dump(-1, ' ', false, json::error_handler_t::replace));
  }
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

KernelToCheck read_request(const std::string& file) {
  const json request = read_json(file);
  const JsonInput in(request, file);
  KernelToCheck kernel{in.required("op").text(), in.required("file").text(), {}};
  for (const JsonInput& shape : in.required("shapes").items()) kernel.shapes.push_back({shape.at("name").text(), spec_from_json(shape.required("spec").value())});
  return kernel;
}

// Follows the checking process, which may crash and may never end.
class Follower {
 public:
  Follower(const KernelToCheck& kernel, const CheckTimes& times, std::vector<std::string> program)
      : shapes_(kernel.shapes), times_(times), request_(kernel), process_(with_request(std::move(program)), Process::Output::Captured) {}
  ~Follower() {
    process_.signal(SIGKILL);
    process_.wait();
  }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  std::vector<ShapeResult> run(const std::function<bool(const ShapeResult&)>& arrived) {
    std::vector<ShapeResult> results;
    bool launching = false;
    while (results.size() < shapes_.size()) {
      const std::string line = read_line(launching);
      if (line == "{}") {
        launching = true;
        continue;
      }
      const std::string& shape = shapes_[results.size()].name;
      if (line.empty()) results.push_back(ended(shape, launching));
      else results.push_back(shape_result(line));
      launching = false;
      if (arrived && !arrived(results.back())) break;
      if (!results.back().good()) break;
    }
    return results;
  }

 private:
  std::vector<std::string> with_request(std::vector<std::string> program) const {
    if (program.empty()) program = {(program_file().parent_path() / "warpsight").string(), "kernel", "check-inside"};
    program.push_back(request_.path());
    return program;
  }

  // Empty: the process ended, or it did not answer in time.
  std::string read_line(bool launching) {
    while (text_.find('\n') == text_.npos) {
      const auto more = process_.output(launching ? times_.launch_ms : times_.load_ms);
      late_ = more && more->empty();
      if (!more || late_) return {};
      text_ += *more;
    }
    const std::string line = text_.substr(0, text_.find('\n'));
    text_.erase(0, line.size() + 1);
    return line;
  }

  ShapeResult ended(const std::string& shape, bool launching) const {
    if (launching && late_) return fault_result(shape, OwnKernelFault::Endless, sentence_of(OwnKernelFault::Endless));
    if (launching) return fault_result(shape, OwnKernelFault::IllegalAddress, "ended its process: it " + sentence_of(OwnKernelFault::IllegalAddress));
    const std::string what = late_ ? "The check did not begin within a minute." : "The check's process ended before the kernel was launched.";
    return {.shape = shape, .sentence = what, .verdict = {}, .failure = what};
  }

  std::vector<CheckedShape> shapes_;
  CheckTimes times_;
  RequestFile request_;
  Process process_;
  std::string text_;
  bool late_ = false;
};

}  // namespace

namespace {

void list(JsonFields& f, ShapeResult& r) {
  OwnKernelVerdict& v = r.verdict;
  f("shape", r.shape), f("sentence", r.sentence), f("failure", r.failure);
  f.as("fault", to_string(v.fault), [&v](const JsonInput& in) { v.fault = fault_named(in.text()); });
  f("error", v.error), f("own_us", v.own_us), f("empty_us", v.empty_us), f("built_in_us", v.built_in_us), f("bytes", v.bytes);
  f("flops", v.flops), f("occupancy", v.occupancy), f("registers", v.registers), f("same_bits", v.same_bits);
}

}  // namespace

std::string to_json_line(const ShapeResult& result) {
  ShapeResult r = result;
  json line = {{"good", r.good()}};
  JsonFields fields(line);
  list(fields, r);
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

ShapeResult shape_result(const std::string& json_line) {
  const json line = parse_json(json_line, "The check's line");
  const JsonInput in(line, "The check's line");
  ShapeResult r;
  JsonFields fields(in);
  list(fields, r);
  return r;
}

std::vector<ShapeResult> check_kernel(const KernelToCheck& kernel, const std::function<bool(const ShapeResult&)>& arrived, const CheckTimes& times,
                                      const std::vector<std::string>& program) {
  return Follower(kernel, times, program).run(arrived);
}

int check_inside(const std::string& request_file) {
  const KernelToCheck kernel = read_request(request_file);
  const OwnKernelSource source = own::read_source(own::KernelChoice{kernel.op, kernel.file, {}});
  if (kernel.shapes.empty()) return 0;
  const data::Dataset data = data::load(kernel.shapes.front().spec.data);
  for (const CheckedShape& shape : kernel.shapes) {
    const ShapeResult result = check_shape(shape, data, kernel.op, source);
    std::printf("%s\n", to_json_line(result).c_str());
    std::fflush(stdout);
    if (!result.good()) return 1;
  }
  return 0;
}

}  // namespace ws::app
