// Each call of the system that can fail is let fail once, in every command: no crash, no hang, an exit code that says it,
// nothing lost that was there, and the next run works. A sample of the calls; WARPSCOPE_FAULTS=all walks over each.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "app/core/experiments/experiment.h"
#include "engine/train/checkpoint.h"
#include "profiling/base/process.h"
#include "tests/app/support/whole_run.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int kMostSeconds = 30;  // of one command, on a busy machine
const char* const kKinds[] = {"open", "write", "sync", "rename", "mmap", "memory", "thread", "database"};

struct Outcome {
  int code = -1;  // -1: it hung
  std::string said;
};

// One command of the program and what must hold of its folder, whatever failed.
struct Scenario {
  std::string name;
  Words words;
  std::function<void(const fs::path&)> prepare;                // fills the folder
  std::function<std::string(const fs::path&)> why_damaged;     // always; empty: it is whole
  std::function<std::string(const fs::path&)> why_incomplete;  // after an exit with 0
  // After the next run, where that cannot bring everything back; else the one above.
  std::function<std::string(const fs::path&)> why_next_is_incomplete = {};
  int most_faults = 2;                                         // of a kind, in a sample
  bool may_say_so = false;  // an exit with 0 may leave less where the program says what is missing
};

Outcome run(const Words& words, const fs::path& folder, const Process::Environment& settings) {
  Words command{"env", "-C", folder.string(), WARPSCOPE_CLI};
  command.insert(command.end(), words.begin(), words.end());
  Process program(command, Process::Output::HeardWithErrors, settings);
  Outcome out;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kMostSeconds);
  bool open = true;
  while (std::chrono::steady_clock::now() < deadline) {
    if (open) {
      const auto more = program.output(100);
      open = more.has_value();
      if (more) out.said += *more;
    } else if (const auto code = program.wait(100)) {
      out.code = *code;
      return out;
    }
  }
  program.signal(SIGKILL);
  program.wait();
  return out;
}

Process::Environment failing(const std::string& kind, long number, const fs::path& log) {
  return {{"LD_PRELOAD", FAILING_CALLS},
          {"OPENBLAS_NUM_THREADS", "1"},
          {"ASAN_OPTIONS", "verify_asan_link_order=0"},
          {"WARPSCOPE_FAIL", kind + ":" + std::to_string(number)},
          {"WARPSCOPE_FAIL_LOG", log.string()}};
}

// "calls 17", the most of all processes.
long calls_in(const fs::path& log) {
  std::ifstream in(log);
  long most = 0;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("calls ")) most = std::max(most, std::atol(line.c_str() + 6));
  return most;
}

