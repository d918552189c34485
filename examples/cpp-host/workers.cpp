#include "workers.hpp"

#include "device_allocator.hpp"

#include <random>

// A worker follows a random path of left and right steps, and allocates or frees at its end. Its truth is the path:
// a mark, whether it frees, the number of steps, and a bit for each.
namespace host {
namespace {

constexpr std::uint64_t mark = std::uint64_t{1} << 63;
constexpr std::uint64_t freeing = std::uint64_t{1} << 62;
constexpr unsigned length_shift = 32;
constexpr unsigned longest = 6;
constexpr std::size_t most_held = 64;

struct WorkItem {
    std::uint64_t truth;
    std::vector<std::uint64_t> &held;
};

__attribute__((noinline)) void arrive(WorkItem &item) {
    if (item.truth & freeing) {
        device_allocator().free(item.held.back(), item.truth);
        item.held.pop_back();
    } else {
        item.held.push_back(device_allocator().allocate(1024, item.truth));
    }
}

// Different code, because otherwise the compiler would merge both functions.
std::atomic<std::uint64_t> steps_left{0}, steps_right{0};

__attribute__((noinline)) void follow(WorkItem &item, std::uint64_t path, unsigned length);
__attribute__((noinline)) void step_left(WorkItem &item, std::uint64_t path, unsigned length) {
    steps_left.fetch_add(1, std::memory_order_relaxed);
    follow(item, path, length);
}
__attribute__((noinline)) void step_right(WorkItem &item, std::uint64_t path, unsigned length) {
    steps_right.fetch_add(1, std::memory_order_relaxed);
    follow(item, path, length);
}
void follow(WorkItem &item, std::uint64_t path, unsigned length) {
    if (length == 0)
        arrive(item);
    else if (path & 1)
        step_right(item, path >> 1, length - 1);
    else
        step_left(item, path >> 1, length - 1);
}

void work(const std::atomic<bool> &is_stopping, std::atomic<std::uint64_t> &blocks, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::uint64_t> held;
    while (!is_stopping.load(std::memory_order_relaxed) || !held.empty()) {
        const bool stops = is_stopping.load(std::memory_order_relaxed);
        const bool frees = !held.empty() && (stops || held.size() == most_held || random() % 2 != 0);
        const unsigned length = random() % (longest + 1);
        const std::uint64_t path = random() & ((1u << length) - 1);
        WorkItem item{mark | (frees ? freeing : 0) | std::uint64_t{length} << length_shift | path, held};
        follow(item, path, length);
        blocks.fetch_add(frees, std::memory_order_relaxed);
        if (random() % 64 == 0)
            std::this_thread::yield();
    }
}

} // namespace

void Workers::start(unsigned count) {
    is_stopping_.store(false);
    for (unsigned index = 0; index < count; index++)
        threads_.emplace_back([this, index] { work(is_stopping_, blocks_, index + 1); });
}

std::uint64_t Workers::stop() {
    is_stopping_.store(true);
    for (std::thread &thread : threads_)
        thread.join();
    threads_.clear();
    return blocks_.exchange(0);
}

bool is_workers(std::uint64_t truth) { return truth & mark; }

std::vector<std::string> functions_of(std::uint64_t truth) {
    const unsigned length = static_cast<unsigned>(truth >> length_shift & 0xff);
    std::vector<std::string> functions{"host::work", "host::follow"};
    for (unsigned step = 0; step < length; step++) {
        functions.push_back(truth >> step & 1 ? "host::step_right" : "host::step_left");
        functions.push_back("host::follow");
    }
    functions.push_back("host::arrive");
    functions.push_back(truth & freeing ? "host::DeviceAllocator::free" : "host::DeviceAllocator::allocate");
    functions.push_back("host::StackweaveRecorder::capture");
    return {functions.rbegin(), functions.rend()};
}

} // namespace host
