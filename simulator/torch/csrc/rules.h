// Which rules of simulator/strictness.yml hold, for the C++ part.
#pragma once

#include <string>
#include <unordered_map>

namespace gaudi3_hpu {

// Told once, when the device is loaded: the rules' states come from the environment and the node's own file.
void set_rules(std::unordered_map<std::string, bool> rules);

// A rule that nobody told holds.
bool is_on(const std::string& rule);

}  // namespace gaudi3_hpu
