// Puts kernels that a person wrote into the plan: exec.kernels = "relu1=my.cu; fc1=product.cu".
#include <algorithm>

#include "engine/own_kernels/kernel_contract.h"
#include "engine/passes/passes.h"
#include "profiling/base/failure.h"

namespace ws {
namespace {

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == text.npos ? "" : text.substr(first, last - first + 1);
}

struct Entry {
  std::string op, file;
};

std::vector<Entry> entries_of(const std::string& text) {
  std::vector<Entry> entries;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(';', at), text.size()), equal = text.find('=', at);
    const std::string part = trimmed(text.substr(at, end - at));
    at = end + 1;
    if (part.empty()) continue;
    if (equal >= end) throw Failure("kernels: “" + part + "” names no file; write OP=FILE.cu, and ; between several.");
    entries.push_back({trimmed(part.substr(0, part.find('='))), trimmed(part.substr(part.find('=') + 1))});
  }
  return entries;
}

}  // namespace

Plan use_own_kernels(Plan plan) {
  for (const Entry& entry : entries_of(plan.spec.exec.kernels)) {
    Op& op = plan.ops[own::find_op(plan, entry.op)];
    if (const auto reason = own::why_none(plan, op)) throw Failure(*reason);
    op.own = own::read_source(entry.file);
    op.note = "your kernel " + entry.file + (op.note.empty() ? "" : "; " + op.note);
    plan.log.push_back("own_kernels: " + op.name + " runs " + entry.file);
  }
  return plan;
}

}  // namespace ws
