// warpsight kernel: write a CUDA kernel for one op of a plan, compile it, check it, and see its time beside the built-in one.
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "engine/devices/devices.h"
#include "engine/devices/own_kernels.h"
#include "engine/own_kernels/kernel_contract.h"
#include "engine/passes/compile.h"
#include "profiling/base/json_input.h"
#include "profiling/base/paths.h"
#include "profiling/base/process.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"
#include "profiling/base/whole_file.h"

namespace ws::cli {
namespace {

using nlohmann::json;

constexpr int kLoadMs = 60'000;    // the data, the GPU's context, the compiler
constexpr int kLaunchMs = 2'000;   // the launches of one shape
constexpr int64_t kRowsOfData = 1024;

struct KernelArguments {
  SpecArguments spec;
  std::string op, file;
  int compute = 90;
  bool as_json = false, inside = false;
};

// One plan that the kernel is checked on: the shapes of the run, and others.
struct Shape {
  std::string name;  // "batch 37"
  RunSpec spec;
};

struct Planned {
  data::Dataset data;
  Model model;
  Plan plan;
};

Planned plan_of(RunSpec spec) {
  spec.exec.kernels.clear();
  if (spec.exec.launch == Launch::Persistent || spec.exec.launch == Launch::Auto) spec.exec.launch = Launch::Eager;
  Planned made{data::load(spec.data), {}, {}};
  made.model = make_model(spec.model, made.data.features, made.data.outputs);
  const int64_t rows = spec.train.batch == 0 ? made.data.train.rows : std::min(spec.train.batch, made.data.train.rows);
  made.plan = compile(spec, made.model, rows).plan;
  return made;
}

int list_ops(const KernelArguments& a) {
  const Planned planned = plan_of(a.spec.asked());
  for (const Op& op : planned.plan.ops)
    if (!own::why_none(planned.plan, op)) std::printf("%s\n", formatted("{:<16} {}", op.name, describe(planned.plan, op)).c_str());
  return kDone;
}

int write_first(const KernelArguments& a) {
  const Planned planned = plan_of(a.spec.asked());
  const std::string text = own::first_version(own::contract_of(planned.plan, own::find_op(planned.plan, a.op)));
  if (a.file.empty()) return std::fputs(text.c_str(), stdout) < 0 ? kFailed : kDone;
  if (std::FILE* there = std::fopen(a.file.c_str(), "rb")) {
    std::fclose(there);
    throw Failure(a.file + ": exists already. Choose another name, or remove it first.");
  }
  prof::write_whole(a.file, text);
  std::printf("written: %s; to check it: warpsight kernel check %s \"%s\" %s\n", a.file.c_str(), a.spec.source.c_str(), a.op.c_str(), a.file.c_str());
  return kDone;
}

int compile_only(const KernelArguments& a) {
  const Planned planned = plan_of(a.spec.asked());
  const size_t bytes = compile_own_kernel(planned.plan, a.op, own::read_source(a.file), a.compute);
  std::printf("%s compiles for sm_%d: %s of machine code\n", a.file.c_str(), a.compute, bytes_text(static_cast<double>(bytes)).c_str());
  return kDone;
}

std::vector<Shape> shapes_of(RunSpec spec) {
  if (spec.data.limit == 0) spec.data.limit = kRowsOfData;
  std::vector<Shape> shapes{{"the shapes of the run", spec}};
  for (const int64_t batch : {1, 3, 37, 129}) {
    shapes.push_back({"batch " + std::to_string(batch), spec});
    shapes.back().spec.train.batch = batch;
  }
  for (const int64_t width : {1, 33, 200}) {
    shapes.push_back({"hidden layers of " + std::to_string(width), spec});
    for (int64_t& each : shapes.back().spec.model.hidden) each = width;
  }
  return shapes;
}

json to_json(const OwnKernelVerdict& v) {
  return {{"fault", to_string(v.fault)}, {"sentence", v.sentence()}, {"own_us", v.own_us}, {"built_in_us", v.built_in_us},
          {"bytes", v.bytes}, {"flops", v.flops}, {"registers", v.registers}, {"occupancy", v.occupancy}, {"good", v.good()}};
}

// The checking process: an empty object before the launches of a shape, and their result.
int check_inside(const KernelArguments& a) {
  const OwnKernelSource source = own::read_source(a.file);
  for (const Shape& shape : shapes_of(a.spec.asked())) {
    const Planned planned = plan_of(shape.spec);
    json line{{"shape", shape.name}};
    try {
      const auto ready = [] {
        std::printf("{}\n");
        std::fflush(stdout);
      };
      line.update(to_json(check_own_kernel(planned.plan, planned.model, planned.data, a.op, source, ready)));
    } catch (const std::exception& problem) {
      line.update({{"good", false}, {"sentence", problem.what()}});
    }
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
    if (!line["good"].get<bool>()) return kFailed;
  }
  return kDone;
}

// Follows the checking process. It may crash, and it may never end.
class Follower {
 public:
  explicit Follower(const KernelArguments& a) : shapes_(shapes_of(a.spec.asked())), process_(command_of(a), Process::Output::Heard) {}

