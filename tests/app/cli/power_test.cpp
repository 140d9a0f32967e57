// The power fails: of each file only what was synced is there. Replayed at every sync of a training, an experiment, a
// sweep, a recording, a conversion and a report: what is there opens, nothing that was on the disk before goes back, and
// what a program has ended with is whole. The log is made by the program that ships (logged_writes.cpp).
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <random>

#include "app/core/experiments/experiment.h"
#include "engine/train/checkpoint.h"
#include "profiling/base/process.h"
#include "tests/app/support/whole_run.h"
#include "tests/support/logged_writes.h"
#include "tests/support/own_file.h"
#include "tests/support/preloaded_writer.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;
using test::WriteEvent;

struct Event {
  WriteEvent head;
  std::string name, bytes;
};

std::vector<Event> read_log(const fs::path& path) {
  std::vector<Event> events;
  std::ifstream in(path, std::ios::binary);
  for (Event event; in.read(reinterpret_cast<char*>(&event.head), sizeof event.head); events.push_back(event)) {
    event.name.resize(event.head.name_bytes);
    event.bytes.resize(event.head.size);
    in.read(event.name.data(), static_cast<std::streamsize>(event.name.size()));
    in.read(event.bytes.data(), static_cast<std::streamsize>(event.bytes.size()));
  }
  return events;
}

// A file as the program sees it, and what of it would be there after a power failure.
class File {
 public:
  void write(uint64_t offset, const std::string& bytes) { change({offset, bytes, false}); }
  void truncate(uint64_t size) { change({size, {}, true}); }
  void sync() { durable_ = live_; pending_.clear(); }
  void keep(const std::string& bytes) { live_ = durable_ = bytes; }

  const std::string& durable() const { return durable_; }
  // Some of what was not synced is there, too.
  std::string perhaps(std::mt19937& random) const {
    std::string bytes = durable_;
    for (const Change& one : pending_)
      if (random() % 2) apply(one, bytes);
    return bytes;
  }

 private:
  struct Change {
    uint64_t offset;
    std::string bytes;
    bool truncates;
  };
  void change(Change one) {
    apply(one, live_);
    pending_.push_back(std::move(one));
  }
  static void apply(const Change& one, std::string& to) {
    if (one.truncates || to.size() < one.offset + one.bytes.size()) to.resize(one.offset + one.bytes.size());
    std::ranges::copy(one.bytes, to.begin() + static_cast<std::ptrdiff_t>(one.offset));
  }
  std::string live_, durable_;
  std::vector<Change> pending_;
};

