#include "device_allocator.hpp"

namespace host {
namespace {

constexpr std::uint64_t smallest_block = 512;

std::uint64_t round_up(std::uint64_t size) {
    std::uint64_t size_class = smallest_block;
    while (size_class < size)
        size_class *= 2;
    return size_class;
}

} // namespace

std::uint64_t DeviceAllocator::allocate(std::uint64_t size, std::uint64_t truth) {
    const DeviceLockGuard held(lock_);
    const std::uint64_t size_class = round_up(size);
    const std::uint64_t context = recorder_->capture();
    const std::uint64_t address = find_block(size_class);
    live_.insert({address, Block{size_class, context}});
    remember(truth, context);
    return address;
}

bool DeviceAllocator::free(std::uint64_t address, std::uint64_t truth) {
    const DeviceLockGuard held(lock_);
    const auto found = live_.find(address);
    if (found == live_.end())
        return false;
    const std::uint64_t context = recorder_->capture();
    remember(truth, context);
    recorder_->drop(context);
    recorder_->drop(found->second.context);
    cached_[found->second.size_class].push_back(address);
    live_.erase(found);
    return true;
}

void DeviceAllocator::remember(std::uint64_t truth, std::uint64_t context) {
    if (truth != no_truth)
        ++witnesses_[Witness{truth, context}];
}

std::uint64_t DeviceAllocator::find_block(std::uint64_t size_class) {
    std::vector<std::uint64_t> &cached = cached_[size_class];
    if (cached.empty()) {
        const std::uint64_t address = next_address_;
        next_address_ += size_class;
        return address;
    }
    const std::uint64_t address = cached.back();
    cached.pop_back();
    return address;
}

std::map<Witness, std::uint64_t> DeviceAllocator::witnesses() {
    const DeviceLockGuard held(lock_);
    return witnesses_;
}

void DeviceAllocator::set_recorder(Recorder &recorder) {
    const DeviceLockGuard held(lock_);
    recorder_ = &recorder;
}

DeviceAllocator &device_allocator() {
    static DeviceAllocator allocator(stackweave_recorder());
    return allocator;
}

} // namespace host
