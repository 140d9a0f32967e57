#include "app/core/runs/torch_run.h"

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/core/runs/machine.h"
#include "app/core/runs/run_ceilings.h"
#include "engine/devices/devices.h"
#include "engine/lab/lab.h"
#include "engine/plan/model.h"
#include "engine/train/schedule.h"
#include "profiling/base/json_input.h"
#include "profiling/base/ownership.h"
#include "profiling/base/paths.h"
#include "profiling/base/text.h"
#include "profiling/base/whole_file.h"
#include "engine/train/trainer.h"
#include "profiling/base/clock.h"
#include "profiling/base/temporary_folder.h"
#include "profiling/base/process.h"
#include "profiling/formats/convert.h"
#include "profiling/trace/trace.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// maximum rows (all epochs together) with a written order; beyond that: file order
constexpr int64_t kMostOrdered = 50'000'000;

struct Output {
  int status = 0;
  std::string text;
};

// Runs a program and passes on its output line by line. Cancelling interrupts it. A program that a shell started in the
// background ignores interrupts, and so does pyenv's python3, a shell script, for a while: then it is terminated.
Output run_program(const std::vector<std::string>& command, const std::atomic<bool>& cancel,
                   const std::function<void(const std::string&)>& said) {
  Process process(command, Process::Output::CapturedWithErrors);
  Output all;
  std::string line;
  constexpr int64_t kPatienceNs = 3'000'000'000;
  int64_t next_signal = 0;
  while (const auto piece = process.output(100)) {
    if (cancel && prof::steady_ns() >= next_signal) {
      process.signal(next_signal == 0 ? SIGINT : SIGTERM);
      next_signal = prof::steady_ns() + kPatienceNs;
    }
    for (const char c : *piece) {
      if (c != '\n') {
        line += c;
        continue;
      }
      if (said && !line.empty()) said(line);
      all.text += line + "\n";
      line.clear();
    }
  }
  all.text += line;
  all.status = process.wait();
  return all;
}

fs::path shipped_script(const fs::path& name) { return resources_folder() / "torch" / name; }

std::string find_recorder(const std::string& program) {
  std::error_code none;
  const fs::path recorder = fs::path(program).parent_path() / "warpsight";
  return device_info().cuda && fs::exists(recorder, none) && !collector_library(program).empty() ? recorder.string()
                                                                                                 : "";
}

template <class T>
void write_array(const fs::path& path, const std::vector<T>& values) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  out.close();
  if (!out) throw Failure(path.string() + ": cannot be written; is the disk full?");
}

int64_t write_orders(const RunSpec& spec, int64_t rows, const fs::path& path) {
  const bool plain = !spec.train.shuffle || spec.train.batch == 0 || spec.train.batch >= rows;
  if (plain || rows * spec.train.epochs > kMostOrdered) return 0;
  std::vector<uint32_t> all;
  for (int64_t epoch = 0; epoch < spec.train.epochs; ++epoch) {
    const std::vector<uint32_t> order = epoch_order(spec.train, rows, epoch);
    all.insert(all.end(), order.begin(), order.end());
  }
  write_array(path, all);
  return spec.train.epochs;
}

// The places of the crops and mirror images of all epochs: down, across and mirrored for each row in the order of training.
bool write_places(const RunSpec& spec, const Model& model, int64_t rows, const fs::path& path) {
  Preparation how;
  how.crop = static_cast<int32_t>(spec.data.crop), how.flip = spec.data.flip;
  if (!model.input.is_picture() || !how.is_random()) return false;
  if (rows * spec.train.epochs > kMostOrdered)
    throw Failure("PyTorch's run gets the places of all crops in a file, and " + std::to_string(rows * spec.train.epochs) +
                  " are too many: choose fewer epochs, or no crop and flip.");
  const int64_t batch = spec.train.batch > 0 ? std::min(spec.train.batch, rows) : rows;
  std::vector<int16_t> all;
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < spec.train.epochs; ++epoch)
    for (int64_t first = 0; first < rows; first += batch, ++step)
      for (int64_t row = 0; row < std::min(batch, rows - first); ++row) {
        const PicturePlace place = place_of(how, spec.train.seed, step, row);
        for (const int value : {place.down, place.across, int{place.mirrored}}) all.push_back(static_cast<int16_t>(value));
      }
  write_array(path, all);
  return true;
}

