// Sorts tables of large rows: the compiler makes the algorithm once, and not a dozen functions for each type of row.
#pragma once
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace ws {

// 0, 1, … count - 1 in the order of `before`. Equal ones keep their order.
std::vector<size_t> sorted_indices(size_t count, const std::function<bool(size_t, size_t)>& before);

// Equal rows keep their order. Each row is moved once.
template <class Row, class Before>
void sort_rows(std::vector<Row>& rows, const Before& before) {
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const size_t i : sorted_indices(rows.size(), [&](size_t a, size_t b) { return before(rows[a], rows[b]); }))
    sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

}  // namespace ws
