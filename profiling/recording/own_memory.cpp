// Memory of the library in a recorded program. Where a thread first asks malloc(), it gets an arena of its own: 64 MB of the
// program's address space, which may be limited, for each of our threads. So our new and delete have pages of their own.
// Blocks of equal classes go from hand to hand; large ones come from the kernel. Only this library sees these functions.
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <new>

namespace {

constexpr size_t kUnit = 16, kSlab = size_t{1} << 20, kLargest = size_t{64} << 10;
constexpr size_t kClasses = 41;  // up to kLargest
constexpr size_t kSpareBlocks = 8;  // large blocks that are kept for the next one of their size

// In front of each block, so that blocks have the alignment of malloc().
struct alignas(kUnit) Head {
  size_t bytes = 0;  // of the whole block
  Head* next = nullptr;
};
static_assert(sizeof(Head) == kUnit);

// Four classes for each power of two: at most a fifth of a block is unused.
size_t class_of(size_t bytes) {
  const size_t units = std::max<size_t>(4, (bytes + kUnit - 1) / kUnit);
  const int top = std::bit_width(units) - 1;
  const size_t quarter = size_t{1} << (top - 2), steps = (units - (size_t{1} << top) + quarter - 1) / quarter;
  return static_cast<size_t>(top - 2) * 4 + steps;
}
size_t bytes_of(size_t number) {
  const size_t quarter = size_t{1} << (number / 4);
  return (4 + number % 4) * quarter * kUnit;
}
static_assert(std::has_single_bit(kLargest / kUnit));

class Memory {
 public:
  void* take(size_t wanted) {
    const size_t bytes = wanted + sizeof(Head);
    if (bytes < wanted) return nullptr;
    const Locked locked;
    Head* const block = bytes > kLargest ? large(bytes) : small(bytes);
    return block ? block + 1 : nullptr;
  }
  void give(void* memory) {
    Head* const block = static_cast<Head*>(memory) - 1;
    const Locked locked;
    if (block->bytes > kLargest) return give_large(block);
    Head*& free = free_[class_of(block->bytes)];
    block->next = free, free = block;
  }
  static pthread_mutex_t& mutex() {
    static pthread_mutex_t all = PTHREAD_MUTEX_INITIALIZER;
    return all;
  }

 private:
  struct Locked {
    Locked() { pthread_mutex_lock(&mutex()); }
    ~Locked() { pthread_mutex_unlock(&mutex()); }
  };
  static char* pages(size_t bytes) {
    void* const got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return got == MAP_FAILED ? nullptr : static_cast<char*>(got);
  }
  Head* small(size_t bytes) {
    const size_t number = class_of(bytes);
    if (Head* const block = free_[number]) {
      free_[number] = block->next;
      return block;
    }
    const size_t whole = bytes_of(number);
    if (left_ < whole) {  // what is left of the slab stays unused
      char* const fresh = pages(kSlab);
      if (!fresh) return nullptr;
      slab_ = fresh, left_ = kSlab;
    }
    Head* const block = new (slab_) Head;
    slab_ += whole, left_ -= whole;
    block->bytes = whole;
    return block;
  }
  // Vectors that grow ask for powers of two, so a block is often wanted again.
  Head* large(size_t bytes) {
    const size_t whole = std::bit_ceil(bytes);
    if (whole < bytes) return nullptr;
    for (Head*& spare : spare_)
      if (spare && spare->bytes == whole) {
        Head* const block = spare;
        spare = nullptr;
        return block;
      }
    char* const fresh = pages(whole);
    if (!fresh) return nullptr;
    Head* const block = new (fresh) Head;
    block->bytes = whole;
    return block;
  }
  void give_large(Head* block) {
    constexpr size_t kMostSpare = size_t{1} << 20;
    for (Head*& spare : spare_)
      if (!spare && block->bytes <= kMostSpare) return void(spare = block);
    munmap(block, block->bytes);
  }

  Head* free_[kClasses] = {};
  Head* spare_[kSpareBlocks] = {};
  char* slab_ = nullptr;
  size_t left_ = 0;
};

// Never destroyed: the program may end in any way.
Memory& memory() {
  alignas(Memory) static char place[sizeof(Memory)];
  static Memory* const all = [] {
    // A fork in the middle of a call would leave the lock taken in the child.
    pthread_atfork([] { pthread_mutex_lock(&Memory::mutex()); }, [] { pthread_mutex_unlock(&Memory::mutex()); },
                   [] { pthread_mutex_unlock(&Memory::mutex()); });
    return new (place) Memory;
  }();
  return *all;
}

void* take_or_throw(size_t bytes) {
  if (void* const got = memory().take(bytes)) return got;
  throw std::bad_alloc();
}

}  // namespace

// Alignments above 16 bytes are rare: such blocks come from the C library.
void* operator new(size_t bytes) { return take_or_throw(bytes); }
void* operator new[](size_t bytes) { return take_or_throw(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return memory().take(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return memory().take(bytes); }
void operator delete(void* block) noexcept {
  if (block) memory().give(block);
}
void operator delete[](void* block) noexcept { operator delete(block); }
void operator delete(void* block, size_t) noexcept { operator delete(block); }
void operator delete[](void* block, size_t) noexcept { operator delete(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { operator delete(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { operator delete(block); }