  std::vector<json> run() {
    bool good = true;
    for (int patience = kLoadMs; good && results_.size() < shapes_.size();) {
      const std::optional<json> line = read_line(patience);
      patience = line && line->empty() ? kLaunchMs : kLoadMs;  // an empty line: the launches begin
      if (!line || line->empty()) good = line.has_value();
      else results_.push_back(*line), good = (*line)["good"].get<bool>();
    }
    process_.signal(SIGKILL);
    process_.wait();
    return std::move(results_);
  }

 private:
  static std::vector<std::string> command_of(const KernelArguments& a) {
    std::vector<std::string> words{program_file().string(), "kernel", "check", a.spec.source, a.op, a.file, "--inside"};
    for (const std::string& set : a.spec.overrides) words.insert(words.end(), {"--set", set});
    return words;
  }

  std::optional<json> read_line(int most_ms) {
    while (text_.find('\n') == text_.npos) {
      const auto more = process_.output(most_ms);
      if (!more) return end_with("the kernel ended its process: it reads or writes memory that is not its own");
      if (more->empty()) return end_with("the kernel does not end");
      text_ += *more;
    }
    const size_t end = text_.find('\n');
    json line = parse_json(text_.substr(0, end), "The check's line");
    text_.erase(0, end + 1);
    return line;
  }

  std::nullopt_t end_with(const std::string& sentence) {
    results_.push_back({{"shape", shapes_[results_.size()].name}, {"good", false}, {"sentence", sentence}});
    return std::nullopt;
  }

  std::vector<Shape> shapes_;
  Process process_;
  std::string text_;
  std::vector<json> results_;
};

void print_result(const json& r) {
  std::string text = (r["good"].get<bool>() ? "good   " : "wrong  ") + r["shape"].get<std::string>() + ": " + r["sentence"].get<std::string>();
  if (r.contains("own_us") && r["good"].get<bool>()) {
    const double own = r["own_us"].get<double>(), built_in = r["built_in_us"].get<double>();
    text += formatted("; {:.2f} µs, built in {:.2f} µs", own, built_in);
    if (r["registers"].get<int>() > 0) text += formatted("; {} registers, occupancy {:.0f} %", r["registers"].get<int>(), 100 * r["occupancy"].get<double>());
  }
  std::printf("%s\n", printable(text).c_str());
}

int check(const KernelArguments& a) {
  if (a.inside) return check_inside(a);
  const Planned planned = plan_of(a.spec.asked());
  compile_own_kernel(planned.plan, a.op, own::read_source(a.file), a.compute);  // a mistake in the text is found without a GPU
  if (!device_info().cuda) throw Failure("It compiles. A check needs a GPU: " + device_info().why_not);
  const std::vector<json> results = Follower(a).run();
  const bool good = !results.empty() && results.back()["good"].get<bool>();
  if (a.as_json) {
    std::printf("%s\n", json{{"op", a.op}, {"file", a.file}, {"device", device_info().name}, {"good", good}, {"shapes", results}}.dump(2).c_str());
    return good ? kDone : kFailed;
  }
  for (const json& result : results) print_result(result);
  return good ? kDone : kFailed;
}

using Action = int (*)(const KernelArguments&);

CLI::App& add_action(CLI::App& kernel, const std::shared_ptr<KernelArguments>& a, const std::shared_ptr<Action>& chosen, const char* name,
                     const char* text, Action action) {
  CLI::App& command = *kernel.add_subcommand(name, text);
  a->spec.add_to(command);
  command.callback([chosen, action] { *chosen = action; });
  return command;
}

}  // namespace

Run add_kernel(CLI::App& program) {
  auto a = std::make_shared<KernelArguments>();
  auto chosen = std::make_shared<Action>(nullptr);
  CLI::App& kernel = *program.add_subcommand("kernel", "write your own CUDA kernel for an op of the step, check it, time it");
  kernel.require_subcommand(1);
  add_action(kernel, a, chosen, "list", "the ops that take a kernel of your own", list_ops);
  CLI::App& first = add_action(kernel, a, chosen, "new", "write a first version that works", write_first);
  CLI::App& compiled = add_action(kernel, a, chosen, "compile", "compile it, without a GPU", compile_only);
  CLI::App& checked = add_action(kernel, a, chosen, "check", "compare it with the built-in op on many shapes", check);
  for (CLI::App* command : {&first, &compiled, &checked}) {
    command->add_option("OP", a->op, "the op, by its name in the plan")->required();
    CLI::Option* file = command->add_option("FILE", a->file, "the CUDA source");
    if (command != &first) file->required();
  }
  compiled.add_option("--arch", a->compute, "compute capability: 80, 86, 89, 90 …")->check(CLI::Range(70, 130));
  checked.add_flag("--json", a->as_json, "print JSON");
  checked.add_flag("--inside", a->inside)->group("");
  kernel.footer(
      "Examples:\n  warpsight kernel new mnist fc1 my.cu\n  warpsight kernel check mnist fc1 my.cu\n"
      "  warpsight kernel list mnist --set exec.fusion=off\n  warpsight train mnist --set exec.kernels=fc1=my.cu");
  return [a, chosen] { return (*chosen)(*a); };
}

}  // namespace ws::cli
