# One folder is one target, and it may include only the folders that it names.
#
#   warpsight_folder(SOURCES a.cpp b.cpp USES profiling/trace profiling/base LIBRARIES ZLIB::ZLIB [QT core|widgets] [FAST|INLINE])
#
# makes the static library warpsight::profiling_analysis of the folder profiling/analysis (a folder of headers makes an
# interface library). USES names every folder whose headers this one may include; LIBRARIES are the foreign libraries that
# this folder alone sees. FAST: the compiler's last optimizations are worth their time here. INLINE: its inlining is; traces
# are read, compared and drawn as fast as with FAST, and compiled in 7/10 of the time.
# cmake/check_layout.cmake compares every #include with these lists.
set(_layout_file ${PROJECT_BINARY_DIR}/layout.txt)
file(WRITE ${_layout_file} "")
file(WRITE ${PROJECT_BINARY_DIR}/meta_objects.txt "")

function(warpsight_folder)
  cmake_parse_arguments(arg "FAST;INLINE" "QT" "SOURCES;USES;LIBRARIES" ${ARGN})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" "_" name ${folder})
  set(target warpsight_${name})
  set(_used "")
  foreach(_folder IN LISTS arg_USES)
    string(REPLACE "/" "_" _name ${_folder})
    if(NOT TARGET warpsight_${_name})
      message(FATAL_ERROR "${folder} uses ${_folder}, which stands above it or does not exist")
    endif()
    list(APPEND _used warpsight_${_name})
  endforeach()
  file(GLOB _headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  if(arg_SOURCES AND WARPSIGHT_UNITY AND WARPSIGHT_UNIT)
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${WARPSIGHT_UNIT} warpsight_flags ${_used})
    target_sources(${target} INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${_headers})
    list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    set_property(GLOBAL APPEND PROPERTY ${WARPSIGHT_UNIT}_FOLDERS ${target})
    set_property(GLOBAL APPEND PROPERTY ${WARPSIGHT_UNIT}_SOURCES ${arg_SOURCES})
    set_property(GLOBAL APPEND PROPERTY ${WARPSIGHT_UNIT}_HEADERS ${_headers})
    set_property(GLOBAL APPEND PROPERTY ${WARPSIGHT_UNIT}_USES ${_used})
    set_property(GLOBAL APPEND PROPERTY ${WARPSIGHT_UNIT}_LIBRARIES ${arg_LIBRARIES})
  elseif(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES} ${_headers})
    target_link_libraries(${target} PUBLIC warpsight_flags ${_used} PRIVATE ${arg_LIBRARIES})
    target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${_headers})
    _warpsight_compile(${target} "${arg_QT}" "${arg_FAST}" "${arg_INLINE}" ${_headers})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE warpsight_flags ${_used} ${arg_LIBRARIES})
    if(_headers)
      target_sources(${target} INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${_headers})
    endif()
  endif()
  # `ninja all_verify_interface_header_sets` compiles every header on its own.
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  add_library(warpsight::${name} ALIAS ${target})
  warpsight_allow(${folder} ${arg_USES})
endfunction()

# How the sources of a library are compiled.
function(_warpsight_compile target qt fast inline)
  warpsight_unity(${target})
  if(fast)
    warpsight_optimize(${target} 2)
  else()
    warpsight_optimize(${target} 1)
  endif()
  if(inline)
    warpsight_inline(${target})
  endif()
  if(qt)
    target_link_libraries(${target} PUBLIC ${WARPSIGHT_QT_${qt}})
    warpsight_moc(${target} ${ARGN})
  endif()
  if(qt STREQUAL "core")
    # Two small folders: a precompiled header would cost more than it saves.
  elseif(qt)
    warpsight_precompile(${target} REUSE_FROM headers_widgets)
  elseif(fast)
    warpsight_precompile(${target} REUSE_FROM headers_fast)
  else()
    warpsight_precompile(${target} REUSE_FROM headers_plain)
  endif()
