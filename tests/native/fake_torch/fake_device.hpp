// A caching allocator of one device that owns no memory, and calls its hook as torch's does: while holding the lock, in the
// same order, with the same figures. Compiled against torch's headers, or the replacements beside this file.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

namespace fake {

using c10::MempoolId_t;
using namespace c10::cuda::CUDACachingAllocator;

constexpr uint64_t ROUND = 512, SMALL = 1 << 20, CHUNK = 2 << 20;

// An event that was passed to the hook, and its device, which a snapshot's own entry does not have.
struct Event {
  int32_t action, device;
  uint64_t address, size, stream, pool;
};

inline std::mutex events_lock;
inline std::vector<Event> events;
inline thread_local std::string text;

struct Block {
  uint64_t size = 0, requested = 0;
  bool allocated = false;
  std::set<uint64_t> other_streams;
  bool is_pending = false;
};

struct Segment {
  uint64_t size = 0, stream = 0;
  MempoolId_t pool;
  bool is_large = false, is_expandable = false;
  std::map<uint64_t, Block> blocks;
};

using Observer = std::function<void(int64_t device, size_t requested, size_t total, size_t free)>;
inline std::vector<Observer> observers;

class Device {
 public:
  explicit Device(int number) : number_(number), next_((uint64_t(number) + 1) << 40) {}

  void attach(AllocatorTraceTracker tracker) {
    std::unique_lock<std::recursive_mutex> held(lock_);
    trackers_.push_back(std::move(tracker));
  }

  uint64_t allocate(uint64_t requested, uint64_t stream, MempoolId_t pool) {
    std::unique_lock<std::recursive_mutex> held(lock_);
    finish();
    const uint64_t size = std::max<uint64_t>((requested + ROUND - 1) / ROUND * ROUND, ROUND);
    auto found = find(size, stream, pool);
    if (!found.first && !grow(size, stream, pool)) {
      release();
      if (!grow(size, stream, pool)) {
        const uint64_t free = limit_ - reserved_;
        record(TraceEntry::OOM, free, size, stream, pool);
        held.unlock();
        for (const Observer &observer : observers) {
          observer(number_, size, limit_, free);
        }
        return 0;
      }
    }
    found = found.first ? found : find(size, stream, pool);
    Segment &segment = *found.first;
    const uint64_t address = found.second;
    Block &block = segment.blocks[address];
    if (block.size > size) {
      segment.blocks[address + size].size = block.size - size;
      block.size = size;
    }
    block.allocated = true;
    block.requested = requested;
    record(TraceEntry::ALLOC, address, requested, stream, pool);
    return address;
  }

  void free(uint64_t address) {
    std::unique_lock<std::recursive_mutex> held(lock_);
    Segment &segment = segment_of(address);
    Block &block = segment.blocks.at(address);
    block.allocated = false;
    record(TraceEntry::FREE_REQUESTED, address, block.requested, segment.stream, segment.pool);
    if (block.other_streams.empty()) {
      complete(segment, address);
    } else {
      block.is_pending = true;
    }
  }

  void use_on(uint64_t address, uint64_t stream) {
    std::unique_lock<std::recursive_mutex> held(lock_);
    segment_of(address).blocks.at(address).other_streams.insert(stream);
  }

  // The other streams no longer use blocks: the next allocation finds them free.
  void streams_are_done() {
    std::unique_lock<std::recursive_mutex> held(lock_);
    are_done_ = true;
  }

  void empty_cache() {
    std::unique_lock<std::recursive_mutex> held(lock_);
    finish();
    release();
  }

#ifndef FAKE_TORCH_IS_OLD
  void annotate(uint64_t address, const std::string &words) {
    std::unique_lock<std::recursive_mutex> held(lock_);
    annotated(address, words);
  }
#endif

  void limit(uint64_t bytes) {
    std::unique_lock<std::recursive_mutex> held(lock_);
    limit_ = bytes;
  }

  void expand(bool yes) {
    std::unique_lock<std::recursive_mutex> held(lock_);
    is_expandable_ = yes;
  }

  std::vector<SegmentInfo> snapshot() {
    std::unique_lock<std::recursive_mutex> held(lock_);
    std::vector<SegmentInfo> all;
    uint64_t active = 0;
    for (const auto &[address, segment] : segments_) {
      SegmentInfo info;
      info.device = static_cast<c10::DeviceIndex>(number_);
      info.address = address;
      info.total_size = segment.size;
      info.stream = reinterpret_cast<void *>(segment.stream);
      info.is_large = segment.is_large;
      info.is_expandable = segment.is_expandable;
      info.owner_private_pool_id = segment.pool;
      for (const auto &[start, block] : segment.blocks) {
        BlockInfo part;
        part.size = block.size;
        part.requested_size = block.requested;
        part.allocated = block.allocated;
        part.active = block.allocated || !block.other_streams.empty();
        active += part.active ? block.size : 0;
        info.blocks.push_back(part);
      }
      all.push_back(info);
    }
    record(TraceEntry::SNAPSHOT, 0, active, 0, {0, 0});
    return all;
  }

