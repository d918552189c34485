// Tells the recorder of every event of PyTorch's CUDA caching allocator. Built at first use by _cuda_build.py, against the
// torch and the compiler that are there, and loaded by ctypes.
//
// The hook runs with the lock of a device held, on any thread, with the GIL or without. So it takes no lock and no GIL,
// throws nothing, and allocates nothing. The one thing it may wait for is said at `Gate`.

#include <c10/cuda/CUDACachingAllocator.h>
#include <stackweave.h>

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

namespace allocators = c10::cuda::CUDACachingAllocator;
using allocators::CUDAAllocator;
using allocators::SnapshotInfo;
using allocators::TraceEntry;
using Tell = decltype(&stackweave_tell);

constexpr int DEVICES = 128;
constexpr int GOES_ON = 2;

// Where a device stands. Its hooks run one at a time, under its lock, and so does its part of a snapshot: torch calls the hook
// with SNAPSHOT at the very state that it gives. That event is where a recording of the device begins, or ends, exactly.
enum Gate : int {
  // Nothing is recorded.
  OFF = 0,
  ON = 1,
  // A snapshot was taken of the device, and is still to be told. Hooks wait, so that nothing overtakes it: not for long,
  // since the thread that takes the snapshot may now want the lock of a further device, and whoever holds that may want the
  // lock that the waiting hook holds. A hook that loses patience undoes the snapshot of its device.
  TAKEN = 2,
  // It is being told. Hooks wait for that: the teller needs no lock of a device and no GIL, but room in the recording.
  TOLD = 3,
};

// Every wait ends, so that no deadlock lasts.
constexpr auto PATIENCE = std::chrono::milliseconds(250);
constexpr auto LONG_PATIENCE = std::chrono::seconds(5);
constexpr int ATTEMPTS = 5;

std::atomic<Tell> tell_it{nullptr};
// 0: the hook does nothing. One load and a branch.
std::atomic<int> is_on{0};
std::atomic<int> gates[DEVICES];
// What becomes of a device whose hook has lost patience.
std::atomic<int> after_patience{OFF};
// Each recording has a number: what a thread knows of an older one is void.
std::atomic<uint64_t> recording{0};
std::atomic<bool> is_child{false};
std::atomic<uint64_t> waits{0};
std::atomic<uint64_t> lost_patience{0};
std::atomic<uint64_t> inexact{0};

// One snapshot at a time. Timed, so that whoever comes with a lock of a device held can't wait for ever.
std::timed_mutex control;
std::vector<CUDAAllocator *> attached;

// What a snapshot that is taken by this thread is for.
enum class Purpose : int { NONE, BEGIN, STATE, END };

struct Thread {
  Purpose purpose = Purpose::NONE;
  // Devices whose SNAPSHOT was seen.
  int seen = 0;
  uint64_t recording = 0;
  // Of the text that was told last; 0: none.
  uint64_t tag = 0;
};

thread_local Thread thread;

template <class T, class = void>
struct Annotate {
  static constexpr int action = -1;
};
template <class T>
struct Annotate<T, std::void_t<decltype(T::ANNOTATE)>> {
  static constexpr int action = static_cast<int>(T::ANNOTATE);
};

template <class Pair>
uint64_t pool_number(const Pair &pool) {
  return pool.first != 0 ? (uint64_t{1} << 63) | pool.first : pool.second;
}
template <class T>
auto pool_of(const T &entry, int) -> decltype(pool_number(entry.mempool_)) {
  return pool_number(entry.mempool_);
}
template <class T>
uint64_t pool_of(const T &, long) {
  return 0;
}

template <class T>
auto text_of(const T &entry, int) -> decltype(entry.user_metadata_.c_str()) {
  return entry.user_metadata_.empty() ? nullptr : entry.user_metadata_.c_str();
}
template <class T>
const char *text_of(const T &, long) {
  return nullptr;
}

template <class T>
auto snapshot_of(T *allocator, int) -> decltype(allocator->snapshot({0, 0}, false)) {
  return allocator->snapshot({0, 0}, false);
}
template <class T>
auto snapshot_of(T *allocator, long) -> decltype(allocator->snapshot()) {
  return allocator->snapshot();
}

template <class Number>
uint64_t stream_number(Number stream) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(stream));
}

void tell(enum stackweave_event what, const stackweave_block &block, const void *place) noexcept {
  Tell function = tell_it.load(std::memory_order_acquire);
  if (function != nullptr) {
    function(what, &block, place);
  }
}

