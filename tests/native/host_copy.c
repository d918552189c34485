/* A host with its own allocator, linked with another copy of Stackweave: the part of the C interface that connects the two.
 *
 * It accepts a sink, and looks for a recorder when it is loaded, as libstackweave.so does.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { ALLOCATE = 1, FREE = 2, SEGMENT = 3, SEGMENT_FREE = 4 };

struct block {
    size_t size;
    uint64_t address, bytes;
    int64_t device;
    uint64_t stream, pool;
};

struct sink {
    size_t size;
    void (*record)(uint32_t kind, const struct block *block, uintptr_t stack_address);
};

static _Atomic(const struct sink *) present;

int stackweave_set_memory_sink(const struct sink *sink, const struct sink *before)
{
    enum { BUSY = 8 };
    return atomic_compare_exchange_strong(&present, &before, sink) ? 0 : BUSY;
}

/* Does what the C interface does in a constructor, for a module that it finds itself. */
void join(void *module)
{
    typedef const struct sink *provider(void);
    provider *provide = (provider *)(uintptr_t)dlsym(module, "stackweave_memory_sink");
    if (provide)
        stackweave_set_memory_sink(provide(), NULL);
}

int has_sink(void) { return present != NULL; }

static void record(uint32_t kind, uint64_t address, uint64_t bytes, int64_t device)
{
    const struct sink *sink = present;
    const struct block block = {sizeof block, address, bytes, device, 5, 6};
    if (sink)
        sink->record(kind, &block, (uintptr_t)__builtin_frame_address(0) - 8);
}

void device_allocate(uint64_t address, uint64_t bytes, int64_t device) { record(ALLOCATE, address, bytes, device); }
void device_free(uint64_t address, int64_t device) { record(FREE, address, 0, device); }
void device_reserve(uint64_t address, uint64_t bytes, int64_t device) { record(SEGMENT, address, bytes, device); }
void device_release(uint64_t address, uint64_t bytes, int64_t device) { record(SEGMENT_FREE, address, bytes, device); }
