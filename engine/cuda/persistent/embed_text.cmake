# Writes OUT, a source that holds the files FILES of the folder FROM as string literals. Called with cmake -P.
string(REPLACE "," ";" _files "${FILES}")
set(_text "#include \"engine/cuda/persistent/kernel_text.h\"\n\n#include <map>\n\n#include \"profiling/base/failure.h\"\n
namespace ws::cuda::persistent {\n\nstd::string text_of(const std::string& file) {\n  static const std::map<std::string, std::string> files{\n")
foreach(_file IN LISTS _files)
  file(READ ${FROM}/${_file} _content)
  string(APPEND _text "{\"${_file}\", R\"cuda(${_content})cuda\"},\n")
endforeach()
string(APPEND _text "  };\n  const auto found = files.find(file);
  if (found == files.end()) throw Failure(\"The program holds no kernel source \" + file + \".\");
  return found->second;\n}\n\n}  // namespace ws::cuda::persistent\n")
file(WRITE ${OUT} "${_text}")
