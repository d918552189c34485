/* A host in C11 with an allocator of its own: it gives out blocks of two "devices", and tells Stackweave of each.
 *
 * With a path it records the memory of the whole process there, and prints what its devices have used. Read the file with
 * `stackweave heap FILE --device 0`.
 */
#include "stackweave.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEGMENT_BYTES = 1 << 20, DEVICES = 2, STEPS = 100 };

static void fail(const char *what, int status)
{
    fprintf(stderr, "%s: %s: %s\n", what, stackweave_status_text(status), stackweave_last_error());
    exit(EXIT_FAILURE);
}

static void check(const char *what, int status)
{
    if (status != STACKWEAVE_OK)
        fail(what, status);
}

/* A device has one segment, of which blocks are cut one after another. */
struct device {
    pthread_mutex_t lock;
    uint64_t start, used;
};

static struct device devices[DEVICES] = {
    {PTHREAD_MUTEX_INITIALIZER, 0, 0}, {PTHREAD_MUTEX_INITIALIZER, 0, 0}};

static void open_device(int number)
{
    struct device *device = &devices[number];
    device->start = UINT64_C(0x100000000); /* the same addresses on each */
    stackweave_block segment = STACKWEAVE_BLOCK_INIT;
    segment.address = device->start;
    segment.bytes = SEGMENT_BYTES;
    segment.device = number;
    check("segment", stackweave_segment(&segment));
}

/* The lock is held: Stackweave takes none, and no GIL. */
static stackweave_block device_alloc(int number, uint64_t bytes, uint64_t stream)
{
    struct device *device = &devices[number];
    stackweave_block block = STACKWEAVE_BLOCK_INIT;
    pthread_mutex_lock(&device->lock);
    block.address = device->start + device->used;
    device->used += bytes;
    block.bytes = bytes;
    block.device = number;
    block.stream = stream;
    check("alloc", stackweave_alloc(&block));
    pthread_mutex_unlock(&device->lock);
    return block;
}

static void device_free(const stackweave_block *block)
{
    struct device *device = &devices[block->device];
    pthread_mutex_lock(&device->lock);
    check("free", stackweave_free(block));
    if (block->address + block->bytes == device->start + device->used)
        device->used -= block->bytes;
    pthread_mutex_unlock(&device->lock);
}

static stackweave_block load_weights(int device)
{
    return device_alloc(device, 4096, 0);
}

static void train_step(int device)
{
    stackweave_block activations = device_alloc(device, 1024, 1);
    stackweave_block gradients = device_alloc(device, 2048, 1);
    device_free(&gradients);
    device_free(&activations);
}

static void close_device(int number)
{
    stackweave_block segment = STACKWEAVE_BLOCK_INIT;
    segment.address = devices[number].start;
    segment.bytes = SEGMENT_BYTES;
    segment.device = number;
    check("segment_free", stackweave_segment_free(&segment));
}

static void print_usage(int64_t device)
{
    stackweave_memory_usage usage = {.size = sizeof usage};
    check("get_usage", stackweave_memory_get_usage(device, &usage));
    printf("device %" PRId64 ": %" PRIu64 " blocks taken, %" PRIu64 " given back, %" PRIu64 " bytes live, %" PRIu64
           " at the peak\n",
           device, usage.allocations, usage.frees, usage.live_bytes, usage.peak_bytes);
}

int main(int count, char **arguments)
{
    if (count > 1)
        check("memory_start", stackweave_memory_start(arguments[1], NULL));
    stackweave_block weights[DEVICES];
    for (int device = 0; device < DEVICES; device++) {
        open_device(device);
        weights[device] = load_weights(device);
        for (int step = 0; step < STEPS * (device + 1); step++)
            train_step(device);
    }
    if (count > 1) {
        for (int device = 0; device < DEVICES; device++)
            print_usage(device);
        check("memory_snapshot", stackweave_memory_snapshot());
    }
    device_free(&weights[1]); /* those of the first device leak */
    close_device(1);
    if (count > 1)
        check("memory_stop", stackweave_memory_stop());
    return EXIT_SUCCESS;
}
