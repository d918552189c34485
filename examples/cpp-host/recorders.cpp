#include "recorder.hpp"

#include "stackweave.hpp"

namespace host {
namespace {

class StackweaveRecorder final : public Recorder {
public:
    std::uint64_t capture() noexcept override { return stackweave::stack::capture().number(); }
    void drop(std::uint64_t context) noexcept override { (void)stackweave_release(context); }
};

class NullRecorder final : public Recorder {
public:
    std::uint64_t capture() noexcept override { return 0; }
    void drop(std::uint64_t) noexcept override {}
};

} // namespace

Recorder &stackweave_recorder() {
    static StackweaveRecorder recorder;
    return recorder;
}

Recorder &null_recorder() {
    static NullRecorder recorder;
    return recorder;
}

} // namespace host
