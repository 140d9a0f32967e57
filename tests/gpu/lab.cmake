warpsight_gpu_test(lab_gpu_test lab_gpu_test.cpp LIBS warpsight::core)
target_compile_definitions(lab_gpu_test PRIVATE WARPSIGHT_PROGRAM="$<TARGET_FILE:warpsight>")

# Times the laboratory's matrix products against plain calls of cuBLAS in the same program; prints JSON.
add_executable(lab_product_times lab_product_times.cpp)
target_link_libraries(lab_product_times
  PRIVATE warpsight_flags warpsight::engine warpsight::engine_cuda_executor warpsight::engine_cuda_kernels CUDA::cudart CUDA::cublas
    nlohmann_json::nlohmann_json)