bool ends_with_0_or_1(const Outcome& out) { return out.code == 0 || out.code == 1; }

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "made");
  }
  void TearDown() override {
    if (!HasFailure()) fs::remove_all(folder_);
  }

  void walk(const Scenario& scenario) {
    const fs::path model = folder_ / (scenario.name + "-model");
    fs::create_directories(model);
    scenario.prepare(model);
    struct Fault {
      std::string kind;
      long number;
    };
    std::vector<Fault> faults;
    for (const char* kind : kKinds) {
      const long calls = count(scenario, model, kind);
      const long most = std::getenv("WARPSCOPE_FAULTS") ? calls : std::min<long>(calls, scenario.most_faults);
      for (long i = 0; i < most; ++i) faults.push_back({kind, 1 + i * calls / most});
    }
    EXPECT_GT(faults.size(), 5u) << "nothing was counted";
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t i = next++; i < faults.size(); i = next++) try_one(scenario, model, faults[i].kind, faults[i].number);
    };
    {
      std::jthread other(work);
      work();
    }
    std::printf("%s: %zu faults, %d of them seen\n", scenario.name.c_str(), faults.size(), hit_.exchange(0));
  }

  long count(const Scenario& scenario, const fs::path& model, const std::string& kind) {
    const fs::path here = folder_ / (scenario.name + "-count"), log = folder_ / (scenario.name + "-" + kind + ".log");
    fs::copy(model, here, fs::copy_options::recursive);
    const Outcome out = run(scenario.words, here, failing(kind, 0, log));
    EXPECT_EQ(out.code, 0) << scenario.name << " without a fault: " << out.said;
    EXPECT_EQ(scenario.why_incomplete(here), "") << scenario.name << " without a fault";
    fs::remove_all(here);
    return calls_in(log);
  }

  void try_one(const Scenario& scenario, const fs::path& model, const std::string& kind, long number) {
    const std::string name = scenario.name + "-" + kind + "-" + std::to_string(number);
    const fs::path here = folder_ / name, log = folder_ / (name + ".log");
    fs::copy(model, here, fs::copy_options::recursive);
    const Outcome out = run(scenario.words, here, failing(kind, number, log));
    const std::string failed = text_of(log.string());
    hit_ += failed.starts_with("failed ");
    std::string wrong;
    if (out.code < 0)
      wrong = "it hangs";
    else if (!ends_with_0_or_1(out))
      wrong = "it ends with " + std::to_string(out.code);
    else if (const std::string why = scenario.why_damaged(here); !why.empty())
      wrong = why;
    else if (const bool said = out.said.find("warpscope") != std::string::npos || out.said.find("failed: ") != std::string::npos;
             out.code == 1 && !said)
      wrong = "it ends with 1 and no word";
    else if (const std::string missing = scenario.why_incomplete(here);
             out.code == 0 && !missing.empty() && !(scenario.may_say_so && said))
      wrong = "it ends with 0, but " + missing;
    if (wrong.empty()) {
      const Outcome again = run(scenario.words, here, {{"OPENBLAS_NUM_THREADS", "1"}});
      if (again.code != 0)
        wrong = "the next run ends with " + std::to_string(again.code) + ": " + again.said;
      else if (const auto& why = scenario.why_next_is_incomplete ? scenario.why_next_is_incomplete : scenario.why_incomplete;
               !why(here).empty())
        wrong = "after the next run " + why(here);
      else if (const std::string rest = left_over(here); !rest.empty())
        wrong = "the next run leaves " + rest;
    }
    if (wrong.empty()) {
      fs::remove_all(here);
      fs::remove(log);
      return;
    }
    const std::lock_guard lock(mutex_);
    ADD_FAILURE() << name << ": " << wrong << "\n" << failed << out.said;
  }

  // What only stands there while something is being written.
  static std::string left_over(const fs::path& folder) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      for (const char* part : {".part-", ".before-"})
        if (name.starts_with(part)) return name;
      for (const char* ending : {"-wal", "-shm", "-journal", ".owner", ".maker"})
        if (name.ends_with(ending)) return name;
    }
    return {};
  }

  // A finished run, trained once for all.
  void copy_run(const fs::path& to) {
    const fs::path made = folder_ / "made" / "whole.wsrun";
    if (!fs::exists(made)) {
      const Outcome out = run({"train", "iris", "--set", "exec.device=cpu", "--set", "train.epochs=20", "--no-output",
                               "--run", "whole.wsrun", "--trace", "full"},
                              folder_ / "made", {});
      EXPECT_EQ(out.code, 0) << out.said;
    }
    fs::copy_file(made, to);
  }

  fs::path folder_ = fs::temp_directory_path() / ("warpscope-faults-" + std::to_string(getpid()));
  std::mutex mutex_;
  std::atomic<int> hit_{0};
};

std::string at(const fs::path& folder, const char* name) { return (folder / name).string(); }

std::string why_run_is_not_finished(const std::string& path) {
  if (!fs::exists(path)) return path + " is missing";
  if (const std::string why = why_run_is_damaged(path); !why.empty()) return why;
  const prof::RunSummary summary = prof::RunFileReader(path).summary();
  return summary.status == "finished" ? "" : path + " says " + summary.status;
}

