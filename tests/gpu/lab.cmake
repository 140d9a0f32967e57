warpscope_gpu_test(lab_gpu_test lab_gpu_test.cpp LIBS warpscope::engine)