// Torch's text for what this thread does is our tag of it.
void follow_tag(const char *text) noexcept {
  uint64_t number = recording.load(std::memory_order_relaxed);
  if (thread.recording != number) {
    thread.recording = number;
    thread.tag = 0;
  }
  uint64_t hash = 0;
  if (text != nullptr) {
    hash = 0xcbf29ce484222325;
    for (const char *at = text; *at != 0; ++at) {
      hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100000001b3;
    }
    hash |= 1;
  }
  if (hash != thread.tag) {
    thread.tag = hash;
    stackweave_block block = STACKWEAVE_BLOCK_INIT;
    block.text = text;
    tell(STACKWEAVE_EVENT_TAG, block, nullptr);
  }
}

// Waits while the gate is closed, and gives where it stands then.
int wait_at(std::atomic<int> &gate) noexcept {
  waits.fetch_add(1, std::memory_order_relaxed);
  const auto began = std::chrono::steady_clock::now();
  for (int round = 0;; ++round) {
    int stands = gate.load(std::memory_order_acquire);
    if (stands < GOES_ON) {
      return stands;
    }
    if (round < 100) {
      std::this_thread::yield();
      continue;
    }
    const auto waited = std::chrono::steady_clock::now() - began;
    if (waited > (stands == TAKEN ? std::chrono::nanoseconds(PATIENCE) : std::chrono::nanoseconds(LONG_PATIENCE))) {
      const int next = stands == TAKEN ? after_patience.load(std::memory_order_acquire) : ON;
      if (gate.compare_exchange_strong(stands, next)) {
        lost_patience.fetch_add(1, std::memory_order_relaxed);
        return next;
      }
      continue;
    }
    timespec moment{0, 20000};
    nanosleep(&moment, nullptr);
  }
}

// The hook of a device. Torch copies it for each, and so a copy can know which one it is at: a SNAPSHOT does not say.
struct Tracker {
  int device = -1;

  // Part of the function that torch calls, whose caller is then the innermost frame of a stack.
  __attribute__((always_inline)) void operator()(const TraceEntry &entry) noexcept {
    if (__builtin_expect(is_on.load(std::memory_order_relaxed) != 0, 0)) {
      record(entry, __builtin_frame_address(0));
    }
  }

  __attribute__((noinline)) void record(const TraceEntry &entry, const void *place) noexcept {
    const bool is_snapshot = entry.action_ == TraceEntry::SNAPSHOT;
    if (thread.purpose != Purpose::NONE) {
      if (is_snapshot) {
        snapshot_taken();
      }
      return;
    }
    const int64_t where = is_snapshot && device >= 0 ? device : entry.device_;
    if (where < 0 || where >= DEVICES) {
      return;
    }
    int stands = gates[where].load(std::memory_order_acquire);
    if (stands >= GOES_ON) {
      stands = wait_at(gates[where]);
    }
    if (stands != ON) {
      return;
    }
    enum stackweave_event what;
    stackweave_block block = STACKWEAVE_BLOCK_INIT;
    switch (static_cast<int>(entry.action_)) {
      case TraceEntry::ALLOC: what = STACKWEAVE_EVENT_ALLOC; break;
      case TraceEntry::FREE_REQUESTED: what = STACKWEAVE_EVENT_FREE_REQUESTED; break;
      case TraceEntry::FREE_COMPLETED: what = STACKWEAVE_EVENT_FREE_COMPLETED; break;
      case TraceEntry::SEGMENT_ALLOC: what = STACKWEAVE_EVENT_SEGMENT; break;
      case TraceEntry::SEGMENT_FREE: what = STACKWEAVE_EVENT_SEGMENT_FREE; break;
      case TraceEntry::SEGMENT_MAP: what = STACKWEAVE_EVENT_SEGMENT_MAP; break;
      case TraceEntry::SEGMENT_UNMAP: what = STACKWEAVE_EVENT_SEGMENT_UNMAP; break;
      case TraceEntry::SNAPSHOT: what = STACKWEAVE_EVENT_SNAPSHOT; break;
      case TraceEntry::OOM: what = STACKWEAVE_EVENT_OUT_OF_MEMORY; break;
      case Annotate<TraceEntry>::action: what = STACKWEAVE_EVENT_ANNOTATE; break;
      default: return;
    }
    const char *text = text_of(entry, 0);
    if (what == STACKWEAVE_EVENT_ANNOTATE) {
      block.text = text;
    } else {
      follow_tag(text);
    }
    block.address = static_cast<uint64_t>(entry.addr_);
    block.bytes = static_cast<uint64_t>(entry.size_);
    block.device = where;
    block.stream = stream_number(entry.stream_);
    block.pool = pool_of(entry, 0);
    tell(what, block, place);
  }