TEST_F(Faults, TrainingIntoARunFile) {
  walk({"train-run",
        {"train", "iris", "--set", "exec.device=cpu", "--set", "train.epochs=20", "--no-output", "--run", "t.wsrun", "--trace", "full"},
        [this](const fs::path& folder) { copy_run(folder / "t.wsrun"); },
        [](const fs::path& folder) {
          return fs::exists(folder / "t.wsrun") ? why_run_is_damaged(at(folder, "t.wsrun")) : "the run file is gone";
        },
        [](const fs::path& folder) { return why_run_is_not_finished(at(folder, "t.wsrun")); }});
}

std::string why_folder_is_incomplete(const fs::path& folder, size_t steps) {
  const std::string table = text_of(at(folder, "metrics.csv"));
  if (const auto rows = static_cast<size_t>(std::ranges::count(table, '\n')); rows != steps + 1)
    return "the table has " + std::to_string(rows) + " lines";
  const auto summary = nlohmann::json::parse(text_of(at(folder, "summary.json")), nullptr, false);
  if (summary.is_discarded() || summary["steps"] != steps) return "the summary is missing or wrong";
  try {
    load_checkpoint(at(folder, "checkpoint.wsck"));
  } catch (const std::exception& problem) {
    return problem.what();
  }
  return {};
}

// The checkpoint opens where there is one, and the table is of one run.
std::string why_folder_is_damaged(const fs::path& folder) {
  if (fs::exists(folder / "checkpoint.wsck")) try {
      load_checkpoint(at(folder, "checkpoint.wsck"));
    } catch (const std::exception& problem) {
      return problem.what();
    }
  return why_table_is_damaged(at(folder, "metrics.csv"));
}

TEST_F(Faults, TrainingIntoAFolder) {
  walk({"train-out",
        {"train", "iris", "--set", "exec.device=cpu", "--set", "train.epochs=20", "--out", "o"},
        [](const fs::path&) {},
        [](const fs::path& folder) { return why_folder_is_damaged(folder / "o"); },
        [](const fs::path& folder) { return why_folder_is_incomplete(folder / "o", 160); }});
}

// What an interrupted training has reached is there before and after.
TEST_F(Faults, GoingOnWithATraining) {
  const auto epochs = [](int number) { return "train.epochs=" + std::to_string(number); };
  walk({"resume",
        {"train", "--resume", "--out", "o", "--set", epochs(20)},
        [&](const fs::path& folder) {
          EXPECT_EQ(run({"train", "iris", "--set", "exec.device=cpu", "--set", epochs(10), "--out", "o"}, folder, {}).code, 0);
        },
        [](const fs::path& folder) {
          if (!fs::exists(folder / "o/checkpoint.wsck")) return std::string("the checkpoint is gone");
          return why_folder_is_damaged(folder / "o");
        },
        [](const fs::path& folder) { return why_folder_is_incomplete(folder / "o", 160); },
        [](const fs::path& folder) {  // losses that could not be written are gone; the model is not
          const auto summary = nlohmann::json::parse(text_of(at(folder, "o/summary.json")), nullptr, false);
          if (summary.is_discarded() || summary["steps"] != 160) return std::string("the summary is missing or old");
          return why_folder_is_damaged(folder / "o");
        }});
}

