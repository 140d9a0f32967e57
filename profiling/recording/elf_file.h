// What an ELF file says of its code: the names of its functions, and how to go from a function to its caller. The file is
// opened for each question and not kept open: descriptors belong to the program.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ws::prof {

class ElfFile {
 public:
  // nullptr if this is no 64-bit ELF file of this machine's byte order. Addresses are those in the file.
  static std::unique_ptr<ElfFile> open(const std::string& path);

  std::string function_at(uint64_t address) const;  // as the linker calls it; empty: unknown
  // The description of the code at this address (an FDE of .eh_frame) and where it lies; 0: none.
  uint64_t description_at(uint64_t address) const;
  std::string read(uint64_t address, size_t bytes) const;  // shorter at the end of what the file holds

 private:
  struct Part {
    uint64_t address, bytes, offset;
  };
  struct Function {
    uint64_t address, bytes;
    uint64_t name;  // offset in the file
  };
  explicit ElfFile(std::string path) : path_(std::move(path)) {}
  bool learn();
  void learn_descriptions(uint64_t address, uint64_t offset, uint64_t bytes);
  void learn_functions(uint64_t sections, size_t count, size_t each);
  std::string bytes_at(uint64_t offset, size_t bytes) const;

  std::string path_;
  std::vector<Part> parts_;
  std::vector<Function> functions_;                         // by address
  std::vector<std::pair<uint64_t, uint64_t>> descriptions_;  // of the code from here on, by address
};

}  // namespace ws::prof
