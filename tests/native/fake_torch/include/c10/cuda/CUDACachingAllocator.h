// Replaces the used parts of torch's header of this name: the same names, independently written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace c10 {

using DeviceIndex = int8_t;
using MempoolId_t = std::pair<unsigned long long, unsigned long long>;
struct GatheredContext {};

namespace cuda::CUDACachingAllocator {

struct TraceEntry {
  enum Action {
    ALLOC,
    FREE_REQUESTED,
    FREE_COMPLETED,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    SNAPSHOT,
    OOM,
#ifndef FAKE_TORCH_IS_OLD
    ANNOTATE,
#endif
  };
#ifdef FAKE_TORCH_IS_OLD
  TraceEntry(Action action, DeviceIndex device, size_t address, size_t size, void *stream, long)
      : action_(action), device_(device), addr_(address), stream_(stream), size_(size) {}
#else
  TraceEntry(Action action, DeviceIndex device, size_t address, size_t size, void *stream, MempoolId_t pool, long,
             std::shared_ptr<GatheredContext> = nullptr, std::string = "", std::string text = "")
      : action_(action), device_(device), addr_(address), stream_(stream), size_(size), mempool_(pool),
        user_metadata_(std::move(text)) {}
#endif
  Action action_;
  DeviceIndex device_;
  size_t addr_;
  void *stream_;
  size_t size_;
#ifndef FAKE_TORCH_IS_OLD
  MempoolId_t mempool_;
  std::string user_metadata_;
#endif
};

struct BlockInfo {
  size_t size = 0;
  size_t requested_size = 0;
  bool allocated = false;
  bool active = false;
};

struct SegmentInfo {
  DeviceIndex device = 0;
  size_t address = 0;
  size_t total_size = 0;
  void *stream = nullptr;
  bool is_large = false;
  bool is_expandable = false;
  MempoolId_t owner_private_pool_id = {0, 0};
  std::vector<BlockInfo> blocks;
};

struct SnapshotInfo {
  std::vector<SegmentInfo> segments;
};

using AllocatorTraceTracker = std::function<void(const TraceEntry &)>;

class CUDAAllocator {
 public:
  virtual ~CUDAAllocator() = default;
  virtual bool initialized() = 0;
  virtual std::string name() = 0;
#ifdef FAKE_TORCH_IS_OLD
  virtual SnapshotInfo snapshot() = 0;
#else
  virtual SnapshotInfo snapshot(MempoolId_t pool = {0, 0}, bool include_traces = true) = 0;
#endif
  virtual void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) = 0;
};

__attribute__((visibility("default"))) extern std::atomic<CUDAAllocator *> allocator;

inline CUDAAllocator *get() { return allocator.load(); }

}  // namespace cuda::CUDACachingAllocator
}  // namespace c10
