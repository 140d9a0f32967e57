// "The same in PyTorch": what our script is given, and what becomes of what it writes. PyTorch itself is not needed: a
// small script in its place reads the same files and writes the same rows.
#include "app/core/runs/torch_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "datasets/dataset.h"
#include "engine/train/schedule.h"
#include "engine/train/trainer.h"
#include "profiling/formats/convert.h"
#include "tests/support/own_file.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kScript = R"PY(
import argparse, array, json, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--data", type=pathlib.Path)
parser.add_argument("--out", type=pathlib.Path)
a = parser.parse_args()
run, shapes = json.loads((a.data / "run.json").read_text()), json.loads((a.data / "data.json").read_text())
a.out.mkdir()
x = array.array("f"); x.frombytes((a.data / "train_x.f32").read_bytes())
assert len(x) == shapes["train_rows"] * shapes["features"]
order = array.array("i"); order.frombytes((a.data / "order.i32").read_bytes())
assert sorted(order[:shapes["train_rows"]]) == list(range(shapes["train_rows"]))
with open(a.out / "metrics.csv", "w") as out:
    out.write("step,epoch,wall_s,train_loss,train_accuracy,test_loss,test_accuracy\n")
    for step in range(1, 21):
        out.write(f"{step - 1},{(step + 9) // 10},{step * 0.001},{2.0 / step},0.5,{'0.3,0.9' if step % 10 == 0 else ','}\n")
    out.write("20,3,0.0")
print("epoch 1 of 2", flush=True)
json.dump({"status": "finished", "steps": 20, "wall_s": 0.02, "us_per_step": 1000.0, "test_loss": 0.3,
           "test_accuracy": 0.9, "device": "CPU", "torch": "2.0", "peak_bytes": 0}, open(a.out / "summary.json", "w"))
)PY";

bool have_python() { return std::system("python3 -c pass >/dev/null 2>&1") == 0; }

