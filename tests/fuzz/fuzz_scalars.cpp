// TensorBoard's CSV.
#include "profiling/formats/scalars.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(scalars) {
  ws::fuzz::accepts([&] {
    const ws::prof::RunData run = ws::prof::parse_scalars_csv(bytes);
    ws::fuzz::require(run.metrics.size() <= bytes.size(), "no more rows than bytes");
  });
}
