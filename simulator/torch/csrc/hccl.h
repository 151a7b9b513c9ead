// The process-group backend `hccl` of the simulated cards: gloo on the bytes of the cards' tensors.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace gaudi3_hpu {

c10::intrusive_ptr<c10d::Backend> make_hccl(
    const c10::intrusive_ptr<c10d::Backend>& gloo, const c10::intrusive_ptr<c10d::Store>& store, int rank, int size);

}  // namespace gaudi3_hpu
