#include "host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace gaudi3_hpu {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
// The host's kernel ends processes before the last page is gone, so one part in 16 stays, but no more than 1 GiB.
constexpr int64_t kReserve = 16;
constexpr int64_t kMostReserve = 1 << 30;

// The number after a word in a file of such lines; -1 where there is none.
int64_t after(const std::string& path, const std::string& word) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream parts(line);
    std::string first;
    int64_t value = 0;
    if (parts >> first >> value && first == word) {
      return value;
    }
  }
  return -1;
}

int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : -1;  // "max" is no number
}

struct Room {
  int64_t whole = kNoLimit;
  int64_t left = kNoLimit;

  void narrow(int64_t other_whole, int64_t other_left) {
    whole = std::min(whole, other_whole);
    left = std::min(left, std::max<int64_t>(0, other_left));
  }
};

// What a control group leaves of a limit: what it does not use, but pages of files can go.
void narrow_to_group(
    Room& room, const std::string& folder, const char* limit, const char* usage, const std::string& prefix) {
  const auto most = number_in(folder + "/" + limit);
  const auto now = number_in(folder + "/" + usage);
  if (most < 0 || now < 0) {
    return;
  }
  const auto stat = folder + "/memory.stat";
  const auto cache = std::max<int64_t>(0, after(stat, prefix + "inactive_file")) +
      std::max<int64_t>(0, after(stat, prefix + "active_file"));
  room.narrow(most, most - std::max<int64_t>(0, now - cache));
}

// The least that this process's groups leave, from its own up to the root that is seen from here.
void narrow_to_groups(Room& room) {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    const auto controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && controllers != "memory") {
      continue;
    }
    const std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::string path = line.substr(second + 1);; path.erase(path.rfind('/'))) {
      if (unified) {
        for (const auto* limit : {"memory.max", "memory.high"}) {
          narrow_to_group(room, root + path, limit, "memory.current", "");
        }
      } else {
        narrow_to_group(room, root + path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_");
      }
      if (path.find('/') == std::string::npos) {
        break;
      }
    }
  }
}

int64_t resident() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0;
  int64_t pages = 0;
  return file >> total >> pages ? pages * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

int64_t host_room(int64_t in_use) {
  static const int64_t before = resident();  // libraries and what was there before the first check
  Room room;
  const auto whole = after("/proc/meminfo", "MemTotal:");
  const auto free = after("/proc/meminfo", "MemAvailable:");
  if (whole >= 0 && free >= 0) {
    room.narrow(whole * 1024, free * 1024);
  }
  narrow_to_groups(room);
  if (room.left == kNoLimit) {
    return kNoLimit;
  }
  const auto unwritten = in_use - std::max<int64_t>(0, resident() - before);
  return room.left - std::min(kMostReserve, room.whole / kReserve) - std::max<int64_t>(0, unwritten);
}

}  // namespace gaudi3_hpu
