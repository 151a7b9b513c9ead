// torch.autocast("hpu"): which operations run in the lower precision, which in float32.
#pragma once

namespace gaudi3_hpu {

// Registers the operations of the lists. To be called once, when the device is loaded: as on a Gaudi, the files that
// PT_HPU_AUTOCAST_LOWER_PRECISION_OPS_LIST and PT_HPU_AUTOCAST_FP32_OPS_LIST name are read then.
void register_autocast();

}  // namespace gaudi3_hpu
