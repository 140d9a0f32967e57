// Reads the texts of the NVTX ranges that XLA sets around what it launches for JAX, such as
// "Thunk:#name=transpose(jvp(Net))/Dense_0/dot_general,hlo_op=gemm.4,unique_hlo_op_id=12#", and around each of the
// hundreds of steps of its compiler, such as "XlaPass:#name=algsimp,module=jit_step,program_id=0#".
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace ws::prof {

struct XlaRange {
  std::string name;   // "dot_general · gemm.4"; for a compiled function "jit_step"; of the compiler "XlaPass algsimp"
  std::string scope;  // "Net/Dense_0": names that the program gave, without the functions that JAX applied
  std::string phase;  // "forward", "backward" or empty: not said
};
std::optional<XlaRange> xla_range(std::string_view text);

// XLA names a fused kernel by what the paths of all its operations have in common, which may be nothing. Its payload has
// the text of its HLO, `called` the text of what is fused. Returns the range's text with the path of the matrix product in it,
// or else of its result; if some operations are of the backward pass, of one of those. Empty: the text says enough, or
// nothing is known.
std::string xla_text_with_path(std::string_view text, std::string_view hlo, std::string_view called);

}  // namespace ws::prof
