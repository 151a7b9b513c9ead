#include "hccl.h"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/library.h>

#include <chrono>
#include <memory>

#include "allocator.h"
#include "delegate.h"
#include "hccl_checks.h"
#include "hccl_work.h"
#include "rules.h"
#include "runtime.h"

namespace gaudi3_hpu {
namespace {

// HCCL has no timeouts, and gloo wants one.
constexpr auto kForever = std::chrono::hours(24 * 365);

// What torch's process group holds for hpu; its collectives are the operations registered below.
class Hccl final : public c10d::Backend {
 public:
  Hccl(
      const c10::intrusive_ptr<c10d::Backend>& gloo, const c10::intrusive_ptr<c10d::Store>& store, int rank, int size)
      : Backend(rank, size), gloo_(gloo), on_host_(c10::make_intrusive<c10d::ProcessGroup>(store, rank, size)) {
    on_host_->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
    on_host_->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    if (is_on("hccl-no-timeouts")) {
      gloo_->setTimeout(kForever);
    }
  }
  const std::string getBackendName() const override {
    return "hccl";
  }
  void setTimeout(std::chrono::milliseconds timeout) override {
    if (!is_on("hccl-no-timeouts")) {
      gloo_->setTimeout(timeout);
    }
  }
  void setSequenceNumberForGroup() override {
    gloo_->setSequenceNumberForGroup();
  }
  uint64_t getSequenceNumberForGroup() override {
    return gloo_->getSequenceNumberForGroup();
  }
  void abort() override {
    gloo_->abort();
  }
  void shutdown() override {
    gloo_->shutdown();
  }
  // Texts of HabanaAI/gaudi-pytorch-bridge 1.19, here and below.
  void startCoalescing() override {
    TORCH_CHECK(used(), "HPU Device not initialized! startCoalescing cannot be done without device init!");
    TORCH_CHECK(
        !coalesced_,
        "Coalescing is already in progress. Have you invoked startCoalescing again without endCoalescing. BTW nested "
        "coalesing is not supported.");
    coalesced_ = c10::make_intrusive<HcclWorks>();
  }
  WorkPtr endCoalescing() override {
    TORCH_CHECK(coalesced_, "endCoalescing invoked without startCoalescing");
    return std::move(coalesced_);
  }
  void note(const WorkPtr& work) {
    if (coalesced_) {
      coalesced_->append(work);
    }
  }
  // The same processes with gloo on CPU tensors.
  const c10::intrusive_ptr<c10d::ProcessGroup>& on_host() const {
    return on_host_;
  }

 private:
  c10::intrusive_ptr<c10d::Backend> gloo_;
  c10::intrusive_ptr<c10d::ProcessGroup> on_host_;
  c10::intrusive_ptr<HcclWorks> coalesced_;
};

// The C++ object inside a value of a custom class.
c10::intrusive_ptr<torch::CustomClassHolder> held_by(const c10::IValue& value) {
  return value.toObjectRef().getSlot(0).toCapsule();
}

// The arguments of a collective, which are the last values of the stack.
struct Call {
  const c10::OperatorHandle& op;
  c10::Stack& stack;
  const std::string& name = op.operator_name().name;
  size_t count = op.schema().arguments().size();
  c10::intrusive_ptr<Hccl> hccl;

  c10::IValue& argument(size_t index) {
    return stack[stack.size() - count + index];
  }
  bool is(const char* other) const {
    return name == other;
  }
};

// Puts gloo's group in the place of the given one, and checks what is to be reduced how.
void prepare(Call& call) {
  for (size_t i = 0; i < call.count; ++i) {
    auto& value = call.argument(i);
    if (value.isInt() && call.op.schema().arguments()[i].name() == "timeout" && is_on("hccl-no-timeouts")) {
      value = c10d::kUnsetTimeout.count();
    }
    if (!value.isCustomClass()) {
      continue;
    }
    const auto object = held_by(value);
    if (auto group = c10::dynamic_intrusive_pointer_cast<c10d::ProcessGroup>(object)) {
      const auto backend = group->getBackend(c10::DeviceType::HPU);
      call.hccl = c10::dynamic_intrusive_pointer_cast<Hccl>(backend);
      TORCH_CHECK(
          call.hccl, "The process group's backend for hpu is '", backend->getBackendName(),
          "', and the simulated HPU has 'hccl' only: import habana_frameworks.torch.distributed.hccl and use it.");
      value = c10::IValue(call.hccl->on_host());
    } else if (auto reduce = c10::dynamic_intrusive_pointer_cast<c10d::ReduceOp>(object)) {
      check_reduction(*reduce);
    }
  }
}

void collect(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) {
    tensors.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      tensors.push_back(tensor);
    }
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      collect(element, tensors);
    }
  }
}

template <class Change>
c10::IValue changed(const c10::IValue& value, const Change& change) {
  if (value.isTensor()) {
    return change(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> made;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      made.push_back(change(tensor));
    }
    return made;
  }
  if (value.isList()) {
    c10::List<c10::IValue> made(value.toList().elementType());
    for (const c10::IValue& element : value.toListRef()) {
      made.push_back(changed(element, change));
    }
    return made;
  }
  return value;
}

// The elements as they lie in memory. HCCL sees those only, and gloo looks at the shape, too.
at::Tensor flat(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense() ? tensor.as_strided({tensor.numel()}, {1}) : tensor;
}

