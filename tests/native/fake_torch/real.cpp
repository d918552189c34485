// Replaces torch's allocator by the fake one, with torch's headers, as if torch had a device.
#include "driving.hpp"

namespace {

using namespace c10;
using namespace c10::cuda;
using namespace c10::cuda::CUDACachingAllocator;

// Functions that do not concern the hook do nothing. Some exist only in some versions, so none is marked `override`.
class FakeAllocator : public CUDAAllocator {
 public:
  bool initialized() { return !fake::devices.empty(); }
  std::string name() { return "native"; }
  SnapshotInfo snapshot(MempoolId_t, bool) { return fake::snapshot_of_all(); }
  void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) {
    for (auto &device : fake::devices) {
      device->attach(tracker);
    }
  }

  DataPtr allocate(size_t) { return {}; }
  void copy_data(void *, const void *, size_t) const {}
  void emptyCache(MempoolId_t) {}
  CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex) { return {}; }
  void resetAccumulatedStats(DeviceIndex) {}
  void resetPeakStats(DeviceIndex) {}
  void *raw_alloc(size_t) { return nullptr; }
  void *raw_alloc_with_stream(size_t, cudaStream_t) { return nullptr; }
  void raw_delete(void *) {}
  void init(int) {}
  double getMemoryFraction(DeviceIndex) { return 1; }
  void setMemoryFraction(double, DeviceIndex) {}
  std::vector<StreamSegmentSize> getExpandableSegmentSizes(DeviceIndex) { return {}; }
  void enable(bool) {}
  bool isEnabled() const { return true; }
  void cacheInfo(DeviceIndex, size_t *) {}
  void *getBaseAllocation(void *, size_t *) { return nullptr; }
  void recordStream(const DataPtr &, CUDAStream) {}
  void beginAllocateToPool(DeviceIndex, MempoolId_t, std::function<bool(cudaStream_t)>) {}
  void endAllocateToPool(DeviceIndex, MempoolId_t) {}
  void releasePool(DeviceIndex, MempoolId_t) {}
  ShareableHandle shareIpcHandle(void *) { return {}; }
  std::shared_ptr<void> getIpcDevPtr(std::string) { return nullptr; }
  void recordHistory(bool, CreateContextFn, size_t, RecordContext, bool, const std::vector<std::string> &) {}
  void attachOutOfMemoryObserver(OutOfMemoryObserver) {}
  void attachOomRejectionObserver(std::function<void(int64_t, size_t, size_t, size_t)>) {}
  void enablePeerAccess(DeviceIndex, DeviceIndex) {}
  cudaError_t memcpyAsync(void *, int, const void *, int, size_t, cudaStream_t, bool) { return cudaSuccess; }
  std::shared_ptr<AllocatorState> getCheckpointState(DeviceIndex, MempoolId_t) { return nullptr; }
  CheckpointDelta setCheckpointPoolState(DeviceIndex, std::shared_ptr<AllocatorState>) { return {}; }
};

}  // namespace

// Installs the fake allocator.
FAKE void fake_install() { allocator.store(new FakeAllocator); }
