// Who captures a stack for each allocation.
#pragma once

#include <cstdint>

namespace host {

// Captures and drops stacks, with the device lock held, on any thread. A context of 0 is no stack.
class Recorder {
public:
    virtual ~Recorder() = default;
    virtual std::uint64_t capture() noexcept = 0;
    virtual void drop(std::uint64_t context) noexcept = 0;
};

// By Stackweave: no GIL, no lock, nothing to free.
Recorder &stackweave_recorder();
// As PyTorch gathers: takes the GIL, walks frame objects and keeps a reference to each code object; gives them back with
// the GIL held. Here to show what follows from that. Null if there is no Python in the process.
Recorder *gil_recorder();
// Captures nothing.
Recorder &null_recorder();

// Captures by two functions.
class FunctionRecorder final : public Recorder {
public:
    std::uint64_t (*capture_function)() = nullptr;
    void (*drop_function)(std::uint64_t) = nullptr;

    std::uint64_t capture() noexcept override { return capture_function(); }
    void drop(std::uint64_t context) noexcept override { drop_function(context); }
};

} // namespace host
