// The checkpoint file: a mark, the spec as JSON, where the run stands, every tensor as raw floats, a checksum.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/train/checkpoint.h"

namespace ws {
namespace {

constexpr char kMark[8] = {'W', 'S', 'C', 'H', 'E', 'C', 'K', '1'};

// Everything of fixed size, written as it stands in memory (little-endian machines only, as CUDA's are).
struct Position {
  int64_t step = 0, good_steps = 0, epoch = 0, row = 0;
  double loss_scale = 0, wall_s = 0, epoch_loss = 0, epoch_correct = 0;
};
using Tensors = std::vector<std::vector<float>>;

uint32_t checksum(std::string_view bytes, uLong of_earlier = crc32_z(0, nullptr, 0)) {
  return static_cast<uint32_t>(crc32_z(of_earlier, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Reads from bytes it does not trust: every length is checked against what is left before anything is allocated.
class Reader {
 public:
  Reader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  std::string_view take(uint64_t count, const char* what) {
    if (count > bytes_.size() - at_) fail(std::string("ends inside ") + what);
    const auto part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }
  template <class T>
  T get(const char* what) {
    T value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }
  Tensors tensors(const char* what) {
    const auto count = get<uint64_t>(what);
    if (count > (bytes_.size() - at_) / sizeof(uint64_t))
      fail(std::string("claims more tensors than it holds in ") + what);
    Tensors all(count);
    for (auto& tensor : all) {
      const auto elements = get<uint64_t>(what);
      if (elements > (bytes_.size() - at_) / sizeof(float)) fail(std::string("ends inside ") + what);
      tensor.resize(elements);
      const auto raw = take(elements * sizeof(float), what);
      if (!raw.empty()) std::memcpy(tensor.data(), raw.data(), raw.size());
    }
    return all;
  }
  bool at_end() const { return at_ == bytes_.size(); }
  [[noreturn]] void fail(const std::string& reason) const {
    throw Failure(name_ + ": not a usable checkpoint: " + reason + " (byte " + std::to_string(at_) + ")");
  }

 private:
  std::string_view bytes_;
  std::string name_;
  size_t at_ = 0;
};

RunSpec read_spec(Reader& in) {
  const auto text = in.take(in.get<uint64_t>("the length of the run description"), "the run description");
  try {
    return parse_spec(text);
  } catch (const SpecError& problem) {
    in.fail(problem.what());
  }
}

std::string reason_of(int error) { return std::strerror(error); }

// A file that is being written; removes itself unless it was finished.
class PendingFile {
 public:
  explicit PendingFile(std::string path)
      : path_(std::move(path)), handle_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (handle_ < 0) fail("cannot be created");
  }
  ~PendingFile() {
    if (handle_ >= 0) ::close(handle_);
    if (!finished_) ::unlink(path_.c_str());
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(handle_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("cannot be written");
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }
  void finish_as(const std::string& target) {
    if (::fsync(handle_) != 0) fail("cannot be written to disk");
    if (::rename(path_.c_str(), target.c_str()) != 0) fail("cannot take the name " + target);
    finished_ = true;
  }

 private:
  [[noreturn]] void fail(const std::string& what) {
    const std::string reason = reason_of(errno);
    throw Failure("checkpoint " + path_ + " " + what + ": " + reason + "; an earlier one is unchanged");
  }
  std::string path_;
  int handle_;
  bool finished_ = false;
};

// Puts a checkpoint into the file piece by piece: of a large model there is no room for a second copy.
class Writer {
 public:
  explicit Writer(PendingFile& file) : file_(file) {}
  void write(const Checkpoint& c) {
    raw({kMark, sizeof kMark});
    const std::string spec = to_json(c.spec).dump();
    put(uint64_t{spec.size()});
    raw(spec);
    put(Position{c.state.step, c.state.good_steps, c.epoch, c.row, c.state.loss_scale, c.wall_s, c.epoch_loss,
                 c.epoch_correct});
    tensors(c.state.parameters);
    for (const Tensors& moments : c.state.moments) tensors(moments);
    put(checksum_);
  }

 private:
  void raw(std::string_view bytes) {
    if (bytes.empty()) return;  // zlib takes no bytes at all for the wish to begin anew
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

  PendingFile& file_;
  uint32_t checksum_ = checksum({});
};

void sync_folder(const std::string& path) {
  const auto folder = std::filesystem::absolute(path).parent_path();
  const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return;
  ::fsync(handle);
  ::close(handle);
}

}  // namespace

void save_checkpoint(const Checkpoint& checkpoint, const std::string& path) {
  PendingFile file(path + ".part");
  Writer(file).write(checkpoint);
  file.finish_as(path);
  sync_folder(path);
}

Checkpoint parse_checkpoint(std::string_view bytes, const std::string& name) {
  Reader in(bytes, name);
  if (in.take(sizeof kMark, "the mark") != std::string_view(kMark, sizeof kMark))
    in.fail("it does not begin with the mark WSCHECK1");
  if (bytes.size() < sizeof kMark + sizeof(uint32_t)) in.fail("it is too short");
  uint32_t stored;
  std::memcpy(&stored, bytes.data() + bytes.size() - sizeof stored, sizeof stored);
  if (stored != checksum(bytes.substr(0, bytes.size() - sizeof stored)))
    in.fail("its checksum does not match, so it is damaged or cut short");
  Checkpoint c;
  c.spec = read_spec(in);
  const auto p = in.get<Position>("the position");
  c.state.step = p.step;
  c.state.good_steps = p.good_steps;
  c.state.loss_scale = p.loss_scale;
  c.epoch = p.epoch;
  c.row = p.row;
  c.wall_s = p.wall_s;
  c.epoch_loss = p.epoch_loss;
  c.epoch_correct = p.epoch_correct;
  c.state.parameters = in.tensors("the parameters");
  for (Tensors& moments : c.state.moments) moments = in.tensors("the optimizer's state");
  if (in.get<uint32_t>("the checksum"); !in.at_end()) in.fail("something follows its end");
  if (p.step < 0 || p.epoch < 0 || p.row < 0) in.fail("its position is negative");
  return c;
}

Checkpoint load_checkpoint(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw Failure(path + ": is a folder, expected a checkpoint file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Failure(path + ": cannot be opened: " + reason_of(errno));
  const auto size = std::filesystem::file_size(path, error);
  if (error) throw Failure(path + ": cannot be read: " + error.message());
  std::string bytes(size, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<size_t>(in.gcount()));
  return parse_checkpoint(bytes, path);
}

}  // namespace ws
