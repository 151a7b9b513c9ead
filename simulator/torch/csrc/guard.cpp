// What torch asks of an accelerator: device guard, streams and events, pinned memory, generators.
//
// Operations have run when they return, so streams only have names and events are always complete.
#include <ATen/detail/HPUHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <map>
#include <mutex>

#include "allocator.h"
#include "generator.h"
#include "runtime.h"

namespace gaudi3_hpu {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

thread_local c10::StreamId current_stream = 0;

Stream stream_of(Device device, c10::StreamId id) {
  return Stream(Stream::UNSAFE, resolve(device), id);
}

// An event that was recorded; there is nothing to keep of it.
struct Recorded {};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override {
    return DeviceType::HPU;
  }
  Device exchangeDevice(Device device) const override {
    return Device(DeviceType::HPU, checked(device.index()));
  }
  Device getDevice() const override {
    return Device(DeviceType::HPU, 0);
  }
  void setDevice(Device device) const override {
    checked(device.index());
  }
  void uncheckedSetDevice(Device) const noexcept override {}
  Stream getStream(Device device) const override {
    return stream_of(device, current_stream);
  }
  Stream getDefaultStream(Device device) const override {
    return stream_of(device, 0);
  }
  Stream getStreamFromGlobalPool(Device device, bool) const override {
    return getNewStream(device, 0);
  }
  Stream getNewStream(Device device, int) const override {
    static std::atomic<c10::StreamId> last{0};
    return stream_of(device, ++last);
  }
  Stream exchangeStream(Stream stream) const override {
    const auto previous = current_stream;
    current_stream = stream.id();
    return stream_of(stream.device(), previous);
  }
  DeviceIndex deviceCount() const noexcept override {
    return device_count();
  }
  c10::DeviceCapability getDeviceCapability(Device) const override {
    return c10::DeviceCapability();
  }
  void record(void** event, const Stream& stream, DeviceIndex index, c10::EventFlag) const override {
    TORCH_CHECK(
        index == -1 || index == stream.device_index(), "An event of hpu:", static_cast<int>(index),
        " cannot be recorded in a stream of ", stream.device(), ".");
    if (*event == nullptr) {
      *event = new Recorded();  // its address is the event's id
    }
  }
  void destroyEvent(void* event, DeviceIndex) const noexcept override {
    delete static_cast<Recorded*>(event);
  }
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override {
    return true;
  }
  bool queryStream(const Stream&) const override {
    return true;
  }
  void synchronizeStream(const Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(DeviceIndex) const override {}
  double elapsedTime(void*, void*, DeviceIndex) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "The simulated HPU has no times, because no time it takes is a Gaudi's: measure on hardware.");
  }
};

// Host memory that is known to be pinned.
struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    auto block = c10::GetCPUAllocator()->allocate(bytes);
    void* data = block.get();
    if (data == nullptr) {
      return block;
    }
    block.release_context();
    std::lock_guard<std::mutex> lock(mutex());
    blocks()[data] = bytes;
    return {data, data, &release, Device(DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &release;
  }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }
  static bool holds(const void* pointer) {
    std::lock_guard<std::mutex> lock(mutex());
    auto after = blocks().upper_bound(pointer);
    if (after == blocks().begin()) {
      return false;
    }
    --after;
    return static_cast<const char*>(pointer) < static_cast<const char*>(after->first) + after->second;
  }

 private:
  static void release(void* data) {
    {
      std::lock_guard<std::mutex> lock(mutex());
      blocks().erase(data);
    }
    c10::GetCPUAllocator()->raw_deallocate(data);
  }
  static std::mutex& mutex() {
    static std::mutex* instance = new std::mutex();
    return *instance;
  }
  static std::map<const void*, size_t>& blocks() {
    static auto* instance = new std::map<const void*, size_t>();
    return *instance;
  }
};

struct HPUHooks final : at::HPUHooksInterface {
  explicit HPUHooks(at::HPUHooksArgs) {}
  void init() const override {}
  bool hasHPU() const override {
    return device_count() > 0;
  }
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return device_count() > 0;
  }
  bool hasPrimaryContext(DeviceIndex) const override {
    return used();
  }
  DeviceIndex deviceCount() const override {
    return device_count();
  }
  void setCurrentDevice(DeviceIndex index) const override {
    checked(index);
  }
  DeviceIndex getCurrentDevice() const override {
    return 0;
  }
  DeviceIndex exchangeDevice(DeviceIndex index) const override {
    return checked(index);
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override {
    return checked(index);
  }
  Device getDeviceFromPtr(void*) const override {
    TORCH_CHECK(false, "The simulated HPU's memory is host memory: a pointer does not tell its card.");
  }
  bool isPinnedPtr(const void* pointer) const override {
    return PinnedAllocator::holds(pointer);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    static auto* instance = new PinnedAllocator();
    return instance;
  }
  const at::Generator& getDefaultGenerator(DeviceIndex index) const override {
    return default_generator(checked(index));
  }
  at::Generator getNewGenerator(DeviceIndex index) const override {
    return new_generator(checked(index));
  }
};

C10_REGISTER_GUARD_IMPL(HPU, Guard);

}  // namespace
}  // namespace gaudi3_hpu

namespace at {
using HPUHooks = gaudi3_hpu::HPUHooks;
REGISTER_HPU_HOOKS(HPUHooks);
}  // namespace at
