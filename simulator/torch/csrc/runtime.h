// The one card of this process: its index, its first use, and what must be there before it computes.
#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>

namespace gaudi3_hpu {

// What a process has to keep to.
struct Demands {
  bool one_index = true;
  bool kernel_path = false;
};

void set_demands(Demands demands);

// 1 where there is any card: a process has no more.
c10::DeviceIndex device_count() noexcept;

// Throws for any index but 0 and -1, which stands for the current card; returns 0.
c10::DeviceIndex checked(c10::DeviceIndex index);

// The card meant by an optional device of an operation.
c10::Device resolve(std::optional<c10::Device> device);

// To be called before a card is used: takes it; the first use in a process says on stderr what it is.
void use(c10::DeviceIndex index);
bool used() noexcept;

// To be called before a card computes: its graph compiler needs its kernels.
void check_kernels();

// "0" unless a launcher set RANK.
std::string rank();

}  // namespace gaudi3_hpu
