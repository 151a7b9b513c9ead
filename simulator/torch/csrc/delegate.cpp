#include "delegate.h"

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include <cstdio>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "allocator.h"
#include "generator.h"
#include "runtime.h"

namespace gaudi3_hpu {
namespace {

// Operations that take CPU tensors beside a card's on every accelerator.
bool takes_host_tensors(const c10::OperatorHandle& op) {
  const std::string_view name = op.operator_name().name;
  return name == "aten::index" || name == "aten::index_put_" || name == "aten::_index_put_impl_" ||
      name == "aten::index_put" || name == "aten::_pack_padded_sequence";
}

void refuse_mixture(const c10::OperatorHandle& op, const Aliases& aliases) {
  if (aliases.host_argument().defined() && aliases.device().has_value() && !takes_host_tensors(op)) {
    TORCH_CHECK(
        false, "Expected all tensors to be on the same device, but ", op.operator_name().name, " got tensors on ",
        *aliases.device(), " and ", aliases.host_argument().device(), ".");
  }
}

// Gives a random operation the card's generator where it was given none; false when it takes no generator.
bool fill_generator(const c10::OperatorHandle& op, c10::Stack& stack, c10::DeviceIndex index) {
  const auto& arguments = op.schema().arguments();
  const auto first = stack.size() - arguments.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* optional = arguments[i].type()->castRaw<c10::OptionalType>();
    if (optional != nullptr && optional->getElementType()->kind() == c10::TypeKind::GeneratorType) {
      if (stack[first + i].isNone()) {
        stack[first + i] = host_of(default_generator(index));
      }
      return true;
    }
  }
  return false;
}

}  // namespace

void arguments_to_host(Aliases& aliases, c10::Stack& stack, size_t count) {
  for (auto i = stack.size() - count; i < stack.size(); ++i) {
    // Only what can hold a tensor, a device or a generator is worth looking into.
    if (stack[i].isTensor() || stack[i].isList() || stack[i].isDevice() || stack[i].isGenerator()) {
      stack[i] = aliases.to_host(std::as_const(stack[i]));
    }
  }
}

void results_to_device(Aliases& aliases, c10::Stack& stack, size_t count) {
  aliases.sync();
  for (auto i = stack.size() - count; i < stack.size(); ++i) {
    if (stack[i].isTensor()) {
      // Taken off the stack, so that a new tensor is held once and its memory can move to the card's tensor.
      const at::Tensor host = std::move(stack[i]).toTensor();
      stack[i] = aliases.to_device(host);
    } else if (stack[i].isList()) {
      stack[i] = aliases.to_device(std::as_const(stack[i]));
    }
  }
}

void delegate(const c10::OperatorHandle& op, c10::Stack* stack) {
  const BelowEverything below;
  Aliases aliases;
  arguments_to_host(aliases, *stack, op.schema().arguments().size());
  refuse_mixture(op, aliases);
  const auto index = resolve(aliases.device()).index();
  use(index);
  check_kernels();
  std::optional<DrawFrom> draw;
  if (op.hasTag(at::Tag::nondeterministic_seeded) && !fill_generator(op, *stack, index)) {
    draw.emplace(index);
  }
  {
    const ChargeTo charge(index);
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  }
  results_to_device(aliases, *stack, op.schema().returns().size());
}

namespace {

struct Listed {
  std::unordered_set<std::string> names;
  bool refuse = false;
  std::mutex mutex;
  std::unordered_set<std::string> named;
};

// Never destroyed: operations run until the very end.
Listed& listed() {
  static auto* instance = new Listed();
  return *instance;
}

// An operation without a kernel of Habana's: a Gaudi copies its tensors to the host and back.
void on_the_host(const c10::OperatorHandle& op, c10::Stack* stack) {
  const auto name = toString(op.operator_name());
  TORCH_CHECK_NOT_IMPLEMENTED(
      !listed().refuse, "Habana's plugin has no kernel for ", name,
      ", and a Gaudi would run it on the host: use other operations, or GAUDI3_HPU_SIMULATOR_OPERATIONS=name.");
  {
    const std::lock_guard<std::mutex> lock(listed().mutex);
    if (listed().named.insert(name).second) {
      std::fprintf(stderr, "gaudi3-hpu-simulator: %s runs on the host of a Gaudi\n", name.c_str());
    }
  }
  delegate(op, stack);
}

bool composed(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
      op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

}  // namespace

void list_operations(const std::vector<std::string>& names, bool refuse) {
  listed().names.insert(names.begin(), names.end());
  listed().refuse = refuse;
}

void register_cpu_kernels() {
  auto& dispatcher = c10::Dispatcher::singleton();
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::HPU, __FILE__, __LINE__);
  const auto& names = listed().names;
  for (const auto& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    if (op.has_value() && name.getNamespace() == "aten" && op->hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
        !op->hasKernelForDispatchKey(c10::DispatchKey::HPU)) {
      const auto full = toString(name);
      if (names.empty() || names.count(full) != 0) {
        library->impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&delegate>());
      } else if (!composed(*op)) {
        library->impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&on_the_host>());
      }
    }
  }
}

namespace {

[[noreturn]] void refuse_sparse(const c10::OperatorHandle& op, c10::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "The simulated HPU has dense tensors only, no sparse ones (", op.operator_name().name,
      "): use the CPU for them.");
}

TORCH_LIBRARY_IMPL(_, HPU, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&delegate>());
}

TORCH_LIBRARY_IMPL(_, SparseHPU, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>());
}

TORCH_LIBRARY_IMPL(_, SparseCsrHPU, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>());
}

}  // namespace
}  // namespace gaudi3_hpu
