// The hook: it runs with the lock of a device held, on any thread, with the GIL or without. So it takes no lock of torch's and
// no GIL, and throws nothing. The one thing it may wait for is said at `Gate`.
#pragma once

#include <stackweave.h>

#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "cuda_versions.hpp"

namespace {

using Tell = decltype(&stackweave_tell);

constexpr int DEVICES = 128;
// A gate that stands here or higher is closed.
constexpr int CLOSED = 2;

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
    if (stands < CLOSED) {
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
        // What was there is still being told, and this comes in between.
        inexact.fetch_add(next == ON && after_patience.load() == OFF ? 1 : 0, std::memory_order_relaxed);
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
    if (stands >= CLOSED) {
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

}  // namespace
