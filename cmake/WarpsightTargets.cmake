# How every target of this project is made: one include root, warnings, optional sanitizers and ccache.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Below a gigabyte, no search for memory that can be given back: it takes an eighth of the time of a compilation.
  set(_heap --param=ggc-min-heapsize=1000000)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${_heap}>)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # ccache keeps what was compiled with a precompiled header only if it may ignore the header's age.
  set(_sloppiness pch_defines,time_macros,include_file_mtime,include_file_ctime)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=${_sloppiness} ${CCACHE_PROGRAM})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(warpsight_flags INTERFACE)
target_include_directories(warpsight_flags INTERFACE ${PROJECT_SOURCE_DIR})
set(_warnings -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers)
set(_cuda_warnings -Wall,-Wextra,-Wno-missing-field-initializers)
# Off by default: a newer compiler than ours warns of more, and still builds the program.
option(WARPSIGHT_WARNINGS_ARE_ERRORS "A warning ends the build" OFF)
if(WARPSIGHT_WARNINGS_ARE_ERRORS)
  list(APPEND _warnings -Werror)
  string(APPEND _cuda_warnings ,-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND _warnings -Wno-restrict)  # false alarms on string concatenation (GCC bug 105651)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND WARPSIGHT_SANITIZE)
  list(APPEND _warnings -Wno-maybe-uninitialized)  # false alarms in the library's own headers, on code the sanitizers add
endif()
foreach(_flag IN LISTS _warnings)
  target_compile_options(warpsight_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:${_flag}>)
endforeach()
target_compile_options(warpsight_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${_cuda_warnings}>
  $<$<AND:$<BOOL:${WARPSIGHT_WARNINGS_ARE_ERRORS}>,$<COMPILE_LANGUAGE:CUDA>,$<NOT:$<BOOL:$<TARGET_PROPERTY:WARPSIGHT_CUDA_WARNINGS_STAY>>>>:--Werror=all-warnings>)
target_compile_options(warpsight_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:${WARPSIGHT_COMPRESS}>)
foreach(_option IN LISTS WARPSIGHT_ASSEMBLE)
  target_compile_options(warpsight_flags INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<NOT:$<STREQUAL:$<TARGET_PROPERTY:CUDA_ARCHITECTURES>,90a-real>>>:${_option}>)
endforeach()
if(WARPSIGHT_SANITIZE)
  list(JOIN WARPSIGHT_SANITIZE "," _sanitizers)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${_sanitizers}> $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${_sanitizers})
endif()

# warpsight_unity(TARGET): compiles a dozen of its sources at once, because headers and their templates are most of the work.
function(warpsight_unity target)
  if(WARPSIGHT_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    # Since version 3.31 CMake joins CUDA's sources, too. They have units of their own: warpsight_cuda_unit.
    get_target_property(_sources ${target} SOURCES)
    list(FILTER _sources INCLUDE REGEX "\\.cu$")
    if(_sources)
      set_source_files_properties(${_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
    # GCC takes an included source for a header, and warns of a class with a member from an unnamed namespace.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# warpsight_optimize(TARGET LEVEL): in release builds. Level 1 does for code that waits for disks, people or the GPU.
function(warpsight_optimize target level)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>>:-O${level}>)
endfunction()

# warpsight_precompile(TARGET HEADERS...): the heavy headers of a target are parsed once.
# warpsight_precompile(TARGET REUSE_FROM OTHER): with the headers of another target of the same kind.
function(warpsight_precompile target)
  if(ARGV1 STREQUAL "REUSE_FROM")
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
    get_target_property(_kind ${target} TYPE)
    if(_kind STREQUAL "EXECUTABLE" AND ARGV2 MATCHES "^headers_")
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fPIC>)  # as the headers of libraries are compiled
    endif()
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # The same false alarms on strings, which a precompiled header no longer hides as a system header's.
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds> $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overread>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CCACHE_PROGRAM)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # or ccache keeps nothing of it
  endif()
endfunction()

# Headers that nearly every source of the libraries without Qt includes.
set(WARPSIGHT_COMMON_HEADERS <algorithm> <chrono> <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional>
  <sstream> <string> <thread> <vector>)

# warpsight_inline(TARGET): with level 1, calls of small functions are inlined, too. That is most of what level 2 gains.
function(warpsight_inline target)
  foreach(_flag -finline-functions -finline-small-functions -fpartial-inlining -fstrict-aliasing)
    target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:${_flag}>)
  endforeach()
endfunction()

# warpsight_test(NAME SOURCES... ): a GoogleTest program; each of its cases becomes a CTest test.
function(warpsight_test name)
  cmake_parse_arguments(arg "" "LABEL;TIMEOUT" "LIBS" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE warpsight_flags ${arg_LIBS} GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE WARPSIGHT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  warpsight_optimize(${name} 1)
  warpsight_unity(${name})
  warpsight_precompile(${name} REUSE_FROM test_headers)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)  # it is for what never ends: a slow machine with other work takes ten times as long
  endif()
  if(WARPSIGHT_SANITIZE)  # everything takes several times as long
    math(EXPR arg_TIMEOUT "4 * ${arg_TIMEOUT}")
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "QT_QPA_PLATFORM=offscreen")
  if(arg_LABEL)
    set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL})
  endif()
endfunction()

# warpsight_only_thorough(TARGETS...): only thorough tests need them, so only the target `thorough` builds them.
function(warpsight_only_thorough)
  set_target_properties(${ARGN} PROPERTIES EXCLUDE_FROM_ALL ON)
endfunction()

# warpsight_share_cores([WAITS TESTS...] [TIMES TESTS...] [LONG TESTS...] [THOROUGH TESTS...]): last in a folder of tests,
# sets which tests may run at the same time. tests/run has six slots, for two cores. A test takes two, because many wait
# now and then; one that mostly waits takes one. TIMES have limits of time: they run one after the other. LONG ones take
# over 20 s and begin first, so that no core waits for them at the end. THOROUGH ones repeat what other tests check, at
# more places or for a longer time: only tests/run --ci runs them.
function(warpsight_share_cores)
  cmake_parse_arguments(arg "" "" "WAITS;TIMES;LONG;THOROUGH" ${ARGN})
  get_property(_all DIRECTORY PROPERTY TESTS)
  foreach(_test IN LISTS _all)
    get_test_property(${_test} RUN_SERIAL _alone)
    if(NOT _alone)
      set_tests_properties(${_test} PROPERTIES PROCESSORS 2)
    endif()
  endforeach()
  foreach(_test IN LISTS arg_WAITS)
    set_tests_properties(${_test} PROPERTIES PROCESSORS 1)
  endforeach()
  foreach(_test IN LISTS arg_TIMES)
    set_tests_properties(${_test} PROPERTIES RESOURCE_LOCK times)
  endforeach()
  foreach(_test IN LISTS arg_LONG)
    set_tests_properties(${_test} PROPERTIES COST 1)
  endforeach()
  foreach(_test IN LISTS arg_THOROUGH)
    set_property(TEST ${_test} APPEND PROPERTY LABELS thorough)
    if(TARGET ${_test})
      warpsight_only_thorough(${_test})
      add_dependencies(thorough ${_test})
    endif()
  endforeach()
endfunction()
