// Operations that need something else than the CPU's kernel: types that only accelerators take, and questions that are
// answered without looking at data.
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_fused_sdp_choice_native.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "delegate.h"
#include "runtime.h"

namespace gaudi3_hpu {
namespace {

c10::IValue& first_argument(const c10::OperatorHandle& op, c10::Stack& stack) {
  return *(stack.end() - static_cast<int64_t>(op.schema().arguments().size()));
}

// Counts of integers, which programs ask of every device but the CPU; float32 holds them exactly up to 2^24.
void histc(const c10::OperatorHandle& op, c10::Stack* stack) {
  auto& self = first_argument(op, *stack);
  const auto type = self.toTensor().scalar_type();
  if (!c10::isIntegralType(type, /*includeBool=*/false)) {
    delegate(op, stack);
    return;
  }
  self = self.toTensor().to(at::kFloat);
  delegate(op, stack);
  stack->back() = stack->back().toTensor().to(type);
}

// Indices of 32 bits, which are a Gaudi's own.
void take(const c10::OperatorHandle& op, c10::Stack* stack) {
  auto& index = *(&first_argument(op, *stack) + 1);
  if (index.toTensor().scalar_type() == at::kInt) {
    index = index.toTensor().to(at::kLong);
  }
  delegate(op, stack);
}

// Rounding, of booleans too, which it leaves as they are (HabanaAI/gaudi-pytorch-bridge 1.19, RoundingFunc).
void rounded(const c10::OperatorHandle& op, c10::Stack* stack) {
  const auto self = first_argument(op, *stack).toTensor();
  if (self.scalar_type() != at::kBool) {
    delegate(op, stack);
    return;
  }
  if (op.schema().arguments().size() == 2) {
    auto out = torch::jit::pop(*stack).toTensor();
    torch::jit::drop(*stack, 1);
    at::native::resize_output(out, self.sizes());
    stack->emplace_back(out.copy_(self));
  } else if (!op.schema().is_mutable()) {
    stack->back() = self.clone();
  }
}

// The CPU's choice, from sizes and settings alone: the tensors may be fake.
int64_t fused_sdp_choice(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const std::optional<at::Tensor>& mask,
    double dropout,
    bool causal,
    std::optional<double> scale,
    bool grouped) {
  return at::native::_fused_sdp_choice_cpp(query, key, value, mask, dropout, causal, scale, grouped);
}

// Zeros without memory would be the CPU's own kind of tensor; a Gaudi fills memory (HabanaAI/gaudi-pytorch-bridge 1.19,
// EfficientZeroTensor).
at::Tensor efficient_zeros(
    at::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout,
    std::optional<at::Device> device,
    std::optional<bool> pin_memory) {
  return at::zeros(size, dtype, layout, resolve(device), pin_memory);
}

TORCH_LIBRARY_IMPL(aten, HPU, m) {
  m.impl("histc", torch::CppFunction::makeFromBoxedFunction<&histc>());
  m.impl("take", torch::CppFunction::makeFromBoxedFunction<&take>());
  m.impl("take.out", torch::CppFunction::makeFromBoxedFunction<&take>());
  for (const auto* name : {"trunc", "trunc.out", "trunc_", "floor", "floor.out", "floor_", "ceil", "ceil.out", "ceil_"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&rounded>());
  }
  m.impl("_fused_sdp_choice", TORCH_FN(fused_sdp_choice));
  m.impl("_efficientzerotensor", TORCH_FN(efficient_zeros));
}

}  // namespace
}  // namespace gaudi3_hpu
