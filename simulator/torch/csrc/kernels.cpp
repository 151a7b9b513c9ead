// Operations of which torch's core needs the device's own kernel: memory, copies, views, storages, convolution.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "allocator.h"
#include "delegate.h"
#include "runtime.h"

namespace gaudi3_hpu {
namespace {

void check_dtype(at::ScalarType type) {
  TORCH_CHECK(
      !c10::isFloat8Type(type), "The simulated HPU has no ", type,
      ": Gaudi's fp8 arithmetic is not the CPU's. Use bfloat16, or run this on hardware.");
}

c10::DispatchKeySet keys() {
  return c10::DispatchKeySet(c10::DispatchKey::HPU);
}

at::Tensor empty(
    at::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>,
    std::optional<at::Device> device,
    std::optional<bool> pin_memory,
    std::optional<at::MemoryFormat> memory_format) {
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  const auto type = c10::dtype_or_default(dtype);
  check_dtype(type);
  const c10::DeviceGuard guard(resolve(device));
  return at::detail::empty_generic(size, device_allocator(), keys(), type, memory_format);
}

at::Tensor empty_strided(
    at::IntArrayRef size,
    at::IntArrayRef stride,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>,
    std::optional<at::Device> device,
    std::optional<bool> pin_memory) {
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  const auto type = c10::dtype_or_default(dtype);
  check_dtype(type);
  const c10::DeviceGuard guard(resolve(device));
  return at::detail::empty_strided_generic(size, stride, device_allocator(), keys(), type);
}

// Between cards or with the host; here conjugation is resolved too, which is why the copy runs on aliases and never
// comes back to this key.
at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  const BelowEverything below;
  Aliases of_self;
  Aliases of_source;
  auto target = of_self.to_host(self);
  const auto from = of_source.to_host(source);
  const auto card = of_self.device().has_value() ? of_self.device() : of_source.device();
  use(card->index());
  const ChargeTo charge(card->index());
  target.copy_(from, non_blocking);
  return self;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& target, bool non_blocking) {
  auto to = target;
  copy_(to, self, non_blocking);
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& target) {
  auto to = target;
  to.resize_(self.sizes());
  copy_(to, self, false);
  return target;
}

at::Tensor& set_storage_offset(
    at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size, at::IntArrayRef stride) {
  TORCH_CHECK(
      source.device().is_hpu(), "Attempted to set the storage of a tensor on ", self.device(), " to a storage on ",
      source.device(), ".");
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(source);
  if (stride.data() == nullptr) {
    impl->set_storage_offset(offset);
    impl->set_sizes_contiguous(size);
  } else {
    impl->set_sizes_and_strides(size, stride, offset);
  }
  const auto needed =
      at::detail::computeStorageNbytes(self.sizes(), self.strides(), self.dtype().itemsize(), offset);
  if (self.numel() > 0 && needed > source.nbytes()) {
    resize_storage(*source.unsafeGetStorageImpl(), needed);
  }
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage_offset(self, std::move(source), 0, {elements}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  if (!self.is_same(source)) {
    set_storage_offset(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
  }
  return self;
}

at::Tensor& set_empty(at::Tensor& self) {
  const c10::DeviceGuard guard(self.device());
  at::Storage storage(at::Storage::use_byte_size_t(), 0, device_allocator()->allocate(0), device_allocator(), true);
  return set_storage_offset(self, std::move(storage), 0, {0}, {});
}

const at::Tensor& resize_(
    const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> memory_format) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  if (memory_format.has_value()) {
    TORCH_CHECK(*memory_format != at::MemoryFormat::Preserve, "Unsupported memory format preserve");
    impl->empty_tensor_restride(*memory_format);
  }
  const auto needed = at::detail::computeStorageNbytes(
      self.sizes(), self.strides(), self.dtype().itemsize(), self.storage_offset());
  if (self.numel() > 0 && needed > self.storage().nbytes()) {
    resize_storage(*self.storage().unsafeGetStorageImpl(), needed);
  }
  return self;
}

void record_stream(at::Tensor&, at::Stream) {
  // Operations have run when they return: no stream still uses the tensor.
}

void call_on_host(const char* name, Aliases& aliases, c10::Stack& stack) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  const BelowEverything below;
  const ChargeTo charge(aliases.device()->index());
  op.callBoxed(&stack);
}

void convolution(const c10::OperatorHandle& op, c10::Stack* stack) {
  Aliases aliases;
  arguments_to_host(aliases, *stack, op.schema().arguments().size());
  call_on_host("aten::convolution", aliases, *stack);
  results_to_device(aliases, *stack, 1);
}

// The CPU's operation also wants the sizes of the bias: those of the gradient's channels, if it is asked for.
void convolution_backward(const c10::OperatorHandle& op, c10::Stack* stack) {
  Aliases aliases;
  arguments_to_host(aliases, *stack, op.schema().arguments().size());
  const auto first = stack->end() - static_cast<int64_t>(op.schema().arguments().size());
  c10::List<int64_t> bias;
  if (stack->back().toBoolList().get(2)) {
    bias.push_back(first->toTensor().size(1));
  }
  stack->insert(first + 3, c10::IValue(bias));
  call_on_host("aten::convolution_backward", aliases, *stack);
  results_to_device(aliases, *stack, 3);
}

TORCH_LIBRARY_IMPL(aten, HPU, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("copy_", TORCH_FN(copy_));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("set_", TORCH_FN(set_empty));
  m.impl("set_.source_Storage", TORCH_FN(set_storage));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage_offset));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(static_cast<at::Tensor (*)(const at::Tensor&, at::IntArrayRef)>(at::native::view)));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  m.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
}

}  // namespace
}  // namespace gaudi3_hpu