// PyTorch's run gets the pictures as its network reads them: normalised already.
std::vector<float> normalised(std::vector<float> values, const Model& model) {
  const auto channels = static_cast<size_t>(model.input.channels);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (values[i] - model.pixels.mean[i % channels]) * model.pixels.factor[i % channels];
  return values;
}

// What the padding of a crop is then, by channel.
json padding_of(const Model& model, bool normalise) {
  json values = json::array();
  for (int64_t c = 0; c < model.input.channels; ++c)
    values.push_back(normalise ? -model.pixels.mean[c] * model.pixels.factor[c] : 0.0f);
  return values;
}

json read_output(const fs::path& path) {
  std::error_code none;
  if (!fs::exists(path, none)) throw Failure("PyTorch's script wrote no " + path.filename().string() + ".");
  return read_json(path);
}

double cell(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end == text.c_str() ? std::nan("") : value;
}

// Reads the rows of metrics.csv, without an incomplete last line.
void read_metrics(const fs::path& path, prof::RunData& run) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line) || !line.starts_with("step,epoch,wall_s,train_loss"))
    throw Failure("PyTorch's script wrote no metrics.csv that can be read.");
  while (std::getline(in, line)) {
    std::vector<std::string> cells(1);
    for (const char c : line)
      if (c == ',')
        cells.emplace_back();
      else
        cells.back().push_back(c);
    if (cells.size() != 7) continue;
    const auto step = static_cast<int64_t>(cell(cells[0]));
    const double wall = cell(cells[2]);
    run.metrics.push_back({step, wall, cell(cells[3]), cell(cells[4])});
    if (!std::isnan(cell(cells[5])))
      run.evaluations.push_back({step + 1, cell(cells[1]), wall, cell(cells[5]), cell(cells[6])});
  }
}

// The script marks its steps as ranges. This turns them into normal step spans.
void find_steps(prof::Trace& trace) {
  std::vector<prof::Span> steps;
  for (const prof::Track& track : trace.tracks()) {
    if (prof::broad_kind(track.kind) != prof::TrackKind::Phases) continue;
    prof::each_span(track, INT64_MIN / 2, INT64_MAX, [&](const prof::Span& span) {
      const std::string& name = trace.name(span.name);
      if (!name.starts_with("step ")) return;
      prof::Span step = span;
      step.kind = static_cast<uint64_t>(prof::SpanKind::Step);
      step.step = static_cast<uint32_t>(std::strtoul(name.c_str() + 5, nullptr, 10)) + 1;
      steps.push_back(step);
    });
  }
  if (steps.empty()) return;
  prof::order_by_start(steps);
  const prof::TrackId track = trace.track(prof::TrackKind::Steps, "steps", "CPU");
  const prof::NameId name = trace.intern("step");
  for (prof::Span& step : steps) step.name = name, trace.append(track, step);
}

// Describes PyTorch's eager mode in our choices: its caching allocator, one kernel per operation, a
// wait for each value that is read.
RunSpec as_torch_runs(RunSpec spec) {
  const Precision precision = spec.exec.precision;
  const Device device = spec.exec.device;
  spec.exec = {};
  spec.exec.precision = precision;
  spec.exec.device = device;
  spec.exec.allocator = Allocator::Caching;
  spec.exec.fusion = Fusion::Off;
  return spec;
}

void fill_summary(prof::RunData& run, const TorchRequest& request, const JsonInput& measured) {
  prof::RunSummary& s = run.summary;
  // NaN is null in JSON.
  const auto number = [&measured](const char* key) {
    const JsonInput value = measured.at(key);
    return value.is_null() ? std::nan("") : value.number(std::nan(""));
  };
  s.name = request.title.empty()
               ? "PyTorch · " + (request.spec.name.empty() ? request.spec.data.name : request.spec.name)
               : request.title;
  s.preset = request.spec.name;
  s.origin = "PyTorch " + measured.at("torch").text();
  s.status = measured.at("status").text("finished");
  s.device = measured.at("device").text();
  s.spec = spec_text(as_torch_runs(request.spec));
  s.machine = machine_json().dump();
  keep_ceilings(s);
  s.steps = measured.at("steps").whole(0, 0);
  s.wall_s = number("wall_s");
  s.us_per_step = number("us_per_step");
  s.test_loss = number("test_loss");
  if (!run.metrics.empty()) s.train_loss = run.metrics.back().loss;
  s.final_accuracy = number("test_accuracy");
  s.peak_bytes = static_cast<uint64_t>(measured.at("peak_bytes").whole(0, 0));
  s.tags = {"pytorch"};
  s.created = prof::utc_text();
}

}  // namespace

