# One kernel for many steps: tests against float64, and its times beside CUDA graphs.
warpscope_gpu_test(persistent_test persistent_test.cpp LIBS warpscope::engine warpscope::engine_cuda_executor warpscope::engine_cuda_runtime)
add_executable(persistent_times persistent_times.cpp)
target_link_libraries(persistent_times PRIVATE warpscope_flags warpscope::engine warpscope::engine_cuda_executor CUDA::cudart
  nlohmann_json::nlohmann_json)
target_compile_definitions(persistent_times PRIVATE WARPSCOPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
