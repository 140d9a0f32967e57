// A batch as bytes and back, for a process of the same program on the same machine.
#pragma once
#include <string>
#include <string_view>

#include "profiling/trace/trace_batch.h"

namespace ws::prof {

std::string encode_batch(const TraceBatch& batch);
TraceBatch decode_batch(std::string_view bytes);  // throws Failure where the bytes are not those of a batch

}  // namespace ws::prof
