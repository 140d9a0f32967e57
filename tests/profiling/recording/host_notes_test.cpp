// What a recorded program says beside its ranges becomes rows of its run file.
#include "profiling/recording/host_notes.h"
#include "profiling/recording/loader_notes.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <cmath>

#include "profiling/trace/track_names.h"

namespace ws::prof {
namespace {

TEST(ScalarRole, ComesFromTheName) {
  for (const char* name : {"loss", "train/loss", "train_loss", "Loss", "loss_step"})
    EXPECT_EQ(scalar_role(name), ScalarRole::Loss) << name;
  for (const char* name : {"value_loss", "interval_loss", "latest_loss", "loss_d", "losses/box", "errG loss", "loss (test.py:3)", "v loss (2)"})
    EXPECT_EQ(scalar_role(name), ScalarRole::Loss) << name;
  for (const char* name : {"val_loss", "test/loss", "eval_loss", "validLoss", "loss-val1_loss", "validation loss"})
    EXPECT_EQ(scalar_role(name), ScalarRole::TestLoss) << name;
  EXPECT_EQ(scalar_role("train_acc"), ScalarRole::Accuracy);
  EXPECT_EQ(scalar_role("val/accuracy"), ScalarRole::TestAccuracy);
  for (const char* name : {"lr", "loss_scale", "loss weight", "lossless", "glossy", "grad_norm", ""}) EXPECT_EQ(scalar_role(name), ScalarRole::Other) << name;
}

TEST(HostNotes, ScalarsOfAStepAreOneRow) {
  HostNotes notes;
  notes.scalar("loss", 2.5, 0), notes.scalar("accuracy", 0.25, 0), notes.scalar("lr", 0.1, 0);
  notes.scalar("loss", 1.5, 1), notes.scalar("val_loss", 1.75, 1);
  NotesReader reader;
  RunSummary summary;
  NotesReader::Rows rows = reader.read(notes.take(), 0, summary);
  ASSERT_EQ(rows.metrics.size(), 1u) << "of the second step more may come";
  EXPECT_EQ(rows.metrics[0].step, 0);
  EXPECT_EQ(rows.metrics[0].loss, 2.5);
  EXPECT_EQ(rows.metrics[0].accuracy, 0.25);
  ASSERT_EQ(rows.batch.counters.size(), 1u);
  EXPECT_EQ(rows.batch.counters[0].name, "lr");
  rows = reader.last();
  ASSERT_EQ(rows.metrics.size(), 1u);
  EXPECT_EQ(rows.metrics[0].loss, 1.5);
  EXPECT_TRUE(std::isnan(rows.metrics[0].accuracy));
  ASSERT_EQ(rows.evaluations.size(), 1u);
  EXPECT_EQ(rows.evaluations[0].test_loss, 1.75);
  EXPECT_EQ(summary.train_loss, 1.5);
  EXPECT_EQ(summary.test_loss, 1.75);
}

TEST(HostNotes, ASecondLossIsACurveOfItsOwn) {
  HostNotes notes;
  for (int step = 0; step < 3; ++step) notes.scalar("train/loss", 2.5 - step, step);
  notes.scalar("train/train_loss", 9.0, 2);  // the mean of all, at the end
  NotesReader reader;
  RunSummary summary;
  NotesReader::Rows rows = reader.read(notes.take(), 0, summary);
  ASSERT_EQ(rows.batch.counters.size(), 2u);
  EXPECT_EQ(rows.batch.counters[0].name, "train/loss");
  EXPECT_EQ(rows.batch.counters[0].kind, CounterKind::LossName);
  EXPECT_EQ(rows.batch.counters[1].name, "train/train_loss");
  EXPECT_EQ(rows.batch.counters[1].kind, CounterKind::Loss);
  EXPECT_EQ(reader.last().metrics.at(0).loss, 0.5);
  EXPECT_EQ(summary.train_loss, 0.5);
}

TEST(HostNotes, SamplesAreSpansNamedByTheirStack) {
  HostNotes notes;
  const CodeStack frames{{{"a < b.py", 9, "main"}, {"a < b.py", 3, "hot"}}, 2};
  const uint32_t stack = notes.stack(frames);
  EXPECT_EQ(notes.stack(frames), stack);
  EXPECT_NE(notes.name("hot"), stack);
  notes.sample("samples of MainThread", stack, 1500, 2500);
  notes.sample("samples of MainThread", stack + 7, 1500, 2500);  // of no stack
  NotesReader reader;
  RunSummary summary;
  NotesReader::Rows rows = reader.read(notes.take(), 1000, summary);
  ASSERT_EQ(rows.batch.tracks.size(), 1u);
  EXPECT_EQ(rows.batch.tracks[0].name, "samples of MainThread");
  ASSERT_EQ(rows.batch.tracks[0].spans.size(), 1u);
  const Span& span = rows.batch.tracks[0].spans[0];
  ASSERT_EQ(rows.batch.stacks.size(), 1u);
  EXPECT_EQ(rows.batch.stacks[0].first, span.name);
  EXPECT_EQ(*rows.batch.stacks[0].second, frames);
  EXPECT_EQ(span.start, 500);
  EXPECT_EQ(span.duration, 1000u);
  EXPECT_EQ(rows.batch.losses.dropped_records, 1u);
}

TEST(HostNotes, WhatHasNoSpaceIsCounted) {
  HostNotes notes;
  for (int i = 0; i < 1'000'010; ++i) notes.scalar("loss", 1, i);
  EXPECT_EQ(notes.take().refused, 10u);
}

TEST(HostNotes, FactsAreKeptWithTheRun) {
  HostNotes notes;
  notes.fact("program_torch", "2.11");
  NotesReader reader;
  RunSummary summary;
  reader.read(notes.take(), 0, summary);
  EXPECT_EQ(summary.extra["program_torch"], "2.11");
}

// A worker's lines come in parts; what is no line of a worker is left out.
TEST(LoaderNotes, BatchesOfWorkersAreSpansOnARowOfEach) {
  const std::string folder = ::testing::TempDir() + "loaders-" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/loader-1-77") << "0\t1\t2\tof another rank\n";
  std::ofstream file(folder + "/loader-" + std::to_string(getpid()) + "-77");
  file << "0\t1500\t2500\ttrain.py:6 in Slow.__getitem__\nnonsense\n1\t9\t3\tbackwards\n0\t3000\t35" << std::flush;
  LoaderNotes loaders(folder, getpid());
  HostNotes notes;
  const auto left_out = [](int64_t time) { return time == 2800; };
  loaders.take(notes, 2900, left_out);
  file << "00\t\n0\t2800\t2900\toutside of capture ranges\n" << std::flush;
  loaders.take(notes, 2900, left_out);
  HostNotes::Taken taken = notes.take();
  EXPECT_EQ(taken.samples.size(), 1u) << "what else happened meanwhile has not arrived yet";
  loaders.take(notes, 3001, left_out);
  const HostNotes::Taken later = notes.take();
  taken.names.insert(taken.names.end(), later.names.begin(), later.names.end());
  taken.samples.insert(taken.samples.end(), later.samples.begin(), later.samples.end());
  NotesReader reader;
  RunSummary summary;
  NotesReader::Rows rows = reader.read(std::move(taken), 1000, summary);
  ASSERT_EQ(rows.batch.tracks.size(), 1u);
  EXPECT_EQ(rows.batch.tracks[0].name, "loader worker 0");
  ASSERT_EQ(rows.batch.tracks[0].spans.size(), 2u);
  EXPECT_EQ(rows.batch.names[static_cast<size_t>(rows.batch.tracks[0].spans[0].name)], "train.py:6 in Slow.__getitem__");
  EXPECT_EQ(rows.batch.names[static_cast<size_t>(rows.batch.tracks[0].spans[1].name)], "makes a batch");
  EXPECT_EQ(rows.batch.tracks[0].spans[1].duration, 500u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ws::prof