TorchTools find_torch(const std::string& python, const std::string& program) {
  TorchTools tools;
  tools.python = python.empty() ? "python3" : python;
  const std::atomic<bool> never{false};
  try {
    const Output said = run_program(
        {tools.python, "-c", "import torch; print('torch', torch.__version__, torch.cuda.is_available())"}, never, {});
    std::istringstream words{std::string(last_line(said.text))};
    std::string word, cuda;
    words >> word >> tools.version >> cuda;
    if (said.status != 0 || word != "torch")
      tools.problem = "PyTorch is not installed for " + tools.python +
                      ": install it with pip install torch, or name another python.";
    tools.cuda = cuda == "True";
  } catch (const Failure&) {
    tools.problem = tools.python + " is not installed: the same network cannot be trained in PyTorch here.";
  }
  if (tools.cuda) tools.recorder = find_recorder(program);
  return tools;
}

namespace {

json layer_json(const NetworkLayer& l, const std::vector<ParamId>& parameters) {
  json out = {{"kind", to_string(l.layer.kind)}, {"parameters", json::array()}};
  for (const ParamId id : parameters) out["parameters"].push_back(index(id));
  out["picture"] = {l.in.height, l.in.width, l.in.channels};
  out["window"] = {l.layer.window_h, l.layer.window_w};
  out["stride"] = l.layer.stride;
  out["padding"] = l.layer.pad;
  out["activation"] = to_string(l.layer.activation);
  out["rate"] = l.layer.rate;
  out["heads"] = l.layer.heads;
  return out;
}

}  // namespace

void write_torch_data(const RunSpec& spec, const std::string& path) {
  const fs::path folder(path);
  fs::create_directories(folder);
  const data::Dataset data = data::load(spec.data);
  if (const auto reason = why_not_prepared(spec.data, input_shape(data))) throw Failure(reason->text);
  const Model model = make_model(spec.model, data);
  const bool classes = data.task == data::Task::Classification;
  json shapes = {{"task", classes ? "classification" : "regression"},
                 {"features", data.features},
                 {"context", data.context},
                 {"outputs", data.outputs},
                 {"train_rows", data.train.rows},
                 {"test_rows", data.test.rows}};
  for (const auto& [name, split] : {std::pair{std::string("train"), &data.train}, {std::string("test"), &data.test}}) {
    write_array(folder / (name + "_x.f32"), spec.data.normalise ? normalised(split->x, model) : split->x);
    if (classes)
      write_array(folder / (name + "_y.i32"), split->labels);
    else
      write_array(folder / (name + "_y.f32"), split->targets);
  }
  std::vector<float> start;
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    const Parameter& p = model.parameters[i];
    const std::vector<float> values = initial_values(model, spec.model, static_cast<ParamId>(i), spec.train.seed);
    start.insert(start.end(), values.begin(), values.end());
    shapes["parameters"].push_back({{"rows", p.rows}, {"cols", p.cols}, {"decays", p.decays}});
  }
  for (size_t i = 0; i < model.layers.size(); ++i)
    shapes["layers"].push_back(layer_json(model.layers[i], model.layer_parameters[i]));
  write_array(folder / "start.f32", start);
  shapes["orders"] = write_orders(spec, data.train.rows, folder / "order.i32");
  if (write_places(spec, model, data.train.rows, folder / "places.i16"))
    shapes["crops"] = {{"picture", {model.input.height, model.input.width, model.input.channels}},
                       {"padding", padding_of(model, spec.data.normalise)}};
  prof::write_whole(folder / "data.json", shapes.dump(1));
  prof::write_whole(folder / "run.json", spec_text(spec, 1));
}

void merge_torch_run(const TorchRequest& request, const std::string& folder, const std::string& recorded, const std::optional<FoundFile>& found) {
  prof::RunData run;
  if (!recorded.empty() && fs::exists(recorded)) run = prof::import_run(recorded);
  run.metrics.clear();
  run.evaluations.clear();
  find_steps(run.trace);
  read_metrics(fs::path(folder) / "metrics.csv", run);
  const json measured = read_output(fs::path(folder) / "summary.json");
  fill_summary(run, request, JsonInput(measured, "summary.json"));
  prof::export_run(run, fs::absolute(request.out).string(), found);
}

