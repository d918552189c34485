// Tells the recorder of every event of PyTorch's CUDA caching allocator. Built at first use by _cuda_build.py, against the
// torch and the compiler that are there, and loaded by ctypes: by the functions at the end.

#include <pthread.h>

#include <cstdio>
#include <exception>
#include <mutex>
#include <vector>

#include "cuda_hook.hpp"

namespace {

// How often a beginning or an account is tried that hooks have lost patience with.
constexpr int ATTEMPTS = 5;

// One snapshot at a time. Timed, so that whoever comes with a lock of a device held can't wait for ever.
std::timed_mutex control;
std::vector<CUDAAllocator *> attached;

int failed(const char *why, char *error, size_t length) noexcept {
  int end = 0;
  while (why[end] != 0 && why[end] != '\n') {
    ++end;
  }
  snprintf(error, length, "%.*s", end, why);
  return 1;
}

void nothing() noexcept {}

// As torch says it, as a number of ours. Never throws. What has failed is undone before another thread may ask.
template <class Do>
int guarded(char *error, size_t length, Do &&work, void (*undo)() noexcept = nothing) noexcept {
  if (is_child.load()) {
    return failed("this process was forked from one that records CUDA's memory", error, length);
  }
  try {
    std::unique_lock<std::timed_mutex> held(control, std::defer_lock);
    if (!held.try_lock_for(std::chrono::seconds(10))) {
      return failed("another thread has been asking the allocator for ten seconds", error, length);
    }
    struct Undoing {
      void (*undo)() noexcept;
      bool is_done = false;
      ~Undoing() {
        if (!is_done) {
          undo();
        }
      }
    } undoing{undo};
    const int status = work();
    undoing.is_done = status == 0;
    return status;
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

// Has hooks wait until an account is told. False if one has lost patience: its device has gone on since the snapshot.
bool hold_all(int devices) noexcept {
  bool is_whole = true;
  for (int device = 0; device < devices; ++device) {
    int stands = TAKEN;
    const bool is_held = gates[device].compare_exchange_strong(stands, TOLD);
    is_whole = is_whole && (is_held || stands == OFF);
  }
  return is_whole;
}

// After the snapshot was taken, when no device goes on: so nothing of theirs comes between, and the recorder knows all stacks.
void tell_account(uint64_t reason, const SnapshotInfo &taken) {
  stackweave_block block = STACKWEAVE_BLOCK_INIT;
  block.flags = reason;
  tell(STACKWEAVE_EVENT_STATE_BEGIN, block, nullptr);
  for (const auto &segment : taken.segments) {
    tell_state(segment);
  }
  block = STACKWEAVE_BLOCK_INIT;
  tell(STACKWEAVE_EVENT_STATE_END, block, nullptr);
}

int devices_seen() noexcept { return thread.seen < DEVICES ? thread.seen : DEVICES; }

void in_child() {
  is_child.store(true);
  close_all();
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// What the functions below are: raised when one of them changes.
EXPORTED int stackweave_cuda_version() { return 2; }

// The version of torch that this was built for.
EXPORTED const char *stackweave_cuda_torch() { return STACKWEAVE_TORCH; }

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
  const auto work = [&] {
    close_all();
    for (auto *count : {&waits, &lost_patience, &inexact}) {
      count->store(0);
    }
    after_patience.store(OFF);
    recording.fetch_add(1);
    is_on.store(1);
    for (int attempt = 1;; ++attempt) {
      SnapshotInfo taken = take(Purpose::BEGIN);
      const int devices = devices_seen();
      if (devices == 0) {
        return failed("torch does not call the hook, which was not attached to this allocator", error, length);
      }
      begin_at(taken, devices, attempt == ATTEMPTS);
      bool is_whole = true;
      for (int device = 0; device < devices; ++device) {
        is_whole = is_whole && gates[device].load() == ON;
      }
      if (is_whole || attempt == ATTEMPTS) {
        return 0;
      }
    }
  };
  return guarded(error, length, work, close_all);
}

// The allocator's own account of all segments and blocks, of this moment.
EXPORTED int stackweave_cuda_state(uint64_t reason, char *error, size_t length) {
  const auto work = [&] {
    if (is_on.load() == 0) {
      return failed("nothing is recorded", error, length);
    }
    after_patience.store(ON);
    for (int attempt = 1;; ++attempt) {
      SnapshotInfo taken = take(Purpose::STATE);
      if (hold_all(devices_seen()) || attempt == ATTEMPTS) {
        tell_account(reason, taken);
        reopen_all();
        return 0;
      }
      reopen_all();
    }
  };
  return guarded(error, length, work, reopen_all);
}

// Records no more, and ends with the account of that moment, if it is asked for.
EXPORTED int stackweave_cuda_end(int with_state, char *error, size_t length) {
  int status = 0;
  if (with_state != 0) {
    status = guarded(error, length, [&] {
      if (is_on.load() == 0) {
        return 0;
      }
      // Each device ends with its part of the snapshot: nothing of it comes later.
      tell_account(0, take(Purpose::END));
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
