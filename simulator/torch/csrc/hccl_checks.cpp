#include "hccl_checks.h"

#include <algorithm>
#include <string_view>

#include "rules.h"

namespace gaudi3_hpu {
namespace {

void check_type(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kByte:
    case at::kChar:
    case at::kDouble:
    case at::kFloat:
    case at::kHalf:
    case at::kInt:
    case at::kLong:
    case at::kBFloat16:
    case at::kBool:
      return;
    default:
      TORCH_CHECK(
          false, "Input tensor data type is not supported for HCCL process group: ", tensor.scalar_type());
  }
}

void check_types(const c10::IValue& value) {
  if (value.isTensor()) {
    check_type(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      check_type(tensor);
    }
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      check_types(element);
    }
  }
}

void check_gather(const at::Tensor& output, const at::Tensor& input, int64_t processes) {
  TORCH_CHECK(input.dtype() == output.dtype(), "output tensor must have the same type as input tensor");
  TORCH_CHECK(
      input.numel() * processes == output.numel(),
      "output tensor size must be equal to world_size times input tensor size");
}

void check_scatter(const at::Tensor& output, const at::Tensor& input, int64_t processes) {
  TORCH_CHECK(input.dtype() == output.dtype(), "input tensor must be the same type as the output tensor.");
  TORCH_CHECK(
      input.numel() == output.numel() * processes,
      "input tensor must be the same size as output size times world size");
}

void check_lists(const c10::IValue& lists, const std::vector<at::Tensor>& others, int64_t processes) {
  const auto all = lists.toListRef();
  TORCH_CHECK(all.size() == others.size(), "Tensor list operands to scatter/gather must have the same length");
  for (size_t i = 0; i < all.size(); ++i) {
    const auto parts = all[i].toTensorVector();
    TORCH_CHECK(
        parts.size() == static_cast<size_t>(processes) * all.size(),
        "Tensor list input to scatter/gather must match number of collective participants");
    for (const auto& part : parts) {
      TORCH_CHECK(
          part.numel() == others[i].numel(), "All tensor operands to scatter/gather must have the same size");
    }
  }
}

bool same_sizes(const c10::IValue& lists) {
  const auto first = lists.toListRef().front().toTensorVector();
  return std::all_of(first.begin(), first.end(), [&](const auto& t) { return t.sizes() == first.front().sizes(); });
}

}  // namespace

void check_arguments(const c10::OperatorHandle& op, const c10::Stack& stack, int64_t processes) {
  const std::string_view name = op.operator_name().name;
  const auto* arguments = &*(stack.end() - static_cast<int64_t>(op.schema().arguments().size()));
  if (is_on("hccl-operations")) {
    TORCH_CHECK(name != "c10d::allgather_coalesced_", "ProcessGroupHcclBase does not support allgather_coalesced");
    TORCH_CHECK(name != "c10d::recv_any_source_", "ProcessGroupHcclBase does not support recv");
  }
  if (is_on("hccl-types") && name != "c10d::barrier") {
    check_types(arguments[0]);
  }
  if (name == "c10d::_allgather_base_") {
    check_gather(arguments[0].toTensor(), arguments[1].toTensor(), processes);
  } else if (name == "c10d::_reduce_scatter_base_") {
    check_scatter(arguments[0].toTensor(), arguments[1].toTensor(), processes);
  } else if (name == "c10d::allgather_into_tensor_coalesced_" || name == "c10d::reduce_scatter_tensor_coalesced_") {
    const auto outputs = arguments[0].toTensorVector();
    const auto inputs = arguments[1].toTensorVector();
    TORCH_CHECK(inputs.size() == outputs.size(), "inputs and outputs must have the same number of tensors");
    for (size_t i = 0; i < inputs.size(); ++i) {
      name == "c10d::allgather_into_tensor_coalesced_" ? check_gather(outputs[i], inputs[i], processes)
                                                       : check_scatter(outputs[i], inputs[i], processes);
    }
  } else if (name == "c10d::allgather_") {
    if (same_sizes(arguments[0])) {
      check_lists(arguments[0], arguments[1].toTensorVector(), processes);
    }
  } else if (name == "c10d::reduce_scatter_") {
    check_lists(arguments[1], arguments[0].toTensorVector(), processes);
  }
}

void check_reduction(const c10d::ReduceOp& op) {
  const auto type = static_cast<c10d::ReduceOp::RedOpType>(op);
  const bool known = type == c10d::ReduceOp::SUM || type == c10d::ReduceOp::MIN || type == c10d::ReduceOp::MAX ||
      type == c10d::ReduceOp::PRODUCT;
  // Averages are refused whatever the rule says: gloo would compute them.
  TORCH_CHECK(
      known || (type != c10d::ReduceOp::AVG && !is_on("hccl-reductions")),
      "Unsupported ReduceOp for HCCL process group");
}

bool reduces_in_float(const std::string& name, at::ScalarType type) {
  if (!is_on("hccl-reduces-in-float32") || type == at::kFloat || type == at::kBFloat16) {
    return false;
  }
  if (name == "c10d::allreduce_" || name == "c10d::allreduce_coalesced_" || name == "c10d::reduce_") {
    return true;
  }
  const bool scattered = name == "c10d::_reduce_scatter_base_" || name == "c10d::reduce_scatter_tensor_coalesced_";
  return scattered && type != at::kInt && type != at::kLong;
}

}  // namespace gaudi3_hpu
