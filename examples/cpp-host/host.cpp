// The host's interface for Python's ctypes: by `CDLL`, which releases the GIL around each call, or by `PyDLL`, which
// keeps it.
#include "device_allocator.hpp"
#include "workers.hpp"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#define HOST_API extern "C" __attribute__((visibility("default"), noinline))

using host::device_allocator;

HOST_API std::uint64_t host_allocate(std::uint64_t size, std::uint64_t truth) {
    return device_allocator().allocate(size, truth);
}

HOST_API int host_free(std::uint64_t address, std::uint64_t truth) { return device_allocator().free(address, truth); }

// Calls back, as native code between Python frames.
HOST_API int host_call(int (*callback)()) { return callback(); }

// Selects a recorder: 0: none, 1: Stackweave, 2: with the GIL. Only while no block is live. Returns whether it exists.
HOST_API int host_set_recorder(int which) {
    host::Recorder *recorder = which == 0   ? &host::null_recorder()
                               : which == 1 ? &host::stackweave_recorder()
                                            : host::gil_recorder();
    if (recorder)
        device_allocator().set_recorder(*recorder);
    return recorder != nullptr;
}

// Selects a recorder that calls the given functions. Only while no block is live.
HOST_API void host_set_recorder_functions(std::uint64_t (*capture)(), void (*drop)(std::uint64_t)) {
    static host::FunctionRecorder recorder;
    recorder.capture_function = capture;
    recorder.drop_function = drop;
    device_allocator().set_recorder(recorder);
}

// Returns the wall-clock time in nanoseconds to allocate and free a block, with a capture and a drop for each.
HOST_API double host_time_blocks(std::size_t blocks) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t block = 0; block < blocks; block++)
        device_allocator().free(device_allocator().allocate(1024, host::no_truth), host::no_truth);
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    return taken.count() / static_cast<double>(blocks);
}

// Does the same for one block, after a pause in which other threads run.
HOST_API double host_time_block_after_pause() {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return host_time_blocks(1);
}

namespace {

host::Workers workers;
std::vector<std::uint64_t> read_out;

} // namespace

HOST_API void host_start_workers(unsigned count) { workers.start(count); }
HOST_API std::uint64_t host_stop_workers() { return workers.stop(); }

// Stores every distinct pair of truth and stack so far, each with its count; returns the number of pairs.
HOST_API std::size_t host_witnesses(const std::uint64_t **words) {
    read_out.clear();
    for (const auto &[witness, count] : device_allocator().witnesses())
        read_out.insert(read_out.end(), {witness.truth, witness.stack, count});
    *words = read_out.data();
    return read_out.size() / 3;
}

// Returns the functions of a worker's path, innermost first, separated by spaces; null for other truths.
HOST_API const char *host_functions_of(std::uint64_t truth) {
    static std::string text;
    if (!host::is_workers(truth))
        return nullptr;
    text.clear();
    for (const std::string &function : host::functions_of(truth))
        text += (text.empty() ? "" : " ") + function;
    return text.c_str();
}

// A deadlock if captures or drops take the GIL. One thread holds the GIL and waits for the device lock; the other holds
// the device lock, and then captures, or drops the stack that the first has captured.
namespace {

struct Meeting {
    std::atomic<bool> has_device_lock{false};
    std::atomic<bool> wants_device_lock{false};
    std::atomic<bool> is_done{false};
    std::uint64_t context = 0;
};

Meeting meeting;

void wait_for(const std::atomic<bool> &flag) {
    while (!flag.load())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

} // namespace

// Called with the GIL. Keeps it until it has acquired the device lock.
HOST_API void host_gil_then_lock() {
    meeting.context = device_allocator().recorder().capture();
    wait_for(meeting.has_device_lock);
    meeting.wants_device_lock.store(true);
    const std::lock_guard<std::mutex> held(device_allocator().device_lock());
}

// Called without the GIL.
HOST_API void host_lock_then_capture(int only_drops) {
    {
        const std::lock_guard<std::mutex> held(device_allocator().device_lock());
        meeting.has_device_lock.store(true);
        wait_for(meeting.wants_device_lock);
        if (!only_drops)
            device_allocator().recorder().drop(device_allocator().recorder().capture());
        device_allocator().recorder().drop(meeting.context);
    }
    meeting.is_done.store(true);
}

// Does the same on a thread of the host that Python does not know.
HOST_API void host_lock_then_capture_in_thread(int only_drops) {
    std::thread(host_lock_then_capture, only_drops).detach();
}

HOST_API int host_is_done() { return meeting.is_done.load(); }
