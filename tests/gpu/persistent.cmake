# One kernel for many steps: tests against float64, and its times beside CUDA graphs.
warpsight_gpu_test(persistent_test persistent_test.cpp LIBS warpsight::engine warpsight::engine_cuda_executor warpsight::engine_cuda_runtime)
# mnist_record: how long MNIST takes to 98 % test accuracy.
foreach(_program persistent_times mnist_record)
  add_executable(${_program} ${_program}.cpp)
  target_link_libraries(${_program} PRIVATE warpsight_flags warpsight::engine warpsight::engine_cuda_executor CUDA::cudart
    nlohmann_json::nlohmann_json)
  target_compile_definitions(${_program} PRIVATE WARPSIGHT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endforeach()