endfunction()

# warpsight_unit(NAME FOLDERS... [QT widgets]): adds small folders of one kind, none FAST or INLINE. Unity builds compile
# them together: templates that several sources use are instantiated once. Each folder is still a target, and without
# WARPSIGHT_UNITY it is compiled by itself. No other folder may use one of them and be used by another.
function(warpsight_unit name)
  cmake_parse_arguments(arg "" "QT" "" ${ARGN})
  set(WARPSIGHT_UNIT warpsight_unit_${name})
  foreach(_folder IN LISTS arg_UNPARSED_ARGUMENTS)
    add_subdirectory(${_folder})
  endforeach()
  if(NOT WARPSIGHT_UNITY)
    return()
  endif()
  foreach(_part FOLDERS SOURCES HEADERS USES LIBRARIES)
    get_property(_${_part} GLOBAL PROPERTY ${WARPSIGHT_UNIT}_${_part})
    list(REMOVE_DUPLICATES _${_part})
  endforeach()
  list(REMOVE_ITEM _USES ${_FOLDERS})
  add_library(${WARPSIGHT_UNIT} STATIC ${_SOURCES} ${_HEADERS})
  target_link_libraries(${WARPSIGHT_UNIT} PUBLIC warpsight_flags ${_USES} PRIVATE ${_LIBRARIES})
  _warpsight_compile(${WARPSIGHT_UNIT} "${arg_QT}" OFF OFF ${_HEADERS})
  set_target_properties(${WARPSIGHT_UNIT} PROPERTIES UNITY_BUILD_BATCH_SIZE 60)
endfunction()

# warpsight_moc(TARGET HEADERS...): meta-objects of the headers that declare some, compiled with the target's other sources.
# Qt's AUTOMOC would start a program for every folder in every build.
function(warpsight_moc target)
  set(_declaring "")
  foreach(_header IN LISTS ARGN)
    file(STRINGS ${_header} _found REGEX "^ *Q_OBJECT" LIMIT_COUNT 1)
    if(_found)
      list(APPEND _declaring ${_header})
    endif()
  endforeach()
  file(APPEND ${PROJECT_BINARY_DIR}/meta_objects.txt "${_declaring};")
  qt6_wrap_cpp(_made ${_declaring} TARGET ${target})
  target_sources(${target} PRIVATE ${_made})
endfunction()

# warpsight_allow(FOLDER FOLDERS...): a folder's row of the layout; for programs, which are made by add_executable.
function(warpsight_allow folder)
  list(JOIN ARGN " " _uses)
  file(APPEND ${_layout_file} "${folder}: ${_uses}\n")
endfunction()

# Every build looks at the includes again when a source has changed.
function(warpsight_check_layout)
  file(GLOB_RECURSE _sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/profiling/*.h ${PROJECT_SOURCE_DIR}/profiling/*.cpp
    ${PROJECT_SOURCE_DIR}/datasets/*.h ${PROJECT_SOURCE_DIR}/datasets/*.cpp
    ${PROJECT_SOURCE_DIR}/engine/*.h ${PROJECT_SOURCE_DIR}/engine/*.cpp ${PROJECT_SOURCE_DIR}/engine/*.cu ${PROJECT_SOURCE_DIR}/engine/*.cuh
    ${PROJECT_SOURCE_DIR}/app/*.h ${PROJECT_SOURCE_DIR}/app/*.cpp)
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/layout.stamp
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DLAYOUT=${_layout_file} -DMETA=${PROJECT_BINARY_DIR}/meta_objects.txt -P ${PROJECT_SOURCE_DIR}/cmake/check_layout.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/layout.stamp
    DEPENDS ${_sources} ${PROJECT_SOURCE_DIR}/cmake/check_layout.cmake ${_layout_file}
    COMMENT "Checking that every include follows the layout" VERBATIM)
  add_custom_target(layout ALL DEPENDS ${PROJECT_BINARY_DIR}/layout.stamp)
endfunction()
