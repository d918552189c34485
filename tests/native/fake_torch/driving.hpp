// Functions for ctypes, by which a test controls the fake allocator and reads the recorded events.
#pragma once

#include <stackweave.h>

#include <memory>

#include "fake_device.hpp"

namespace fake {

inline std::vector<std::unique_ptr<Device>> devices;
// Called between the snapshots of two devices, without a lock: other threads may run there.
inline void (*between_devices)(int next) = nullptr;

inline SnapshotInfo snapshot_of_all() {
  SnapshotInfo all;
  for (size_t number = 0; number < devices.size(); ++number) {
    for (auto &segment : devices[number]->snapshot()) {
      all.segments.push_back(segment);
    }
    if (between_devices != nullptr) {
      between_devices(static_cast<int>(number) + 1);
    }
  }
  return all;
}

struct RecordedEvent {
  int32_t kind;
  int32_t has_stack_address;
  uint64_t address, bytes;
  int64_t device;
  uint64_t stream, pool, requested, flags;
  char text[64];
};

inline std::vector<RecordedEvent> recorded_events;

}  // namespace fake

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE void fake_init(int devices) {
  for (int number = static_cast<int>(fake::devices.size()); number < devices; ++number) {
    fake::devices.push_back(std::make_unique<fake::Device>(number));
  }
}
FAKE uint64_t fake_allocate(int device, uint64_t size, uint64_t stream, uint64_t pool) {
  // The upper half is a graph's pool, which is the first of torch's pair.
  return fake::devices[device]->allocate(size, stream, {pool >> 32, pool & 0xffffffff});
}
FAKE void fake_free(int device, uint64_t address) { fake::devices[device]->free(address); }
FAKE void fake_use_on(int device, uint64_t address, uint64_t stream) { fake::devices[device]->use_on(address, stream); }
FAKE void fake_streams_are_done(int device) { fake::devices[device]->streams_are_done(); }
FAKE void fake_empty_cache(int device) { fake::devices[device]->empty_cache(); }
FAKE void fake_limit(int device, uint64_t bytes) { fake::devices[device]->limit(bytes); }
FAKE void fake_expand(int device, int yes) { fake::devices[device]->expand(yes != 0); }
FAKE void fake_snapshot() { fake::snapshot_of_all(); }
FAKE void fake_text(const char *text) { fake::text = text; }
#ifndef FAKE_TORCH_IS_OLD
FAKE void fake_annotate(int device, uint64_t address, const char *text) { fake::devices[device]->annotate(address, text); }
#endif
FAKE void fake_observe(void (*observer)(int64_t, size_t, size_t, size_t)) { fake::observers.push_back(observer); }
FAKE void fake_between_devices(void (*call)(int)) { fake::between_devices = call; }

FAKE size_t fake_events(fake::Event *into, size_t capacity) {
  std::lock_guard<std::mutex> held(fake::events_lock);
  std::copy_n(fake::events.begin(), std::min(capacity, fake::events.size()), into);
  return fake::events.size();
}
FAKE void fake_forget_events() {
  std::lock_guard<std::mutex> held(fake::events_lock);
  fake::events.clear();
  fake::recorded_events.clear();
}

// Replaces stackweave_record_host_event.
FAKE int fake_record(int kind, const stackweave_host_block *block, const void *stack_address) {
  std::lock_guard<std::mutex> held(fake::events_lock);
  fake::RecordedEvent recorded{kind, stack_address != nullptr, block->address, block->bytes, block->device, block->stream,
                  block->pool, block->requested, block->flags, ""};
  if (block->text != nullptr) {
    std::string(block->text).copy(recorded.text, sizeof recorded.text - 1);
  }
  fake::recorded_events.push_back(recorded);
  return 0;
}
FAKE size_t fake_recorded_events(fake::RecordedEvent *into, size_t capacity) {
  std::lock_guard<std::mutex> held(fake::events_lock);
  std::copy_n(fake::recorded_events.begin(), std::min(capacity, fake::recorded_events.size()), into);
  return fake::recorded_events.size();
}
