// Stackweave for C++17: a header-only RAII wrapper of stackweave.h. docs/reference/c-interface.md lists where each function may
// be called.
#ifndef STACKWEAVE_HPP
#define STACKWEAVE_HPP

#include "stackweave.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stackweave {

// The error of a call, with the library's message.
class error : public std::runtime_error {
public:
    explicit error(stackweave_status status)
        : std::runtime_error(std::string(stackweave_status_text(status)) + ": " + stackweave_last_error()),
          status_(status) {}

    stackweave_status status() const noexcept { return status_; }

private:
    stackweave_status status_;
};

inline void check(stackweave_status status) {
    if (status == STACKWEAVE_NO_MEMORY)
        throw std::bad_alloc();
    if (status != STACKWEAVE_OK)
        throw error(status);
}

// Which frames to capture. The default requests all frames, starting with the caller.
struct request {
    std::uint32_t flags = STACKWEAVE_CAPTURE_ALL;
    std::uint32_t skip = 0;
    std::uint32_t limit = 0;

    stackweave_capture_request raw() const noexcept { return {sizeof(stackweave_capture_request), flags, skip, limit}; }
};

// A named frame. An unknown value is empty or 0: lines and columns count from 1.
struct frame {
    stackweave_frame_kind kind = STACKWEAVE_FRAME_NATIVE;
    bool is_inlined = false;
    std::string name;
    std::string qualname;
    std::string filename;
    std::string module;
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::uint32_t end_line = 0;
    std::uint32_t end_column = 0;
    std::uint64_t address = 0;
};

// A captured stack, which can be copied like an integer. Only `resolve` and `json` throw, take locks or allocate. Stacks are
// shared and never freed, so they need no reference counts.
class stack {
public:
    stack() noexcept = default;

    // Captures the stack of the calling thread, starting with the caller of this function. Returns no stack if there is no
    // memory for it.
#if defined(__GNUC__)
    __attribute__((always_inline))
#endif
    static inline stack capture(const request &requested = {}) noexcept {
        const stackweave_capture_request raw = requested.raw();
        stack captured;
        (void)stackweave_capture(&raw, &captured.number_, &captured.stop_reason_);
        return captured;
    }

    // Captures the stack that a signal interrupted. Must be called in the signal's handler.
    static stack from_context(const void *context, const request &requested = {}) noexcept {
        const stackweave_capture_request raw = requested.raw();
        stack captured;
        (void)stackweave_capture_from_context(context, &raw, &captured.number_, &captured.stop_reason_);
        return captured;
    }

    explicit operator bool() const noexcept { return number_ != STACKWEAVE_NO_STACK; }
    bool operator==(const stack &other) const noexcept { return number_ == other.number_; }
    bool operator!=(const stack &other) const noexcept { return number_ != other.number_; }
    stackweave_stack number() const noexcept { return number_; }

    // Returns why the stack is incomplete.
    stackweave_stop_reason stop_reason() const noexcept { return stop_reason_; }
    bool is_complete() const noexcept { return number_ != STACKWEAVE_NO_STACK && stop_reason_ == STACKWEAVE_STOP_NONE; }

    std::uint32_t frame_count() const noexcept {
        std::uint32_t count = 0;
        (void)stackweave_get_frame_count(number_, &count);
        return count;
    }

    // Returns the named frames, innermost first.
    std::vector<frame> resolve() const;
    std::string json() const;

private:
    stackweave_stack number_ = STACKWEAVE_NO_STACK;
    stackweave_stop_reason stop_reason_ = STACKWEAVE_STOP_NONE;
};

namespace detail {

inline std::string text(const char *text) { return text ? std::string(text) : std::string(); }

// Collects the frames of a call. An exception must not cross C, so it ends the call and is rethrown afterwards.
struct frame_collector {
    std::vector<std::vector<frame>> stacks;
    std::exception_ptr thrown;

