// torch.autocast("hpu"): torch's core registers no operation for this key. The lists are the ones that torch gives to
// every accelerator; Habana's own (and the files that PT_HPU_AUTOCAST_*_OPS_LIST name) are not simulated.
#include <ATen/autocast_mode.h>

// Torch's lists of operations name its types unqualified.
namespace at::autocast {
namespace {

#define HPU_LOWER_PRECISION(...) KERNEL(c10::DeviceType::HPU, __VA_ARGS__, lower_precision_fp)
#define HPU_FP32(...) KERNEL(c10::DeviceType::HPU, __VA_ARGS__, fp32)
#define HPU_FP32_SET_OPT_DTYPE(...) KERNEL(c10::DeviceType::HPU, __VA_ARGS__, fp32_set_opt_dtype)
#define HPU_PROMOTE(...) KERNEL(c10::DeviceType::HPU, __VA_ARGS__, promote)
#define HPU_DIFFERENT_SIGNATURE(...) KERNEL_DIFFERENT_REDISPATCH_SIGNATURE(c10::DeviceType::HPU, __VA_ARGS__)

at::Tensor refuse_binary_cross_entropy(
    const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, int64_t) {
  TORCH_CHECK(
      false, "binary_cross_entropy is unsafe to autocast: use binary_cross_entropy_with_logits or BCEWithLogitsLoss.");
}

TORCH_LIBRARY_IMPL(_, AutocastHPU, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastHPU, m) {
  AT_FORALL_LOWER_PRECISION_FP(HPU_LOWER_PRECISION)
  AT_FORALL_FP32(HPU_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(HPU_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(HPU_DIFFERENT_SIGNATURE)
  AT_FORALL_PROMOTE(HPU_PROMOTE)
  m.impl(TORCH_SELECTIVE_NAME("aten::binary_cross_entropy"), TORCH_FN(refuse_binary_cross_entropy));
}

}  // namespace
}  // namespace at::autocast
