#include "profiling/recording/layouts/frame_layout.h"

#include <unistd.h>

#include "profiling/recording/layouts/safe_copy.h"

namespace ws::prof {
namespace {

constexpr size_t kObject = 16;  // header of every object: reference count and type

template <class Fits>
std::optional<size_t> offset_where(size_t bytes, const Fits& fits) {
  for (size_t offset = 0; offset + 8 <= bytes; offset += 8)
    if (fits(offset)) return offset;
  return {};
}

bool learn_numbers(FrameLayout& layout, const char* const (&frames)[3], const SaidFrame (&said)[3]) {
  for (const long counts : {1L, 2L})  // bytes, or instructions of two bytes
    for (size_t offset = kObject; offset + 4 <= FrameLayout::kFrameBytes; offset += 4) {
      bool all = true;
      for (int i = 1; i < 3 && all; ++i) {
        int number = 0;
        std::memcpy(&number, frames[i] + offset, sizeof number);
        all = number * counts == said[i].last;
      }
      if (all && said[1].last != said[2].last) {
        layout.instruction = offset;
        layout.first_instruction = counts;
        return true;
      }
    }
  return false;
}

bool learn_instruction(FrameLayout& layout, const char* const (&frames)[3], const SaidFrame (&said)[3]) {
  if (layout.whole_frames) return learn_numbers(layout, frames, said);
  const auto begin = [&](int i, size_t offset) { return word_at(frames[i], offset) - said[i].code - said[i].last; };
  const auto at = offset_where(FrameLayout::kFrameBytes, [&](size_t offset) {
    const long first = begin(1, offset);
    return first == begin(2, offset) && first > 0 && first < 1024 && said[1].last != said[2].last;
  });
  if (at) layout.instruction = *at, layout.first_instruction = begin(1, *at);
  return at.has_value();
}

bool learn_thread(FrameLayout& layout, const char* state, const char* frame, unsigned long number, int minor) {
  const auto here = offset_where(FrameLayout::kThreadBytes, [&](size_t offset) { return word_at(state, offset) == frame; });
  if (minor != 11 && minor != 12) {
    if (!here) return false;
    layout.thread_frame = *here;
  } else {
    const auto between = offset_where(FrameLayout::kThreadBytes, [&](size_t offset) {
      char part[24];
      const char* to = word_at(state, offset);
      if (!to || reinterpret_cast<uintptr_t>(to) % 8 != 0 || !read_safely(to, part, sizeof part)) return false;
      for (size_t inner = 0; inner < sizeof part; inner += 8)
        if (word_at(part, inner) == frame) {
          layout.through = inner;
          return true;
        }
      return false;
    });
    if (!between) return false;
    layout.thread_frame = *between;
  }
  const auto own = offset_where(FrameLayout::kThreadBytes, [&](size_t offset) {
    return offset >= 24 && reinterpret_cast<uintptr_t>(word_at(state, offset)) == number;
  });
  if (own) layout.thread_number = *own;
  layout.task_number = offset_where(FrameLayout::kThreadBytes, [&](size_t offset) {
    return offset >= 24 && reinterpret_cast<uintptr_t>(word_at(state, offset)) == static_cast<uintptr_t>(gettid());
  });
  return own.has_value();
}

}  // namespace

std::optional<FrameLayout> learn_layout(const SaidFrame (&said)[3], const char* state, unsigned long thread, int minor_version) {
  FrameLayout layout;
  layout.whole_frames = minor_version < 11;
  const char* frames[3];
  for (int i = 0; i < 3; ++i) {
    frames[i] = layout.whole_frames ? said[i].frame : word_at(said[i].frame, layout.inner_frame);
    if (!frames[i]) return {};
  }
  const auto same = [&](size_t offset, auto value) {
    return unmarked(word_at(frames[0], offset)) == value(0) && unmarked(word_at(frames[1], offset)) == value(1);
  };
  const auto previous = offset_where(FrameLayout::kFrameBytes, [&](size_t o) { return same(o, [&](int i) { return frames[i + 1]; }); });
  const auto code = offset_where(FrameLayout::kFrameBytes, [&](size_t o) { return same(o, [&](int i) { return said[i].code; }); });
  if (!previous || !code) return {};
  layout.previous = *previous, layout.code = *code;
  if (!learn_instruction(layout, frames, said) || !learn_thread(layout, state, frames[0], thread, minor_version)) return {};
  return layout;
}

}  // namespace ws::prof