    static int add(void *data, std::size_t stack, std::size_t, const stackweave_frame *named) noexcept {
        auto &self = *static_cast<frame_collector *>(data);
        try {
            self.stacks[stack].push_back(
                {named->kind, named->is_inlined, text(named->name), text(named->qualname), text(named->filename),
                 text(named->module), named->line, named->column, named->end_line, named->end_column, named->address});
            return 0;
        } catch (...) {
            self.thrown = std::current_exception();
            return 1;
        }
    }
};

inline std::vector<stackweave_stack> numbers(const std::vector<stack> &stacks) {
    std::vector<stackweave_stack> numbers;
    numbers.reserve(stacks.size());
    for (const stack &one : stacks)
        numbers.push_back(one.number());
    return numbers;
}

} // namespace detail

// Returns the named frames of several stacks, in one batch, which is cheaper than one call for each stack.
inline std::vector<std::vector<frame>> resolve(const std::vector<stack> &stacks) {
    const auto numbers = detail::numbers(stacks);
    detail::frame_collector collector{std::vector<std::vector<frame>>(stacks.size()), nullptr};
    const auto status = stackweave_resolve(numbers.data(), numbers.size(), detail::frame_collector::add, &collector);
    if (collector.thrown)
        std::rethrow_exception(collector.thrown);
    check(status);
    return std::move(collector.stacks);
}

// Returns the named frames of several stacks as JSON.
inline std::string json(const std::vector<stack> &stacks) {
    const auto numbers = detail::numbers(stacks);
    char *text = nullptr;
    check(stackweave_resolve_json(numbers.data(), numbers.size(), &text));
    const auto free = [](char *allocated) { (void)stackweave_free_string(allocated); };
    const std::unique_ptr<char, decltype(free)> owner(text, free);
    return std::string(text);
}

inline std::vector<frame> stack::resolve() const { return std::move(stackweave::resolve({*this}).front()); }
inline std::string stack::json() const { return stackweave::json({*this}); }

// A location in source code. An unknown value is empty or 0.
struct location {
    std::string name;
    std::string qualname;
    std::string filename;
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::uint32_t end_line = 0;
    std::uint32_t end_column = 0;
};

namespace detail {

inline void add(stackweave_location_list *locations, const location &added) noexcept {
    const stackweave_location raw = {sizeof(stackweave_location),
                                     added.name.c_str(),
                                     added.qualname.empty() ? nullptr : added.qualname.c_str(),
                                     added.filename.c_str(),
                                     added.line,
                                     added.column,
                                     added.end_line,
                                     added.end_column};
    (void)stackweave_add_location(locations, &raw);
}

} // namespace detail

// Registers an interpreter as a frame source until this object is destroyed. Make it the last member of the class that
// implements `Interpreter`, so that it is destroyed first. `Interpreter` has
//
//   std::size_t walk(stackweave_source_walk &walk) noexcept;              see stackweave_frame_source
//   std::optional<stackweave::location> locate(std::uint64_t word);
//
// The destructor waits for threads that are in these functions, so don't destroy it with a lock held that they take.
template <class Interpreter> class registered_frame_source {
public:
    explicit registered_frame_source(Interpreter &interpreter) {
        stackweave_frame_source source = {sizeof(stackweave_frame_source), &interpreter, walk, locate};
        check(stackweave_register_frame_source(&source, &handle_));
    }
    ~registered_frame_source() { (void)stackweave_remove_frame_source(handle_); }
    registered_frame_source(const registered_frame_source &) = delete;
    registered_frame_source &operator=(const registered_frame_source &) = delete;

private:
    static std::size_t walk(void *data, stackweave_source_walk *walk) noexcept {
        static_assert(noexcept(std::declval<Interpreter &>().walk(*walk)), "walk runs inside captures: it must not throw");
        return static_cast<Interpreter *>(data)->walk(*walk);
    }

    static void locate(void *data, std::uint64_t word, stackweave_location_list *locations) noexcept {
        try {
            const std::optional<location> found = static_cast<Interpreter *>(data)->locate(word);
            if (found)
                detail::add(locations, *found);
        } catch (...) {
            // The frame stays without a name.
        }
    }

    std::uint64_t handle_ = 0;
};

// Registers a code generator, which reports the original frames of generated Python code, until this object is destroyed. If
// its function throws, it adds no frames.
class registered_extra_frames {
public:
    using function = std::function<std::vector<location>(std::string_view filename, std::uint32_t line)>;

