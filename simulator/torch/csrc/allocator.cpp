#include "allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>

#include "cards.h"
#include "host_memory.h"
#include "runtime.h"

namespace gaudi3_hpu {
namespace {

// Before each block: what it was charged with, and to which card. As long as torch's alignment, which it preserves.
struct alignas(64) Header {
  int64_t bytes;
  c10::DeviceIndex index;  // -1: host memory, charged to no card
};
static_assert(sizeof(Header) == c10::gAlignment, "the header has to keep torch's alignment");

// How far use may grow before the host is asked again what it has left: asking reads files of /proc.
constexpr int64_t kHostStep = 64 << 20;

struct Ledger {
  std::mutex mutex;
  Statistics now{std::numeric_limits<int64_t>::max(), 0, 0, 0, 0, 0, 0};
  bool heeds_host = true;
  int64_t host_checked = 0;  // use up to which the host was found to have room
};

Ledger& ledger() {
  static Ledger* instance = new Ledger();
  return *instance;
}

thread_local c10::DeviceIndex charged = -1;

// The text of a Gaudi node's error, by which programs recognise it.
[[noreturn]] void out_of_memory(int64_t bytes, const std::string& more) {
  TORCH_CHECK(
      false, "[Rank:", rank(), "] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::", bytes, " (",
      bytes >> 20, ")MB", more);
}

void check_host(Ledger& account, int64_t bytes) {
  const int64_t wanted = account.now.in_use + bytes;
  if (!account.heeds_host || wanted <= account.host_checked) {
    return;
  }
  const auto room = host_room(account.now.in_use);
  if (bytes > room) {
    out_of_memory(
        bytes, "\ngaudi3-hpu-simulator: the host that lends the card its memory has " +
                   std::to_string(std::max<int64_t>(0, room) >> 20) + " MiB left.");
  }
  account.host_checked = std::min(wanted + kHostStep, account.now.in_use + room);
}

void charge(c10::DeviceIndex index, int64_t bytes) {
  use(index);
  Ledger& account = ledger();
  std::lock_guard<std::mutex> lock(account.mutex);
  Statistics& now = account.now;
  if (bytes > now.limit - now.in_use) {
    out_of_memory(bytes, "");
  }
  check_host(account, bytes);
  now.in_use += bytes;
  now.max_in_use = std::max(now.max_in_use, now.in_use);
  now.max_allocation = std::max(now.max_allocation, bytes);
  ++now.allocations;
  ++now.active;
  tell_in_use(now.in_use);
}

void discharge(int64_t bytes) {
  Ledger& account = ledger();
  std::lock_guard<std::mutex> lock(account.mutex);
  account.now.in_use -= bytes;
  account.host_checked = std::min(account.host_checked, account.now.in_use + kHostStep);  // others may take it
  ++account.now.frees;
  --account.now.active;
  tell_in_use(account.now.in_use);
}

void report(void* data, int64_t bytes, c10::DeviceIndex index) {
  if (c10::memoryProfilingEnabled()) {
    const auto now = statistics();
    c10::reportMemoryUsageToProfiler(
        data, bytes, now.in_use, now.limit, c10::Device(c10::DeviceType::HPU, index));
  }
}

void free_block(void* data) {
  if (data == nullptr) {
    return;
  }
  auto* header = reinterpret_cast<Header*>(static_cast<char*>(data) - sizeof(Header));
  if (header->index >= 0) {
    discharge(header->bytes);
    report(data, -header->bytes, header->index);
  } else {
    c10::profiledCPUMemoryReporter().Delete(header);
  }
  c10::free_cpu(header);
}

void* allocate_block(size_t bytes, c10::DeviceIndex index) {
  if (index >= 0) {
    charge(index, static_cast<int64_t>(bytes));
  }
  try {
    auto* header = static_cast<Header*>(c10::alloc_cpu(bytes + sizeof(Header)));
    header->bytes = static_cast<int64_t>(bytes);
    header->index = index;
    void* data = header + 1;
    if (index >= 0) {
      report(data, static_cast<int64_t>(bytes), index);
    } else {
      c10::profiledCPUMemoryReporter().New(header, bytes);
    }
    return data;
  } catch (...) {
    if (index >= 0) {
      discharge(static_cast<int64_t>(bytes));
      out_of_memory(static_cast<int64_t>(bytes), "\ngaudi3-hpu-simulator: the host gives no more memory.");
    }
    throw;
  }
}

// Stands for torch's CPU allocator, so that what a CPU kernel allocates for a card is known.
struct ChargingHostAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) {
      return {nullptr, nullptr, &free_block, cpu};
    }
    void* data = allocate_block(bytes, charged);
    return {data, data, &free_block, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_block;
  }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }
};

struct CardAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t bytes) override {
    constexpr c10::DeviceIndex index = 0;
    use(index);
    const c10::Device device(c10::DeviceType::HPU, index);
    if (bytes == 0) {
      return {nullptr, nullptr, &free_block, device};
    }
    void* data = allocate_block(bytes, index);
    return {data, data, &free_block, device};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_block;
  }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }
  bool initialized() override {
    return used();
  }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    checked(index);
    const auto now = statistics();
    c10::CachingDeviceAllocator::DeviceStats stats;
    for (auto* bytes : {&stats.allocated_bytes, &stats.requested_bytes, &stats.active_bytes, &stats.reserved_bytes}) {
      (*bytes)[0].current = now.in_use;
      (*bytes)[0].peak = now.max_in_use;
    }
    for (auto* count : {&stats.allocation, &stats.active}) {
      (*count)[0].current = now.active;
      (*count)[0].allocated = now.allocations;
      (*count)[0].freed = now.frees;
    }
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    checked(index);
    reset_accumulated();
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    checked(index);
    reset_peak();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    checked(index);
    const auto now = statistics();
    return {static_cast<size_t>(now.limit - now.in_use), static_cast<size_t>(now.limit)};
  }
};

}  // namespace

c10::Allocator* device_allocator() {
  static CardAllocator* instance = new CardAllocator();
  return instance;
}

Statistics statistics() {
  std::lock_guard<std::mutex> lock(ledger().mutex);
  return ledger().now;
}

void set_limit(int64_t bytes) {
  TORCH_CHECK(bytes >= 0, "The memory of a card cannot be negative: ", bytes, " bytes.");
  std::lock_guard<std::mutex> lock(ledger().mutex);
  ledger().now.limit = bytes;
}

void heed_host(bool heed) {
  std::lock_guard<std::mutex> lock(ledger().mutex);
  ledger().heeds_host = heed;
}

void reset_peak() {
  std::lock_guard<std::mutex> lock(ledger().mutex);
  ledger().now.max_in_use = ledger().now.in_use;
}

void reset_accumulated() {
  std::lock_guard<std::mutex> lock(ledger().mutex);
  Statistics& now = ledger().now;
  now.allocations = now.frees = now.max_allocation = 0;
}

ChargeTo::ChargeTo(c10::DeviceIndex index) : previous_(charged) {
  charged = index;
}

ChargeTo::~ChargeTo() {
  charged = previous_;
}

void install_allocators() {
  static std::once_flag once;
  std::call_once(once, [] {
    c10::SetAllocator(c10::DeviceType::HPU, device_allocator());
    c10::SetCPUAllocator(new ChargingHostAllocator(), /*priority=*/1);
  });
}

}  // namespace gaudi3_hpu