// The disk: names lead to files. Names change in the order in which they were given, as in the journal of a file system.
// A sync of a folder keeps all of them, a sync of a file those up to its own; later ones may have made it or not.
class Disk {
 public:
  explicit Disk(const fs::path& folder) : folder_(folder) {
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file()) (names_[entry.path().string()] = std::make_shared<File>())->keep(text_of(entry.path().string()));
    durable_names_ = names_;
  }
  void apply(const Event& e) {
    const uint64_t number = e.head.file;
    switch (e.head.kind) {
      case WriteEvent::Open: open(e.name, number); break;
      case WriteEvent::Write: file(number).write(e.head.offset, e.bytes); break;
      case WriteEvent::Truncate: file(number).truncate(e.head.offset); break;
      case WriteEvent::Sync: sync(number); break;
      case WriteEvent::Rename:
        if (names_.contains(e.name)) change({{e.name, nullptr}, {e.bytes, names_.at(e.name)}});
        break;
      case WriteEvent::Unlink: change({{e.name, nullptr}}); break;
    }
  }
  enum class Keep { Synced, SyncedAndSome };
  void write_to(const fs::path& target, Keep keep, std::mt19937& random) const {
    test::remove_folder(target);
    fs::create_directories(target);
    Names names = durable_names_;
    const size_t more = keep == Keep::Synced ? 0 : random() % (pending_names_.size() + 1);
    for (size_t i = 0; i < more; ++i) pending_names_[i].apply(names);
    for (const auto& [name, file] : names) {
      const fs::path path = target / fs::path(name).lexically_relative(folder_);
      fs::create_directories(path.parent_path());
      std::ofstream(path, std::ios::binary) << (keep == Keep::Synced ? file->durable() : file->perhaps(random));
    }
  }

 private:
  using Names = std::map<std::string, std::shared_ptr<File>>;
  struct Named {
    std::string name;
    std::shared_ptr<File> file;  // nullptr: the name is taken away
  };
  // One step of the journal; a rename takes one name away and gives another.
  struct NameChange {
    std::vector<Named> all;
    void apply(Names& names) const {
      for (const Named& one : all) one.file ? void(names[one.name] = one.file) : void(names.erase(one.name));
    }
    bool names_file(const std::shared_ptr<File>& file) const {
      return std::ranges::any_of(all, [&](const Named& one) { return one.file == file; });
    }
  };
  void change(std::vector<Named> all) {
    pending_names_.push_back({std::move(all)});
    pending_names_.back().apply(names_);
  }
  // A name that is new here is a new file, whatever had that number before.
  void open(const std::string& name, uint64_t number) {
    if (!names_.contains(name)) change({{name, std::make_shared<File>()}});
    numbers_[number] = names_.at(name);
  }
  void sync(uint64_t number) {
    const auto found = numbers_.find(number);  // a folder has none
    size_t kept = found == numbers_.end() ? pending_names_.size() : 0;
    if (found != numbers_.end()) {
      found->second->sync();
      for (size_t i = 0; i < pending_names_.size(); ++i)
        if (pending_names_[i].names_file(found->second)) kept = i + 1;
    }
    for (size_t i = 0; i < kept; ++i) pending_names_[i].apply(durable_names_);
    pending_names_.erase(pending_names_.begin(), pending_names_.begin() + static_cast<std::ptrdiff_t>(kept));
  }
  File& file(uint64_t number) { return *numbers_.at(number); }

  fs::path folder_;
  Names names_, durable_names_;
  std::vector<NameChange> pending_names_;
  std::map<uint64_t, std::shared_ptr<File>> numbers_;
};

class PowerFailure : public testing::Test {
 protected:
  using Words = std::vector<std::string>;
  // What is wrong with a folder; `held` grows with what it must hold from then on.
  using Check = std::function<std::string(const fs::path&, int64_t& held)>;

  void SetUp() override {
    test::remove_folder(base_);
    fs::create_directories(base_ / "made");
  }
  void TearDown() override {
    if (!HasFailure()) test::remove_folder(base_);
  }

  static void run(Words words, const fs::path& folder, const Process::Environment& settings = {}) {
    words.insert(words.begin(), {"env", "-C", folder.string(), WARPSIGHT_CLI});
    Process program(words, Process::Output::CapturedWithErrors, settings);
    std::string said;
    while (const auto more = program.output(1000)) said += *more;
    ASSERT_EQ(program.wait(), 0) << said;
  }

  void train(const fs::path& folder, const char* name) {
    run({"train", "iris", "--set", "exec.device=cpu", "--set", "train.epochs=20", "--no-output", "--run", name, "--trace", "full"}, folder);
  }

