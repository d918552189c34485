// Allocates and frees blocks, like native code that keeps a few of them at a time.

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { KEPT = 64, MOST_THREADS = 16 };

static void *churn(void *pairs)
{
    void *blocks[KEPT] = {0};
    uint32_t random = 12345;
    for (uintptr_t pair = 0; pair < (uintptr_t)pairs; pair++) {
        random = random * 1664525 + 1013904223;
        void **block = &blocks[pair % KEPT];
        free(*block);
        *block = malloc(16 + (random >> 22));
        if (*block) {
            *(volatile char *)*block = 1;
        }
    }
    for (int slot = 0; slot < KEPT; slot++) {
        free(blocks[slot]);
    }
    return NULL;
}

void stackweave_bench_c_malloc_churn(uint64_t pairs, unsigned threads)
{
    pthread_t others[MOST_THREADS];
    unsigned started = 0;
    while (started + 1 < threads && started < MOST_THREADS) {
        if (pthread_create(&others[started], NULL, churn, (void *)(uintptr_t)pairs)) {
            break;
        }
        started++;
    }
    churn((void *)(uintptr_t)pairs);
    for (unsigned thread = 0; thread < started; thread++) {
        pthread_join(others[thread], NULL);
    }
}
