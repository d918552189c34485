// The hook that PyTorch calls for each event of its CUDA caching allocator. It runs with the lock of a device held, on any
// thread, with or without the GIL. So it takes neither a lock of torch nor the GIL, and does not throw. `DeviceState` describes
// the only thing that it may wait for.
#pragma once

#include <stackweave.h>

#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "cuda_versions.hpp"

namespace {

using RecordFunction = decltype(&stackweave_record_host_event);

constexpr int MAX_DEVICES = 128;
// In this state and the higher ones, hooks wait.
constexpr int FIRST_WAITING_STATE = 2;

// The state of a device's recording. The hooks of a device run one at a time, under its lock, and so does its part of a
// snapshot: torch calls the hook with SNAPSHOT at exactly the state that the snapshot has. So a recording of the device can begin
// or end exactly at that event.
enum DeviceState : int {
  // Nothing is recorded.
  OFF = 0,
  RECORDING = 1,
  // A snapshot of the device was taken, but not yet recorded. Hooks wait, so that their events come after it. They wait only
  // briefly, because the thread that takes the snapshot may wait for the lock of another device, whose owner may wait for the
  // lock that the waiting hook holds. A hook whose wait times out discards the snapshot of its device.
  SNAPSHOT_TAKEN = 2,
  // The snapshot is being recorded. Hooks wait until that is done: it needs no lock of a device and no GIL, only space in the
  // recording.
  SNAPSHOT_RECORDING = 3,
};

// Each wait has a timeout, so that no deadlock lasts.
constexpr auto SHORT_TIMEOUT = std::chrono::milliseconds(250);
constexpr auto LONG_TIMEOUT = std::chrono::seconds(5);

std::atomic<RecordFunction> record_function{nullptr};
// While this is 0, the hook only loads it and returns.
std::atomic<int> is_on{0};
std::atomic<int> device_states[MAX_DEVICES];
// The state of a device after a wait for its snapshot has timed out.
std::atomic<int> state_after_timeout{OFF};
// The number of the recording. The tag that a thread remembers from an older recording is invalid.
std::atomic<uint64_t> recording_number{0};
std::atomic<bool> is_child{false};
std::atomic<uint64_t> waits{0};
std::atomic<uint64_t> timeouts{0};
std::atomic<uint64_t> inexact_starts{0};

// The reason why this thread takes a snapshot.
enum class SnapshotPurpose : int { NONE, BEGIN, STATE, END };

struct ThreadState {
  SnapshotPurpose purpose = SnapshotPurpose::NONE;
  // The number of devices whose SNAPSHOT event has come.
  int devices_seen = 0;
  uint64_t recording_number = 0;
  // The hash of the text that was recorded last as a tag; 0 if there is none.
  uint64_t tag = 0;
};

thread_local ThreadState thread_state;

void record_event(enum stackweave_host_event_kind kind, const stackweave_host_block &block,
                  const void *stack_address) noexcept {
  RecordFunction function = record_function.load(std::memory_order_acquire);
  if (function != nullptr) {
    function(kind, &block, stack_address);
  }
}

// Records torch's description of what this thread does as the thread's tag, if it has changed.
void record_tag(const char *text) noexcept {
  uint64_t number = recording_number.load(std::memory_order_relaxed);
  if (thread_state.recording_number != number) {
    thread_state.recording_number = number;
    thread_state.tag = 0;
  }
  uint64_t hash = 0;
  if (text != nullptr) {
    hash = 0xcbf29ce484222325;
    for (const char *at = text; *at != 0; ++at) {
      hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100000001b3;
    }
    hash |= 1;
  }
  if (hash != thread_state.tag) {
    thread_state.tag = hash;
    stackweave_host_block block = STACKWEAVE_HOST_BLOCK_INIT;
    block.text = text;
    record_event(STACKWEAVE_HOST_TAG, block, nullptr);
  }
}

// Waits while a snapshot of the device is taken and recorded. Returns the state after that.
int wait_for_snapshot(std::atomic<int> &device_state) noexcept {
  waits.fetch_add(1, std::memory_order_relaxed);
  const auto began = std::chrono::steady_clock::now();
  for (int round = 0;; ++round) {
    int state = device_state.load(std::memory_order_acquire);
    if (state < FIRST_WAITING_STATE) {
      return state;
    }
    if (round < 100) {
      std::this_thread::yield();
      continue;
    }
    const auto waited = std::chrono::steady_clock::now() - began;
    const bool is_taken = state == SNAPSHOT_TAKEN;
    if (waited > (is_taken ? std::chrono::nanoseconds(SHORT_TIMEOUT) : std::chrono::nanoseconds(LONG_TIMEOUT))) {
      const int next = is_taken ? state_after_timeout.load(std::memory_order_acquire) : RECORDING;
      if (device_state.compare_exchange_strong(state, next)) {
        timeouts.fetch_add(1, std::memory_order_relaxed);
        // The blocks that were present are still being recorded, and this hook's event comes between them.
        inexact_starts.fetch_add(next == RECORDING && state_after_timeout.load() == OFF ? 1 : 0, std::memory_order_relaxed);
        return next;
      }
      continue;
    }
    timespec moment{0, 20000};
    nanosleep(&moment, nullptr);
  }
}

// The hook of a device. Torch copies it for each device, so a copy can remember its device, which a SNAPSHOT event does not name.
struct Tracker {
  int device = -1;

