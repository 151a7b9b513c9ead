// What the host can still back: a card's bytes are the host's, and are refused before the host runs out of them.
#pragma once

#include <cstdint>

namespace gaudi3_hpu {

// Bytes that the host has left for a process whose card has so many in use, of which it may not have written all yet.
// A reserve is left to the host; host_memory.py of the trainer has the same one.
int64_t host_room(int64_t in_use);

}  // namespace gaudi3_hpu
