# Tests of the collector on a GPU, and what it costs beside bare CUPTI.
if(WARPSIGHT_HAVE_CUPTI)
  add_library(profiling_test_kernels STATIC ${CMAKE_CURRENT_LIST_DIR}/profiling_kernels.cu)
  target_link_libraries(profiling_test_kernels PRIVATE warpsight_flags CUDA::cudart)
  set_target_properties(profiling_test_kernels PROPERTIES CUDA_RUNTIME_LIBRARY Shared)
  warpsight_test(profiling_gpu_test ${CMAKE_CURRENT_LIST_DIR}/profiling_collector_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/profiling_memory_test.cpp
    LIBS warpsight::profiling profiling_test_kernels CUDA::cudart LABEL gpu)
  add_executable(profiling_cost ${CMAKE_CURRENT_LIST_DIR}/profiling_cost.cpp ${CMAKE_CURRENT_LIST_DIR}/bare_cupti.cpp)
  target_link_libraries(profiling_cost PRIVATE warpsight_flags warpsight::profiling profiling_test_kernels CUDA::cudart CUDA::cupti
    nlohmann_json::nlohmann_json)

  warpsight_test(profiling_engine_test ${CMAKE_CURRENT_LIST_DIR}/profiling_engine_test.cpp
    LIBS warpsight::engine warpsight::engine_cuda_executor warpsight::profiling CUDA::cudart LABEL gpu TIMEOUT 300)
  # Twice: one that gives its name, and one that does not.
  foreach(_name named unnamed)
    warpsight_test(other_profiler_${_name}_test ${CMAKE_CURRENT_LIST_DIR}/other_profiler_test.cpp
      LIBS warpsight::core CUDA::cudart CUDA::cupti LABEL gpu)
  endforeach()
  target_compile_definitions(other_profiler_named_test PRIVATE OTHER_PROFILER_NAME="Neighbour")

  add_executable(traced_steps ${CMAKE_CURRENT_LIST_DIR}/traced_steps.cpp ${CMAKE_CURRENT_LIST_DIR}/bare_cupti.cpp)
  target_link_libraries(traced_steps PRIVATE warpsight_flags warpsight::engine warpsight::engine_cuda_executor warpsight::profiling CUDA::cudart CUDA::cupti nlohmann_json::nlohmann_json)
  target_compile_definitions(traced_steps PRIVATE WARPSIGHT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

  add_executable(recorded_program ${CMAKE_CURRENT_LIST_DIR}/recorded_program.cpp)
  target_link_libraries(recorded_program PRIVATE warpsight_flags profiling_test_kernels CUDA::cudart CUDA::nvtx3 ${CMAKE_DL_LIBS})
  warpsight_test(profiling_record_test ${CMAKE_CURRENT_LIST_DIR}/profiling_record_test.cpp
    LIBS warpsight::profiling CUDA::cudart LABEL gpu)
  target_compile_definitions(profiling_record_test PRIVATE RECORDED_PROGRAM="$<TARGET_FILE:recorded_program>"
    INJECT_LIBRARY="$<TARGET_FILE:warpsight_inject>")
  add_dependencies(profiling_record_test recorded_program warpsight_inject)

  add_executable(ranged_program ${CMAKE_CURRENT_LIST_DIR}/ranged_program.cu)
  target_link_libraries(ranged_program PRIVATE warpsight_flags CUDA::cudart ${CMAKE_DL_LIBS})
  target_compile_features(ranged_program PRIVATE cuda_std_17)
  set_target_properties(ranged_program PROPERTIES CUDA_RUNTIME_LIBRARY Shared)
  warpsight_test(kernel_ranges_gpu_test ${CMAKE_CURRENT_LIST_DIR}/kernel_ranges_gpu_test.cpp
    LIBS warpsight::profiling CUDA::cudart LABEL gpu)
  target_compile_definitions(kernel_ranges_gpu_test PRIVATE RANGED_PROGRAM="$<TARGET_FILE:ranged_program>"
    INJECT_LIBRARY="$<TARGET_FILE:warpsight_inject>")
  add_dependencies(kernel_ranges_gpu_test ranged_program warpsight_inject)

  # Kernels whose waits are known, to be sampled.
  add_library(xray_kernels STATIC ${CMAKE_CURRENT_LIST_DIR}/xray_kernels.cu)
  target_link_libraries(xray_kernels PRIVATE warpsight_flags CUDA::cudart)
  target_compile_options(xray_kernels PRIVATE -lineinfo)
  set_target_properties(xray_kernels PROPERTIES CUDA_RUNTIME_LIBRARY Shared)
  warpsight_test(xray_gpu_test ${CMAKE_CURRENT_LIST_DIR}/xray_gpu_test.cpp
    LIBS warpsight::profiling xray_kernels CUDA::cudart nlohmann_json::nlohmann_json LABEL gpu)
  add_executable(xray_program ${CMAKE_CURRENT_LIST_DIR}/xray_program.cpp)
  target_link_libraries(xray_program PRIVATE warpsight_flags xray_kernels CUDA::cudart)

  warpsight_test(traced_training_test ${CMAKE_CURRENT_LIST_DIR}/traced_training_test.cpp
    LIBS warpsight::profiling CUDA::cudart LABEL gpu)
  target_compile_definitions(traced_training_test PRIVATE WARPSIGHT_CLI="$<TARGET_FILE:warpsight>")
  add_dependencies(traced_training_test warpsight)
endif()