    explicit registered_extra_frames(function frames_behind) : frames_behind_(std::move(frames_behind)) {
        stackweave_extra_frames extra = {sizeof(stackweave_extra_frames), this, call};
        check(stackweave_register_extra_frames(&extra, &handle_));
    }
    ~registered_extra_frames() { (void)stackweave_remove_extra_frames(handle_); }
    registered_extra_frames(const registered_extra_frames &) = delete;
    registered_extra_frames &operator=(const registered_extra_frames &) = delete;

private:
    static void call(void *data, const char *filename, std::uint32_t line, stackweave_location_list *frames) noexcept {
        try {
            for (const location &original : static_cast<registered_extra_frames *>(data)->frames_behind_(filename, line))
                detail::add(frames, original);
        } catch (...) {
        }
    }

    function frames_behind_;
    std::uint64_t handle_ = 0;
};

inline void prepare_thread() { check(stackweave_prepare_thread()); }

// Must be called before the first dump.
inline void prepare_dumps() { check(stackweave_prepare_dumps()); }

// Writes the stacks of all threads as text. It does not throw, so that a watchdog can call it; the status reports errors.
inline stackweave_status dump_threads(int fd, std::uint32_t timeout_ms = 0) noexcept {
    return stackweave_dump_threads(fd, timeout_ms, nullptr);
}
inline void enable_python() { check(stackweave_enable_python()); }
inline void disable_python() { check(stackweave_disable_python()); }

// A block of the host's own allocator, or a segment that it splits into blocks.
struct host_block {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::int64_t device = 0;
    std::uint64_t stream = 0;
    std::uint64_t pool = 0;

    stackweave_host_block raw() const noexcept { return {sizeof(stackweave_host_block), address, bytes, device, stream, pool, nullptr, 0, 0}; }
};

// The functions that record events of the host's allocator don't throw, and cost a few nanoseconds if memory is not recorded.
// They are inlined, so that the recorded stack begins with the allocator.
#define STACKWEAVE_RECORD_INLINE inline __attribute__((always_inline))
STACKWEAVE_RECORD_INLINE stackweave_status record_allocate(const host_block &allocated) noexcept {
    const stackweave_host_block raw = allocated.raw();
    return stackweave_record_allocate(&raw);
}
STACKWEAVE_RECORD_INLINE stackweave_status record_free(const host_block &freed) noexcept {
    const stackweave_host_block raw = freed.raw();
    return stackweave_record_free(&raw);
}
STACKWEAVE_RECORD_INLINE stackweave_status record_segment_allocate(const host_block &segment) noexcept {
    const stackweave_host_block raw = segment.raw();
    return stackweave_record_segment_allocate(&raw);
}
STACKWEAVE_RECORD_INLINE stackweave_status record_segment_free(const host_block &segment) noexcept {
    const stackweave_host_block raw = segment.raw();
    return stackweave_record_segment_free(&raw);
}
#undef STACKWEAVE_RECORD_INLINE

// Records the memory of the process until it is stopped or destroyed.
class memory_recording {
public:
    explicit memory_recording(const std::string &path,
                              const stackweave_memory_options &options = STACKWEAVE_MEMORY_OPTIONS_INIT) {
        check(stackweave_memory_start(path.c_str(), &options));
    }
    memory_recording(const memory_recording &) = delete;
    memory_recording &operator=(const memory_recording &) = delete;
    ~memory_recording() {
        if (!is_stopped_)
            (void)stackweave_memory_stop();
    }

    void pause() { check(stackweave_memory_pause()); }
    void resume() { check(stackweave_memory_resume()); }
    void write_snapshot() { check(stackweave_memory_write_snapshot()); }

    // Returns the usage of a device; -1 is the process's own memory.
    stackweave_memory_usage usage(std::int64_t device = -1) const {
        stackweave_memory_usage usage{};
        usage.size = sizeof usage;
        check(stackweave_memory_get_usage(device, &usage));
        return usage;
    }

    void stop() {
        is_stopped_ = true;
        check(stackweave_memory_stop());
    }

private:
    bool is_stopped_ = false;
};

inline stackweave_stats stats() {
    stackweave_stats stats = {};
    stats.size = sizeof stats;
    check(stackweave_get_stats(&stats));
    return stats;
}

} // namespace stackweave

#endif
