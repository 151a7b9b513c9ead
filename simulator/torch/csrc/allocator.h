// Memory of the simulated cards: host memory, counted per card against a limit.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace gaudi3_hpu {

// All in bytes or counts.
struct Statistics {
  int64_t limit;
  int64_t in_use;
  int64_t max_in_use;
  int64_t allocations;
  int64_t frees;
  int64_t active;
  int64_t max_allocation;
};

c10::Allocator* device_allocator();

Statistics statistics(c10::DeviceIndex index);
void set_limit(c10::DeviceIndex index, int64_t bytes);
void reset_peak(c10::DeviceIndex index);
void reset_accumulated(c10::DeviceIndex index);

// While it lives, what CPU kernels allocate on this thread is charged to the card they work for.
class ChargeTo {
 public:
  explicit ChargeTo(c10::DeviceIndex index);
  ~ChargeTo();
  ChargeTo(const ChargeTo&) = delete;
  ChargeTo& operator=(const ChargeTo&) = delete;

 private:
  c10::DeviceIndex previous_;
};

// Puts the charging allocator in the place of torch's CPU allocator.
void install_allocators();

}  // namespace gaudi3_hpu
