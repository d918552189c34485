// Replaces torch's libc10_cuda.so.
#include "driving.hpp"

namespace {

class FakeAllocator : public fake::CUDAAllocator {
 public:
  bool initialized() override { return !fake::devices.empty(); }
  std::string name() override { return "native"; }
#ifdef FAKE_TORCH_IS_OLD
  fake::SnapshotInfo snapshot() override { return fake::snapshot_of_all(); }
#else
  fake::SnapshotInfo snapshot(c10::MempoolId_t, bool) override { return fake::snapshot_of_all(); }
#endif
  void attachAllocatorTraceTracker(fake::AllocatorTraceTracker tracker) override {
    for (auto &device : fake::devices) {
      device->attach(tracker);
    }
  }
};

FakeAllocator the_allocator;

}  // namespace

std::atomic<c10::cuda::CUDACachingAllocator::CUDAAllocator *> c10::cuda::CUDACachingAllocator::allocator{&the_allocator};
