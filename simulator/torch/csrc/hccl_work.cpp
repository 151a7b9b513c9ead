#include "hccl_work.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstdio>

#include "delegate.h"
#include "rules.h"

namespace gaudi3_hpu {
namespace {

const char* const kGloo = "ProcessGroupGloo";
// How the base class of Habana's process groups calls itself where it checks arguments with torch's own functions.
const char* const kBase = "ProcessGroupHcclBase";

std::string text_of(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& caught) {
    return caught.what_without_backtrace();
  } catch (const std::exception& caught) {
    return caught.what();
  } catch (...) {
    return "an unknown error";
  }
}

// The words in which HabanaAI/gaudi-pytorch-bridge 1.19 reports that a call of HCCL failed. Which of them a lost peer
// brings is not public.
[[noreturn]] void speak(Exchange exchange, const std::string& text) {
  auto own = text;
  if (const auto place = own.find(kGloo); place != std::string::npos) {
    TORCH_CHECK(false, own.replace(place, std::string(kGloo).size(), kBase));
  }
  std::fprintf(stderr, "gaudi3-hpu-simulator: hccl: %s\n", own.substr(0, own.find('\n')).c_str());
  TORCH_CHECK(exchange != Exchange::PointToPoint, "P2P call returned error");
  TORCH_CHECK(false, "Collective call returned error");
}

std::exception_ptr spoken(Exchange exchange, std::exception_ptr error) {
  try {
    rethrow(exchange, error);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

void rethrow(Exchange exchange, std::exception_ptr error) {
  if (is_on("hccl-error-texts")) {
    speak(exchange, text_of(error));
  }
  std::rethrow_exception(error);
}

HcclWork::HcclWork(
    WorkPtr gloo,
    Exchange exchange,
    std::shared_ptr<Aliases> aliases,
    std::vector<at::Tensor> outputs,
    std::function<void()> finish)
    : Work(-1, gloo->retrieveOpType()),
      gloo_(std::move(gloo)),
      exchange_(exchange),
      aliases_(std::move(aliases)),
      outputs_(std::move(outputs)),
      finish_(std::move(finish)) {}

void HcclWork::finish() {
  std::call_once(finished_, [this] {
    if (finish_) {
      const BelowEverything below;
      finish_();
    }
  });
}

bool HcclWork::isCompleted() {
  const bool done = gloo_->isCompleted();
  if (done && gloo_->isSuccess()) {
    finish();
  }
  return done;
}

bool HcclWork::isSuccess() const {
  return gloo_->isSuccess();
}

std::exception_ptr HcclWork::exception() const {
  const auto error = gloo_->exception();
  return error ? spoken(exchange_, error) : error;
}

int HcclWork::sourceRank() const {
  return gloo_->sourceRank();
}

std::vector<at::Tensor> HcclWork::result() {
  return outputs_;
}

void HcclWork::synchronize() {
  wait(kNoTimeout);
}

bool HcclWork::wait(std::chrono::milliseconds timeout) {
  bool done = false;
  try {
    // Habana's work ignores the time it is given (HabanaAI/gaudi-pytorch-bridge 1.19, WorkHCCL::wait, WorkEager::wait).
    done = gloo_->wait(is_on("hccl-no-timeouts") ? kNoTimeout : timeout);
  } catch (...) {
    rethrow(exchange_, std::current_exception());
  }
  finish();
  return done;
}

void HcclWork::blockCurrentStream() {
  wait(kNoTimeout);
}

void HcclWork::abort() {
  gloo_->abort();
}

uint64_t HcclWork::getSequencenumber() const {
  return gloo_->getSequencenumber();
}

c10::intrusive_ptr<c10::ivalue::Future> HcclWork::getFuture() {
  const auto inner = gloo_->getFuture();
  std::vector<c10::Device> devices;
  if (aliases_->device().has_value()) {
    devices.push_back(*aliases_->device());
  }
  auto outer = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors(), devices);
  inner->addCallback(
      [outer, self = c10::intrusive_ptr<HcclWork>::reclaim_copy(this)](c10::ivalue::Future& done) {
        if (done.hasError()) {
          outer->setError(spoken(self->exchange_, done.exception_ptr()));
          return;
        }
        self->finish();
        outer->markCompleted(c10::IValue(self->outputs_));
      },
      /*uses_future=*/false);
  return outer;
}

c10::intrusive_ptr<c10::ivalue::Future> HcclWork::getFutureResult() {
  return gloo_->getFutureResult();
}

bool HcclWorks::isCompleted() {
  return std::all_of(works_.begin(), works_.end(), [](const auto& work) { return work->isCompleted(); });
}

bool HcclWorks::isSuccess() const {
  return std::all_of(works_.begin(), works_.end(), [](const auto& work) { return work->isSuccess(); });
}

std::vector<at::Tensor> HcclWorks::result() {
  std::vector<at::Tensor> all;
  for (const auto& work : works_) {
    const auto some = work->result();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void HcclWorks::synchronize() {
  wait(kNoTimeout);
}

bool HcclWorks::wait(std::chrono::milliseconds timeout) {
  for (const auto& work : works_) {
    work->wait(timeout);
  }
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> HcclWorks::getFuture() {
  c10::List<c10::intrusive_ptr<c10::ivalue::Future>> parts(
      c10::FutureType::create(c10::ListType::ofTensors()));
  for (const auto& work : works_) {
    parts.push_back(work->getFuture());
  }
  return c10::collectAll(parts);
}

}  // namespace gaudi3_hpu
