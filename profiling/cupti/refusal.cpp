#include "profiling/cupti/refusal.h"

#include "profiling/cupti/late_calls.h"

namespace ws::prof {

void check(CUptiResult result, const char* doing) {
  if (result == CUPTI_SUCCESS) return;
  if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
    throw Refused{"the driver allows them to administrators only (module option NVreg_RestrictProfilingToAdminUsers=0 allows them to all)"};
  if (result == CUPTI_ERROR_HARDWARE_BUSY) throw Refused{"another profiler is reading them"};
  if (result == CUPTI_ERROR_NOT_COMPATIBLE) throw Refused{"they do not go together with another thing that is recorded here"};
  if (result == CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED) throw Refused{"this virtual GPU does not offer them"};
  if (result == CUPTI_ERROR_NOT_SUPPORTED) throw Refused{"this GPU or its driver does not offer them"};
  const char* text = nullptr;
  cuptiGetResultString(result, &text);
  throw Refused{std::string(doing) + " failed with " + (text ? text : std::to_string(result))};
}

}  // namespace ws::prof