void run_torch(const TorchRequest& request, const TorchTools& tools, const std::atomic<bool>& cancel,
               const std::function<void(const std::string&)>& said) {
  if (!tools.problem.empty()) throw Failure(tools.problem);
  std::optional<FoundFile> found;
  if (request.out.ends_with(".wsrun")) found = prof::check_run_file(request.out);
  const Ownership claim(prof::file_to_write(request.out), kMaker);
  const TemporaryFolder place;
  write_torch_data(request.spec, (place.path() / "data").string());
  const std::string recorded = request.record && !tools.recorder.empty() && request.spec.exec.device != Device::Cpu
                                   ? (place.path() / "recorded.wsrun").string()
                                   : "";
  std::vector<std::string> command;
  if (!recorded.empty()) command = {tools.recorder, "record", "--out", recorded, "--"};
  command.insert(command.end(),
                 {tools.python, tools.script.empty() ? shipped_script("train.py").string() : tools.script, "--data",
                  (place.path() / "data").string(), "--out", (place.path() / "out").string()});
  if (request.compile) command.push_back("--compile");
  const Output result = run_program(command, cancel, said);
  if (cancel) throw Failure("Stopped: PyTorch's run is not kept.");
  if (result.status != 0)
    throw Failure("PyTorch's run failed (exit status " + std::to_string(result.status) +
                  "): " + std::string(last_line(result.text)));
  merge_torch_run(request, (place.path() / "out").string(), recorded, found);
}

lab::LabResult run_torch_lab(const lab::LabSpec& spec, const TorchTools& tools, const std::atomic<bool>& cancel,
                             const std::function<void(const std::string&)>& said) {
  const std::string operation(to_string(spec.operation));
  if (!tools.problem.empty()) throw Failure(tools.problem);
  if (tools.script.empty() && !tools.cuda)
    throw Failure("PyTorch " + tools.version + " sees no GPU here, and its sweep measures nothing else.");
  const auto joined = [](const auto& all, const auto& text) {
    std::string line;
    for (const auto& one : all) line += (line.empty() ? "" : ",") + std::string(text(one));
    return line;
  };
  const TemporaryFolder place;
  const fs::path out = place.path() / "lab.json";
  const auto sizes = spec.sizes.empty() ? lab::default_sizes(spec.operation) : spec.sizes;
  std::vector<std::string> command = {tools.python,
                                      tools.script.empty() ? shipped_script("lab.py").string() : tools.script};
  command.insert(command.end(),
                 {"--operation", operation, "--depth", std::to_string(spec.depth), "--repeats",
                  std::to_string(spec.repeats), "--warm-up", std::to_string(spec.warm_up), "--seed",
                  std::to_string(spec.seed), "--seconds", std::to_string(spec.seconds_per_point), "--sizes",
                  joined(sizes, [](int64_t n) { return std::to_string(n); }), "--out", out.string()});
  if (spec.m > 0) command.insert(command.end(), {"--m", std::to_string(spec.m)});
  if (spec.k > 0) command.insert(command.end(), {"--k", std::to_string(spec.k)});
  if (!spec.ways.empty())
    command.insert(command.end(), {"--ways", joined(spec.ways, [](lab::Way way) { return lab::info(way).name; })});
  if (spec.cold_cache) command.push_back("--cold-cache");
  const Output result = run_program(command, cancel, said);
  std::error_code none;
  if (cancel && !fs::exists(out, none)) throw Failure("Stopped before PyTorch measured a point.");
  if (result.status != 0) throw Failure("PyTorch's sweep failed: " + std::string(last_line(result.text)));
  lab::LabResult measured = lab::lab_result_from_json(read_output(out));
  std::string missing;  // requested ways that the script does not have
  for (const lab::Way way : spec.ways)
    if (!lab::is_own(way) && std::ranges::find(measured.points, way, &lab::LabPoint::way) == measured.points.end())
      missing += (missing.empty() ? "" : ", ") + std::string(lab::info(way).name);
  if (!missing.empty() && !measured.cancelled) measured.message = "PyTorch's sweep has no " + missing + ".";
  measured.spec = spec;
  measured.spec.sizes = sizes;
  return measured;
}

}  // namespace ws::app
