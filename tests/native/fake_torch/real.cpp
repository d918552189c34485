// The fake allocator in the place of torch's own, with torch's headers: what torch would do with a device.
#include "driving.hpp"

namespace {

using namespace c10;
using namespace c10::cuda;
using namespace c10::cuda::CUDACachingAllocator;

// What is not about the hook is not there. Some of it is only in some versions, and so nothing says `override`.
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

// From here on torch's allocator is ours.
FAKE void fake_install() { allocator.store(new FakeAllocator); }
