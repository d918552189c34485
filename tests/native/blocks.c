/* Allocates and frees memory with each function, and counts its requests, for measurements. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

void *take(size_t size) { return malloc(size); }
void *take_zeroed(size_t count, size_t size) { return calloc(count, size); }
void *resize(void *block, size_t size) { return realloc(block, size); }
void *resize_array(void *block, size_t count, size_t size) { return reallocarray(block, count, size); }
void *take_aligned(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
void *take_memaligned(size_t alignment, size_t size) { return memalign(alignment, size); }
void *take_pages(size_t size) { return valloc(size); }
void *take_whole_pages(size_t size) { return pvalloc(size); }
void give(void *block) { free(block); }

void *take_posix(size_t alignment, size_t size) {
    void *block = NULL;
    return posix_memalign(&block, alignment, size) ? NULL : block;
}

void *map(size_t size) {
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

int unmap(void *block, size_t size) { return munmap(block, size); }

void *remap(void *block, size_t before, size_t after) {
    void *moved = mremap(block, before, after, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? NULL : moved;
}

/* The totals of a churn. */
struct count {
    uint64_t allocations, bytes, frees, live_blocks, live_bytes, peak_bytes;
};

#define SLOTS 1000
struct churned {
    void *blocks[SLOTS];
    uint64_t sizes[SLOTS];
};

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void add(struct count *count, uint64_t size) {
    count->allocations++;
    count->bytes += size;
    count->live_blocks++;
    count->live_bytes += size;
    if (count->live_bytes > count->peak_bytes) count->peak_bytes = count->live_bytes;
}

static void subtract(struct count *count, uint64_t size) {
    count->frees++;
    count->live_blocks--;
    count->live_bytes -= size;
}

/* Allocates, resizes and frees blocks of random sizes, and leaves some. */
struct churned *churn(uint64_t seed, uint64_t rounds, struct count *count) {
    static struct churned all[64];
    struct churned *churned = &all[seed % 64];
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t place = next(&seed) % SLOTS, size = next(&seed) % 2000 + 1, kind = next(&seed) % 4;
        void **block = &churned->blocks[place];
        if (*block == NULL) {
            *block = kind == 0 ? calloc(1, size) : malloc(size);
            add(count, size);
        } else if (kind == 1) {
            *block = realloc(*block, size);
            subtract(count, churned->sizes[place]);
            add(count, size);
        } else {
            free(*block);
            *block = NULL;
            subtract(count, churned->sizes[place]);
            size = 0;
        }
        churned->sizes[place] = size;
    }
    return churned;
}

void free_churned(struct churned *churned) {
    for (int place = 0; place < SLOTS; place++) {
        free(churned->blocks[place]);
        churned->blocks[place] = NULL;
    }
}

/* Blocks that a thread unknown to Python allocates, for another thread to free. */
struct order {
    size_t blocks, size;
    void **taken;
};

static void *take_all(void *argument) {
    struct order *order = argument;
    for (size_t block = 0; block < order->blocks; block++) order->taken[block] = malloc(order->size);
    return NULL;
}

int take_in_other_thread(void **taken, size_t blocks, size_t size) {
    struct order order = {blocks, size, taken};
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, take_all, &order);
    return failed ? failed : pthread_join(thread, NULL);
}
