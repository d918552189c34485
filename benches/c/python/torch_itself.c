/* torch's capture function, called without its Python binding. */
#define _GNU_SOURCE
#include "contenders.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* A `std::shared_ptr<CapturedTraceback>` and its counts, in libstdc++'s layout. */
struct counts {
    void (**functions)(struct counts *);
    int32_t uses;
    int32_t watchers;
};
struct shared_pointer {
    void *object;
    struct counts *counts;
};
enum { DISPOSE = 2, DESTROY = 3 };

/* The first members of a `CapturedTraceback`. */
struct vector {
    const char *begin;
    const char *end;
    const char *capacity_end;
};
struct captured_traceback {
    void *functions;
    struct vector python;
    struct vector native;
};
enum { PYTHON_FRAME_SIZE = 16 };

/* gather() returns a shared pointer through a pointer that the caller passes as a hidden first argument. */
static void *(*gather)(struct shared_pointer *result, bool python, bool script, bool native);

int bench_torch_bind(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    void *symbol = handle ? dlsym(handle, "_ZN5torch17CapturedTraceback6gatherEbbb") : NULL;
    memcpy(&gather, &symbol, sizeof symbol);
    return symbol ? 0 : -1;
}

static void let_go(struct counts *counts)
{
    if (__atomic_sub_fetch(&counts->uses, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    counts->functions[DISPOSE](counts);
    if (__atomic_sub_fetch(&counts->watchers, 1, __ATOMIC_ACQ_REL) == 0)
        counts->functions[DESTROY](counts);
}

static size_t frames_of(const struct captured_traceback *traceback)
{
    return (size_t)(traceback->python.end - traceback->python.begin) / PYTHON_FRAME_SIZE +
           (size_t)(traceback->native.end - traceback->native.begin) / sizeof(void *);
}

size_t bench_torch_capture(unsigned parts)
{
    struct shared_pointer result = {0};
    gather(&result, parts & PART_PYTHON, false, parts & PART_NATIVE);
    if (!result.counts)
        return 0;
    size_t frames = frames_of(result.object);
    let_go(result.counts);
    return frames;
}
