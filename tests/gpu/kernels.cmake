# Every kernel against plain loops; and what the kernels of a training step cost one after the other.
warpsight_test(kernels_gpu_test ${CMAKE_CURRENT_LIST_DIR}/product_kernels_test.cpp ${CMAKE_CURRENT_LIST_DIR}/op_kernels_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/optimizer_kernels_test.cpp ${CMAKE_CURRENT_LIST_DIR}/output_layer_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/line_kernels_test.cpp ${CMAKE_CURRENT_LIST_DIR}/picture_kernels_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/transformer_kernels_test.cpp
  LIBS warpsight::engine warpsight::engine_cuda_kernels CUDA::cudart LABEL gpu TIMEOUT 300)
foreach(_bench kernel_bench picture_bench transformer_times)
  add_executable(${_bench} ${CMAKE_CURRENT_LIST_DIR}/${_bench}.cpp)
  target_link_libraries(${_bench} PRIVATE warpsight_flags warpsight::engine warpsight::engine_cuda_kernels CUDA::cudart)
endforeach()

# GPUs before compute capability 9.0 have neither clusters nor overlapped launches: what separates them has to compile.
if(NOT CMAKE_CUDA_ARCHITECTURES MATCHES "80")
  add_library(kernels_before_90 OBJECT)
  foreach(_kernel attention embedding layer_norm line_cluster line_resident linear pointwise simple_gemm)
    target_sources(kernels_before_90 PRIVATE ${PROJECT_SOURCE_DIR}/engine/cuda/kernels/${_kernel}.cu)
  endforeach()
  set_target_properties(kernels_before_90 PROPERTIES CUDA_ARCHITECTURES 80-real)
  target_link_libraries(kernels_before_90 PRIVATE warpsight_flags warpsight::profiling nlohmann_json::nlohmann_json)
endif()
