#include "profiling/base/sort_rows.h"

#include <algorithm>
#include <numeric>

namespace ws {

std::vector<size_t> sorted_indices(size_t count, const std::function<bool(size_t, size_t)>& before) {
  std::vector<size_t> indices(count);
  std::iota(indices.begin(), indices.end(), size_t{0});
  std::stable_sort(indices.begin(), indices.end(), before);
  return indices;
}

}  // namespace ws
