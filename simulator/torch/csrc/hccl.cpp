#include "hccl.h"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/library.h>

#include <memory>

#include "delegate.h"
#include "runtime.h"

namespace gaudi3_hpu {
namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// What torch's process group holds for hpu; its collectives are the operations registered below.
class Hccl final : public c10d::Backend {
 public:
  Hccl(
      const c10::intrusive_ptr<c10d::Backend>& gloo, const c10::intrusive_ptr<c10d::Store>& store, int rank, int size)
      : Backend(rank, size), gloo_(gloo), on_host_(c10::make_intrusive<c10d::ProcessGroup>(store, rank, size)) {
    on_host_->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
    on_host_->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  }
  const std::string getBackendName() const override {
    return "hccl";
  }
  void setTimeout(std::chrono::milliseconds timeout) override {
    gloo_->setTimeout(timeout);
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
  // The same processes with gloo on CPU tensors.
  const c10::intrusive_ptr<c10d::ProcessGroup>& on_host() const {
    return on_host_;
  }

 private:
  c10::intrusive_ptr<c10d::Backend> gloo_;
  c10::intrusive_ptr<c10d::ProcessGroup> on_host_;
};

// Gloo's work, with results on the card. It keeps the tensors alive until it is done, as gloo's own does.
class HcclWork final : public c10d::Work {
 public:
  HcclWork(WorkPtr gloo, std::shared_ptr<Aliases> aliases)
      : Work(-1, gloo->retrieveOpType()), gloo_(std::move(gloo)), aliases_(std::move(aliases)) {}
  bool isCompleted() override {
    return gloo_->isCompleted();
  }
  bool isSuccess() const override {
    return gloo_->isSuccess();
  }
  std::exception_ptr exception() const override {
    return gloo_->exception();
  }
  int sourceRank() const override {
    return gloo_->sourceRank();
  }
  std::vector<at::Tensor> result() override {
    auto tensors = gloo_->result();
    for (auto& tensor : tensors) {
      tensor = aliases_->to_device(tensor);
    }
    return tensors;
  }
  void synchronize() override {
    gloo_->synchronize();
  }
  bool wait(std::chrono::milliseconds timeout) override {
    return gloo_->wait(timeout);
  }
  void blockCurrentStream() override {
    gloo_->wait();
  }
  void abort() override {
    gloo_->abort();
  }
  uint64_t getSequencenumber() const override {
    return gloo_->getSequencenumber();
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto inner = gloo_->getFuture();
    std::vector<c10::Device> devices;
    if (aliases_->device().has_value()) {
      devices.push_back(*aliases_->device());
    }
    auto outer = c10::make_intrusive<c10::ivalue::Future>(inner->elementType(), devices);
    inner->addCallback(
        [outer, aliases = aliases_](c10::ivalue::Future& done) {
          if (done.hasError()) {
            outer->setError(done.exception_ptr());
          } else {
            outer->markCompleted(aliases->to_device(done.constValue()));
          }
        },
        /*uses_future=*/false);
    return outer;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override {
    return gloo_->getFutureResult();
  }

 private:
  WorkPtr gloo_;
  std::shared_ptr<Aliases> aliases_;
};

void refuse_average(const c10::intrusive_ptr<c10d::ReduceOp>& op) {
  TORCH_CHECK(
      static_cast<c10d::ReduceOp::RedOpType>(*op) != c10d::ReduceOp::AVG,
      "HCCL does not support ReduceOp.AVG: reduce with ReduceOp.SUM and divide by the number of processes "
      "(FSDP2: module.set_force_sum_reduction_for_comms(True)).");
}

// The C++ object inside a value of a custom class.
c10::intrusive_ptr<torch::CustomClassHolder> held_by(const c10::IValue& value) {
  return value.toObjectRef().getSlot(0).toCapsule();
}

// Any c10d operation on HPU tensors: the same operation on their aliases, in the group's gloo twin. Nothing is charged
// to the card: what gloo copies is host memory of its own.
void collective(const c10::OperatorHandle& op, c10::Stack* stack) {
  auto aliases = std::make_shared<Aliases>();
  const auto count = op.schema().arguments().size();
  arguments_to_host(*aliases, *stack, count);
  TORCH_CHECK(
      !aliases->host_argument().defined(), op.operator_name().name, " got CPU tensors beside HPU tensors.");
  for (auto value = stack->end() - static_cast<int64_t>(count); value != stack->end(); ++value) {
    if (!value->isCustomClass()) {
      continue;
    }
    const auto object = held_by(*value);
    if (auto group = c10::dynamic_intrusive_pointer_cast<c10d::ProcessGroup>(object)) {
      const auto backend = group->getBackend(c10::DeviceType::HPU);
      const auto hccl = c10::dynamic_intrusive_pointer_cast<Hccl>(backend);
      TORCH_CHECK(
          hccl, "The process group's backend for hpu is '", backend->getBackendName(),
          "', and the simulated HPU has 'hccl' only: import habana_frameworks.torch.distributed.hccl and use it.");
      *value = c10::IValue(hccl->on_host());
    } else if (auto reduce = c10::dynamic_intrusive_pointer_cast<c10d::ReduceOp>(object)) {
      refuse_average(reduce);
    }
  }
  {
    const BelowEverything below;
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  }
  const auto returned = op.schema().returns().size();
  results_to_device(*aliases, *stack, returned);
  if (returned > 0 && stack->back().isCustomClass()) {
    if (auto work = c10::dynamic_intrusive_pointer_cast<c10d::Work>(held_by(stack->back()))) {
      stack->back() = c10::IValue(WorkPtr(c10::make_intrusive<HcclWork>(work, aliases)));
    }
  }
}

TORCH_LIBRARY_IMPL(c10d, HPU, m) {
  for (const char* name :
       {"broadcast_", "allreduce_", "allreduce_coalesced_", "reduce_", "allgather_", "_allgather_base_",
        "allgather_coalesced_", "allgather_into_tensor_coalesced_", "gather_", "scatter_", "reduce_scatter_",
        "_reduce_scatter_base_", "reduce_scatter_tensor_coalesced_", "alltoall_", "alltoall_base_", "send", "recv_",
        "recv_any_source_", "barrier", "monitored_barrier_"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&collective>());
  }
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_hccl(
    const c10::intrusive_ptr<c10d::Backend>& gloo, const c10::intrusive_ptr<c10d::Store>& store, int rank, int size) {
  return c10::make_intrusive<Hccl>(gloo, store, rank, size);
}

}  // namespace gaudi3_hpu
