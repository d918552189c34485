/* The time-stamp counter. */
#ifndef STACKWEAVE_BENCH_TICKS_H
#define STACKWEAVE_BENCH_TICKS_H

#include <stdint.h>
#include <time.h>
#include <x86intrin.h>

static inline double monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline uint64_t ticks(void)
{
    unsigned core;
    uint64_t now = __rdtscp(&core);
    _mm_lfence();
    return now;
}

/* Returns the length of a tick. This takes 20 ms. */
static inline double ns_per_tick(void)
{
    double start = monotonic_ns();
    uint64_t first = ticks();
    while (monotonic_ns() - start < 2e7)
        ;
    uint64_t last = ticks();
    return (monotonic_ns() - start) / (double)(last - first);
}

#endif
