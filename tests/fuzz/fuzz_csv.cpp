// CSV text, plain or gzip-packed, all the way to a data set that is split and scaled.
#include <cmath>

#include "datasets/csv.h"
#include "datasets/split.h"
#include "tests/fuzz/fuzz.h"

namespace {
using ws::fuzz::require;

void check(const ws::data::Dataset& set, const ws::data::Split& split) {
  const size_t rows = static_cast<size_t>(split.rows);
  require(split.x.size() == rows * static_cast<size_t>(set.features), "x is rows by features");
  for (float value : split.x) require(std::isfinite(value), "features are finite");
  for (float value : split.targets) require(std::isfinite(value), "targets are finite");
  for (int32_t label : split.labels) require(label >= 0 && label < set.outputs, "labels are in range");
  const bool classes = set.task == ws::data::Task::Classification;
  require(split.labels.size() == (classes ? rows : 0), "one label a row");
  require(split.targets.size() == (classes ? 0 : rows), "one target a row");
}

}  // namespace

FUZZ_TARGET(csv) {
  ws::fuzz::accepts([&] {
    ws::PackedReader reader("fuzz", {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    const ws::data::CsvTable table = ws::data::read_csv(reader);
    ws::data::Dataset set = ws::data::to_dataset(table, "");
    ws::data::hold_out(set, 0.2, 1);
    require(set.train.rows + set.test.rows == table.rows(), "no row is lost");
    ws::data::standardise_features(set);
    ws::data::standardise_targets(set);
    check(set, set.train);
    check(set, set.test);
  });
}
