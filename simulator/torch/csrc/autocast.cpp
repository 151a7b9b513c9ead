#include "autocast.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <unordered_set>

namespace gaudi3_hpu {
namespace {

using Names = std::unordered_set<std::string>;
constexpr auto kDevice = c10::DeviceType::HPU;

// The lists of HabanaAI/gaudi-pytorch-bridge 1.19 (hpu_ops/autocast_helpers.h). An operation in several belongs to the
// first: lowered, float32, promoted.
Names lowered() {
  return {"addmm", "addbmm", "batch_norm", "baddbmm", "bmm", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
          "conv_transpose2d", "conv_transpose3d", "dot", "dropout", "feature_dropout", "group_norm", "instance_norm",
          "layer_norm", "leaky_relu", "linear", "matmul", "mean", "mm", "mul", "mv", "softmax", "log_softmax",
          "scaled_dot_product_attention"};
}

Names in_float() {
  return {"acos", "addcdiv", "asin", "atan2", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits",
          "cdist", "cosh", "cosine_embedding_loss", "cosine_similarity", "cross_entropy_loss", "dist", "div", "divide",
          "embedding", "embedding_bag", "erfinv", "exp", "expm1", "hinge_embedding_loss", "huber_loss", "kl_div",
          "l1_loss", "log", "log10", "log1p", "log2", "logsumexp", "margin_ranking_loss", "mse_loss",
          "multi_margin_loss", "multilabel_margin_loss", "nll_loss", "pdist", "poisson_nll_loss", "pow", "reciprocal",
          "renorm", "rsqrt", "sinh", "smooth_l1_loss", "soft_margin_loss", "softplus", "tan", "topk",
          "triplet_margin_loss", "truediv", "true_divide"};
}

Names promoted() {
  return {"add", "addcmul", "addcdiv", "cat", "div", "exp", "mul", "pow", "sub", "iadd", "truediv", "stack"};
}

// Of these, where they are lowered, the input alone: their weights and statistics stay as they are.
Names first_only() {
  return {"layer_norm", "group_norm", "instance_norm", "batch_norm"};
}

// One name a line, as it stands there.
Names listed(const char* variable, Names otherwise) {
  const char* path = std::getenv(variable);
  if (path == nullptr) {
    return otherwise;
  }
  std::ifstream file(path);
  if (!file.is_open()) {
    TORCH_WARN("Failed to open file with ops to autocast: ", path, ". Default list loaded.");
    return otherwise;
  }
  Names names;
  for (std::string line; std::getline(file, line);) {
    names.insert(line);
  }
  return names;
}

// Casts are not kept from one operation to the next, as torch does on other devices.
at::Tensor cast(const at::Tensor& tensor, at::ScalarType type) {
  return at::autocast::is_eligible(tensor, kDevice) && tensor.scalar_type() != type ? tensor.to(type) : tensor;
}

void cast(c10::IValue& value, at::ScalarType type) {
  if (value.isTensor()) {
    value = cast(value.toTensor(), type);
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> made;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      made.push_back(cast(tensor, type));
    }
    value = made;
  }
}

enum class Policy { Lowered, FirstOnly, InFloat, Promoted };

template <Policy policy>
void run(const c10::OperatorHandle& op, c10::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard off(c10::DispatchKey::AutocastHPU);
  const auto count = policy == Policy::FirstOnly ? 1 : op.schema().arguments().size();
  const auto first = stack->end() - static_cast<int64_t>(op.schema().arguments().size());
  auto type = policy == Policy::InFloat ? at::kFloat : at::autocast::get_autocast_dtype(kDevice);
  if (policy == Policy::Promoted) {
    for (auto value = first; value != stack->end(); ++value) {
      if (value->isTensor()) {
        type = at::autocast::prioritize(type, value->toTensor(), kDevice);
      } else if (value->isTensorList()) {
        type = at::autocast::prioritize(type, at::TensorList(value->toTensorVector()), kDevice);
      }
    }
  }
  for (size_t i = 0; i < count; ++i) {
    cast(*(first + static_cast<int64_t>(i)), type);
  }
  op.callBoxed(stack);
}

bool writes(const c10::FunctionSchema& schema) {
  for (const auto& argument : schema.arguments()) {
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) {
      return true;
    }
  }
  return false;
}

TORCH_LIBRARY_IMPL(_, AutocastHPU, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

}  // namespace

void register_autocast() {
  const auto lower = listed("PT_HPU_AUTOCAST_LOWER_PRECISION_OPS_LIST", lowered());
  const auto wide = listed("PT_HPU_AUTOCAST_FP32_OPS_LIST", in_float());
  const auto widest = promoted();
  const auto first = first_only();
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutocastHPU, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (name.getNamespace() != "aten") {
      continue;
    }
    const auto op = dispatcher.findSchema(name);
    const auto plain = name.name.substr(std::string("aten::").size());
    if (!op.has_value() || writes(op->schema())) {
      continue;
    }
    const auto full = toString(name);
    if (lower.count(plain) != 0) {
      library->impl(
          full.c_str(),
          first.count(plain) != 0 ? torch::CppFunction::makeFromBoxedFunction<&run<Policy::FirstOnly>>()
                                  : torch::CppFunction::makeFromBoxedFunction<&run<Policy::Lowered>>());
    } else if (wide.count(plain) != 0) {
      library->impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&run<Policy::InFloat>>());
    } else if (widest.count(plain) != 0) {
      library->impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&run<Policy::Promoted>>());
    }
  }
}

}  // namespace gaudi3_hpu