  // The calling thread takes a snapshot for us, device by device, and is at this one.
  void snapshot_taken() noexcept {
    device = thread.seen++;
    if (device >= DEVICES) {
      return;
    }
    std::atomic<int> &gate = gates[device];
    int stands = gate.load(std::memory_order_acquire);
    if (thread.purpose == Purpose::BEGIN && stands == OFF) {
      gate.store(TAKEN, std::memory_order_release);
    } else if (thread.purpose == Purpose::STATE && stands == ON) {
      gate.store(TAKEN, std::memory_order_release);
    } else if (thread.purpose == Purpose::END) {
      gate.store(OFF, std::memory_order_release);
    }
  }
};

int failed(const char *why, char *error, size_t length) noexcept {
  int end = 0;
  while (why[end] != 0 && why[end] != '\n') {
    ++end;
  }
  snprintf(error, length, "%.*s", end, why);
  return 1;
}

// As torch says it, as a number of ours. Never throws.
template <class Do>
int guarded(char *error, size_t length, Do &&work) noexcept {
  if (is_child.load()) {
    return failed("this process was forked from one that records CUDA's memory", error, length);
  }
  try {
    std::unique_lock<std::timed_mutex> held(control, std::defer_lock);
    if (!held.try_lock_for(std::chrono::seconds(10))) {
      return failed("another thread has been asking the allocator for ten seconds", error, length);
    }
    return work();
  } catch (const std::exception &thrown) {
    return failed(thrown.what(), error, length);
  } catch (...) {
    return failed("torch has thrown something that is no std::exception", error, length);
  }
}

SnapshotInfo take(Purpose purpose) {
  struct Asking {
    explicit Asking(Purpose purpose) {
      thread.purpose = purpose;
      thread.seen = 0;
    }
    ~Asking() { thread.purpose = Purpose::NONE; }
  } asking(purpose);
  return snapshot_of(allocators::get(), 0);
}

template <class Segment>
stackweave_block block_of(const Segment &segment) {
  stackweave_block block = STACKWEAVE_BLOCK_INIT;
  block.address = static_cast<uint64_t>(segment.address);
  block.bytes = static_cast<uint64_t>(segment.total_size);
  block.device = segment.device;
  block.stream = stream_number(segment.stream);
  block.pool = pool_number(segment.owner_private_pool_id);
  return block;
}

// Blocks that were freed, and wait for another stream, are nobody's any more: they are not told.
template <class Segment>
void tell_present(const Segment &segment) {
  stackweave_block block = block_of(segment);
  tell(STACKWEAVE_EVENT_SEGMENT_PRESENT, block, nullptr);
  for (const auto &part : segment.blocks) {
    if (part.allocated) {
      block.bytes = static_cast<uint64_t>(part.requested_size);
      tell(STACKWEAVE_EVENT_PRESENT, block, nullptr);
    }
    block.address += static_cast<uint64_t>(part.size);
  }
}

template <class Segment>
void tell_state(const Segment &segment) {
  stackweave_block block = block_of(segment);
  block.flags = (segment.is_large ? 1 : 0) | (segment.is_expandable ? 2 : 0);
  tell(STACKWEAVE_EVENT_SEGMENT_STATE, block, nullptr);
  for (const auto &part : segment.blocks) {
    block.bytes = static_cast<uint64_t>(part.size);
    block.asked = static_cast<uint64_t>(part.requested_size);
    block.flags = (part.allocated ? 1 : 0) | (part.active ? 2 : 0);
    tell(STACKWEAVE_EVENT_BLOCK_STATE, block, nullptr);
    block.address += static_cast<uint64_t>(part.size);
  }
}

void close_all() noexcept {
  is_on.store(0);
  for (auto &gate : gates) {
    gate.store(OFF);
  }
}

void reopen_all() noexcept {
  for (auto &gate : gates) {
    int stands = gate.load();
    if (stands == TAKEN || stands == TOLD) {
      gate.store(ON);
    }
  }
}

