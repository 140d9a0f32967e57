// The layouts of frames in CPython 3.9 to 3.15, laid out here as its headers have them, without a Python. Each is learned
// in a process of its own. Real interpreters: tests/profiling/python/record_test.py.
#include "profiling/recording/python_frames.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Object {
  int64_t references;
  const void* type;
};
struct Text : Object {
  const char* text;
};
struct Code : Object {
  const char *name, *path;
  char rest[144], instructions[200];
};
char g_state[640], g_frame_type[128];

}  // namespace

// Functions that the recorder looks up in the process.
extern "C" {
char PyCode_Type[8], _Py_NoneStruct[16];
long PyLong_AsLong(void*) { return 0; }
const char* PyUnicode_AsUTF8(void* text) { return static_cast<Text*>(text)->text; }
void Py_IncRef(void*) {}
void Py_DecRef(void*) {}
void PyErr_Clear() {}
void* PyObject_GetAttrString(void* object, const char* name) {
  const Code& code = *static_cast<Code*>(object);
  return new Text{{}, std::strcmp(name, "co_filename") == 0 ? code.path : code.name};
}
void* PyObject_CallFunction(void*, const char*, ...) { return nullptr; }
int PyCode_Addr2Line(void*, int last) { return last / 2; }
int PyGILState_Ensure() { return 0; }
void PyGILState_Release(int) {}
char* PyGILState_GetThisThreadState() { return g_state; }
}

namespace ws::prof {
namespace {

constexpr unsigned long kThread = 0x7f0012345678;
constexpr size_t kNone = 9999;

struct Version {
  const char* name;
  int minor;
  bool whole;  // frames are objects
  size_t code, previous, instruction;
  size_t thread_frame, between = kNone;  // offset of the frame in a struct in between
  int bytes_each = 0;                    // whole frames count instructions of so many bytes
  uintptr_t flags = 0;                   // in references to code
  bool known = true;
  size_t header = 16;  // of each object; 32 in a free-threaded Python
};

const Version kVersions[] = {
    {"3.9", 9, true, 32, 24, 104, 24, kNone, 1},
    {"3.10", 10, true, 32, 24, 96, 24, kNone, 2},
    {"3.11", 11, false, 32, 48, 56, 56, 8},
    {"3.12", 12, false, 0, 8, 56, 56, 0},
    {"3.13", 13, false, 0, 8, 56, 72},
    {"3.14", 14, false, 0, 8, 56, 72, kNone, 0, 1},
    {"3.15, fields moved", 15, false, 0, 8, 64, 80, kNone, 0, 1},
    {"3.16, which nobody has checked", 16, false, 0, 8, 64, 80, kNone, 0, 1, false},
    {"3.13t", 13, false, 0, 8, 56, 72, kNone, 0, 0, false, 32},
    {"unknown, frames are numbered", 99, false, 0, kNone, 56, 72, kNone, 0, 0, false},
    {"unknown, an extra struct", 99, false, 0, 8, 56, 56, 8, 0, 0, false},
};

template <class Value>
void put(char* to, size_t offset, Value value) {
  std::memcpy(to + offset, &value, sizeof value);
}

// Three calls on this thread: work() in train() in the program's first line.
struct Calls {
  explicit Calls(const Version& version) {
    const char* const names[] = {"work", "train", "<module>"};
    const long last[] = {24, 60, 8};
    for (int i = 0; i < 3; ++i) {
      codes[i].type = PyCode_Type, codes[i].name = names[i], codes[i].path = "/program/train.py";
      char* const frame = frames[i].data();
      put(frame, version.code, reinterpret_cast<uintptr_t>(&codes[i]) | version.flags);
      if (version.previous != kNone) put(frame, version.previous, i < 2 ? frames[i + 1].data() : nullptr);
      if (version.whole)
        put(frame, version.instruction, static_cast<int>(last[i]) / version.bytes_each);
      else
        put(frame, version.instruction, codes[i].instructions + last[i]);
      put(objects[i].data(), version.header - 8, g_frame_type), put(objects[i].data(), version.header + 8, frame);
      said[i] = {version.whole ? frame : objects[i].data(), reinterpret_cast<const char*>(&codes[i]), last[i]};
    }
    if (version.between == kNone) {
      put(g_state, version.thread_frame, frames[0].data());
    } else {
      put(g_state, version.thread_frame, between);
      put(between, version.between, frames[0].data());
    }
    put(g_state, 200, kThread), put(g_state, 208, static_cast<unsigned long>(gettid()));
  }
  Code codes[3] = {};
  std::array<char, 256> frames[3] = {}, objects[3] = {};
  alignas(8) char between[24] = {};
  SaidFrame said[3] = {};
};

std::string stacks_of(const Version& version) {
  static Calls calls(version);
  if (!learn_frames(calls.said, kThread, version.minor, "/usr/lib/python3/\n")) return "not known";
  std::vector<StackOfThread> stacks;
  learn_names(stacks);
  std::string all;
  for (const StackOfThread& stack : stacks) {
    all += (stack.thread == kThread ? "thread" : "another thread") + std::string(stack.task == gettid() ? " here:" : ":");
    for (const CodeAt& at : stack.frames) {
      const CodeFrame* const frame = known_frame(at);
      all += frame ? " " + frame->function + ":" + std::to_string(frame->line) : " ?";
    }
  }
  if (own_line_here() == kNoOp) all += ", no line";
  return all;
}

TEST(PythonFrames, TheLayoutOfEachVersionIsLearned) {
  for (const Version& version : kVersions) {
    const std::string wanted = version.known ? "thread here: work:12 train:30 <module>:4" : "not known";
    EXPECT_EXIT(
        {
          const std::string found = stacks_of(version);
          std::fprintf(stderr, "%s: %s", version.name, found.c_str());
          std::_Exit(found == wanted ? 0 : 1);
        },
        testing::ExitedWithCode(0), "")
        << version.name;
  }
}

TEST(PythonFrames, TheSwitchLeavesThemAlone) {
  EXPECT_EXIT(
      {
        setenv("WARPSIGHT_WITHOUT", "python-frames", 1);
        std::_Exit(stacks_of(kVersions[3]) == "not known" ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ws::prof
