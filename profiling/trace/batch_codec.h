// Encodes a trace batch as bytes and decodes it, to pass it to another process of the same program.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "profiling/annotate/code_stack.h"
#include "profiling/trace/trace_batch.h"

namespace ws::prof {

std::string encode_batch(const TraceBatch& batch);
// `ops`: maps the sender's op tags to ours. A tag beyond its end becomes "no op". Throws Failure if the bytes are not a
// batch.
TraceBatch decode_batch(std::string_view bytes, std::span<const OpTag> ops = {});

std::string encode_stack(const CodeStack& stack);
CodeStack decode_stack(std::string_view bytes);  // throws Failure if the bytes are not a stack

// Encodes ops. `first`: the tag of the first op in this process; the rest follows in order.
std::string encode_ops(OpTag first, const std::vector<OpInfo>& ops);
// Registers the decoded ops in this process and sets tags[sender's tag] to our tag. Throws Failure if the bytes are not
// ops.
void decode_ops(std::string_view bytes, std::vector<OpTag>& tags);

}  // namespace ws::prof
