// Stackweave for C++17: RAII over stackweave.h, header only. What may be called where is in docs/reference/c-interface.md.
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

// A call that failed, and what the library has to say about it.
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

// What to capture. The default is everything, from the caller outward.
struct request {
    std::uint32_t flags = STACKWEAVE_ALL;
    std::uint32_t skip = 0;
    std::uint32_t limit = 0;

    stackweave_request raw() const noexcept { return {sizeof(stackweave_request), flags, skip, limit}; }
};

// A named frame. What is not known is empty, or 0: lines and columns count from 1.
struct frame {
    stackweave_kind kind = STACKWEAVE_KIND_NATIVE;
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

// A captured stack. As cheap to copy as an integer; nothing here throws, takes a lock or allocates, but for `resolve` and
// `json`. Retaining and releasing cost nothing: a stack is shared and never freed.
class stack {
public:
    stack() noexcept = default;

    // Captures the calling thread's stack, from the function that calls this outward. Without a stack if there is no
    // memory for it.
#if defined(__GNUC__)
    __attribute__((always_inline))
#endif
    static inline stack capture(const request &wanted = {}) noexcept {
        const stackweave_request raw = wanted.raw();
        stack captured;
        (void)stackweave_capture(&raw, &captured.number_, &captured.stop_);
        return captured;
    }

    // What a signal interrupted, from its handler.
    static stack from_context(const void *context, const request &wanted = {}) noexcept {
        const stackweave_request raw = wanted.raw();
        stack captured;
        (void)stackweave_capture_from_context(context, &raw, &captured.number_, &captured.stop_);
        return captured;
    }

    explicit operator bool() const noexcept { return number_ != STACKWEAVE_NO_STACK; }
    bool operator==(const stack &other) const noexcept { return number_ == other.number_; }
    bool operator!=(const stack &other) const noexcept { return number_ != other.number_; }
    stackweave_stack number() const noexcept { return number_; }

    // Why it is not whole.
    stackweave_stop stop() const noexcept { return stop_; }
    bool is_whole() const noexcept { return number_ != STACKWEAVE_NO_STACK && stop_ == STACKWEAVE_WHOLE; }

    std::uint32_t frame_count() const noexcept {
        std::uint32_t count = 0;
        (void)stackweave_frame_count(number_, &count);
        return count;
    }

    // The named frames, innermost first.
    std::vector<frame> resolve() const;
    std::string json() const;

private:
    stackweave_stack number_ = STACKWEAVE_NO_STACK;
    stackweave_stop stop_ = STACKWEAVE_WHOLE;
};

namespace detail {

inline std::string text(const char *text) { return text ? std::string(text) : std::string(); }

// Exceptions do not cross C: they end the call and are thrown again behind it.
struct resolving {
    std::vector<std::vector<frame>> stacks;
    std::exception_ptr thrown;

