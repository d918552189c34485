/* Single captures after a sweep that has evicted everything else from the near caches. */
#define _GNU_SOURCE
#include "bench.h"
#include "ticks.h"

#include <stdlib.h>

enum { LINE = 64 };

static void sweep(const volatile char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i += LINE)
        (void)bytes[i];
}

void bench_drive_evicted(struct job *job)
{
    volatile char *bytes = malloc(job->sweep_bytes);
    if (!bytes)
        return;
    for (size_t i = 0; i < job->sweep_bytes; i += LINE)
        bytes[i] = 1;
    double scale = ns_per_tick();

    bench_check_all(job);
    for (size_t round = 0; round < job->rounds; round++) {
        for (size_t i = 0; i < job->subject_count; i++) {
            struct subject *subject = &job->subjects[i];
            if (!bench_is_timed(subject))
                continue;
            sweep(bytes, job->sweep_bytes);
            uint64_t start = ticks();
            subject->capture(job->buffer, job->max);
            subject->samples[round] = (double)(ticks() - start) * scale;
        }
    }
    free((void *)bytes);
}