  // Fills `folder()` before; then the command; then the log, event by event.
  void replay(const Words& words, const Check& check, const Check& check_end) {
    const fs::path log = base_ / "log";
    Disk disk(folder());
    // Each image is a folder of its own: SQLite knows files by their inodes, and a file that is made anew may get the old number.
    int images = 0;
    const auto written = [&](Disk::Keep keep) {
      const fs::path image = base_ / ("image-" + std::to_string(++images));
      disk.write_to(image, keep, random_);
      return image;
    };
    run(words, folder(),
        test::with_writer({{"LD_PRELOAD", LOGGED_WRITES},
                           {"WARPSIGHT_WRITES_OF", folder()},
                           {"WARPSIGHT_WRITES_LOG", log},
                           {"OMP_NUM_THREADS", "1"},
                           {"ASAN_OPTIONS", "verify_asan_link_order=0"}},
                          base_ / "writer", RUN_WRITER));
    const std::vector<Event> events = read_log(log);
    int64_t held = 0;
    int syncs = 0;
    const auto look = [&](const std::string& when) {
      int64_t now = held;
      EXPECT_EQ(check(written(Disk::Keep::Synced), now), "") << when << ", of what was synced";
      EXPECT_GE(now, held) << when << ": what was on the disk is not there any more";
      held = std::max(held, now);
      EXPECT_EQ(check(written(Disk::Keep::SyncedAndSome), now), "") << when << ", of what was synced and some more";
    };
    for (const Event& event : events) {
      const std::string number = std::to_string(syncs);
      if (event.head.kind == WriteEvent::Sync) look("before sync " + number);
      disk.apply(event);
      if (event.head.kind == WriteEvent::Sync) look("after sync " + number), ++syncs;
      if (HasFailure()) return;
    }
    look("at the end");
    EXPECT_EQ(check_end(written(Disk::Keep::Synced), held), "") << "a program that has ended with 0";
    EXPECT_GT(syncs, 1);
    std::printf("%d syncs, %zu events\n", syncs, events.size());
  }

  fs::path folder() {
    fs::create_directories(base_ / "folder");
    return base_ / "folder";
  }
  const fs::path base_ = fs::temp_directory_path() / ("warpsight-power-" + std::to_string(getpid()));
  std::mt19937 random_{7};
};

int64_t steps_in(const fs::path& run) {
  return fs::exists(run) ? static_cast<int64_t>(prof::RunFileReader(run).metrics().size()) : 0;
}

std::string why_not_finished(const fs::path& run) {
  if (!fs::exists(run)) return run.string() + " is missing";
  if (const std::string why = why_run_is_damaged(run); !why.empty()) return why;
  return prof::RunFileReader(run).summary().status == "finished" ? "" : run.string() + " is not finished";
}

TEST_F(PowerFailure, ARunFileKeepsWhatWasOnTheDisk) {
  replay({"train", "iris", "--set", "exec.device=cpu", "--set", "train.epochs=2000", "--no-output", "--run", "t.wsrun", "--trace", "full"},
         [](const fs::path& folder, int64_t& held) {
           const std::string why = why_run_is_damaged(folder / "t.wsrun");
           if (why.empty()) held = steps_in(folder / "t.wsrun");
           return why;
         },
         [](const fs::path& folder, int64_t&) {
           return steps_in(folder / "t.wsrun") == 16000 ? why_not_finished(folder / "t.wsrun") : "not all steps are there";
         });
}

TEST_F(PowerFailure, ATrainingGoesOnFromItsCheckpoint) {
  const auto check = [](const fs::path& folder, int64_t& held) -> std::string {
    const fs::path out = folder / "o";
    if (fs::exists(out / "checkpoint.wsck")) try {
        held = load_checkpoint(out / "checkpoint.wsck").state.step;
      } catch (const std::exception& problem) {
        return problem.what();
      }
    const std::string summary = text_of(out / "summary.json");
    return !fs::exists(out / "summary.json") || nlohmann::json::accept(summary) ? "" : "half a summary";
  };
  replay({"train", "iris", "--set", "exec.device=cpu", "--set", "train.epochs=2000", "--out", "o"}, check,
         [](const fs::path& folder, int64_t& held) -> std::string {
           const std::string table = text_of(folder / "o/metrics.csv");
           if (std::ranges::count(table, '\n') != 16001) return "rows are missing";
           if (!nlohmann::json::accept(text_of(folder / "o/summary.json"))) return "the summary is missing";
           return held == 16000 ? "" : "the last checkpoint is missing";
         });
}

