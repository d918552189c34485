// Records every event of PyTorch's CUDA caching allocator. The Python package compiles this at its first use, with the installed
// torch and compiler, loads it with ctypes, and calls the functions at the end.

#include <pthread.h>

#include <cstdio>
#include <exception>
#include <mutex>
#include <vector>

#include "cuda_hook.hpp"

namespace {

// The number of times that a snapshot is repeated after a wait of a hook has timed out.
constexpr int ATTEMPTS = 5;

// Serializes snapshots. It has a timeout, so that a thread that holds the lock of a device can't wait forever.
std::timed_mutex snapshot_lock;
std::vector<CUDAAllocator *> attached;

int fail(const char *message, char *error, size_t length) noexcept {
  int end = 0;
  while (message[end] != 0 && message[end] != '\n') {
    ++end;
  }
  snprintf(error, length, "%.*s", end, message);
  return 1;
}

void nothing() noexcept {}

// Calls `work`, and converts exceptions of torch to a status and a message. If it fails, `undo` runs before another thread gets
// the lock.
template <class Do>
int guarded(char *error, size_t length, Do &&work, void (*undo)() noexcept = nothing) noexcept {
  if (is_child.load()) {
    return fail("this process was forked from one that records CUDA's memory", error, length);
  }
  try {
    std::unique_lock<std::timed_mutex> lock(snapshot_lock, std::defer_lock);
    if (!lock.try_lock_for(std::chrono::seconds(10))) {
      return fail("another thread has been taking a snapshot for ten seconds", error, length);
    }
    struct UndoOnFailure {
      void (*undo)() noexcept;
      bool has_succeeded = false;
      ~UndoOnFailure() {
        if (!has_succeeded) {
          undo();
        }
      }
    } undo_on_failure{undo};
    const int status = work();
    undo_on_failure.has_succeeded = status == 0;
    return status;
  } catch (const std::exception &thrown) {
    return fail(thrown.what(), error, length);
  } catch (...) {
    return fail("torch has thrown an exception that is not a std::exception", error, length);
  }
}

SnapshotInfo take_snapshot(SnapshotPurpose purpose) {
  struct PurposeScope {
    explicit PurposeScope(SnapshotPurpose purpose) {
      thread_state.purpose = purpose;
      thread_state.devices_seen = 0;
    }
    ~PurposeScope() { thread_state.purpose = SnapshotPurpose::NONE; }
  } scope(purpose);
  return snapshot_of(allocators::get(), 0);
}

template <class Segment>
stackweave_host_block block_of(const Segment &segment) {
  stackweave_host_block block = STACKWEAVE_HOST_BLOCK_INIT;
  block.address = static_cast<uint64_t>(segment.address);
  block.bytes = static_cast<uint64_t>(segment.total_size);
  block.device = segment.device;
  block.stream = stream_number(segment.stream);
  block.pool = pool_number(segment.owner_private_pool_id);
  return block;
}

// Records the blocks of a segment that are allocated when the recording begins. Blocks that the program has freed, but that
// another stream still uses, are not recorded.
template <class Segment>
void record_present(const Segment &segment) {
  stackweave_host_block block = block_of(segment);
  record_event(STACKWEAVE_HOST_SEGMENT_PRESENT, block, nullptr);
  for (const auto &part : segment.blocks) {
    if (part.allocated) {
      block.bytes = static_cast<uint64_t>(part.requested_size);
      record_event(STACKWEAVE_HOST_BLOCK_PRESENT, block, nullptr);
    }
    block.address += static_cast<uint64_t>(part.size);
  }
}

template <class Segment>
void record_state(const Segment &segment) {
  stackweave_host_block block = block_of(segment);
  block.flags = (segment.is_large ? 1 : 0) | (segment.is_expandable ? 2 : 0);
  record_event(STACKWEAVE_HOST_SEGMENT_STATE, block, nullptr);
  for (const auto &part : segment.blocks) {
    block.bytes = static_cast<uint64_t>(part.size);
    block.requested = static_cast<uint64_t>(part.requested_size);
    block.flags = (part.allocated ? 1 : 0) | (part.active ? 2 : 0);
    record_event(STACKWEAVE_HOST_BLOCK_STATE, block, nullptr);
    block.address += static_cast<uint64_t>(part.size);
  }
}

void stop_all_devices() noexcept {
  is_on.store(0);
  for (auto &state : device_states) {
    state.store(OFF);
  }
}

void resume_all_devices() noexcept {
  for (auto &device_state : device_states) {
    int state = device_state.load();
    if (state == SNAPSHOT_TAKEN || state == SNAPSHOT_RECORDING) {
      device_state.store(RECORDING);
    }
  }
}

// Records the blocks that are present on the devices that do not record yet, and starts these devices. If `is_last_attempt`,
// devices whose snapshot was discarded start as well, inexactly.
void begin_devices(const SnapshotInfo &snapshot, int devices, bool is_last_attempt) {
  bool begins[MAX_DEVICES] = {};
  for (int device = 0; device < devices; ++device) {
    int state = SNAPSHOT_TAKEN;
    begins[device] = device_states[device].compare_exchange_strong(state, SNAPSHOT_RECORDING);
    if (!begins[device] && state == OFF && is_last_attempt) {
      begins[device] = device_states[device].compare_exchange_strong(state, SNAPSHOT_RECORDING);
      inexact_starts.fetch_add(1);
    }
  }
  for (const auto &segment : snapshot.segments) {
    if (segment.device >= 0 && segment.device < devices && begins[segment.device]) {
      record_present(segment);
    }
  }
  for (int device = 0; device < devices; ++device) {
    if (begins[device]) {
      device_states[device].store(RECORDING, std::memory_order_release);
    }
  }
}

// Makes the hooks wait until a snapshot is recorded. Returns false if a wait has timed out: that device has recorded events
// since the snapshot was taken.
bool hold_all_devices(int devices) noexcept {
  bool is_consistent = true;
  for (int device = 0; device < devices; ++device) {
    int state = SNAPSHOT_TAKEN;
    const bool is_held = device_states[device].compare_exchange_strong(state, SNAPSHOT_RECORDING);
    is_consistent = is_consistent && (is_held || state == OFF);
  }
  return is_consistent;
}

// Records a state snapshot. The devices are held or stopped, so none of their events comes between, and the recorder knows all
// stacks.
void record_snapshot(uint64_t reason, const SnapshotInfo &snapshot) {
  stackweave_host_block block = STACKWEAVE_HOST_BLOCK_INIT;
  block.flags = reason;
  record_event(STACKWEAVE_HOST_STATE_BEGIN, block, nullptr);
  for (const auto &segment : snapshot.segments) {
    record_state(segment);
  }
  block = STACKWEAVE_HOST_BLOCK_INIT;
  record_event(STACKWEAVE_HOST_STATE_END, block, nullptr);
}

int devices_seen() noexcept { return thread_state.devices_seen < MAX_DEVICES ? thread_state.devices_seen : MAX_DEVICES; }

void in_child() {
  is_child.store(true);
  stop_all_devices();
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// The version of the functions below, which is increased when one of them changes.
EXPORTED int stackweave_cuda_version() { return 3; }

// The version of torch that this library was built for.
EXPORTED const char *stackweave_cuda_torch_version() { return STACKWEAVE_TORCH; }

// Returns whether there are devices to record.
EXPORTED int stackweave_cuda_is_ready() {
  try {
    return allocators::get()->initialized() ? 1 : 0;
  } catch (...) {
    return 0;
  }
}

// Attaches the hook to torch's allocator, once for each allocator. This can't be undone. `function` is
// stackweave_record_host_event.
EXPORTED int stackweave_cuda_attach(void *function, char *error, size_t length) {
  return guarded(error, length, [&] {
    record_function.store(reinterpret_cast<RecordFunction>(function), std::memory_order_release);
    CUDAAllocator *allocator = allocators::get();
    for (CUDAAllocator *known : attached) {
      if (known == allocator) {
        return 0;
      }
    }
    if (!allocator->initialized()) {
      return fail("the allocator is not initialized", error, length);
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

// Starts to record, and records the blocks that are allocated already.
EXPORTED int stackweave_cuda_begin(char *error, size_t length) {
  const auto work = [&] {
    stop_all_devices();
    for (auto *count : {&waits, &timeouts, &inexact_starts}) {
      count->store(0);
    }
    state_after_timeout.store(OFF);
    recording_number.fetch_add(1);
    is_on.store(1);
    for (int attempt = 1;; ++attempt) {
      SnapshotInfo snapshot = take_snapshot(SnapshotPurpose::BEGIN);
      const int devices = devices_seen();
      if (devices == 0) {
        return fail("torch does not call the hook, which was not attached to this allocator", error, length);
      }
      begin_devices(snapshot, devices, attempt == ATTEMPTS);
      bool has_begun = true;
      for (int device = 0; device < devices; ++device) {
        has_begun = has_begun && device_states[device].load() == RECORDING;
      }
      if (has_begun || attempt == ATTEMPTS) {
        return 0;
      }
    }
  };
  return guarded(error, length, work, stop_all_devices);
}

// Records a snapshot of all segments and blocks of the allocator.
EXPORTED int stackweave_cuda_record_state(uint64_t reason, char *error, size_t length) {
  const auto work = [&] {
    if (is_on.load() == 0) {
      return fail("nothing is recorded", error, length);
    }
    state_after_timeout.store(RECORDING);
    for (int attempt = 1;; ++attempt) {
      SnapshotInfo snapshot = take_snapshot(SnapshotPurpose::STATE);
      if (hold_all_devices(devices_seen()) || attempt == ATTEMPTS) {
        record_snapshot(reason, snapshot);
        resume_all_devices();
        return 0;
      }
      resume_all_devices();
    }
  };
  return guarded(error, length, work, resume_all_devices);
}

// Stops recording. If `with_state` is set, the recording ends with a state snapshot.
EXPORTED int stackweave_cuda_end(int with_state, char *error, size_t length) {
  int status = 0;
  if (with_state != 0) {
    status = guarded(error, length, [&] {
      if (is_on.load() == 0) {
        return 0;
      }
      // Each device stops at its part of the snapshot, so no event of it comes later.
      record_snapshot(0, take_snapshot(SnapshotPurpose::END));
      return 0;
    });
  }
  stop_all_devices();
  return status;
}

// Writes how many hooks have waited, how many waits have timed out, and how many devices have started inexactly.
EXPORTED void stackweave_cuda_counts(uint64_t *counts) {
  counts[0] = waits.load();
  counts[1] = timeouts.load();
  counts[2] = inexact_starts.load();
}
