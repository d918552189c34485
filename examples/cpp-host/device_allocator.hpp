// A caching allocator for the memory of a device, as in machine-learning runtimes: one lock, free blocks by size, and
// the stacks of all allocations and frees.
#pragma once

#include "recorder.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace host {

// A captured stack, with the caller's name for the expected stack.
struct Witness {
    std::uint64_t truth;
    std::uint64_t stack;
    bool operator<(const Witness &other) const {
        return truth != other.truth ? truth < other.truth : stack < other.stack;
    }
};

// A truth without comparison: no witness is stored.
constexpr std::uint64_t no_truth = UINT64_MAX;

class DeviceAllocator {
public:
    explicit DeviceAllocator(Recorder &recorder) : recorder_(&recorder) {}

    // Both capture a stack, and `free` also drops one, while holding the device lock. `truth` is the caller's name for
    // its stack.
    std::uint64_t allocate(std::uint64_t size, std::uint64_t truth);
    bool free(std::uint64_t address, std::uint64_t truth);

    // Returns every distinct pair so far, and its count.
    std::map<Witness, std::uint64_t> witnesses();
    void set_recorder(Recorder &recorder);
    std::mutex &device_lock() { return lock_; }
    Recorder &recorder() { return *recorder_; }

private:
    struct Block {
        std::uint64_t size_class;
        std::uint64_t context;
    };

    std::uint64_t find_block(std::uint64_t size_class);
    void remember(std::uint64_t truth, std::uint64_t context);

    std::mutex lock_;
    Recorder *recorder_;
    std::unordered_map<std::uint64_t, Block> live_;
    std::map<std::uint64_t, std::vector<std::uint64_t>> cached_;
    std::map<Witness, std::uint64_t> witnesses_;
    std::uint64_t next_address_ = 1 << 20;
};

// Holds the device lock.
class DeviceLockGuard {
public:
#ifdef HOST_WITHOUT_LOCK
    explicit DeviceLockGuard(std::mutex &) {}
#else
    explicit DeviceLockGuard(std::mutex &lock) : guard_(lock) {}

private:
    std::lock_guard<std::mutex> guard_;
#endif
};

// The allocator of this process.
DeviceAllocator &device_allocator();

} // namespace host
