// TensorBoard's scalars: each tag is kept for what it is.
#include <cmath>

#include "profiling/formats/convert.h"
#include "profiling/formats/scalars.h"
#include "tests/profiling/formats/interop_support.h"

namespace ws::prof {
namespace {

struct Scalars : Interop {
  RunData read(const char* name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return import_run(path(name));
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

TEST_F(Scalars, AFileIsWhatItsEndingMeans) {
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

TEST_F(Scalars, SeveralTagsInOneFileAreOneRun) {
  const RunData both = read("a.scalars.csv",
                            "Wall time,Step,Value,Tag\n10,0,2,train/loss\n11,1,1.5,train/loss\n10,0,0.5,train/accuracy\n"
                            "11.5,2,1.7,test/loss\n11.5,2,0.52,test/accuracy\n");
  EXPECT_TRUE(both.problems.empty());
  ASSERT_EQ(both.metrics.size(), 2u);
  EXPECT_DOUBLE_EQ(both.metrics[0].accuracy, 0.5);
  EXPECT_TRUE(std::isnan(both.metrics[1].accuracy));
  EXPECT_DOUBLE_EQ(both.metrics[1].wall_s, 1);
  ASSERT_EQ(both.evaluations.size(), 1u);
  EXPECT_DOUBLE_EQ(both.summary.final_accuracy, 0.52);
  EXPECT_DOUBLE_EQ(both.summary.test_loss, 1.7) << "of the last test, as in a run of ours";
  EXPECT_EQ(both.summary.steps, 2) << "they count from 0";
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

}  // namespace
}  // namespace ws::prof
