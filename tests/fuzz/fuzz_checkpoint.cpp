// Checkpoints: as the bytes are, and once more with a checksum that fits, so that changes get past it.
#include <zlib.h>

#include <string>

#include "engine/train/checkpoint.h"
#include "engine/train/trainer.h"
#include "tests/fuzz/fuzz.h"

namespace {

void parse(const std::string& bytes) {
  ws::fuzz::accepts([&] {
    const ws::Checkpoint checkpoint = ws::parse_checkpoint(bytes, "fuzz");
    ws::fuzz::require(checkpoint.state.step >= 0 && checkpoint.epoch >= 0 && checkpoint.row >= 0,
                      "a position in the run");
  });
}

void seal(std::string& bytes) {
  const size_t body = bytes.size() - sizeof(uint32_t);
  const uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), body);
  for (size_t i = 0; i < sizeof(uint32_t); ++i) bytes[body + i] = static_cast<char>(sum >> (8 * i));
}

}  // namespace

FUZZ_TARGET(checkpoint) {
  std::string file(bytes);
  parse(file);
  if (file.size() < sizeof(uint32_t)) return;
  seal(file);
  parse(file);
}
