#include "profiling/cupti/cupti_calls.h"

#include <string_view>

#include "profiling/cupti/late_calls.h"

namespace ws::prof {

namespace {

#define RT(name) CUPTI_RUNTIME_TRACE_CBID_##name
#define DRV(name) CUPTI_DRIVER_TRACE_CBID_##name

constexpr CUpti_CallbackId kLaunch[] = {DRV(cuLaunchKernel),
                                        DRV(cuLaunchKernel_ptsz),
                                        DRV(cuLaunchKernelEx),
                                        DRV(cuLaunchKernelEx_ptsz),
                                        DRV(cuLaunchCooperativeKernel),
                                        DRV(cuLaunchCooperativeKernel_ptsz),
                                        DRV(cuMemcpy),
                                        DRV(cuMemcpyAsync),
                                        DRV(cuMemcpyAsync_ptsz),
                                        DRV(cuMemcpyHtoD_v2),
                                        DRV(cuMemcpyHtoDAsync_v2),
                                        DRV(cuMemcpyHtoDAsync_v2_ptsz),
                                        DRV(cuMemcpyDtoH_v2),
                                        DRV(cuMemcpyDtoHAsync_v2),
                                        DRV(cuMemcpyDtoHAsync_v2_ptsz),
                                        DRV(cuMemcpyDtoD_v2),
                                        DRV(cuMemcpyDtoDAsync_v2),
                                        DRV(cuMemcpyDtoDAsync_v2_ptsz),
                                        DRV(cuMemcpy2D_v2),
                                        DRV(cuMemcpy2DAsync_v2),
                                        DRV(cuMemcpy2DAsync_v2_ptsz),
                                        DRV(cuMemcpyPeerAsync),
                                        DRV(cuMemsetD8_v2),
                                        DRV(cuMemsetD8Async),
                                        DRV(cuMemsetD8Async_ptsz),
                                        DRV(cuMemsetD16Async),
                                        DRV(cuMemsetD32_v2),
                                        DRV(cuMemsetD32Async),
                                        DRV(cuMemsetD32Async_ptsz),
                                        DRV(cuMemsetD2D8Async),
                                        DRV(cuGraphAddKernelNode),
                                        DRV(cuGraphAddKernelNode_v2),
                                        DRV(cuGraphAddMemcpyNode),
                                        DRV(cuGraphAddMemsetNode),
                                        DRV(cuGraphAddNode),
                                        DRV(cuGraphAddNode_v2)};

constexpr CUpti_CallbackId kDriverWaits[] = {DRV(cuStreamSynchronize), DRV(cuStreamSynchronize_ptsz),
                                             DRV(cuCtxSynchronize), DRV(cuEventSynchronize)};

constexpr CUpti_CallbackId kRuntime[] = {RT(cudaLaunchKernel_v7000),
                                         RT(cudaLaunchKernel_ptsz_v7000),
                                         RT(cudaLaunchKernelExC_v11060),
                                         RT(cudaLaunchKernelExC_ptsz_v11060),
                                         RT(cudaLaunchCooperativeKernel_v9000),
                                         RT(cudaLaunchCooperativeKernel_ptsz_v9000),
                                         RT(cudaGraphLaunch_v10000),
                                         RT(cudaGraphLaunch_ptsz_v10000),
                                         RT(cudaMemcpy_v3020),
                                         RT(cudaMemcpyAsync_v3020),
                                         RT(cudaMemcpyAsync_ptsz_v7000),
                                         RT(cudaMemset_v3020),
                                         RT(cudaMemsetAsync_v3020),
                                         RT(cudaMemsetAsync_ptsz_v7000),
                                         RT(cudaMemcpy2DAsync_v3020),
                                         RT(cudaMemcpyPeerAsync_v4000),
                                         RT(cudaStreamSynchronize_v3020),
                                         RT(cudaStreamSynchronize_ptsz_v7000),
                                         RT(cudaDeviceSynchronize_v3020),
                                         RT(cudaEventSynchronize_v3020),
                                         RT(cudaEventRecord_v3020),
                                         RT(cudaEventRecord_ptsz_v7000),
                                         RT(cudaStreamWaitEvent_v3020),
                                         RT(cudaStreamWaitEvent_ptsz_v7000),
                                         RT(cudaEventQuery_v3020),
                                         RT(cudaStreamQuery_v3020),
                                         RT(cudaGraphInstantiate_v12000),
                                         RT(cudaGraphInstantiateWithFlags_v11040),
                                         RT(cudaGraphInstantiateWithParams_v12000),
                                         RT(cudaGraphExecUpdate_v10020),
                                         RT(cudaGraphUpload_v10000),
                                         RT(cudaStreamBeginCapture_v10000),
                                         RT(cudaStreamEndCapture_v10000),
                                         RT(cudaMemGetInfo_v3020),
                                         RT(cudaHostRegister_v4000),
                                         RT(cudaMemPoolTrimTo_v11020)};

constexpr CUpti_CallbackId kAllocator[] = {
    DRV(cuMemAlloc_v2),     DRV(cuMemAllocPitch_v2),   DRV(cuMemAllocManaged),       DRV(cuMemFree_v2),
    DRV(cuMemAllocAsync),   DRV(cuMemAllocAsync_ptsz), DRV(cuMemAllocFromPoolAsync), DRV(cuMemAllocFromPoolAsync_ptsz),
    DRV(cuMemFreeAsync),    DRV(cuMemFreeAsync_ptsz),  DRV(cuMemAllocHost_v2),       DRV(cuMemHostAlloc),
    DRV(cuMemHostAlloc_v2), DRV(cuMemFreeHost)};

constexpr CUpti_CallbackId kGraphLaunch[] = {DRV(cuGraphLaunch), DRV(cuGraphLaunch_ptsz)};

uint64_t target(const void* pointer_to_pointer) {
  return pointer_to_pointer ? *static_cast<const uint64_t*>(pointer_to_pointer) : 0;
}

template <class Params>
AllocatorRequest allocation(AllocatorCall call, const void* parameters) {
  const auto* p = static_cast<const Params*>(parameters);
  return {call, target(p->dptr), p->bytesize};
}

AllocatorRequest host_allocation(const void* parameters) {  // both forms begin with the same two members
  const auto* p = static_cast<const cuMemAllocHost_v2_params*>(parameters);
  return {AllocatorCall::AllocateHost, target(p->pp), p->bytesize};
}

AllocatorRequest pitched(const void* parameters) {
  const auto* p = static_cast<const cuMemAllocPitch_v2_params*>(parameters);
  return {AllocatorCall::Allocate, target(p->dptr), (p->pPitch ? *p->pPitch : p->WidthInBytes) * p->Height};
}

}  // namespace

std::span<const CUpti_CallbackId> launch_calls() { return kLaunch; }
std::span<const CUpti_CallbackId> runtime_calls() { return kRuntime; }
std::span<const CUpti_CallbackId> driver_waits() { return kDriverWaits; }
std::span<const CUpti_CallbackId> allocator_calls() { return kAllocator; }
bool allocator_call(CUpti_CallbackId id) {
  for (CUpti_CallbackId known : kAllocator) {
    if (known == id) return true;
  }
  return false;
}
std::span<const CUpti_CallbackId> graph_launch_calls() { return kGraphLaunch; }

// "cudaLaunchKernel_ptsz_v7000" becomes cudaLaunchKernel. No static regular expression: it would already be destroyed
// when the last calls of an ending program are read.
std::string call_name(bool driver, uint32_t id) {
  const char* raw = nullptr;
  const auto domain = driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
  if (cuptiGetCallbackName(domain, id, &raw) != CUPTI_SUCCESS || !raw) return "call " + std::to_string(id);
  std::string_view name(raw);
  const auto cut = [&name](size_t at) {
    if (at != std::string_view::npos) name = name.substr(0, at);
  };
  if (const size_t version = name.rfind("_v"); version != std::string_view::npos) {
    if (name.find_first_not_of("0123456789", version + 2) == std::string_view::npos) cut(version);
  }
  for (const char* suffix : {"_ptsz", "_ptds"}) {
    if (name.ends_with(suffix)) cut(name.size() - 5);
  }
  if (name.ends_with("_v2") || name.ends_with("_v3")) cut(name.size() - 3);
  return std::string(name);
}

CUmemoryPool pool_of(CUpti_CallbackId id, const void* parameters) {
  const bool named = id == DRV(cuMemAllocFromPoolAsync) || id == DRV(cuMemAllocFromPoolAsync_ptsz);
  return named ? static_cast<const cuMemAllocFromPoolAsync_params*>(parameters)->pool : nullptr;
}

std::optional<AllocatorRequest> allocator_request(CUpti_CallbackId id, const void* parameters) {
  switch (id) {
    case DRV(cuMemAlloc_v2):
      return allocation<cuMemAlloc_v2_params>(AllocatorCall::Allocate, parameters);
    case DRV(cuMemAllocManaged):
      return allocation<cuMemAllocManaged_params>(AllocatorCall::Allocate, parameters);
    case DRV(cuMemAllocPitch_v2):
      return pitched(parameters);
    case DRV(cuMemAllocAsync):
    case DRV(cuMemAllocAsync_ptsz):
      return allocation<cuMemAllocAsync_params>(AllocatorCall::AllocateAsync, parameters);
    case DRV(cuMemAllocFromPoolAsync):
    case DRV(cuMemAllocFromPoolAsync_ptsz):
      return allocation<cuMemAllocFromPoolAsync_params>(AllocatorCall::AllocateAsync, parameters);
    case DRV(cuMemFree_v2):
      return AllocatorRequest{AllocatorCall::Free, static_cast<const cuMemFree_v2_params*>(parameters)->dptr, 0};
    case DRV(cuMemFreeAsync):
    case DRV(cuMemFreeAsync_ptsz):
      return AllocatorRequest{AllocatorCall::FreeAsync, static_cast<const cuMemFreeAsync_params*>(parameters)->dptr, 0};
    case DRV(cuMemAllocHost_v2):
    case DRV(cuMemHostAlloc):
    case DRV(cuMemHostAlloc_v2):
      return host_allocation(parameters);
    case DRV(cuMemFreeHost):
      return AllocatorRequest{AllocatorCall::FreeHost,
                              reinterpret_cast<uintptr_t>(static_cast<const cuMemFreeHost_params*>(parameters)->p), 0};
    default:
      return std::nullopt;
  }
}

}  // namespace ws::prof
