// The extension's Python face, used by the habana_frameworks tree.
#include <torch/csrc/utils/pybind.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <mutex>

#include "allocator.h"
#include "autocast.h"
#include "cards.h"
#include "delegate.h"
#include "generator.h"
#include "hccl.h"
#include "rules.h"
#include "runtime.h"

namespace gaudi3_hpu {

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "The simulated hpu device of torch.";
  pybind11::class_<Card>(m, "Card")
      .def(
          pybind11::init<int, int, std::string, std::string, std::string>(), pybind11::arg("index"),
          pybind11::arg("module"), pybind11::arg("file"), pybind11::arg("device_file"), pybind11::arg("status_file"));
  pybind11::class_<Machine>(m, "Machine")
      .def(pybind11::init<>())
      .def_readwrite("cards", &Machine::cards)
      .def_readwrite("absent", &Machine::absent)
      .def_readwrite("folder", &Machine::folder)
      .def_readwrite("one_holder", &Machine::one_holder)
      .def_readwrite("modules_choose", &Machine::modules_choose)
      .def_readwrite("operational_only", &Machine::operational_only)
      .def_readwrite("resets", &Machine::resets)
      .def_readwrite("reset_seconds", &Machine::reset_seconds);
  m.def(
      "load",
      [](Machine machine, int64_t limit, bool heeds_host, bool one_index, bool kernel_path) {
        static std::once_flag once;  // a forked child reads its settings anew
        std::call_once(once, [] {
          install_allocators();
          register_cpu_kernels();
          register_autocast();
        });
        set_limit(limit);
        heed_host(heeds_host);
        set_demands({one_index, kernel_path});
        set_machine(std::move(machine));
      },
      pybind11::arg("machine"), pybind11::arg("limit"), pybind11::kw_only(), pybind11::arg("heeds_host"),
      pybind11::arg("one_index"), pybind11::arg("kernel_path"));
  m.def("set_rules", &set_rules, "Tell which rules of simulator/strictness.yml hold.");
  m.def("list_operations", &list_operations, "Name the operations that have a kernel on hardware; refuse the others?");
  m.def("visible_cards", &visible_cards);
  m.def("checked", [](int index) {
    return static_cast<int>(checked(static_cast<c10::DeviceIndex>(std::clamp(index, -1, 127))));
  });
  m.def("used", &used);
  m.def("use", [] { use(0); });
  m.def("release", &release);
  m.def("set_limit", &set_limit);
  m.def("reset_peak", &reset_peak);
  m.def("reset_accumulated", &reset_accumulated);
  m.def("statistics", [] {
    const auto now = statistics();
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
  m.def("default_generator", [] { return default_generator(0); });
  m.def(
      "make_hccl", &make_hccl, pybind11::arg("gloo"), pybind11::arg("store"), pybind11::arg("rank"),
      pybind11::arg("size"));
}

}  // namespace gaudi3_hpu