TEST_F(PowerFailure, AnExperimentHasTheRunsOfItsRows) {
  std::ofstream(folder() / "e.json") << R"({"name": "e", "text": "t", "expect": "e", "repeats": 2,
    "spec": {"data": {"name": "iris"}, "train": {"epochs": 5, "eval_every": 0}, "exec": {"device": "cpu"}},
    "axes": {"exec.fusion": ["off", "pointwise"]}})";
  run({"experiment", "e.json", "--out", "e", "--repeats", "1"}, folder());
  const auto check = [](const fs::path& folder, int64_t& held) -> std::string {
    held = static_cast<int64_t>(rows_of_results(folder / "e/results.jsonl"));
    for (const TrialResult& trial : read_experiment(folder / "e").trials)
      for (const TrialRun& one : trial.runs)
        if (const std::string why = why_not_finished(folder / "e" / one.file); !why.empty()) return why;
    return {};
  };
  replay({"experiment", "e.json", "--out", "e"}, check, [](const fs::path& folder, int64_t& held) -> std::string {
    if (text_of(folder / "e/table.csv").empty() || text_of(folder / "e/chart.svg").empty()) return "the table or the chart is missing";
    return held == 4 && read_experiment(folder / "e").complete ? "" : "a result is missing";
  });
}

TEST_F(PowerFailure, ASweepIsWholeAtItsEnd) {
  replay({"lab", "add", "--ways", "cpu", "--sizes", "16,1024", "--seconds", "0.01", "--run", "l.wsrun", "--csv", "l.csv"},
         [](const fs::path& folder, int64_t&) { return why_run_is_damaged(folder / "l.wsrun"); },
         [](const fs::path& folder, int64_t&) -> std::string {
           if (std::ranges::count(text_of(folder / "l.csv"), '\n') != 3) return "the table is missing";
           return why_not_finished(folder / "l.wsrun");
         });
}

TEST_F(PowerFailure, ARecordingKeepsWhatWasOnTheDisk) {
  replay({"record", "--library", "-", "--out", "r.wsrun", "--", RECORDED_PROGRAM, "300", "losses"},
         [](const fs::path& folder, int64_t& held) {
           const fs::path run = folder / "r.wsrun";
           const bool begun = !fs::exists(run) || fs::file_size(run) == 0;  // the name is taken before anything is written
           const std::string why = begun ? "" : why_run_is_damaged(run);
           if (why.empty()) held = begun ? 0 : steps_in(run);
           return why;
         },
         [](const fs::path& folder, int64_t&) {
           return steps_in(folder / "r.wsrun") == 300 ? why_not_finished(folder / "r.wsrun") : "not all losses are there";
         });
}

TEST_F(PowerFailure, AConversionTakesNothingAway) {
  train(folder(), "r.wsrun");
  fs::copy_file(folder() / "r.wsrun", folder() / "c.wsrun");
  const auto check = [](const fs::path& folder, int64_t& held) -> std::string {
    for (const char* name : {"r.wsrun", "c.wsrun"})
      if (const std::string why = why_not_finished(folder / name); !why.empty()) return why;
    held = steps_in(folder / "c.wsrun");
    return {};
  };
  replay({"convert", "r.wsrun", "c.wsrun"}, check, check);
}

TEST_F(PowerFailure, APageIsTheOldOrTheNewOne) {
  train(folder(), "r.wsrun");
  std::ofstream(folder() / "page.html") << "earlier</html>";
  replay({"report", "r.wsrun", "--out", "page.html"},
         [](const fs::path& folder, int64_t&) { return text_of(folder / "page.html").find("</html>") == std::string::npos ? "half a page" : ""; },
         [](const fs::path& folder, int64_t&) { return text_of(folder / "page.html") == "earlier</html>" ? "the page is the old one" : ""; });
}

}  // namespace
}  // namespace ws::app
