// Memory of the card: host memory, counted against the limits of the card and of the host.
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

Statistics statistics();
void set_limit(int64_t bytes);
void heed_host(bool heed);
void reset_peak();
void reset_accumulated();

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
