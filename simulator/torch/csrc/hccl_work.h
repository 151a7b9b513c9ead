// What a collective of `hccl` gives back: gloo's work, with results on the card and HCCL's words.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "alias.h"

namespace gaudi3_hpu {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// What an exchange was for: HCCL fails with other words between two processes than among all.
enum class Exchange { Collective, PointToPoint };

// Throws gloo's error in HCCL's words, or as it is where the rule is off.
[[noreturn]] void rethrow(Exchange exchange, std::exception_ptr error);

class HcclWork final : public c10d::Work {
 public:
  // Keeps the tensors alive until it is done, as gloo's own does. `finish` runs once when gloo is done, before anybody
  // sees the outputs; it works on the host's aliases.
  HcclWork(
      WorkPtr gloo,
      Exchange exchange,
      std::shared_ptr<Aliases> aliases,
      std::vector<at::Tensor> outputs,
      std::function<void()> finish);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout) override;
  void blockCurrentStream() override;
  void abort() override;
  uint64_t getSequencenumber() const override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;

 private:
  void finish();

  WorkPtr gloo_;
  Exchange exchange_;
  std::shared_ptr<Aliases> aliases_;
  std::vector<at::Tensor> outputs_;
  std::function<void()> finish_;
  std::once_flag finished_;
};

// Several that are waited for as one.
class HcclWorks final : public c10d::Work {
 public:
  HcclWorks() : Work(-1, c10d::OpType::COALESCED) {}
  void append(WorkPtr work) {
    works_.push_back(std::move(work));
  }
  bool isCompleted() override;
  bool isSuccess() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  std::vector<WorkPtr> works_;
};

}  // namespace gaudi3_hpu
