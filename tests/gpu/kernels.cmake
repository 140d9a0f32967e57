# Every kernel against plain loops; and what the kernels of a training step cost one after the other.
warpscope_test(kernels_gpu_test ${CMAKE_CURRENT_LIST_DIR}/product_kernels_test.cpp ${CMAKE_CURRENT_LIST_DIR}/op_kernels_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/optimizer_kernels_test.cpp ${CMAKE_CURRENT_LIST_DIR}/output_layer_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/line_kernels_test.cpp
  LIBS warpscope::engine warpscope::cuda_kernels CUDA::cudart CUDA::cublasLt LABEL gpu TIMEOUT 300)
add_executable(kernel_bench ${CMAKE_CURRENT_LIST_DIR}/kernel_bench.cpp)
target_link_libraries(kernel_bench PRIVATE warpscope_flags warpscope::engine warpscope::cuda_kernels CUDA::cudart CUDA::cublasLt)