    static int add(void *data, std::size_t stack, std::size_t, const stackweave_frame *named) noexcept {
        auto &self = *static_cast<resolving *>(data);
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

// The named frames of several stacks, in one batch, which is cheaper than one by one.
inline std::vector<std::vector<frame>> resolve(const std::vector<stack> &stacks) {
    const auto numbers = detail::numbers(stacks);
    detail::resolving resolving{std::vector<std::vector<frame>>(stacks.size()), nullptr};
    const auto status = stackweave_resolve(numbers.data(), numbers.size(), detail::resolving::add, &resolving);
    if (resolving.thrown)
        std::rethrow_exception(resolving.thrown);
    check(status);
    return std::move(resolving.stacks);
}

// The same as JSON.
inline std::string json(const std::vector<stack> &stacks) {
    const auto numbers = detail::numbers(stacks);
    char *text = nullptr;
    check(stackweave_resolve_json(numbers.data(), numbers.size(), &text));
    const auto free = [](char *given) { (void)stackweave_free_string(given); };
    const std::unique_ptr<char, decltype(free)> held(text, free);
    return std::string(text);
}

inline std::vector<frame> stack::resolve() const { return std::move(stackweave::resolve({*this}).front()); }
inline std::string stack::json() const { return stackweave::json({*this}); }

// A place in source code. What is not known is empty, or 0.
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

inline void add(stackweave_locations *locations, const location &place) noexcept {
    const stackweave_location raw = {sizeof(stackweave_location),
                                     place.name.c_str(),
                                     place.qualname.empty() ? nullptr : place.qualname.c_str(),
                                     place.filename.c_str(),
                                     place.line,
                                     place.column,
                                     place.end_line,
                                     place.end_column};
    (void)stackweave_locations_add(locations, &raw);
}

} // namespace detail

// An interpreter that adds frames, from its construction on until it is destroyed: a member of the class that
// implements `Interpreter`, declared last, so that it goes first. `Interpreter` has
//
//   std::size_t walk(stackweave_walk &walk) noexcept;              see stackweave_source
//   std::optional<stackweave::location> locate(std::uint64_t word);
//
// Destroying it waits for captures that are asking: not with a lock held that these two take.
template <class Interpreter> class registered_source {
public:
    explicit registered_source(Interpreter &interpreter) {
        stackweave_source source = {sizeof(stackweave_source), &interpreter, walk, locate};
        check(stackweave_register_source(&source, &handle_));
    }
    ~registered_source() { (void)stackweave_remove_source(handle_); }
    registered_source(const registered_source &) = delete;
    registered_source &operator=(const registered_source &) = delete;

private:
    static std::size_t walk(void *data, stackweave_walk *walk) noexcept {
        static_assert(noexcept(std::declval<Interpreter &>().walk(*walk)), "walk runs inside captures: it must not throw");
        return static_cast<Interpreter *>(data)->walk(*walk);
    }

    static void locate(void *data, std::uint64_t word, stackweave_locations *locations) noexcept {
        try {
            const std::optional<location> place = static_cast<Interpreter *>(data)->locate(word);
            if (place)
                detail::add(locations, *place);
        } catch (...) {
            // A frame without a name is what is left to say.
        }
    }

    std::uint64_t handle_ = 0;
};

// A code generator that knows what its generated Python code was made from, until this is destroyed. An exception of
// its function is taken for no answer.
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
    static void call(void *data, const char *filename, std::uint32_t line, stackweave_locations *frames) noexcept {
        try {
            for (const location &place : static_cast<registered_extra_frames *>(data)->frames_behind_(filename, line))
                detail::add(frames, place);
        } catch (...) {
        }
    }

    function frames_behind_;
    std::uint64_t handle_ = 0;
};

inline void prepare() { check(stackweave_prepare()); }

/// Once, before the first dump.
inline void prepare_dumps() { check(stackweave_prepare_dumps()); }

/// The stacks of all threads as text. Throws nothing, so that a watchdog may call it: the status says how it went.
inline stackweave_status dump_threads(int fd, std::uint32_t timeout_ms = 0) noexcept {
    return stackweave_dump_threads(fd, timeout_ms, nullptr);
}
inline void enable_python() { check(stackweave_enable_python()); }
inline void disable_python() { check(stackweave_disable_python()); }

// A block of the host's own allocator, or a segment that it gives out blocks of. Telling of one throws nothing, and costs a few
// nanoseconds if memory is not recorded.
struct block {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::int64_t device = 0;
    std::uint64_t stream = 0;
    std::uint64_t pool = 0;

    stackweave_block raw() const noexcept { return {sizeof(stackweave_block), address, bytes, device, stream, pool, nullptr, 0, 0}; }
};

// These have the caller's frame first, so that the stack begins with the allocator that tells.
#define STACKWEAVE_TELL_INLINE inline __attribute__((always_inline))
STACKWEAVE_TELL_INLINE stackweave_status tell_alloc(const block &taken) noexcept {
    const stackweave_block raw = taken.raw();
    return stackweave_alloc(&raw);
}
STACKWEAVE_TELL_INLINE stackweave_status tell_free(const block &given_back) noexcept {
    const stackweave_block raw = given_back.raw();
    return stackweave_free(&raw);
}
STACKWEAVE_TELL_INLINE stackweave_status tell_segment(const block &segment) noexcept {
    const stackweave_block raw = segment.raw();
    return stackweave_segment(&raw);
}
STACKWEAVE_TELL_INLINE stackweave_status tell_segment_free(const block &segment) noexcept {
    const stackweave_block raw = segment.raw();
    return stackweave_segment_free(&raw);
}
#undef STACKWEAVE_TELL_INLINE

// Records the memory of the process until it is stopped or goes away.
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
    void write_snapshot() { check(stackweave_memory_snapshot()); }

    // Of a device; -1 is the process.
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
