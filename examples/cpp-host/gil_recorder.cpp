// A recorder that takes the GIL. Python's functions are found by name, so that the host is not linked with Python.
#include "recorder.hpp"

#include <dlfcn.h>
#include <vector>

namespace host {
namespace {

using Object = void *;

template <class Function> Function *find(const char *name) {
    return reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
}

struct Python {
    int (*take_gil)() = find<int()>("PyGILState_Ensure");
    void (*release_gil)(int) = find<void(int)>("PyGILState_Release");
    Object (*current_frame)() = find<Object()>("PyEval_GetFrame");
    Object (*frame_code)(Object) = find<Object(Object)>("PyFrame_GetCode");
    Object (*frame_back)(Object) = find<Object(Object)>("PyFrame_GetBack");
    void (*retain)(Object) = find<void(Object)>("Py_IncRef");
    void (*release)(Object) = find<void(Object)>("Py_DecRef");

    bool is_available() const {
        return take_gil && release_gil && current_frame && frame_code && frame_back && retain && release;
    }
};

class GilRecorder final : public Recorder {
public:
    std::uint64_t capture() noexcept override {
        const int state = python_.take_gil();
        auto *codes = new std::vector<Object>;
        Object frame = python_.current_frame();
        python_.retain(frame);
        while (frame) {
            codes->push_back(python_.frame_code(frame));
            Object back = python_.frame_back(frame);
            python_.release(frame);
            frame = back;
        }
        python_.release_gil(state);
        return reinterpret_cast<std::uint64_t>(codes);
    }

    void drop(std::uint64_t context) noexcept override {
        auto *codes = reinterpret_cast<std::vector<Object> *>(context);
        if (!codes)
            return;
        const int state = python_.take_gil();
        for (Object code : *codes)
            python_.release(code);
        python_.release_gil(state);
        delete codes;
    }

    bool is_available() const { return python_.is_available(); }

private:
    Python python_;
};

} // namespace

Recorder *gil_recorder() {
    static GilRecorder recorder;
    return recorder.is_available() ? &recorder : nullptr;
}

} // namespace host
