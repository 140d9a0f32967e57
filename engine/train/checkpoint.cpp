// The checkpoint file: a signature, the spec as JSON, the position of the run, every tensor as raw floats, a checksum.
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/train/checkpoint.h"
#include "profiling/base/byte_reader.h"
#include "profiling/base/whole_file.h"

namespace ws {
namespace {

constexpr char kMark[8] = {'W', 'S', 'C', 'H', 'E', 'C', 'K', '1'};

constexpr auto kPosition = [](auto& f, auto& c) {
  f("the position", c.state.step, c.state.good_steps, c.epoch, c.row, c.state.loss_scale, c.wall_s, c.epoch_loss, c.epoch_correct);
};
using Tensors = std::vector<std::vector<float>>;

uint32_t checksum(std::string_view bytes, uLong of_earlier = crc32_z(0, nullptr, 0)) {
  return static_cast<uint32_t>(crc32_z(of_earlier, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Tensors read_tensors(ByteReader& in, const char* what) {
  Tensors all;
  in.each(sizeof(uint64_t), what, [&] { all.push_back(in.list<float>(what)); });
  return all;
}

RunSpec read_spec(ByteReader& in) {
  const auto text = in.text("the run description");
  try {
    return parse_spec(text);
  } catch (const SpecError& problem) {
    in.fail(problem.what());
  }
}

// Writes a checkpoint piece by piece, because a second copy of a large model may not fit into memory.
class Writer {
 public:
  explicit Writer(prof::SyncedFile& file) : file_(file) {}
  void write(const Checkpoint& c) {
    raw({kMark, sizeof kMark});
    const std::string spec = spec_text(c.spec);
    put(uint64_t{spec.size()});
    raw(spec);
    raw(bytes_with(c, kPosition));
    tensors(c.state.parameters);
    for (const Tensors& moments : c.state.moments) tensors(moments);
    put(checksum_);
  }

 private:
  void raw(std::string_view bytes) {
    if (bytes.empty()) return;  // for an empty buffer zlib would restart the checksum
    checksum_ = checksum(bytes, checksum_);
    file_.write(bytes);
  }
  template <class T>
  void put(T value) {
    raw({reinterpret_cast<const char*>(&value), sizeof value});
  }
  void tensors(const Tensors& all) {
    put(uint64_t{all.size()});
    for (const auto& tensor : all) {
      put(uint64_t{tensor.size()});
      raw({reinterpret_cast<const char*>(tensor.data()), tensor.size() * sizeof(float)});
    }
  }

  prof::SyncedFile& file_;
  uint32_t checksum_ = checksum({});
};

}  // namespace

void save_checkpoint(const Checkpoint& checkpoint, const std::string& path) {
  try {
    prof::replace_file(prof::file_to_write(path), [&](const std::string& part) {
      prof::SyncedFile file(part);
      Writer(file).write(checkpoint);
      file.close();
    });
  } catch (const Failure& problem) {
    throw Failure("checkpoint " + std::string(problem.what()) + "; an earlier one is unchanged");
  }
}

Checkpoint parse_checkpoint(std::string_view bytes, const std::string& name) {
  ByteReader in(bytes, name + ": not a usable checkpoint");
  if (in.raw(sizeof kMark, "the mark") != std::string_view(kMark, sizeof kMark))
    in.fail("it does not begin with the mark WSCHECK1");
  if (bytes.size() < sizeof kMark + sizeof(uint32_t)) in.fail("it is too short");
  uint32_t stored;
  std::memcpy(&stored, bytes.data() + bytes.size() - sizeof stored, sizeof stored);
  if (stored != checksum(bytes.substr(0, bytes.size() - sizeof stored)))
    in.fail("its checksum does not match, so it is damaged or cut short");
  Checkpoint c;
  c.spec = read_spec(in);
  kPosition(in, c);
  c.state.parameters = read_tensors(in, "the parameters");
  for (Tensors& moments : c.state.moments) moments = read_tensors(in, "the optimizer's state");
  in.value<uint32_t>("the checksum");
  in.expect_end();
  if (c.state.step < 0 || c.epoch < 0 || c.row < 0) in.fail("its position is negative");
  return c;
}

Checkpoint load_checkpoint(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status found = std::filesystem::status(path, error);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found))  // opening a pipe would wait forever
    throw Failure(path + ": is a folder, a device or a pipe, expected a checkpoint file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Failure(path + ": cannot be opened: " + std::strerror(errno));
  const auto size = std::filesystem::file_size(path, error);
  if (error) throw Failure(path + ": cannot be read: " + error.message());
  std::string bytes(size, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<size_t>(in.gcount()));
  return parse_checkpoint(bytes, path);
}

}  // namespace ws
