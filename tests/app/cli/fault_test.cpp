// Makes each system call that can fail fail once, in every command, or fail from then on. Checks: no crash, no hang, an exit
// code that says so, nothing lost that existed before, and the next run works. By default tests a sample of the calls, with
// WARPSIGHT_FAULTS=SEED another sample, with WARPSIGHT_FAULTS=all every call, with WARPSIGHT_FAULTS=KIND (rename) the calls of one
// kind; all+ and KIND+: lasting faults. A failure prints its seed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "app/core/experiments/experiment.h"
#include "engine/train/checkpoint.h"
#include "profiling/base/process.h"
#include "tests/app/support/whole_run.h"
#include "tests/support/own_file.h"
#include "tests/support/preloaded_writer.h"
#include "tests/support/sanitizers.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int kMostSeconds = 60;  // of one command: where a lock stays, SQLite fails after 10 s, and again

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
  bool may_say_so = false;  // an exit with 0 may leave less where the program says what is missing
  std::string program = WARPSIGHT_CLI;
};

Outcome run(const Words& words, const fs::path& folder, const Process::Environment& settings,
            const std::string& path = WARPSIGHT_CLI) {
  Words command{"env", "-C", folder.string(), path};
  command.insert(command.end(), words.begin(), words.end());
  Process program(command, Process::Output::CapturedWithErrors, settings);
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

Process::Environment failing(const std::string& what, const fs::path& log) {
  return test::with_writer({{"LD_PRELOAD", FAILING_CALLS},
                            {"OMP_NUM_THREADS", "1"},
                            {"ASAN_OPTIONS", "verify_asan_link_order=0"},
                            {"WARPSIGHT_FAIL", what},
                            {"WARPSIGHT_FAIL_LOG", log.string()}},
                           log.string() + ".writer", RUN_WRITER);
}

// "calls 17 open": of each kind the most of all processes.
std::map<std::string, long> calls_in(const fs::path& log) {
  std::map<std::string, long> most;
  std::ifstream in(log);
  std::string what, kind;
  for (long number = 0; in >> what >> number >> kind;) most[kind] = std::max(most[kind], number);
  return most;
}

struct Fault {
  std::string kind;
  long number;
  bool lasting = false;
  std::string text() const { return kind + ":" + std::to_string(number) + (lasting ? "+" : ""); }
};

std::string wanted() { return std::getenv("WARPSIGHT_FAULTS") ? std::getenv("WARPSIGHT_FAULTS") : ""; }

unsigned seed() {
  static const unsigned chosen = wanted().empty() ? 20261123 : static_cast<unsigned>(std::atol(wanted().c_str()));
  return chosen;
}

// Every call, or one of each of some kinds.
std::vector<Fault> chosen_faults(const std::string& scenario, const std::map<std::string, long>& calls) {
  std::vector<Fault> faults;
  const bool lasting = wanted().ends_with('+');
  const std::string which = lasting ? wanted().substr(0, wanted().size() - 1) : wanted();
  const bool every = which == "all" || calls.contains(which);
  std::mt19937 random(seed() + static_cast<unsigned>(std::hash<std::string>{}(scenario)));
  for (const auto& [kind, most] : calls) {
    if (most == 0) continue;
    if (!every) faults.push_back({kind, std::uniform_int_distribution<long>(1, most)(random)});
    for (long number = 1; (which == "all" || which == kind) && number <= most; ++number) faults.push_back({kind, number, lasting});
  }
  constexpr size_t kSample = 4;
  if (every || faults.size() <= kSample) return faults;
  std::ranges::shuffle(faults, random);
  faults.resize(kSample);
  for (size_t i = 0; i < kSample / 2; ++i) faults[i].lasting = true;
  return faults;
}

bool ends_with_0_or_1(const Outcome& out) { return out.code == 0 || out.code == 1; }

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    if (test::kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer does not start with a preloaded library that replaces malloc.";
    test::remove_folder(folder_);
    fs::create_directories(folder_ / "made");
  }
  void TearDown() override {
    if (!HasFailure()) test::remove_folder(folder_);
  }

  void walk(const Scenario& scenario) {
    const fs::path model = folder_ / (scenario.name + "-model");
    fs::create_directories(model);
    scenario.prepare(model);
    const auto calls = count(scenario, model);
    EXPECT_GT(calls.at("open"), 3) << "nothing was counted";
    const std::vector<Fault> faults = chosen_faults(scenario.name, calls);
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t i = next++; i < faults.size(); i = next++) try_one(scenario, model, faults[i]);
    };
    {
      std::jthread other(work);
      work();
    }
    std::printf("%s: %zu faults, %d of them seen\n", scenario.name.c_str(), faults.size(), hit_.exchange(0));
  }

  std::map<std::string, long> count(const Scenario& scenario, const fs::path& model) {
    const fs::path here = folder_ / (scenario.name + "-count"), log = folder_ / (scenario.name + ".log");
    fs::copy(model, here, fs::copy_options::recursive);
    const Outcome out = run(scenario.words, here, failing("count", log), scenario.program);
    EXPECT_EQ(out.code, 0) << scenario.name << " without a fault: " << out.said;
    EXPECT_EQ(scenario.why_incomplete(here), "") << scenario.name << " without a fault";
    test::remove_folder(here);
    return calls_in(log);
  }

  void try_one(const Scenario& scenario, const fs::path& model, const Fault& fault) {
    const std::string name = scenario.name + "-" + fault.text();
    const fs::path here = folder_ / name, log = folder_ / (name + ".log");
    fs::copy(model, here, fs::copy_options::recursive);
    const Outcome out = run(scenario.words, here, failing(fault.text(), log), scenario.program);
    const std::string failed = text_of(log.string());
    hit_ += failed.starts_with("failed ");
    std::string wrong;
    if (out.code < 0)
      wrong = "it hangs";
    else if (!ends_with_0_or_1(out))
      wrong = "it ends with " + std::to_string(out.code);
    else if (const std::string why = scenario.why_damaged(here); !why.empty())
      wrong = why;
    else if (const bool said = out.said.find("warpsight") != std::string::npos || out.said.find("failed: ") != std::string::npos;
             out.code == 1 && !said)
      wrong = "it ends with 1 and no word";
    else if (const std::string missing = scenario.why_incomplete(here);
             out.code == 0 && !missing.empty() && !(scenario.may_say_so && said))
      wrong = "it ends with 0, but " + missing;
    if (wrong.empty()) {
      const Outcome again = run(scenario.words, here, {{"OMP_NUM_THREADS", "1"}}, scenario.program);
      if (again.code != 0)
        wrong = "the next run ends with " + std::to_string(again.code) + ": " + again.said;
      else if (const auto& why = scenario.why_next_is_incomplete ? scenario.why_next_is_incomplete : scenario.why_incomplete;
               !why(here).empty())
        wrong = "after the next run " + why(here);
      else if (const std::string rest = fault.lasting ? std::string() : left_over(here); !rest.empty())
        wrong = "the next run leaves " + rest;
    }
    if (wrong.empty()) {
      test::remove_folder(here);
      fs::remove(log);
      return;
    }
    const std::lock_guard lock(mutex_);
    ADD_FAILURE() << name << ": " << wrong << " (seed " << seed() << ")\n" << failed << out.said;
  }

  // What only stands there while something is being written. A killed writer's log stays beside its file.
  static std::string left_over(const fs::path& folder) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.find("killed.wsrun") != std::string::npos) continue;
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

  fs::path folder_ = fs::temp_directory_path() / ("warpsight-faults-" + std::to_string(getpid()));
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
          std::error_code none;
          const bool empty = fs::file_size(folder / "r.wsrun", none) == 0 || none;
          const fs::path kept = empty ? folder / ".before-r.wsrun" : folder / "r.wsrun";  // the next recording takes it back
          return fs::exists(kept) ? why_run_is_damaged(kept.string()) : "the earlier recording is gone";
        },
        [](const fs::path& folder) { return why_run_is_not_finished(at(folder, "r.wsrun")); },
        {},
        true});  // the exit code is the program's
}