TEST_F(Faults, AnExperiment) {
  walk({"experiment",
        {"experiment", "e.json", "--out", "e"},
        [](const fs::path& folder) {
          const char* one = R"({"name": "e", "text": "t", "expect": "e", "repeats": 1,
            "spec": {"data": {"name": "iris"}, "train": {"epochs": 5, "eval_every": 0}, "exec": {"device": "cpu"}},
            "axes": {"exec.fusion": [)";
          std::ofstream(folder / "e.json") << one << R"("off"]}})";
          EXPECT_EQ(run({"experiment", "e.json", "--out", "e"}, folder, {}).code, 0);
          std::ofstream(folder / "e.json") << one << R"("off", "pointwise"]}})";
        },
        [](const fs::path& folder) {
          if (rows_of_results(at(folder, "e/results.jsonl")) < 1) return std::string("a result is lost");
          for (const auto& entry : fs::directory_iterator(folder / "e"))
            if (is_run(entry.path()))
              if (const std::string why = why_run_is_damaged(entry.path().string()); !why.empty()) return why;
          return std::string();
        },
        [](const fs::path& folder) {
          const ExperimentResult result = read_experiment(at(folder, "e"));
          if (!result.complete || result.trials.size() != 2) return std::string("the experiment is not complete");
          for (const char* name : {"e/table.csv", "e/chart.svg"})
            if (text_of(at(folder, name)).empty()) return std::string(name) + " is missing";
          for (const TrialResult& trial : result.trials)
            for (const TrialRun& one : trial.runs)
              if (const std::string why = why_run_is_not_finished(at(folder, "e") + "/" + one.file); !why.empty()) return why;
          return std::string();
        }});
}

TEST_F(Faults, TheLaboratory) {
  walk({"lab",
        {"lab", "add", "--ways", "cpu", "--sizes", "16,1M", "--seconds", "0.01", "--run", "l.wsrun", "--csv", "l.csv"},
        [](const fs::path& folder) { std::ofstream(folder / "l.csv") << "earlier\n"; },
        [](const fs::path& folder) {
          const std::string table = text_of(at(folder, "l.csv"));
          if (table != "earlier\n" && std::ranges::count(table, '\n') != 3) return std::string("the table is neither the old nor the new");
          return why_run_is_damaged(at(folder, "l.wsrun"));
        },
        [](const fs::path& folder) {
          if (text_of(at(folder, "l.csv")) == "earlier\n") return std::string("the table is the old one");
          return why_run_is_not_finished(at(folder, "l.wsrun"));
        }});
}

TEST_F(Faults, Recording) {
  walk({"record",
        {"record", "--library", "-", "--out", "r.wsrun", "--", RECORDED_PROGRAM},
        [this](const fs::path& folder) { copy_run(folder / "r.wsrun"); },
        [](const fs::path& folder) {
          return fs::exists(folder / "r.wsrun") ? why_run_is_damaged(at(folder, "r.wsrun")) : "the earlier recording is gone";
        },
        [](const fs::path& folder) { return why_run_is_not_finished(at(folder, "r.wsrun")); },
        {},
        4,
        true});  // the exit code is the program's
}

TEST_F(Faults, Conversions) {
  for (const char* result : {"c.json.gz", "c.wsrun", "c.sqlite"})
    walk({"convert-" + std::string(result).substr(2),
          {"convert", "r.wsrun", result},
          [&](const fs::path& folder) {
            copy_run(folder / "r.wsrun");
            EXPECT_EQ(run({"convert", "r.wsrun", result}, folder, {}).code, 0);
          },
          [result](const fs::path& folder) {
            if (const std::string why = why_run_is_damaged(at(folder, "r.wsrun")); !why.empty()) return "the source: " + why;
            const Outcome read = run({"stats", result}, folder, {});
            return read.code == 0 ? std::string() : read.said;
          },
          [result](const fs::path& folder) {
            const Outcome read = run({"diff", "r.wsrun", result, "--json"}, folder, {});
            return read.code == 0 ? std::string() : read.said;
          },
          {},
          3});
}

TEST_F(Faults, Reports) {
  walk({"report",
        {"report", "r.wsrun", "--out", "page.html", "--figures", "."},
        [this](const fs::path& folder) {
          copy_run(folder / "r.wsrun");
          std::ofstream(folder / "page.html") << "earlier</html>";
        },
        [](const fs::path& folder) {
          if (const std::string why = why_run_is_damaged(at(folder, "r.wsrun")); !why.empty()) return "the source: " + why;
          return text_of(at(folder, "page.html")).find("</html>") == std::string::npos ? std::string("half a page") : std::string();
        },
        [](const fs::path& folder) {
          return text_of(at(folder, "page.html")) == "earlier</html>" ? "the page is the earlier one" : "";
        }});
}

}  // namespace
}  // namespace ws::app
