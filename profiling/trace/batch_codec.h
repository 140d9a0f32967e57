// A batch as bytes and back, for another process of the same program.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "profiling/trace/trace_batch.h"

namespace ws::prof {

std::string encode_batch(const TraceBatch& batch);
// `ops`: the tag here of each tag there; a tag beyond them means nothing here. Throws Failure where the bytes are not those
// of a batch.
TraceBatch decode_batch(std::string_view bytes, std::span<const OpTag> ops = {});

// Ops as bytes, the first of them with this tag there.
std::string encode_ops(OpTag first, const std::vector<OpInfo>& ops);
// Registers them here; tags[there] is the tag here. Throws Failure where the bytes are not those of ops.
void decode_ops(std::string_view bytes, std::vector<OpTag>& tags);

}  // namespace ws::prof
