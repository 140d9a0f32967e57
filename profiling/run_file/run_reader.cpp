#include <filesystem>

#include "profiling/run_file/run_reader_impl.h"
#include "profiling/run_file/span_codec.h"

namespace ws::prof {

namespace {

constexpr size_t kMostIds = 1 << 22;

double real_or_nan(const Statement& row, int column) {
  return row.null(column) ? std::numeric_limits<double>::quiet_NaN() : row.real(column);
}

int64_t log_bytes(const std::string& path) {
  std::error_code none;
  const auto bytes = std::filesystem::file_size(path + "-wal", none);
  return none ? 0 : static_cast<int64_t>(bytes);
}

}  // namespace

void RunFileReader::Impl::read_header(const std::string& path) {
  guard("The file's version", [&] {
    const int64_t version = db.integer("PRAGMA user_version");
    if (version > kRunFileVersion) {
      add_problem("The file was written by a newer version (" + std::to_string(version) +
                  "); what is unknown here is left out");
    }
  });
  guard("The summary", [&] { meta = read_meta(db); });
  for (const auto& [key, count] : {std::pair{"dropped_records", &losses.dropped_records},
                                   {"invalid_records", &losses.invalid_records},
                                   {"unjoined_kernels", &losses.unjoined_kernels},
                                   {"evicted_spans", &losses.evicted_spans}}) {
    if (auto node = meta.extract(key)) *count = std::strtoull(node.mapped().c_str(), nullptr, 10);
  }
  summary = from_meta(meta);
  // A program that ended while it folded its log into the file has written the new size first: the rest is in the log.
  if (const int64_t expected = claimed_bytes(path); expected > file_bytes + log_bytes(path)) {
    add_problem("The file ends after " + std::to_string(file_bytes) + " of " + std::to_string(expected) + " bytes");
  }
}

void RunFileReader::Impl::read_tracks() {
  tracks.clear();
  each_row("The list of tracks", "tracks", "kind, name, grp, depth", [&](Statement& row) {
    if (tracks.size() >= kMostIds) return;
    const auto kind =
        static_cast<TrackKind>(std::clamp<int64_t>(row.integer(1), 0, static_cast<int64_t>(TrackKind::Other)));
    tracks.push_back(
        {row.integer(0), kind, std::string(row.text(2)), std::string(row.text(3)), static_cast<int>(row.integer(4))});
  });
}

void RunFileReader::Impl::read_names() {
  const auto fits = [](int64_t id) { return id >= 0 && id < static_cast<int64_t>(kMostIds); };
  each_row("The names", "names", "value", [&](Statement& row) {
    if (!fits(row.integer(0))) return;
    names.resize(std::max(names.size(), static_cast<size_t>(row.integer(0)) + 1));
    names[static_cast<size_t>(row.integer(0))] = row.text(1);
  });
  details.resize(1);
  each_row(
      "The launch configurations", "details",
      "grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, static_shared, dynamic_shared, bytes, copy_kind",
      [&](Statement& row) {
        if (row.integer(0) < 0 || row.integer(0) > 0xffff) return;
        details.resize(std::max(details.size(), static_cast<size_t>(row.integer(0)) + 1));
        Detail& d = details[static_cast<size_t>(row.integer(0))];
        const auto number = [&row](int column) { return static_cast<int>(row.integer(column)); };
        for (int i = 0; i < 3; ++i) d.grid[i] = number(1 + i), d.block[i] = number(4 + i);
        d.registers = number(7), d.static_shared = number(8), d.dynamic_shared = number(9);
        d.bytes = static_cast<uint64_t>(row.integer(10));
        d.copy_kind = row.text(11);
      });
  each_row("The ops", "ops", "name, detail, layer, phase, meaning, flops, bytes", [&](Statement& row) {
    if (row.integer(0) <= 0 || row.integer(0) > 0xffff) return;
    ops.resize(std::max(ops.size(), static_cast<size_t>(row.integer(0)) + 1));
    const auto meaning = static_cast<Meaning>(std::clamp<int64_t>(row.integer(5), 0, kMeanings - 1));
    ops[static_cast<size_t>(row.integer(0))] = {std::string(row.text(1)),
                                                std::string(row.text(2)),
                                                std::string(row.text(3)),
                                                std::string(row.text(4)),
                                                meaning,
                                                row.integer(6),
                                                row.integer(7)};
  });
}

RunFileReader::RunFileReader(const std::string& path) : impl_(std::make_unique<Impl>(path)) {
  impl_->file_bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  impl_->read_header(path);
}

RunFileReader::~RunFileReader() = default;

const RunSummary& RunFileReader::summary() const { return impl_->summary; }

std::vector<std::string> RunFileReader::problems() const {
  std::vector<std::string> texts;
  for (const auto& [text, times] : impl_->problems) {
    texts.push_back(times == 1 ? text : text + " (" + std::to_string(times) + " times)");
  }
  return texts;
}

std::vector<Metric> RunFileReader::metrics() {
  std::vector<Metric> rows;
  impl_->each_row("The losses", "metrics", "step, wall_s, loss, accuracy", [&](Statement& row) {
    rows.push_back({row.integer(1), row.real(2), real_or_nan(row, 3), real_or_nan(row, 4)});
  });
  if (impl_->db.has_table("metric_data")) {
    impl_->each_row("The losses", "metric_data", "count, data", [&](Statement& row) {
      impl_->guard("Losses of some steps", [&] {
        const auto part = decode_metrics(row.blob(2), static_cast<size_t>(row.integer(1)));
        rows.insert(rows.end(), part.begin(), part.end());
      });
    });
  }
  std::ranges::stable_sort(rows, {}, &Metric::step);
  return rows;
}

std::vector<Evaluation> RunFileReader::evaluations() {
  std::vector<Evaluation> rows;
  impl_->each_row(
      "The evaluations", "evaluations", "step, epoch, wall_s, test_loss, test_accuracy", [&](Statement& row) {
        rows.push_back({row.integer(1), row.real(2), row.real(3), real_or_nan(row, 4), real_or_nan(row, 5)});
      });
  std::ranges::stable_sort(rows, {}, &Evaluation::step);
  return rows;
}

std::vector<ChangeMark> RunFileReader::marks() {
  std::vector<ChangeMark> rows;
  impl_->each_row("The marks", "marks", "step, wall_s, text", [&](Statement& row) {
    rows.push_back({row.integer(1), row.real(2), std::string(row.text(3))});
  });
  return rows;
}

std::vector<StepWindow> RunFileReader::step_windows() {
  std::vector<StepWindow> rows;
  const char* columns =
      "first_step, steps, begin, \"end\", matrix_ns, pointwise_ns, loss_ns, optimizer_ns, copy_ns, allocation_ns, "
      "sync_ns, "
      "launch_ns, idle_ns, other_ns, allocations, frees";
  impl_->each_row("The step times", "step_windows", columns, [&](Statement& row) {
    StepWindow window{row.integer(1), row.integer(2), row.integer(3), row.integer(4), {}, 0, 0};
    for (size_t m = 0; m < kMeanings; ++m) window.times[m] = row.integer(5 + static_cast<int>(m));
    window.allocations = static_cast<uint64_t>(row.integer(15));
    window.frees = static_cast<uint64_t>(row.integer(16));
    rows.push_back(window);
  });
  return rows;
}

std::vector<StepAllocations> RunFileReader::allocations() {
  std::vector<StepAllocations> all;
  impl_->each_row("The allocator calls", "allocation_data", "count, data", [&](Statement& row) {
    impl_->guard("The allocator calls", [&] {
      const auto part = decode_allocations(row.blob(2), static_cast<size_t>(row.integer(1)));
      all.insert(all.end(), part.begin(), part.end());
    });
  });
  return all;
}

}  // namespace ws::prof
