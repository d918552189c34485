/* A host in C11 with its own allocator, which allocates blocks on two "devices" and records each with Stackweave.
 *
 * With a path as argument it records the memory of the whole process there, and prints the usage of its devices. Read the file with
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

/* A device has one segment, which is split into blocks one after another. */
struct device {
    pthread_mutex_t lock;
    uint64_t start, used;
};

static struct device devices[DEVICES] = {
    {PTHREAD_MUTEX_INITIALIZER, 0, 0}, {PTHREAD_MUTEX_INITIALIZER, 0, 0}};

static void open_device(int number)
{
    struct device *device = &devices[number];
    device->start = UINT64_C(0x100000000); /* the same addresses on each device */
    stackweave_host_block segment = STACKWEAVE_HOST_BLOCK_INIT;
    segment.address = device->start;
    segment.bytes = SEGMENT_BYTES;
    segment.device = number;
    check("record_segment_allocate", stackweave_record_segment_allocate(&segment));
}

/* Holds the lock: Stackweave takes neither a lock nor the GIL. */
static stackweave_host_block device_alloc(int number, uint64_t bytes, uint64_t stream)
{
    struct device *device = &devices[number];
    stackweave_host_block block = STACKWEAVE_HOST_BLOCK_INIT;
    pthread_mutex_lock(&device->lock);
    block.address = device->start + device->used;
    device->used += bytes;
    block.bytes = bytes;
    block.device = number;
    block.stream = stream;
    check("record_allocate", stackweave_record_allocate(&block));
    pthread_mutex_unlock(&device->lock);
    return block;
}

static void device_free(const stackweave_host_block *block)
{
    struct device *device = &devices[block->device];
    pthread_mutex_lock(&device->lock);
    check("record_free", stackweave_record_free(block));
    if (block->address + block->bytes == device->start + device->used)
        device->used -= block->bytes;
    pthread_mutex_unlock(&device->lock);
}

static stackweave_host_block load_weights(int device)
{
    return device_alloc(device, 4096, 0);
}

static void train_step(int device)
{
    stackweave_host_block activations = device_alloc(device, 1024, 1);
    stackweave_host_block gradients = device_alloc(device, 2048, 1);
    device_free(&gradients);
    device_free(&activations);
}

static void close_device(int number)
{
    stackweave_host_block segment = STACKWEAVE_HOST_BLOCK_INIT;
    segment.address = devices[number].start;
    segment.bytes = SEGMENT_BYTES;
    segment.device = number;
    check("record_segment_free", stackweave_record_segment_free(&segment));
}

static void print_usage(int64_t device)
{
    stackweave_memory_usage usage = {.size = sizeof usage};
    check("get_usage", stackweave_memory_get_usage(device, &usage));
    printf("device %" PRId64 ": %" PRIu64 " blocks allocated, %" PRIu64 " freed, %" PRIu64 " bytes live, %" PRIu64
           " at the peak\n",
           device, usage.allocations, usage.frees, usage.live_bytes, usage.peak_bytes);
}

int main(int count, char **arguments)
{
    if (count > 1)
        check("memory_start", stackweave_memory_start(arguments[1], NULL));
    stackweave_host_block weights[DEVICES];
    for (int device = 0; device < DEVICES; device++) {
        open_device(device);
        weights[device] = load_weights(device);
        for (int step = 0; step < STEPS * (device + 1); step++)
            train_step(device);
    }
    if (count > 1) {
        for (int device = 0; device < DEVICES; device++)
            print_usage(device);
        check("memory_write_snapshot", stackweave_memory_write_snapshot());
    }
    device_free(&weights[1]); /* the weights of the first device leak */
    close_device(1);
    if (count > 1)
        check("memory_stop", stackweave_memory_stop());
    return EXIT_SUCCESS;
}
