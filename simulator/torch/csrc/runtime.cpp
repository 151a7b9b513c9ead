#include "runtime.h"

#include <c10/util/Exception.h>
#include <fcntl.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace gaudi3_hpu {
namespace {

struct State {
  std::atomic<int> count{0};
  std::atomic<bool> used[kMaxDevices];
  std::atomic<bool> any_used{false};
  std::mutex mutex;
  std::vector<std::string> device_files;
  std::string absent = "the simulated device is not loaded";
};

// Never destroyed: tensors are freed after static destructors have run.
State& state() {
  static State* instance = new State();
  return *instance;
}

thread_local c10::DeviceIndex current = 0;

void check_exists(c10::DeviceIndex index) {
  const int count = state().count;
  TORCH_CHECK(count > 0, "There is no HPU here: ", state().absent, ".");
  TORCH_CHECK(
      index >= 0 && index < count,
      "hpu:", static_cast<int>(index), " does not exist: this machine has ", count, " simulated HPU(s), hpu:0 to hpu:",
      count - 1, ".");
}

void first_use(c10::DeviceIndex index) {
  std::lock_guard<std::mutex> lock(state().mutex);
  if (state().used[index]) {
    return;
  }
  if (!state().any_used) {
    std::fputs(
        "gaudi3-hpu-simulator: 'hpu' is simulated on this machine's CPU; nothing it takes in time is a Gaudi's.\n",
        stderr);
  }
  if (static_cast<size_t>(index) < state().device_files.size()) {
    // Held to the end of the process, as a card is: the node's tools see who uses it and refuse to unload its driver.
    (void)open(state().device_files[index].c_str(), O_RDONLY | O_CLOEXEC);
  }
  state().any_used = true;
  state().used[index] = true;
}

}  // namespace

void configure(int count, std::vector<std::string> device_files, std::string absent) {
  TORCH_CHECK(count >= 0 && count <= kMaxDevices, "0 to ", kMaxDevices, " HPUs can be simulated, not ", count, ".");
  std::lock_guard<std::mutex> lock(state().mutex);
  state().device_files = std::move(device_files);
  state().absent = std::move(absent);
  state().count = count;
}

c10::DeviceIndex device_count() noexcept {
  return static_cast<c10::DeviceIndex>(state().count.load());
}

c10::DeviceIndex current_device() noexcept {
  return current;
}

c10::DeviceIndex exchange_device(c10::DeviceIndex index) {
  const auto previous = current;
  if (index >= 0) {
    check_exists(index);
    current = index;
  }
  return previous;
}

void set_device_unchecked(c10::DeviceIndex index) noexcept {
  if (index >= 0) {
    current = index;
  }
}

c10::Device resolve(std::optional<c10::Device> device) {
  const auto index = device.has_value() && device->has_index() ? device->index() : current;
  return c10::Device(c10::DeviceType::HPU, index);
}

void use(c10::DeviceIndex index) {
  if (index >= 0 && index < kMaxDevices && state().used[index]) {
    return;
  }
  check_exists(index);
  first_use(index);
}

bool used() noexcept {
  return state().any_used;
}

std::string rank() {
  const char* value = std::getenv("RANK");
  return value == nullptr ? "0" : value;
}

}  // namespace gaudi3_hpu
