// Operations that accelerators have for types for which torch's CPU kernels do not exist.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "delegate.h"

namespace gaudi3_hpu {
namespace {

// Counts of integers, which programs ask of every device but the CPU; float32 holds them exactly up to 2^24.
void histc(const c10::OperatorHandle& op, c10::Stack* stack) {
  auto& self = *(stack->end() - static_cast<int64_t>(op.schema().arguments().size()));
  const auto type = self.toTensor().scalar_type();
  if (!c10::isIntegralType(type, /*includeBool=*/false)) {
    delegate(op, stack);
    return;
  }
  self = self.toTensor().to(at::kFloat);
  delegate(op, stack);
  stack->back() = stack->back().toTensor().to(type);
}

TORCH_LIBRARY_IMPL(aten, HPU, m) {
  m.impl("histc", torch::CppFunction::makeFromBoxedFunction<&histc>());
}

}  // namespace
}  // namespace gaudi3_hpu