 private:
  void record(TraceEntry::Action action, uint64_t address, uint64_t size, uint64_t stream, MempoolId_t pool) {
    {
      std::lock_guard<std::mutex> held(events_lock);
      const uint64_t number = pool.first != 0 ? (uint64_t{1} << 63) | pool.first : pool.second;
      events.push_back({action, number_, address, size, stream, number});
    }
    // Torch reports its snapshot for the first device, independent of the actual device.
    const int reported = action == TraceEntry::SNAPSHOT ? 0 : number_;
    void *pointer = reinterpret_cast<void *>(stream);
#ifdef FAKE_TORCH_IS_OLD
    TraceEntry entry(action, reported, address, size, pointer, 0);
#else
    TraceEntry entry(action, reported, address, size, pointer, pool, 0, nullptr, "", text);
#endif
    call(entry);
  }

#ifndef FAKE_TORCH_IS_OLD
  // Not every version of torch has annotations.
  template <class T = TraceEntry>
  auto annotated(uint64_t address, const std::string &words) -> decltype(T::ANNOTATE, void()) {
    TraceEntry entry(T::ANNOTATE, number_, address, 0, nullptr, {0, 0}, 0, nullptr, "", words);
    call(entry);
  }
  template <class... None>
  void annotated(uint64_t, const std::string &, None...) {}
#endif

  __attribute__((noinline)) void call(const TraceEntry &entry) {
    for (const auto &tracker : trackers_) {
      tracker(entry);
    }
  }

  std::pair<Segment *, uint64_t> find(uint64_t size, uint64_t stream, MempoolId_t pool) {
    for (auto &[address, segment] : segments_) {
      if (segment.stream != stream || segment.pool != pool || segment.is_large != (size > SMALL)) {
        continue;
      }
      for (auto &[start, block] : segment.blocks) {
        if (!block.allocated && !block.is_pending && block.size >= size) {
          return {&segment, start};
        }
      }
    }
    return {nullptr, 0};
  }

  bool grow(uint64_t size, uint64_t stream, MempoolId_t pool) {
    const uint64_t total = (size + CHUNK - 1) / CHUNK * CHUNK;
    if (reserved_ + total > limit_) {
      return false;
    }
    const uint64_t address = next_;
    next_ += total + CHUNK;
    reserved_ += total;
    Segment &segment = segments_[address];
    segment.size = total;
    segment.stream = stream;
    segment.pool = pool;
    segment.is_large = size > SMALL;
    segment.is_expandable = is_expandable_;
    segment.blocks[address].size = total;
    record(is_expandable_ ? TraceEntry::SEGMENT_MAP : TraceEntry::SEGMENT_ALLOC, address, total, stream, pool);
    return true;
  }

  void complete(Segment &segment, uint64_t address) {
    auto at = segment.blocks.find(address);
    record(TraceEntry::FREE_COMPLETED, address, at->second.requested, segment.stream, segment.pool);
    at->second.is_pending = false;
    at->second.other_streams.clear();
    auto next = std::next(at);
    if (next != segment.blocks.end() && is_free(next->second)) {
      at->second.size += next->second.size;
      segment.blocks.erase(next);
    }
    if (at != segment.blocks.begin() && is_free(std::prev(at)->second)) {
      std::prev(at)->second.size += at->second.size;
      segment.blocks.erase(at);
    }
  }

  static bool is_free(const Block &block) { return !block.allocated && !block.is_pending; }

  void finish() {
    if (!are_done_) {
      return;
    }
    are_done_ = false;
    std::vector<std::pair<Segment *, uint64_t>> pending;
    for (auto &[address, segment] : segments_) {
      for (auto &[start, block] : segment.blocks) {
        if (block.is_pending) {
          pending.push_back({&segment, start});
        }
      }
    }
    for (auto &[segment, start] : pending) {
      complete(*segment, start);
    }
  }

  void release() {
    for (auto at = segments_.begin(); at != segments_.end();) {
      auto &[address, segment] = *at;
      if (segment.blocks.size() != 1 || !is_free(segment.blocks.begin()->second)) {
        ++at;
        continue;
      }
      record(segment.is_expandable ? TraceEntry::SEGMENT_UNMAP : TraceEntry::SEGMENT_FREE, address, segment.size,
             segment.stream, segment.pool);
      reserved_ -= segment.size;
      at = segments_.erase(at);
    }
  }

  Segment &segment_of(uint64_t address) { return std::prev(segments_.upper_bound(address))->second; }

  const int number_;
  uint64_t next_, reserved_ = 0, limit_ = uint64_t{1} << 36;
  bool is_expandable_ = false, are_done_ = false;
  std::recursive_mutex lock_;
  std::vector<AllocatorTraceTracker> trackers_;
  std::map<uint64_t, Segment> segments_;
};

}  // namespace fake