class ConversionFaults : public Faults, public testing::WithParamInterface<const char*> {};

TEST_P(ConversionFaults, OneFileIntoAnother) {
  const std::string result = GetParam();
  walk({"convert-" + result.substr(2),
        {"convert", "r.wsrun", result},
        [&](const fs::path& folder) {
          copy_run(folder / "r.wsrun");
          EXPECT_EQ(run({"convert", "r.wsrun", result}, folder, {}).code, 0);
        },
        [&](const fs::path& folder) {
          if (const std::string why = why_run_is_damaged(at(folder, "r.wsrun")); !why.empty()) return "the source: " + why;
          const Outcome read = run({"stats", result}, folder, {});
          return read.code == 0 ? std::string() : read.said;
        },
        [&](const fs::path& folder) {
          const Outcome read = run({"diff", "r.wsrun", result, "--json"}, folder, {});
          return read.code == 0 ? std::string() : read.said;
        }});
}
INSTANTIATE_TEST_SUITE_P(Each, ConversionFaults, testing::Values("c.json.gz", "c.wsrun"),
                         [](const auto& one) {
                           std::string ending = one.param + 2;
                           std::ranges::replace(ending, '.', '_');
                           return ending;
                         });

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

#ifdef LIBRARY_PROGRAM
// What a person does in the library of the window: kept.wsrun gets a name, killed.wsrun is deleted and comes back, others
// come in and go out. Of killed.wsrun a part is in the log beside it.
class LibraryFaults : public Faults {
 protected:
  void fill(const fs::path& folder) {
    fs::create_directories(folder / "runs");
    for (const char* name : {"runs/kept.wsrun", "other.wsrun"}) copy_run(folder / name);
    std::ofstream(folder / "runs/kept.wsrun.wsck") << "weights";
    const fs::path killed = folder / "runs/killed.wsrun";
    Process program({WARPSIGHT_CLI, "train", "iris", "--set", "exec.device=cpu", "--set", "train.epochs=100000000", "--set",
                     "train.eval_every=0", "--no-output", "--run", killed.string()});
    while (!fs::exists(killed) || rows_of(killed) < 1000) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    program.signal(SIGKILL);
    program.wait();
    ASSERT_TRUE(fs::exists(killed.string() + "-wal"));
    for (const auto& entry : fs::directory_iterator(folder / "runs"))
      if (entry.path().filename().string().ends_with(".owner")) fs::remove(entry.path());
    const fs::path copy = folder_ / "read.wsrun";
    for (const char* ending : {"", "-wal"}) fs::copy_file(killed.string() + ending, copy.string() + ending);
    rows_ = rows_of(copy);
  }

