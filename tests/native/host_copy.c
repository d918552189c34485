/* A host with an allocator of its own, linked with another copy of Stackweave: the part of the C interface that joins the two.
 *
 * It takes a sink when it is given one, and looks for a recorder when it is loaded, as libstackweave.so does.
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
    void (*tell)(uint32_t what, const struct block *block, uintptr_t place);
};

static _Atomic(const struct sink *) present;

int stackweave_set_memory_sink(const struct sink *sink, const struct sink *before)
{
    enum { BUSY = 8 };
    return atomic_compare_exchange_strong(&present, &before, sink) ? 0 : BUSY;
}

/* What the C interface does in a constructor, for a module that it finds by itself. */
void join(void *module)
{
    typedef const struct sink *provider(void);
    provider *provide = (provider *)(uintptr_t)dlsym(module, "stackweave_memory_sink");
    if (provide)
        stackweave_set_memory_sink(provide(), NULL);
}

int has_sink(void) { return present != NULL; }

static void tell(uint32_t what, uint64_t address, uint64_t bytes, int64_t device)
{
    const struct sink *sink = present;
    const struct block block = {sizeof block, address, bytes, device, 5, 6};
    if (sink)
        sink->tell(what, &block, (uintptr_t)__builtin_frame_address(0) - 8);
}

void device_take(uint64_t address, uint64_t bytes, int64_t device) { tell(ALLOCATE, address, bytes, device); }
void device_give(uint64_t address, int64_t device) { tell(FREE, address, 0, device); }
void device_open(uint64_t address, uint64_t bytes, int64_t device) { tell(SEGMENT, address, bytes, device); }
void device_close(uint64_t address, uint64_t bytes, int64_t device) { tell(SEGMENT_FREE, address, bytes, device); }
