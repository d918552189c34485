// Threads of the host, which no interpreter knows.
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
    // Stops them and waits. Returns the number of blocks that they have allocated and freed.
    std::uint64_t stop();

private:
    std::vector<std::thread> threads_;
    std::atomic<bool> is_stopping_{false};
    std::atomic<std::uint64_t> blocks_{0};
};

// Returns the functions of a worker's path, innermost first, up to the worker's own function.
std::vector<std::string> functions_of(std::uint64_t truth);
// Returns whether a truth belongs to a worker.
bool is_workers(std::uint64_t truth);

} // namespace host
