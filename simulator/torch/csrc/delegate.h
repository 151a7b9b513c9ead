// Running an operation on HPU tensors with its CPU kernel.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>
#include <vector>

#include "alias.h"

namespace gaudi3_hpu {

// Keys above the kernels are out of the way: they have acted already.
class BelowEverything {
 public:
  BelowEverything()
      : guard_(c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

// Converts the last `count` values of the stack to the host's.
void arguments_to_host(Aliases& aliases, c10::Stack& stack, size_t count);
// Converts the last `count` values of the stack to the card's, after carrying over what changed in place.
void results_to_device(Aliases& aliases, c10::Stack& stack, size_t count);

// The fallback of the HPU key: any operation without a kernel of its own.
void delegate(const c10::OperatorHandle& op, c10::Stack* stack);

// To be called before `register_cpu_kernels`: the operations with a kernel on hardware. The others are then composed of
// these where torch knows how, and else named on stderr, or refused.
void list_operations(const std::vector<std::string>& names, bool refuse);

// Makes every operation that has a CPU kernel run that kernel. Where torch has a composition for devices without a kernel
// of their own, the fallback alone would let it win, and results would differ from the CPU's in the last bit.
void register_cpu_kernels();

}  // namespace gaudi3_hpu
