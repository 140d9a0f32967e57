# One kernel for many steps: tests against float64, and its times beside CUDA graphs.
warpscope_gpu_test(persistent_test persistent_test.cpp LIBS warpscope::engine warpscope::engine_cuda_executor warpscope::engine_cuda_runtime)
# mnist_record: how long MNIST takes to 98 % test accuracy.
foreach(_program persistent_times mnist_record)
  add_executable(${_program} ${_program}.cpp)
  target_link_libraries(${_program} PRIVATE warpscope_flags warpscope::engine warpscope::engine_cuda_executor CUDA::cudart
    nlohmann_json::nlohmann_json)
  target_compile_definitions(${_program} PRIVATE WARPSCOPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endforeach()
