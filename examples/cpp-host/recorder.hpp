// The recorders, which capture a stack for each allocation.
#pragma once

#include <cstdint>

namespace host {

// Captures and drops stacks on any thread, while the device lock is held. A context of 0 is no stack.
class Recorder {
public:
    virtual ~Recorder() = default;
    virtual std::uint64_t capture() noexcept = 0;
    virtual void drop(std::uint64_t context) noexcept = 0;
};

// Captures with Stackweave: no GIL, no lock, nothing to free.
Recorder &stackweave_recorder();
// Captures as PyTorch does: takes the GIL, walks frame objects and keeps a reference to each code object, which it
// releases while holding the GIL. It demonstrates the consequences. Null if there is no Python in the process.
Recorder *gil_recorder();
// Captures nothing.
Recorder &null_recorder();

// Captures by calling two functions.
class FunctionRecorder final : public Recorder {
public:
    std::uint64_t (*capture_function)() = nullptr;
    void (*drop_function)(std::uint64_t) = nullptr;

    std::uint64_t capture() noexcept override { return capture_function(); }
    void drop(std::uint64_t context) noexcept override { drop_function(context); }
};

} // namespace host