class Torch : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    spec_ = load_spec("iris");
    spec_.train.epochs = 2;
    spec_.exec.launch = Launch::Graph;
  }
  void TearDown() override { test::remove_folder(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::string script(const std::string& text) {
    std::ofstream(at("script.py")) << text;
    return at("script.py");
  }
  TorchTools tools(const std::string& text) {
    TorchTools t;
    t.script = script(text);
    return t;
  }
  fs::path folder_ = fs::temp_directory_path() / ("warpsight-torch-test-" + std::to_string(getpid()));
  RunSpec spec_;
  std::atomic<bool> cancel_{false};
};

TEST_F(Torch, TheScriptIsGivenTheSameRowsWeightsAndOrder) {
  write_torch_data(spec_, at("data"));
  const data::Dataset data = data::load(spec_.data);
  const auto floats = [&](const std::string& name) {
    std::ifstream in(at("data/" + name), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  EXPECT_EQ(floats("train_x.f32"), data.train.x);
  const Model model = make_model(spec_.model, data.features, data.outputs);
  EXPECT_EQ(floats("start.f32").size(), static_cast<size_t>(model.parameter_count()));
  const std::vector<float> first = initial_values(model, spec_.model, ParamId{0}, spec_.train.seed);
  const std::vector<float> start = floats("start.f32");
  EXPECT_TRUE(std::equal(first.begin(), first.end(), start.begin()));
  const std::vector<uint32_t> order = epoch_order(spec_.train, data.train.rows, 1);
  std::ifstream in(at("data/order.i32"), std::ios::binary);
  in.seekg(static_cast<std::streamoff>(order.size() * 4));
  std::vector<uint32_t> second(order.size());
  in.read(reinterpret_cast<char*>(second.data()), static_cast<std::streamsize>(second.size() * 4));
  EXPECT_EQ(second, order);
}

// Its network reads the pictures that ours reads: normalised already, with the places where ours cuts and mirrors them.
TEST_F(Torch, ThePicturesAreNormalisedAndHaveThePlacesOfTheirCrops) {
  spec_.data = {.name = "shapes", .points = 50, .crop = 2, .flip = true, .normalise = true};
  spec_.train.batch = 16;
  spec_.model.layers = "conv 3x3 4 | relu | linear";
  write_torch_data(spec_, at("data"));
  const data::Dataset data = data::load(spec_.data);
  const auto bytes = [&](const std::string& name) {
    std::ifstream in(at("data/" + name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  std::vector<int16_t> places(static_cast<size_t>(2 * data.train.rows * 3));
  ASSERT_EQ(bytes("places.i16").size(), places.size() * 2);
  std::memcpy(places.data(), bytes("places.i16").data(), places.size() * 2);
  Preparation how;
  how.crop = 2, how.flip = true;
  const int64_t steps = (data.train.rows + 15) / 16;
  const PicturePlace place = place_of(how, spec_.train.seed, steps + 1, 3);  // of the second epoch
  const size_t first = static_cast<size_t>((data.train.rows + 16 + 3) * 3);
  EXPECT_THAT((std::vector<int>(places.begin() + static_cast<std::ptrdiff_t>(first), places.begin() + static_cast<std::ptrdiff_t>(first) + 3)),
              testing::ElementsAre(place.down, place.across, int{place.mirrored}));
  float value = 0;
  std::memcpy(&value, bytes("test_x.f32").data() + 4, 4);
  EXPECT_FLOAT_EQ(value, (data.test.x[1] - data.channel_mean[1]) * data.channel_factor[1]);
  const auto crops = nlohmann::json::parse(bytes("data.json"))["crops"];
  EXPECT_EQ(crops["picture"], (nlohmann::json{32, 32, 3}));
  EXPECT_FLOAT_EQ(crops["padding"][2].get<float>(), -data.channel_mean[2] * data.channel_factor[2]);
}

TEST_F(Torch, TheLineHasTargetsAndNoOrder) {
  spec_ = load_spec("regression-small");
  write_torch_data(spec_, at("data"));
  std::ifstream in(at("data/data.json"));
  const auto shapes = nlohmann::json::parse(in);
  EXPECT_EQ(shapes["task"], "regression");
  EXPECT_EQ(fs::file_size(at("data/train_y.f32")), shapes["train_rows"].get<size_t>() * 4);
}

TEST_F(Torch, WhatItMeasuredBecomesARunFile) {
  if (!have_python()) GTEST_SKIP() << "python3 is not installed";
  std::vector<std::string> said;
  run_torch({spec_, at("out.wsrun"), "", false, true}, tools(kScript), cancel_,
            [&](const std::string& line) { said.push_back(line); });
  EXPECT_THAT(said, testing::ElementsAre("epoch 1 of 2"));
  const prof::RunData run = prof::import_run(at("out.wsrun"));
  EXPECT_EQ(run.summary.name, "PyTorch · iris");
  EXPECT_EQ(run.summary.origin, "PyTorch 2.0");
  EXPECT_EQ(run.summary.steps, 20);
  EXPECT_DOUBLE_EQ(run.summary.us_per_step, 1000);
  EXPECT_EQ(run.metrics.size(), 20u) << "a torn last line is left out";
  EXPECT_DOUBLE_EQ(run.metrics[1].loss, 1.0);
  EXPECT_EQ(run.evaluations.size(), 2u);
  EXPECT_EQ(parse_spec(run.summary.spec).exec.launch, Launch::Eager) << "as PyTorch ran it";
  EXPECT_TRUE(fs::exists(at("out.wsrun")));
  EXPECT_FALSE(fs::exists(at(".part-out.wsrun")));
}

TEST_F(Torch, TheStepsOfARecordedRunAreFound) {
  prof::RunData recorded;
  const auto ranges = recorded.trace.track(prof::TrackKind::Phases, "thread 1", "CPU");
  for (uint32_t i = 0; i < 20; ++i) {
    prof::Span span;
    span.start = i * 1000, span.duration = 900, span.kind = static_cast<uint64_t>(prof::SpanKind::Phase);
    span.name = recorded.trace.intern("step " + std::to_string(i));
    recorded.trace.append(ranges, span);
  }
  prof::export_run(recorded, at("recorded.wsrun"));
  if (!have_python()) GTEST_SKIP() << "python3 is not installed";
  write_torch_data(spec_, at("data"));
  const std::string command =
      "python3 " + script(kScript) + " --data " + at("data") + " --out " + at("out") + " >/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  merge_torch_run({spec_, at("merged.wsrun"), "", false, true}, at("out"), at("recorded.wsrun"));
  const prof::RunData run = prof::import_run(at("merged.wsrun"));
  size_t steps = 0;
  for (const prof::Track& track : run.trace.tracks())
    if (track.kind == prof::TrackKind::Steps) steps += track.spans;
  EXPECT_EQ(steps, 20u);
  EXPECT_EQ(run.metrics.size(), 20u);
}

TEST_F(Torch, FailuresAreSentencesAndLeaveNothing) {
  const auto failure = [&](const TorchTools& t) {
    try {
      run_torch({spec_, at("out.wsrun"), "", false, true}, t, cancel_, {});
    } catch (const Failure& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  TorchTools none;
  none.python = "/no/such/python";
  EXPECT_THAT(failure(none), HasSubstr("cannot be started"));
  EXPECT_THAT(find_torch("/no/such/python", "").problem, HasSubstr("is not installed"));
  if (have_python()) {
    EXPECT_THAT(failure(tools("import sys; sys.exit('PyTorch sees no GPU here.')")), HasSubstr("sees no GPU"));
    EXPECT_THAT(failure(tools("pass")), HasSubstr("metrics.csv"));
  }
  EXPECT_FALSE(fs::exists(at("out.wsrun")));
  EXPECT_FALSE(fs::exists(at(".part-out.wsrun")));
}

TEST_F(Torch, AStopEndsTheScript) {
  if (!have_python()) GTEST_SKIP() << "python3 is not installed";
  const auto begun = std::chrono::steady_clock::now();
  const std::jthread stop([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    cancel_ = true;
  });
  EXPECT_THROW(
      run_torch({spec_, at("out.wsrun"), "", false, true}, tools("import time\ntime.sleep(300)\n"), cancel_, {}),
      Failure);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(100));
}

// Like what a shell starts in the background.
TEST_F(Torch, AStopEndsAScriptThatIgnoresInterrupts) {
  if (!have_python()) GTEST_SKIP() << "python3 is not installed";
  const auto begun = std::chrono::steady_clock::now();
  const TorchTools deaf = tools("import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('begins', flush=True)\ntime.sleep(300)\n");
  EXPECT_THROW(run_torch({spec_, at("out.wsrun"), "", false, true}, deaf, cancel_, [&](const std::string&) { cancel_ = true; }), Failure);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(100));
}

TEST_F(Torch, TheShippedScriptCanBeReadByPython) {
  if (!have_python()) GTEST_SKIP() << "python3 is not installed";
  const std::string path = std::string(WARPSIGHT_SOURCE_DIR) + "/resources/torch/train.py";
  EXPECT_EQ(std::system(("python3 -c \"import ast,sys; ast.parse(open(sys.argv[1]).read())\" " + path).c_str()), 0);
}

}  // namespace
}  // namespace ws::app
