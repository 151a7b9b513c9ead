#include "cards.h"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <mutex>
#include <optional>

namespace gaudi3_hpu {
namespace {

// Numbers and names of Synapse's states, as public logs show them.
enum Status { kSuccess = 0, kNotFound = 8, kAlreadyAcquired = 20, kFailed = 26 };

const char* name_of(Status status) {
  switch (status) {
    case kNotFound:
      return "Device not found";
    case kAlreadyAcquired:
      return "Device already acquired";
    default:
      return "Generic failure";
  }
}

struct Attempt {
  Status status;
  std::string why;
};

constexpr size_t kFileBytes = 64;
enum Field { kFormat = 0, kPid = 1, kInUse = 2, kHighest = 3, kResetEnd = 4 };

struct State {
  Machine machine;
  std::mutex mutex;
  std::atomic<bool> acquired{false};
  std::atomic<volatile uint64_t*> fields{nullptr};  // of the held card's file
  pid_t owner = 0;                                  // the process that acquired; a forked child is another one
};

// Never destroyed: tensors are freed after static destructors have run.
State& state() {
  static State* instance = new State();
  return *instance;
}

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

std::string describe(const Card& card) {
  return "card " + std::to_string(card.index) + " (module " + std::to_string(card.module) + ")";
}

const char* setting(const char* name) {
  return state().machine.modules_choose ? std::getenv(name) : nullptr;
}

std::optional<long> number(const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  return text.empty() || *end != '\0' || value < 0 ? std::nullopt : std::optional<long>(value);
}

// The cards of HABANA_VISIBLE_MODULES in the machine's order; all of them where it is unset or empty.
std::vector<const Card*> visible() {
  const char* text = setting("HABANA_VISIBLE_MODULES");
  std::vector<const Card*> found;
  for (const auto& card : state().machine.cards) {
    bool listed = text == nullptr || *text == '\0';
    for (const char* at = text; !listed && at != nullptr; at = std::strchr(at, ',')) {
      at += *at == ',' ? 1 : 0;
      listed = number(std::string(at, std::strcspn(at, ","))) == std::optional<long>(card.module);
    }
    if (listed) {
      found.push_back(&card);
    }
  }
  return found;
}

size_t world_size() {
  const char* text = std::getenv("WORLD_SIZE");
  text = text != nullptr ? text : std::getenv("OMPI_COMM_WORLD_SIZE");
  return text == nullptr ? 1 : static_cast<size_t>(number(text).value_or(1));
}

// The folder of card files outside a node: only this user's, so that nobody else's lock or text can be in it.
void prepare_folder(const std::string& folder) {
  (void)mkdir(folder.c_str(), 0700);
  struct stat seen{};
  TORCH_CHECK(
      lstat(folder.c_str(), &seen) == 0, "The folder of card files, ", folder, ", cannot be made: ",
      std::strerror(errno), ". Name another in GAUDI3_HPU_SIMULATOR_CARDS.");
  TORCH_CHECK(
      S_ISDIR(seen.st_mode) && seen.st_uid == geteuid() && (seen.st_mode & 077) == 0, folder,
      " is not a folder of this user's alone (mode 0700), so its card files cannot be trusted: remove it, or name "
      "another in GAUDI3_HPU_SIMULATOR_CARDS.");
}

struct flock whole_file(short type) {
  struct flock range{};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  return range;
}

// A descriptor that is closed unless it is kept.
struct Descriptor {
  explicit Descriptor(int number) : number(number) {}
  ~Descriptor() {
    if (number >= 0) {
      close(number);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void keep() {
    number = -1;
  }
  int number;
};

Attempt failed(const Card& card, const std::string& file) {
  return {kFailed, file + " of " + describe(card) + " cannot be opened: " + std::strerror(errno)};
}

// Refuses a card that is resetting, and starts the reset that an unclean death of its holder asks for.
std::optional<Attempt> resetting(const Card& card, volatile uint64_t* fields) {
  const auto& machine = state().machine;
  const auto end = static_cast<int64_t>(fields[kResetEnd]);
  const bool unclean = fields[kPid] != 0 && machine.resets && end == 0;
  if (unclean) {
    fields[kResetEnd] = static_cast<uint64_t>(now_ns() + machine.reset_seconds * 1'000'000'000);
  } else if (end <= now_ns()) {
    return std::nullopt;
  }
  return Attempt{kFailed, describe(card) + " resets, because its last holder died"};
}

Attempt take(const Card& card) {
  const auto& machine = state().machine;
  if (machine.operational_only && !card.status_file.empty()) {
    std::ifstream file(card.status_file);
    std::string status;
    std::getline(file, status);
    if (status != "Operational") {
      return {kFailed, "the status of " + describe(card) + " is '" + status + "'"};
    }
  }
  Descriptor device(card.device_file.empty() ? -1 : open(card.device_file.c_str(), O_RDWR | O_CLOEXEC));
  if (!card.device_file.empty() && device.number < 0) {
    return failed(card, card.device_file);
  }
  if (!machine.one_holder) {
    device.keep();
    return {kSuccess, ""};
  }
  const int creation = machine.folder.empty() ? 0 : O_CREAT;
  Descriptor file(open(card.file.c_str(), O_RDWR | O_CLOEXEC | creation, 0600));
  if (file.number < 0) {
    return failed(card, card.file);
  }
  auto range = whole_file(F_WRLCK);
  if (fcntl(file.number, F_SETLK, &range) != 0) {
    fcntl(file.number, F_GETLK, &range);
    return {kAlreadyAcquired, describe(card) + " is held by process " + std::to_string(range.l_pid)};
  }
  struct stat seen{};
  if (fstat(file.number, &seen) != 0 ||
      (seen.st_size < static_cast<off_t>(kFileBytes) && ftruncate(file.number, kFileBytes) != 0)) {
    return failed(card, card.file);
  }
  void* mapped = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0);
  if (mapped == MAP_FAILED) {
    return failed(card, card.file);
  }
  auto* fields = static_cast<volatile uint64_t*>(mapped);
  if (auto refused = resetting(card, fields)) {
    munmap(mapped, kFileBytes);
    return *refused;
  }
  fields[kFormat] = 1;
  fields[kInUse] = fields[kHighest] = fields[kResetEnd] = 0;
  fields[kPid] = static_cast<uint64_t>(getpid());
  state().fields = fields;
  // Both stay open to the end of the process: the node's tools see who uses the card, and its driver is not unloaded.
  file.keep();
  device.keep();
  return {kSuccess, ""};
}

[[noreturn]] void refuse(const Attempt& attempt, const char* more = "") {
  TORCH_CHECK(
      false, "synStatus=", static_cast<int>(attempt.status), " [", name_of(attempt.status), "] Device acquire failed.",
      more, "\ngaudi3-hpu-simulator: ", attempt.why, ".");
}

// As the bridge chooses (gaudi-pytorch-bridge 1.19, backend/synapse_helpers/device.cpp): the module of HLS_MODULE_ID,
// and any free card where that is unset, or cannot be had by a job that may use every card of its one machine.
void choose() {
  const auto& machine = state().machine;
  if (!machine.folder.empty() && machine.one_holder && !machine.cards.empty()) {
    prepare_folder(machine.folder);
  }
  const auto cards = visible();
  if (const char* text = setting("HLS_MODULE_ID")) {
    const auto module = number(text);
    TORCH_CHECK(module.has_value(), "HLS_MODULE_ID is '", text, "', but it has to be the number of a module.");
    Attempt attempt{kNotFound, "no card here has the module id " + std::string(text)};
    for (const auto* card : cards) {
      if (card->module == *module) {
        attempt = take(*card);
      }
    }
    if (attempt.status == kSuccess) {
      return;
    }
    if (setting("HABANA_VISIBLE_MODULES") != nullptr || cards.size() < world_size()) {
      refuse(attempt);
    }
  }
  if (cards.empty()) {
    const auto why = machine.cards.empty() ? machine.absent : "HABANA_VISIBLE_MODULES lists no module of this machine";
    refuse({kNotFound, "There is no HPU here: " + why}, " No devices found.");
  }
  Attempt last{kNotFound, ""};
  for (const auto* card : cards) {
    const auto attempt = take(*card);
    if (attempt.status == kSuccess) {
      return;
    }
    if (last.status != kAlreadyAcquired) {
      last = attempt;
    }
  }
  refuse(last);
}

}  // namespace

// A holder that ends in order says so; its lock goes with the process.
void release() {
  if (state().owner != getpid()) {
    return;
  }
  if (auto* fields = state().fields.exchange(nullptr)) {
    fields[kInUse] = 0;
    fields[kPid] = 0;
  }
}

namespace {

// A forked child has its parent's tensors, but not its card: locks do not pass on.
void leave_to_parent() {
  state().acquired = false;
  state().fields = nullptr;
}

}  // namespace

void set_machine(Machine machine) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().machine = std::move(machine);
}

int visible_cards() {
  return static_cast<int>(visible().size());
}

void acquire() {
  std::lock_guard<std::mutex> lock(state().mutex);
  if (state().acquired) {
    return;
  }
  if (state().owner != 0) {
    refuse({kAlreadyAcquired, "the card is that of process " + std::to_string(state().owner) +
                                  ", from which this one was forked; start processes with spawn instead"});
  }
  choose();
  state().owner = getpid();
  std::atexit(&release);
  pthread_atfork(nullptr, nullptr, &leave_to_parent);
  std::fputs(
      "gaudi3-hpu-simulator: 'hpu' is simulated on this machine's CPU; nothing it takes in time is a Gaudi's.\n",
      stderr);
  state().acquired = true;
}

bool acquired() noexcept {
  return state().acquired.load(std::memory_order_acquire);
}

void tell_in_use(int64_t bytes) noexcept {
  if (auto* fields = state().fields.load(std::memory_order_relaxed)) {
    const auto now = static_cast<uint64_t>(bytes);
    fields[kInUse] = now;
    if (now > fields[kHighest]) {
      fields[kHighest] = now;
    }
  }
}

}  // namespace gaudi3_hpu
