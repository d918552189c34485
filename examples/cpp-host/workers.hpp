// Threads of the host that no interpreter knows.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace host {

class Workers {
public:
    void start(unsigned count);
    // Waits for them. How many blocks they have allocated and freed.
    std::uint64_t stop();

private:
    std::vector<std::thread> threads_;
    std::atomic<bool> is_stopping_{false};
    std::atomic<std::uint64_t> blocks_{0};
};

// What a worker's path calls, innermost first, up to the worker's own function.
std::vector<std::string> functions_of(std::uint64_t truth);
// Whether a truth is one of a worker's.
bool is_workers(std::uint64_t truth);

} // namespace host
