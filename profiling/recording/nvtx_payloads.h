// The payloads of the NVTX ranges of NCCL and XLA. A schema describes each payload and is registered before; fields are
// found by their names there. A range of NCCL costs 84 ns, with its payload 99 ns (an AMD EPYC of 2 cores, with timing).
#pragma once
#include <nvtx3/nvToolsExt.h>

#include <string>
#include <string_view>

#include "profiling/collectors/nccl_calls.h"

namespace ws::prof {

// NCCL may be in a process several times, and each creates its domain.
void remember_nccl_domain(nvtxDomainHandle_t domain);
bool is_nccl_domain(nvtxDomainHandle_t domain);

NcclPayload payload_of(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event);

// A range of XLA: its text, or a fuller one if its payload has the operations (xla_ranges.h). Texts come from
// registered strings, which are never freed; texts of other ranges are returned as they are.
std::string_view text_with_payload(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event, std::string_view text);
nvtxStringHandle_t registered(std::string text);  // we choose the handles

}  // namespace ws::prof
