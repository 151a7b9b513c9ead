// The simulated cards of this process: how many there are, which one a thread uses, and the word that they are simulated.
#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <vector>

namespace gaudi3_hpu {

// A host has 8 cards; more only make sense in tests.
constexpr int kMaxDevices = 64;

// Sets the number of cards, and the device files to hold open while a card is in use (none outside a simulated node).
// `absent` says why there is no card; it is shown to whoever asks for one.
void configure(int count, std::vector<std::string> device_files, std::string absent);

c10::DeviceIndex device_count() noexcept;
c10::DeviceIndex current_device() noexcept;

// Returns the previous index; -1 changes nothing. Throws when there is no such card.
c10::DeviceIndex exchange_device(c10::DeviceIndex index);
void set_device_unchecked(c10::DeviceIndex index) noexcept;

// The card meant by an optional device of an operation: hpu without an index is the current one.
c10::Device resolve(std::optional<c10::Device> device);

// To be called before a card is used: checks that it exists; the first use in a process says on stderr what it is.
void use(c10::DeviceIndex index);
bool used() noexcept;

// "0" unless a launcher set RANK.
std::string rank();

}  // namespace gaudi3_hpu