// Tells of what is there on devices that do not record yet, and has them record.
void begin_at(const SnapshotInfo &taken, int devices, bool at_any_cost) {
  bool begins[DEVICES] = {};
  for (int device = 0; device < devices; ++device) {
    int stands = TAKEN;
    begins[device] = gates[device].compare_exchange_strong(stands, TOLD);
    if (!begins[device] && stands == OFF && at_any_cost) {
      begins[device] = gates[device].compare_exchange_strong(stands, TOLD);
      inexact.fetch_add(1);
    }
  }
  for (const auto &segment : taken.segments) {
    if (segment.device >= 0 && segment.device < devices && begins[segment.device]) {
      tell_present(segment);
    }
  }
  for (int device = 0; device < devices; ++device) {
    if (begins[device]) {
      gates[device].store(ON, std::memory_order_release);
    }
  }
}

void tell_all(const SnapshotInfo &taken) {
  for (auto &gate : gates) {
    int stands = TAKEN;
    gate.compare_exchange_strong(stands, TOLD);
  }
  for (const auto &segment : taken.segments) {
    tell_state(segment);
  }
}

struct Account {
  explicit Account(uint64_t reason) {
    stackweave_block block = STACKWEAVE_BLOCK_INIT;
    block.flags = reason;
    tell(STACKWEAVE_EVENT_STATE_BEGIN, block, nullptr);
  }
  void end() {
    stackweave_block block = STACKWEAVE_BLOCK_INIT;
    tell(STACKWEAVE_EVENT_STATE_END, block, nullptr);
  }
};

void in_child() {
  is_child.store(true);
  close_all();
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// What the functions below are: raised when one of them changes.
EXPORTED int stackweave_cuda_version() { return 1; }

// Whether there are devices to record.
EXPORTED int stackweave_cuda_is_ready() {
  try {
    return allocators::get()->initialized() ? 1 : 0;
  } catch (...) {
    return 0;
  }
}

// Has torch call the hook, which can't be undone: once for each allocator.
EXPORTED int stackweave_cuda_attach(void *function, char *error, size_t length) {
  return guarded(error, length, [&] {
    tell_it.store(reinterpret_cast<Tell>(function), std::memory_order_release);
    CUDAAllocator *allocator = allocators::get();
    for (CUDAAllocator *known : attached) {
      if (known == allocator) {
        return 0;
      }
    }
    if (!allocator->initialized()) {
      return failed("the allocator is not initialised", error, length);
    }
    attached.reserve(attached.size() + 1);
    if (attached.empty()) {
      pthread_atfork(nullptr, nullptr, in_child);
    }
    allocator->attachAllocatorTraceTracker(Tracker{});
    attached.push_back(allocator);
    return 0;
  });
}

// Records from here on, and tells what is there already.
EXPORTED int stackweave_cuda_begin(char *error, size_t length) {
  int status = guarded(error, length, [&] {
    close_all();
    after_patience.store(OFF);
    recording.fetch_add(1);
    is_on.store(1);
    for (int attempt = 1;; ++attempt) {
      SnapshotInfo taken = take(Purpose::BEGIN);
      const int devices = thread.seen < DEVICES ? thread.seen : DEVICES;
      begin_at(taken, devices, attempt == ATTEMPTS);
      bool is_whole = true;
      for (int device = 0; device < devices; ++device) {
        is_whole = is_whole && gates[device].load() == ON;
      }
      if (is_whole || attempt == ATTEMPTS) {
        return 0;
      }
    }
  });
  if (status != 0) {
    close_all();
  }
  return status;
}

// The allocator's own account of all segments and blocks, of this moment.
EXPORTED int stackweave_cuda_state(uint64_t reason, char *error, size_t length) {
  int status = guarded(error, length, [&] {
    if (is_on.load() == 0) {
      return failed("nothing is recorded", error, length);
    }
    after_patience.store(ON);
    Account account(reason);
    tell_all(take(Purpose::STATE));
    account.end();
    reopen_all();
    return 0;
  });
  if (status != 0) {
    reopen_all();
  }
  return status;
}

// Records no more, and ends with the account of that moment, if it is asked for.
EXPORTED int stackweave_cuda_end(int with_state, char *error, size_t length) {
  int status = 0;
  if (with_state != 0) {
    status = guarded(error, length, [&] {
      if (is_on.load() == 0) {
        return 0;
      }
      Account account(0);
      tell_all(take(Purpose::END));
      account.end();
      return 0;
    });
  }
  close_all();
  return status;
}

// Hooks that waited, that lost patience, and devices that began inexactly because of it.
EXPORTED void stackweave_cuda_counts(uint64_t *counts) {
  counts[0] = waits.load();
  counts[1] = lost_patience.load();
  counts[2] = inexact.load();
}
