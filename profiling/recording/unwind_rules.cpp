#include "profiling/recording/unwind_rules.h"

#include <string>
#include <string_view>
#include <vector>

namespace ws::prof {
namespace {

// Reads numbers; at the end it reads zeros and says that it is over.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  bool over() const { return at_ >= bytes_.size(); }
  bool failed() const { return failed_; }
  size_t at() const { return at_; }
  void skip(uint64_t count) { failed_ |= count > bytes_.size() - at_; at_ = failed_ ? bytes_.size() : at_ + count; }
  uint64_t fixed(size_t size) {
    if (bytes_.size() - at_ < size) {
      failed_ = true;
      at_ = bytes_.size();
      return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= uint64_t{static_cast<uint8_t>(bytes_[at_ + i])} << 8 * i;
    at_ += size;
    return value;
  }
  uint64_t unsigned_number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint64_t byte = fixed(1);
      value |= (byte & 0x7f) << shift;
      if (!(byte & 0x80)) return value;
    }
    failed_ = true;
    return 0;
  }
  int64_t signed_number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64;) {
      const uint64_t byte = fixed(1);
      value |= (byte & 0x7f) << shift;
      shift += 7;
      if (byte & 0x80) continue;
      if ((byte & 0x40) && shift < 64) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
    failed_ = true;
    return 0;
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

// The part that several descriptions share (a CIE).
struct Common {
  uint64_t code_factor = 1;
  int64_t data_factor = 1;
  uint8_t pointers = 0;      // how addresses are written
  bool has_lengths = false;  // descriptions say the length of what we skip
  std::string instructions;
};

constexpr size_t kMostOfEntry = 1 << 16;

// A whole entry without its length.
std::string entry_at(const ElfFile& file, uint64_t address) {
  const std::string head = file.read(address, 4);
  const uint64_t bytes = Bytes(head).fixed(4);
  return bytes == 0 || bytes > kMostOfEntry ? std::string() : file.read(address + 4, bytes);
}

// Reads a pointer that is written as 4 or 8 bytes, absolute or from where it stands.
std::optional<uint64_t> pointer(Bytes& bytes, uint8_t kind, uint64_t here) {
  uint64_t value = 0;
  switch (kind & 0x0f) {
    case 0x00: case 0x04: case 0x0c: value = bytes.fixed(8); break;
    case 0x03: value = bytes.fixed(4); break;
    case 0x0b: value = static_cast<uint64_t>(int64_t{static_cast<int32_t>(bytes.fixed(4))}); break;
    default: return {};
  }
  if ((kind & 0x70) == 0x10) return value + here;
  return (kind & 0x70) == 0 ? std::optional(value) : std::nullopt;
}

std::optional<Common> common_part(const ElfFile& file, uint64_t address) {
  const std::string entry = entry_at(file, address);
  Bytes bytes(entry);
  if (bytes.fixed(4) != 0) return {};
  const uint64_t version = bytes.fixed(1);
  if (version != 1 && version != 3) return {};
  const size_t end = entry.find('\0', bytes.at());
  if (end == std::string::npos) return {};
  const std::string kinds = entry.substr(bytes.at(), end - bytes.at());
  bytes.skip(kinds.size() + 1);
  Common common;
  common.code_factor = bytes.unsigned_number();
  common.data_factor = bytes.signed_number();
  if ((version == 1 ? bytes.fixed(1) : bytes.unsigned_number()) != kReturnRegister) return {};
  if (!kinds.empty() && kinds[0] != 'z') return {};
  if (!kinds.empty()) {
    common.has_lengths = true;
    const uint64_t length = bytes.unsigned_number();
    const size_t begin = bytes.at();
    for (const char kind : kinds) {
      if (kind == 'R') common.pointers = static_cast<uint8_t>(bytes.fixed(1));
      if (kind == 'L') bytes.skip(1);
      if (kind == 'P' && !pointer(bytes, static_cast<uint8_t>(bytes.fixed(1)) & 0x0f, 0)) return {};
    }
    bytes.skip(begin + length - bytes.at());
  }
  common.instructions = entry.substr(bytes.at());
  return bytes.failed() ? std::nullopt : std::optional(common);
}

// Runs the instructions of a description up to an address.
class Rules {
 public:
  Rules(const Common& common, uint64_t begin, uint64_t address) : common_(common), at_(begin), address_(address) {
    rule_.saved.fill(UnwindRule::kSame);
  }
  bool run(std::string_view instructions) {
    Bytes bytes(instructions);
    while (!bytes.over() && !bytes.failed() && at_ <= address_)
      if (!one(bytes)) return false;
    return !bytes.failed();
  }
  void keep_as_first() { first_ = rule_; }
  std::optional<UnwindRule> rule() const { return usable_ ? std::optional(rule_) : std::nullopt; }

 private:
  void save(uint64_t which, int64_t offset) {
    if (which < kRegisters) rule_.saved[which] = static_cast<int32_t>(offset * common_.data_factor);
  }
  void set(uint64_t which, int32_t what) {
    if (which < kRegisters) rule_.saved[which] = what;
  }
  void base(uint64_t which) { rule_.base = static_cast<uint8_t>(which); usable_ = which < kRegisters; }
  void advance(uint64_t by) { at_ += by * common_.code_factor; }

  bool one(Bytes& bytes) {
    const auto code = static_cast<uint8_t>(bytes.fixed(1));
    const uint8_t low = code & 0x3f;
    switch (code >> 6) {
      case 1: advance(low); return true;
      case 2: save(low, static_cast<int64_t>(bytes.unsigned_number())); return true;
      case 3: set(low, low < kRegisters ? first_.saved[low] : 0); return true;
      default: return other(code, bytes);
    }
  }
  bool other(uint8_t code, Bytes& bytes) {
    const auto number = [&] { return bytes.unsigned_number(); };
    uint64_t which = 0;
    switch (code) {
      case 0x00: return true;
      case 0x02: advance(bytes.fixed(1)); return true;
      case 0x03: advance(bytes.fixed(2)); return true;
      case 0x04: advance(bytes.fixed(4)); return true;
      case 0x05: which = number(); save(which, static_cast<int64_t>(number())); return true;
      case 0x06: which = number(); set(which, which < kRegisters ? first_.saved[which] : 0); return true;
      case 0x07: set(number(), UnwindRule::kLost); return true;
      case 0x08: set(number(), UnwindRule::kSame); return true;
      case 0x09: set(number(), UnwindRule::kLost); number(); return true;
      case 0x0a: kept_.push_back(rule_); kept_usable_.push_back(usable_); return true;
      case 0x0b: return restore();
      case 0x0c: base(number()); rule_.offset = static_cast<int32_t>(number()); return true;
      case 0x0d: base(number()); return true;
      case 0x0e: rule_.offset = static_cast<int32_t>(number()); return true;
      case 0x0f: usable_ = false; bytes.skip(number()); return true;
      case 0x10: case 0x16: set(number(), UnwindRule::kLost); bytes.skip(number()); return true;
      case 0x11: which = number(); save(which, bytes.signed_number()); return true;
      case 0x12: base(number()); rule_.offset = static_cast<int32_t>(bytes.signed_number() * common_.data_factor); return true;
      case 0x13: rule_.offset = static_cast<int32_t>(bytes.signed_number() * common_.data_factor); return true;
      case 0x2e: number(); return true;
      default: return false;
    }
  }
  bool restore() {
    if (kept_.empty()) return false;
    rule_ = kept_.back(), usable_ = kept_usable_.back();
    kept_.pop_back(), kept_usable_.pop_back();
    return true;
  }

  const Common& common_;
  uint64_t at_, address_;
  UnwindRule rule_, first_;
  bool usable_ = true;  // the frame's begin is a register's value plus a number
  std::vector<UnwindRule> kept_;
  std::vector<bool> kept_usable_;
};

}  // namespace

std::optional<UnwindRule> unwind_rule(const ElfFile& file, uint64_t address) {
  const uint64_t place = file.description_at(address);
  const std::string entry = place != 0 ? entry_at(file, place) : std::string();
  Bytes bytes(entry);
  const uint64_t back = bytes.fixed(4);
  const auto common = back != 0 ? common_part(file, place + 4 - back) : std::nullopt;
  if (!common) return {};
  const auto begin = pointer(bytes, common->pointers, place + 4 + bytes.at());
  const auto length = begin ? pointer(bytes, common->pointers & 0x0f, 0) : std::nullopt;
  if (!length || address < *begin || address - *begin >= *length) return {};
  if (common->has_lengths) bytes.skip(bytes.unsigned_number());
  if (bytes.failed()) return {};
  Rules rules(*common, *begin, address);
  if (!rules.run(common->instructions)) return {};
  rules.keep_as_first();
  if (!rules.run(std::string_view(entry).substr(bytes.at()))) return {};
  return rules.rule();
}

}  // namespace ws::prof
