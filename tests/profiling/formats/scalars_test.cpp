// TensorBoard's scalars: each tag is kept for what it is, and all of them are written.
#include <cmath>

#include "profiling/formats/convert.h"
#include "profiling/formats/scalars.h"
#include "tests/profiling/formats/interop_support.h"

namespace ws::prof {
namespace {

struct Scalars : Interop {
  void SetUp() override {
    Interop::SetUp();
    run.evaluations = {{2, 1, 0.6, 1.9, 0.41}, {4, 2, 1.1, 1.7, 0.52}};
  }
  RunData read(const char* name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return import_run(path(name));
  }
  std::string text_of(const char* name) const {
    std::stringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }
};

constexpr const char* kThree = "Wall time,Step,Value\n100,1,0.5\n101.5,3,0.75\n";

TEST_F(Scalars, TagsAreKnownByTheirWords) {
  using enum ScalarKind;
  for (const char* tag : {"train/loss", "loss", "Loss/train", "epoch_loss", "run-.-tag-loss", "train_xent"})
    EXPECT_EQ(tag_of(tag), (ScalarTag{Loss, false})) << tag;
  for (const char* tag : {"train/accuracy", "acc", "Accuracy", "train_acc"})
    EXPECT_EQ(tag_of(tag), (ScalarTag{Accuracy, false})) << tag;
  for (const char* tag : {"test/loss", "val_loss", "Loss/validation", "eval-loss"})
    EXPECT_EQ(tag_of(tag), (ScalarTag{Loss, true})) << tag;
  for (const char* tag : {"test/accuracy", "val_acc", "Accuracy/Val"})
    EXPECT_EQ(tag_of(tag), (ScalarTag{Accuracy, true})) << tag;
  for (const char* tag : {"lr", "grad_norm", "", "glossy/accent"}) EXPECT_EQ(tag_of(tag).kind, Other) << tag;
  EXPECT_EQ(tag_of_file("/a/test/run-mnist-tag-train_accuracy.csv"), (ScalarTag{Accuracy, false}));
  EXPECT_EQ(tag_of_file("run-validation-tag-epoch_loss.csv"), (ScalarTag{Loss, true}));
  EXPECT_EQ(tag_of_file("my run.csv"), (ScalarTag{Loss, false}));
  EXPECT_EQ(tag_of_file("test.csv"), (ScalarTag{Loss, false})) << "a test of what, it does not say";
}

TEST_F(Scalars, AFileIsWhatItsNameSays) {
  EXPECT_DOUBLE_EQ(read("a.csv", kThree).metrics.at(1).loss, 0.75);
  const RunData accuracy = read("run-.-tag-train_accuracy.csv", kThree);
  ASSERT_EQ(accuracy.metrics.size(), 2u);
  EXPECT_TRUE(std::isnan(accuracy.metrics[0].loss)) << "an accuracy is no loss";
  EXPECT_TRUE(std::isnan(accuracy.summary.test_loss));
  EXPECT_DOUBLE_EQ(accuracy.metrics[1].accuracy, 0.75);
  const RunData test = read("run-.-tag-test_loss.csv", kThree);
  EXPECT_TRUE(test.metrics.empty());
  ASSERT_EQ(test.evaluations.size(), 2u);
  EXPECT_DOUBLE_EQ(test.evaluations[1].test_loss, 0.75);
  EXPECT_DOUBLE_EQ(test.evaluations[1].wall_s, 1.5);
  const RunData rate = read("run-.-tag-learning_rate.csv", kThree);
  EXPECT_TRUE(rate.metrics.empty() && rate.evaluations.empty());
  ASSERT_EQ(rate.trace.counters().size(), 1u);
  EXPECT_EQ(rate.trace.counters()[0].points.at(1).time, 1'500'000'000);
}

TEST_F(Scalars, AllOfARunComesBackFromOneFile) {
  run.metrics[2].accuracy = NAN;
  export_run(run, path("a.scalars.csv"));
  EXPECT_TRUE(text_of("a.scalars.csv").starts_with("Wall time,Step,Value,Tag\n1795239634.000000,0,2,train/loss\n"));
  const RunData back = import_run(path("a.scalars.csv"));
  EXPECT_TRUE(back.problems.empty());
  ASSERT_EQ(back.metrics.size(), run.metrics.size());
  for (size_t i = 0; i < run.metrics.size(); ++i) {
    EXPECT_EQ(back.metrics[i].step, run.metrics[i].step);
    EXPECT_NEAR(back.metrics[i].wall_s, run.metrics[i].wall_s, 1e-5);
    EXPECT_NEAR(back.metrics[i].loss, run.metrics[i].loss, 1e-8);
    EXPECT_EQ(std::isnan(back.metrics[i].accuracy), i == 2);
  }
  ASSERT_EQ(back.evaluations.size(), 2u);
  EXPECT_NEAR(back.evaluations[1].test_loss, 1.7, 1e-8);
  EXPECT_NEAR(back.evaluations[1].test_accuracy, 0.52, 1e-8);
  EXPECT_NEAR(back.summary.final_accuracy, 0.52, 1e-8);
  EXPECT_NEAR(back.summary.test_loss, 1.7, 1e-8) << "of the last test, as in a run of ours";
  EXPECT_EQ(back.summary.steps, run.metrics.back().step + 1) << "they count from 0";
}

TEST_F(Scalars, OneTagHasTensorBoardsThreeColumns) {
  export_run(run, path("run-a-tag-test_accuracy.scalars.csv"));
  EXPECT_EQ(text_of("run-a-tag-test_accuracy.scalars.csv"),
            "Wall time,Step,Value\n1795239634.600000,2,0.41\n1795239635.100000,4,0.52\n");
  run.evaluations.clear();
  for (Metric& m : run.metrics) m.accuracy = NAN;
  export_run(run, path("a.scalars.csv"));
  EXPECT_TRUE(text_of("a.scalars.csv").starts_with("Wall time,Step,Value\n"));
}

TEST_F(Scalars, ColumnsMayStandInAnyOrder) {
  const RunData frame =
      read("frame.csv",
           "run,tag,step,value,wall_time\r\na,\"test/accuracy, top\",1,0.5,10\r\na,train/loss,2,0.25,12\r\n"
           "a,lr,2,0.1,12\r\na,train/loss,3,0.2\r\n");
  ASSERT_EQ(frame.metrics.size(), 1u);
  EXPECT_DOUBLE_EQ(frame.metrics[0].loss, 0.25);
  EXPECT_DOUBLE_EQ(frame.metrics[0].wall_s, 2);
  ASSERT_EQ(frame.evaluations.size(), 1u);
  EXPECT_DOUBLE_EQ(frame.evaluations[0].test_accuracy, 0.5);
  EXPECT_EQ(frame.trace.counters().at(0).name, "lr");
  EXPECT_EQ(frame.problems, std::vector<std::string>{"1 line is not three numbers."});
}

TEST_F(Scalars, TheEventsFileHoldsEveryTag) {
  export_run(run, path("events.out.tfevents.1"));
  EXPECT_EQ(python("import sys\nd = open(sys.argv[1], 'rb').read()\nprint([d.count(t) for t in (b'train/loss', "
                   "b'train/accuracy', b'test/loss', b'test/accuracy')])",
                   path("events.out.tfevents.1")),
            "[5, 5, 2, 2]\n");
}

}  // namespace
}  // namespace ws::prof
