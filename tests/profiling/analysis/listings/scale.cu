// nvcc -arch=sm_90 -lineinfo -cubin scale.cu, then nvdisasm --print-code --print-line-info and cuobjdump -sass of CUDA 13.0 printed what stands beside this file.
__device__ __forceinline__ float scaled(float value, float factor) {
  return value * factor + 1.0f;
}

extern "C" __global__ void scale(float* out, const float* in, float factor, int size) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) {
    out[i] = scaled(in[i], factor);
  }
}

extern "C" __global__ void turn(float* out, const float* in) {
  __shared__ float tile[32][33];
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
