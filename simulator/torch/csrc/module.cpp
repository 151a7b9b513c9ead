// The extension's Python face, used by the habana_frameworks tree.
#include <torch/csrc/utils/pybind.h>

#include "allocator.h"
#include "autocast.h"
#include "delegate.h"
#include "generator.h"
#include "hccl.h"
#include "rules.h"
#include "runtime.h"

namespace gaudi3_hpu {

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "The simulated hpu device of torch.";
  m.def("load", [](int count, int64_t limit, std::vector<std::string> device_files, std::string absent) {
    install_allocators();
    register_cpu_kernels();
    register_autocast();
    for (int index = 0; index < kMaxDevices; ++index) {
      set_limit(static_cast<c10::DeviceIndex>(index), limit);
    }
    configure(count, std::move(device_files), std::move(absent));
  });
  m.def("set_rules", &set_rules, "Tell which rules of simulator/strictness.yml hold.");
  m.def("list_operations", &list_operations, "Name the operations that have a kernel on hardware; refuse the others?");
  m.def("device_count", [] { return static_cast<int>(device_count()); });
  m.def("current_device", [] { return static_cast<int>(current_device()); });
  m.def("exchange_device", [](int index) {
    return static_cast<int>(exchange_device(static_cast<c10::DeviceIndex>(index)));
  });
  m.def("used", &used);
  m.def("use", [](int index) { use(static_cast<c10::DeviceIndex>(index)); });
  m.def("set_limit", [](int index, int64_t bytes) { set_limit(static_cast<c10::DeviceIndex>(index), bytes); });
  m.def("reset_peak", [](int index) { reset_peak(static_cast<c10::DeviceIndex>(index)); });
  m.def("reset_accumulated", [](int index) { reset_accumulated(static_cast<c10::DeviceIndex>(index)); });
  m.def("statistics", [](int index) {
    const auto now = statistics(static_cast<c10::DeviceIndex>(index));
    pybind11::dict result;
    result["limit"] = now.limit;
    result["in_use"] = now.in_use;
    result["max_in_use"] = now.max_in_use;
    result["allocations"] = now.allocations;
    result["frees"] = now.frees;
    result["active"] = now.active;
    result["max_allocation"] = now.max_allocation;
    return result;
  });
  m.def("default_generator", [](int index) { return default_generator(static_cast<c10::DeviceIndex>(index)); });
  m.def(
      "make_hccl", &make_hccl, pybind11::arg("gloo"), pybind11::arg("store"), pybind11::arg("rank"),
      pybind11::arg("size"));
}

}  // namespace gaudi3_hpu
