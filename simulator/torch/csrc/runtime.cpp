#include "runtime.h"

#include <c10/util/Exception.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "cards.h"

namespace gaudi3_hpu {
namespace {

Demands demands;

bool readable_file(const char* path) {
  struct stat seen{};
  return path != nullptr && stat(path, &seen) == 0 && S_ISREG(seen.st_mode) && access(path, R_OK) == 0;
}

}  // namespace

void set_demands(Demands chosen) {
  demands = chosen;
}

c10::DeviceIndex device_count() noexcept {
  return visible_cards() > 0 ? 1 : 0;
}

c10::DeviceIndex checked(c10::DeviceIndex index) {
  if (index > 0) {
    // The bridge's words. Release 1.19 of it says so of a device guard, and only warns of a tensor's index
    // (gaudi-pytorch-bridge, backend/habana_device/HPUGuardImpl.h and habana_eager/ops/empty.cpp).
    TORCH_CHECK(!demands.one_index, "habana active device: ", static_cast<int>(index), " != 0");
    TORCH_WARN_ONCE("A process has one HPU, whose index is 0: hpu:", static_cast<int>(index), " is taken for it.");
  }
  return 0;
}

c10::Device resolve(std::optional<c10::Device> device) {
  return c10::Device(c10::DeviceType::HPU, checked(device.has_value() ? device->index() : c10::DeviceIndex{0}));
}

void use(c10::DeviceIndex index) {
  if (index == 0 && acquired()) {
    return;
  }
  checked(index);
  acquire();
}

bool used() noexcept {
  return acquired();
}

void check_kernels() {
  static std::atomic<bool> found{false};
  if (found.load(std::memory_order_relaxed)) {
    return;
  }
  if (demands.kernel_path) {
    const char* path = std::getenv("GC_KERNEL_PATH");
    TORCH_CHECK(
        readable_file(path), "Graph compile failed. synStatus=26 [Generic failure].\ngaudi3-hpu-simulator: GC_KERNEL_PATH ",
        path == nullptr ? "is not set" : "is '" + std::string(path) + "', which is no file that can be read",
        ": source the runtime's profile (/etc/profile.d/habanalabs.sh) before the program starts.");
  }
  found = true;
}

std::string rank() {
  const char* value = std::getenv("RANK");
  return value == nullptr ? "0" : value;
}

}  // namespace gaudi3_hpu
