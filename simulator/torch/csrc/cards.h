// The machine's cards, of which a process holds one: who holds which, and the file that tells others of it.
//
// Layout of a card file, 64 bytes, little-endian 64-bit numbers: [0] 1, the format; [8] process of the holder, 0 when it
// released the card in order; [16] bytes of card memory in use; [24] most bytes in use; [32] end of the reset after a
// holder's unclean death, in ns of CLOCK_BOOTTIME, 0 for none. The holder has an exclusive record lock on the whole file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gaudi3_hpu {

struct Card {
  int index;
  int module;
  std::string file;
  std::string device_file;  // held open with the card; empty outside a node
  std::string status_file;  // empty outside a node
};

struct Machine {
  std::vector<Card> cards;
  std::string absent;  // why there is no card
  std::string folder;  // of card files that a process makes itself; empty on a node, whose driver makes them
  bool one_holder = true;
  bool modules_choose = true;
  bool operational_only = true;
  bool resets = false;
  int64_t reset_seconds = 0;
};

void set_machine(Machine machine);

// How many cards this process may choose from: those of HABANA_VISIBLE_MODULES, where that is set.
int visible_cards();

// Takes a card for this process, to its end; throws what Habana's bridge throws where none can be had.
void acquire();
bool acquired() noexcept;

// Says in the card file that the holder ends in order. Habana's package calls its own from Python's atexit.
void release();

// Tells the card file how many bytes are in use.
void tell_in_use(int64_t bytes) noexcept;

}  // namespace gaudi3_hpu
