#include "app/core/kernels/kernel_check_process.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "datasets/dataset.h"
#include "engine/devices/device_workloads.h"
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

using Check = std::function<OwnKernelVerdict(const OnLaunch&)>;

constexpr std::string_view kLaunches = "{}", kLaunched = "[]";  // lines of the checking process

ShapeResult checked(const std::string& shape, const Check& check) {
  const auto on_launch = [](bool runs) {
    std::puts((runs ? kLaunches : kLaunched).data());
    std::fflush(stdout);
  };
  try {
    ShapeResult result{.shape = shape, .sentence = {}, .verdict = check(on_launch), .failure = {}};
    result.sentence = result.verdict.sentence();
    return result;
  } catch (const OwnKernelRefused& refused) {
    return fault_result(shape, refused.fault, refused.what());
  } catch (const CallFailure& problem) {
    if (const OwnKernelFault fault = fault_of_call(problem.code); fault != OwnKernelFault::None) return fault_result(shape, fault, sentence_of(fault));
    return {.shape = shape, .sentence = problem.what(), .verdict = {}, .failure = problem.what()};
  } catch (const std::exception& problem) {
    return {.shape = shape, .sentence = problem.what(), .verdict = {}, .failure = problem.what()};
  }
}

// Prints a result for the following process. Returns whether it is good.
bool print_checked(const std::string& shape, const Check& check) {
  const ShapeResult result = checked(shape, check);
  std::printf("%s\n", to_json_line(result).c_str());
  std::fflush(stdout);
  return result.good();
}

json to_json(const KernelToCheck& kernel) {
  json shapes = json::array();
  for (const CheckedShape& shape : kernel.shapes) shapes.push_back({{"name", shape.name}, {"spec", to_json(shape.spec)}});
  return {{"op", kernel.op}, {"file", kernel.file}, {"shapes", shapes}};
}

// A file for the checking process, removed at the end.
class RequestFile {
 public:
  explicit RequestFile(const json& request) : path_((folder_.path() / "request.json").string()) {
    prof::write_whole(path_, request.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

KernelToCheck read_request(const JsonInput& in) {
  KernelToCheck kernel{in.required("op").text(), in.required("file").text(), {}};
  for (const JsonInput& shape : in.required("shapes").items()) kernel.shapes.push_back({shape.at("name").text(), spec_from_json(shape.required("spec").value())});
  return kernel;
}

// Follows the checking process, which may crash and may never end.
class Follower {
 public:
  Follower(std::vector<std::string> shapes, const CheckTimes& times, const json& request, std::vector<std::string> program)
      : shapes_(std::move(shapes)), times_(times), request_(request), process_(with_request(std::move(program)), Process::Output::Captured) {}
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
      const std::string line = read_line(launching ? times_.launch_ms : times_.load_ms);
      if (line == kLaunches || line == kLaunched) {
        launching = line == kLaunches;
        continue;
      }
      if (line.empty()) results.push_back(ended(shapes_[results.size()], launching));
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
  std::string read_line(int within_ms) {
    while (text_.find('\n') == text_.npos) {
      const auto more = process_.output(within_ms);
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

  std::vector<std::string> shapes_;
  CheckTimes times_;
  RequestFile request_;
  Process process_;
  std::string text_;
  bool late_ = false;
};

void list(JsonFields& f, ShapeResult& r) {
  OwnKernelVerdict& v = r.verdict;
  f("shape", r.shape), f("sentence", r.sentence), f("failure", r.failure);
  f.as("fault", to_string(v.fault), [&v](const JsonInput& in) { v.fault = fault_named(in.text()); });
  f("error", v.error), f("own_us", v.own_us), f("empty_us", v.empty_us), f("built_in_us", v.built_in_us), f("bytes", v.bytes);
  f("flops", v.flops), f("occupancy", v.occupancy), f("registers", v.registers), f("same_bits", v.same_bits);
}

}  // namespace

std::string to_json_line(const ShapeResult& result) {
  return written(result, list, {{"good", result.good()}}).dump(-1, ' ', false, json::error_handler_t::replace);
}

ShapeResult shape_result(const std::string& json_line) {
  const json line = parse_json(json_line, "The check's line");
  return read_from<ShapeResult>(JsonInput(line, "The check's line"), list);
}

std::vector<ShapeResult> check_kernel(const KernelToCheck& kernel, const std::function<bool(const ShapeResult&)>& arrived, const CheckTimes& times,
                                      const std::vector<std::string>& program) {
  std::vector<std::string> shapes;
  for (const CheckedShape& shape : kernel.shapes) shapes.push_back(shape.name);
  return Follower(std::move(shapes), times, to_json(kernel), program).run(arrived);
}

namespace {

std::string check_name(const lab::LabSpec& spec, lab::Way way, int64_t size) { return lab::label_of(spec, way) + ", " + std::to_string(size); }

// One process a kernel, because a wrong one may end it.
void check_lab_kernel_of(const lab::LabSpec& spec, lab::Way way, const std::function<bool(const std::string&)>& arrived,
                         const std::vector<std::string>& program, lab::KernelChecks& checks) {
  std::vector<std::string> shapes;
  for (const int64_t size : spec.sizes) shapes.push_back(check_name(spec, way, size));
  const json request{{"lab", to_json(spec)}, {"way", lab::info(way).name}};
  const auto results = Follower(std::move(shapes), CheckTimes{}, request, program).run([&](const ShapeResult& result) { return arrived(result.shape); });
  for (size_t i = 0; i < results.size(); ++i)
    checks[{way, spec.sizes[i]}] = results[i].good() ? "" : results[i].failure.empty() ? std::string(lab::kWrongKernel) + results[i].sentence : results[i].failure;
}

int check_lab_inside(const JsonInput& in) {
  const lab::LabSpec spec = lab::lab_spec_from_json(in.required("lab").value());
  for (size_t i = 0; i < spec.kernels.size(); ++i) {
    const lab::Way way = lab::own_way(i);
    if (lab::info(way).name != in.required("way").text()) continue;
    for (const int64_t size : spec.sizes)
      if (!print_checked(check_name(spec, way, size), [&](const OnLaunch& on_launch) { return check_lab_kernel(spec, way, size, on_launch); })) return 1;
  }
  return 0;
}

}  // namespace

lab::KernelChecks check_lab_kernels(const lab::LabSpec& spec, const std::function<bool(int, const std::string&)>& arrived,
                                    const std::vector<std::string>& program) {
  lab::KernelChecks checks;
  int done = 0;
  bool goes_on = true;
  for (size_t i = 0; i < spec.kernels.size() && goes_on; ++i)
    check_lab_kernel_of(spec, lab::own_way(i), [&](const std::string& what) { return goes_on = arrived(++done, what); }, program, checks);
  return checks;
}

int check_inside(const std::string& request_file) {
  const json request = read_json(request_file);
  const JsonInput in(request, request_file);
  if (in.at("lab").there()) return check_lab_inside(in);
  const KernelToCheck kernel = read_request(in);
  const OwnKernelSource source = own::read_source(own::KernelChoice{kernel.op, kernel.file, {}});
  if (kernel.shapes.empty()) return 0;
  const data::Dataset data = data::load(kernel.shapes.front().spec.data);
  for (const CheckedShape& shape : kernel.shapes) {
    const auto check = [&](const OnLaunch& on_launch) {
      const CheckedPlan planned = plan_of(shape.spec, data);
      return check_own_kernel(planned.plan, planned.model, data, kernel.op, source, on_launch);
    };
    if (!print_checked(shape.name, check)) return 1;
  }
  return 0;
}

}  // namespace ws::app