bool goes_flat(Call& call) {
  if (call.is("c10d::alltoall_base_")) {
    return call.argument(3).toIntVector().empty() && call.argument(4).toIntVector().empty();
  }
  return call.is("c10d::_allgather_base_") || call.is("c10d::_reduce_scatter_base_") || call.is("c10d::allgather_") ||
      call.is("c10d::allgather_into_tensor_coalesced_") || call.is("c10d::reduce_scatter_tensor_coalesced_") ||
      call.is("c10d::reduce_scatter_") || call.is("c10d::alltoall_");
}

// Puts float32 in the place of what HCCL reduces as such; the function puts the results back.
std::function<void()> reduce_in_float(Call& call, c10::DeviceIndex card) {
  auto pairs = std::make_shared<std::vector<std::pair<at::Tensor, at::Tensor>>>();
  const ChargeTo charge(card);
  for (size_t i = 0; i < 2; ++i) {
    call.argument(i) = changed(call.argument(i), [&](const at::Tensor& tensor) {
      if (!reduces_in_float(call.name, tensor.scalar_type())) {
        return tensor;
      }
      auto wide = tensor.to(at::kFloat);
      if (i == 0) {
        pairs->emplace_back(tensor, wide);
      }
      return wide;
    });
  }
  if (pairs->empty()) {
    return {};
  }
  return [pairs] {
    for (auto& [narrow, wide] : *pairs) {
      narrow.copy_(wide);
    }
  };
}

// What processes of different shares give each other: one broadcast for each, as in Habana's process group.
WorkPtr gather_unequal(Call& call, const std::shared_ptr<Aliases>& aliases, std::vector<at::Tensor> outputs) {
  const auto parts = call.argument(0).toListRef().front().toTensorVector();
  const auto own = call.argument(1).toTensorVector().front();
  const auto& group = call.hccl->on_host();
  auto works = c10::make_intrusive<HcclWorks>();
  TORCH_CHECK(
      parts.at(group->getRank()).numel() == own.numel(),
      "Tensor input and output of _broadcast_oop must have the same number of elements");
  parts.at(group->getRank()).view(-1).copy_(own.view(-1));
  for (size_t i = 0; i < parts.size(); ++i) {
    std::vector<at::Tensor> part{parts[i]};
    c10d::BroadcastOptions options;
    options.rootRank = static_cast<int64_t>(i);
    works->append(c10::make_intrusive<HcclWork>(
        group->broadcast(part, options), Exchange::Collective, aliases, std::vector<at::Tensor>{outputs[i]}, nullptr));
  }
  return works;
}

// Any c10d operation on HPU tensors: the same operation on their aliases, in the group's gloo twin. What gloo copies is
// host memory of its own and not charged to the card.
void collective(const c10::OperatorHandle& op, c10::Stack* stack) {
  Call call{op, *stack};
  auto aliases = std::make_shared<Aliases>();
  prepare(call);
  check_arguments(op, *stack, call.hccl->getSize());
  const auto first = call.argument(0);
  std::vector<at::Tensor> outputs;
  collect(first, outputs);
  arguments_to_host(*aliases, *stack, call.count);
  TORCH_CHECK(!aliases->host_argument().defined(), call.name, " got CPU tensors beside HPU tensors.");
  const bool between_two = call.is("c10d::send") || call.is("c10d::recv_") || call.is("c10d::recv_any_source_");
  const auto exchange = between_two ? Exchange::PointToPoint : Exchange::Collective;
  const auto returned = op.schema().returns().size();
  WorkPtr work;
  {
    const BelowEverything below;
    const auto shares = call.is("c10d::allgather_") ? call.argument(0).toListRef().front().toTensorVector()
                                                    : std::vector<at::Tensor>{};
    const bool unequal = std::any_of(
        shares.begin(), shares.end(), [&](const auto& share) { return share.sizes() != shares.front().sizes(); });
    if (unequal) {
      work = gather_unequal(call, aliases, outputs);
      torch::jit::drop(*stack, call.count);
    } else {
      std::function<void()> finish;
      if (goes_flat(call)) {
        call.argument(0) = changed(call.argument(0), flat);
        call.argument(1) = changed(call.argument(1), flat);
      }
      if (aliases->device().has_value()) {
        finish = reduce_in_float(call, aliases->device()->index());
      }
      try {
        op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
      } catch (...) {
        rethrow(exchange, std::current_exception());
      }
      const auto gloo = c10::dynamic_intrusive_pointer_cast<c10d::Work>(held_by(stack->back()));
      work = c10::make_intrusive<HcclWork>(gloo, exchange, aliases, std::move(outputs), std::move(finish));
      torch::jit::drop(*stack, returned);
    }
  }
  call.hccl->note(work);
  if (returned == 2) {
    stack->push_back(first);
  }
  stack->emplace_back(work);
}

TORCH_LIBRARY_IMPL(c10d, HPU, m) {
  for (const char* name :
       {"broadcast_", "allreduce_", "allreduce_coalesced_", "reduce_", "allgather_", "_allgather_base_",
        "allgather_coalesced_", "allgather_into_tensor_coalesced_", "gather_", "scatter_", "reduce_scatter_",
        "_reduce_scatter_base_", "reduce_scatter_tensor_coalesced_", "alltoall_", "alltoall_base_", "send", "recv_",
        "recv_any_source_", "barrier"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&collective>());
  }
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_hccl(
    const c10::intrusive_ptr<c10d::Backend>& gloo, const c10::intrusive_ptr<c10d::Store>& store, int rank, int size) {
  return c10::make_intrusive<Hccl>(gloo, store, rank, size);
}

}  // namespace gaudi3_hpu
