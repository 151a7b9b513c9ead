// What HCCL demands of a collective's arguments, with the words of HabanaAI/gaudi-pytorch-bridge 1.19.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace gaudi3_hpu {

// Throws where the bridge does: operations it does not have, types, sizes. The arguments are still the card's.
void check_arguments(const c10::OperatorHandle& op, const c10::Stack& stack, int64_t processes);

// Minimum, maximum, sum and product; any other is refused.
void check_reduction(const c10d::ReduceOp& op);

// Whether the operation reduces numbers of this type as float32 (HCCL reduces float32 and bfloat16 only, and some
// operations 32- and 64-bit integers as well).
bool reduces_in_float(const std::string& name, at::ScalarType type);

}  // namespace gaudi3_hpu