  // Inlined into the function that torch calls, so that the recorded stack begins with the caller of that function.
  __attribute__((always_inline)) void operator()(const TraceEntry &entry) noexcept {
    if (__builtin_expect(is_on.load(std::memory_order_relaxed) != 0, 0)) {
      record(entry, __builtin_frame_address(0));
    }
  }

  __attribute__((noinline)) void record(const TraceEntry &entry, const void *stack_address) noexcept {
    const bool is_snapshot = entry.action_ == TraceEntry::SNAPSHOT;
    if (thread_state.purpose != SnapshotPurpose::NONE) {
      if (is_snapshot) {
        snapshot_taken();
      }
      return;
    }
    const int64_t number = is_snapshot && device >= 0 ? device : entry.device_;
    if (number < 0 || number >= MAX_DEVICES) {
      return;
    }
    int state = device_states[number].load(std::memory_order_acquire);
    if (state >= FIRST_WAITING_STATE) {
      state = wait_for_snapshot(device_states[number]);
    }
    if (state != RECORDING) {
      return;
    }
    enum stackweave_host_event_kind kind;
    stackweave_host_block block = STACKWEAVE_HOST_BLOCK_INIT;
    switch (static_cast<int>(entry.action_)) {
      case TraceEntry::ALLOC: kind = STACKWEAVE_HOST_ALLOCATE; break;
      case TraceEntry::FREE_REQUESTED: kind = STACKWEAVE_HOST_FREE_REQUESTED; break;
      case TraceEntry::FREE_COMPLETED: kind = STACKWEAVE_HOST_FREE_COMPLETED; break;
      case TraceEntry::SEGMENT_ALLOC: kind = STACKWEAVE_HOST_SEGMENT_ALLOCATE; break;
      case TraceEntry::SEGMENT_FREE: kind = STACKWEAVE_HOST_SEGMENT_FREE; break;
      case TraceEntry::SEGMENT_MAP: kind = STACKWEAVE_HOST_SEGMENT_MAP; break;
      case TraceEntry::SEGMENT_UNMAP: kind = STACKWEAVE_HOST_SEGMENT_UNMAP; break;
      case TraceEntry::SNAPSHOT: kind = STACKWEAVE_HOST_SNAPSHOT; break;
      case TraceEntry::OOM: kind = STACKWEAVE_HOST_OUT_OF_MEMORY; break;
      case Annotate<TraceEntry>::action: kind = STACKWEAVE_HOST_ANNOTATE; break;
      default: return;
    }
    const char *text = text_of(entry, 0);
    if (kind == STACKWEAVE_HOST_ANNOTATE) {
      block.text = text;
    } else {
      record_tag(text);
    }
    block.address = static_cast<uint64_t>(entry.addr_);
    block.bytes = static_cast<uint64_t>(entry.size_);
    block.device = number;
    block.stream = stream_number(entry.stream_);
    block.pool = pool_of(entry, 0);
    record_event(kind, block, stack_address);
  }

  // Called while the calling thread takes a snapshot for the recording, at each device in turn.
  void snapshot_taken() noexcept {
    device = thread_state.devices_seen++;
    if (device >= MAX_DEVICES) {
      return;
    }
    std::atomic<int> &device_state = device_states[device];
    int state = device_state.load(std::memory_order_acquire);
    if (thread_state.purpose == SnapshotPurpose::BEGIN && state == OFF) {
      device_state.store(SNAPSHOT_TAKEN, std::memory_order_release);
    } else if (thread_state.purpose == SnapshotPurpose::STATE && state == RECORDING) {
      device_state.store(SNAPSHOT_TAKEN, std::memory_order_release);
    } else if (thread_state.purpose == SnapshotPurpose::END) {
      device_state.store(OFF, std::memory_order_release);
    }
  }
};

}  // namespace
