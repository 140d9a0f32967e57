// TensorBoard's CSV.
#include "profiling/base/failure.h"
#include "profiling/formats/scalars.h"
#include "tests/fuzz/fuzz.h"

FUZZ_TARGET(scalars) {
  try {
    const ws::prof::RunData run = ws::prof::parse_scalars_csv({reinterpret_cast<const char*>(bytes), count});
    ws::fuzz::require(run.metrics.size() <= count, "no more rows than bytes");
  } catch (const ws::Failure&) {
  }
  return 0;
}
