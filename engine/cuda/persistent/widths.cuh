// The widths of a network of any depth, for the kernels that hold the whole network in a thread or a block.
#pragma once

namespace ws::cuda::persistent {

WS_BOTH constexpr int width(int l) {
  return l == 0   ? choice::width0
         : l == 1 ? choice::width1
         : l == 2 ? choice::width2
         : l == 3 ? choice::width3
         : l == 4 ? choice::width4
         : l == 5 ? choice::width5
                  : choice::width6;
}

}  // namespace ws::cuda::persistent