  static size_t rows_of(const fs::path& path) {
    try {
      return prof::RunFileReader(path.string()).metrics().size();
    } catch (const std::exception&) {
      return 0;
    }
  }

  static std::vector<fs::path> places_of_killed(const fs::path& folder) {
    std::vector<fs::path> found;
    for (const char* place : {"runs", "runs/.deleted"})
      if (fs::exists(folder / place))
        for (const auto& entry : fs::directory_iterator(folder / place))
          if (const std::string name = entry.path().filename().string();
              name.ends_with("killed.wsrun") && !name.starts_with(".reading-"))
            found.push_back(entry.path());
    return found;
  }

  std::string why_damaged(const fs::path& folder) const {
    for (const char* name : {"runs/kept.wsrun", "runs/other.wsrun", "copy.wsrun", "other.wsrun"})
      if (const std::string why = why_run_is_damaged(at(folder, name)); !why.empty()) return why;
    if (rows_of(folder / "runs/kept.wsrun") != 160) return "kept.wsrun lost losses";
    if (text_of(at(folder, "runs/kept.wsrun.wsck")) != "weights") return "the weights are lost";
    const std::vector<fs::path> killed = places_of_killed(folder);
    if (killed.empty()) return "killed.wsrun is gone";
    for (const fs::path& place : killed)  // a disk that moves nothing more may leave a copy in the trash
      if (rows_of(place) != rows_) return place.string() + " lost losses";
    return "";
  }

  static std::string why_incomplete(const fs::path& folder) {
    const prof::RunSummary kept = prof::RunFileReader(at(folder, "runs/kept.wsrun")).summary();
    if (kept.name != "A new name" || kept.tags != std::vector<std::string>{"one", "two"} || kept.notes != "A note.")
      return "the name, the tags or the note is not kept";
    for (const char* name : {"runs/other.wsrun", "copy.wsrun", "copy.wsrun.wsck"})
      if (!fs::exists(folder / name)) return std::string(name) + " is missing";
    return {};
  }

 private:
  size_t rows_ = 0;
};

TEST_F(LibraryFaults, ScanRenameDeleteImportAndCopy) {
  Scenario scenario{"library",
                    {},
                    [this](const fs::path& folder) { fill(folder); },
                    [this](const fs::path& folder) { return why_damaged(folder); },
                    [](const fs::path& folder) {
                      return fs::exists(folder / "runs/killed.wsrun") ? why_incomplete(folder) : "killed.wsrun did not come back";
                    },
                    why_incomplete};
  scenario.program = LIBRARY_PROGRAM;
  walk(scenario);
}
#endif

}  // namespace
}  // namespace ws::app
