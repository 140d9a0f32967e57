// What a kernel of one's own gets and must do: the operands of one op of a plan, as CUDA source sees them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace ws::own {

struct Operand {
  std::string name;  // in the source: "z", "bias", "h"
  BufferId buffer = BufferId::None;
  bool written = false, read = true;  // both: an update changes it in place
  bool is_square = false;             // never negative: the second moment of Adam
  bool decays = false;                // weight decay pulls it to zero
  DType type = DType::F32;
  int64_t rows = 0, cols = 0;
  int64_t elements() const { return rows * cols; }
};

struct KernelContract {
  std::string op_name;  // as in the plan: "relu1"
  std::string meaning;  // "h1 = relu(z1 + b1)"
  Op op;
  std::vector<Operand> operands;  // the parameters of the kernel, inputs first
  double gradient_scale = 1;      // gradients of a loss: 1/rows of the loss
  std::vector<UpdateItem> updates = {};  // Update and UpdateAll
  TrainSpec train = {};             // the constants of an update
  int sines = 0;                    // of the laboratory: the depth of its nested sine, in place of an activation
  bool takes_step() const { return !updates.empty(); }  // the kernel has one more parameter, see prelude()
  const Operand* operand(BufferId buffer) const;        // nullptr: none
  const Operand* operand_named(const std::string& name) const;
  std::string signature() const;  // "bias activate(z, bias) -> h": what another op cannot take
};

// Returns why this op takes no kernel of one's own, or nullopt if it does.
std::optional<std::string> why_none(const Plan& plan, const Op& op);
// Returns the index of the op with this name, or with this meaning and layer: "bias relu1", "bias+relu fc1". Throws
// Failure that lists the names.
size_t find_op(const Plan& plan, const std::string& name);
std::vector<std::string> op_names(const Plan& plan);  // of the ops that take a kernel of one's own
KernelContract contract_of(const Plan& plan, const Op& op);  // throws Failure with why_none
inline KernelContract contract_of(const Plan& plan, size_t op) { return contract_of(plan, plan.ops[op]); }
// A first version names its op in its first line. Throws OwnKernelRefused if that is another op than this one.
void require_same_op(const KernelContract& contract, const OwnKernelSource& source);

// The op that a first version names in its first line; empty: it names none.
std::string op_of_source(const std::string& text);
// A constant that the source of every kernel for this op knows: "h_rows", "64".
struct NamedConstant {
  std::string name, value;
  bool is_real = false;  // else an integer
};
std::vector<NamedConstant> constants_of(const KernelContract& contract);
// The text in front of a person's source: types, shapes and the activation of this op. The source follows at line 1.
// An update also gets `step_t step` as its last parameter, with which learning_rate(step) gives the rate.
std::string line_name(const std::string& file);  // as the compiler names it in its messages
std::string prelude(const KernelContract& contract, const std::string& file);
inline constexpr const char* kForOp = "// For ";         // begins the first line of a first version ("# For " in Python); the signature follows
inline constexpr const char* kEntry = "own_kernel";      // the name of the kernel
inline constexpr const char* kLaunch = "ws_own_launch";  // int[3]: blocks, threads of a block, bytes of shared memory
std::string ending();                                    // the text behind the source: where the launch geometry is read
// A kernel that works, with one thread for each result: the text of a new file.
std::string first_version(const KernelContract& contract);

}  // namespace ws::own
