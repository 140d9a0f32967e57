// Functions of the Python interpreter, looked up in the running process: no Python header is needed, for any version.
#pragma once
#include <dlfcn.h>

namespace ws::prof {

struct Interpreter {
  using Object = void*;
  long (*as_long)(Object) = find<long (*)(Object)>("PyLong_AsLong");
  const char* (*as_text)(Object) = find<const char* (*)(Object)>("PyUnicode_AsUTF8");
  void (*increase)(Object) = find<void (*)(Object)>("Py_IncRef");
  void (*decrease)(Object) = find<void (*)(Object)>("Py_DecRef");
  void (*clear)() = find<void (*)()>("PyErr_Clear");
  Object (*attribute)(Object, const char*) = find<Object (*)(Object, const char*)>("PyObject_GetAttrString");
  Object (*call)(Object, const char*, ...) = find<Object (*)(Object, const char*, ...)>("PyObject_CallFunction");
  int (*line)(Object, int) = find<int (*)(Object, int)>("PyCode_Addr2Line");
  const char* (*version)() = find<const char* (*)()>("Py_GetVersion");
  int (*lock)() = find<int (*)()>("PyGILState_Ensure");
  void (*unlock)(int) = find<void (*)(int)>("PyGILState_Release");
  const char* (*thread_state)() = find<const char* (*)()>("PyGILState_GetThisThreadState");
  const char* code_type = static_cast<const char*>(dlsym(RTLD_DEFAULT, "PyCode_Type"));
  Object none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
  const char* version_text() const { return version ? version() : ""; }  // "3.12.4 (main, …"
  bool complete() const { return as_long && as_text && increase && clear && none; }
  bool has_frames() const {
    return complete() && decrease && attribute && call && line && lock && unlock && thread_state && code_type;
  }
  static const Interpreter& instance() {
    static const Interpreter interpreter;
    return interpreter;
  }

 private:
  template <class Function>
  static Function find(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  }
};

}  // namespace ws::prof
