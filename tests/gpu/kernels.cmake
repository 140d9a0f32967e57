# Every kernel against plain loops; and what the kernels of a training step cost one after the other.
warpscope_test(kernels_gpu_test ${CMAKE_CURRENT_LIST_DIR}/product_kernels_test.cpp ${CMAKE_CURRENT_LIST_DIR}/op_kernels_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/optimizer_kernels_test.cpp ${CMAKE_CURRENT_LIST_DIR}/output_layer_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/line_kernels_test.cpp
  LIBS warpscope::engine warpscope::cuda_kernels CUDA::cudart CUDA::cublasLt LABEL gpu TIMEOUT 300)
add_test(NAME kernels_keep_to_registers COMMAND ${CMAKE_CURRENT_LIST_DIR}/no_spills.sh $<TARGET_FILE:warpscope_cuda_kernels>)
set_tests_properties(kernels_keep_to_registers PROPERTIES SKIP_RETURN_CODE 77)
add_executable(kernel_bench ${CMAKE_CURRENT_LIST_DIR}/kernel_bench.cpp)
target_link_libraries(kernel_bench PRIVATE warpscope_flags warpscope::engine warpscope::cuda_kernels CUDA::cudart CUDA::cublasLt)
