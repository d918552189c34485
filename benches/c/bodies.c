/* The ways in which a repetition captures. */
#include "bench.h"

#include <alloca.h>

void bench_body_same_stack(const struct job *job, capture_fn capture, size_t repetitions)
{
    for (size_t i = 0; i < repetitions; i++)
        capture(job->buffer, job->max);
}

void bench_body_tree(const struct job *job, capture_fn capture, size_t repetitions)
{
    for (size_t i = 0; i < repetitions; i++)
        job->tree(capture, job->buffer, job->max);
}

struct shifted {
    const struct job *job;
    capture_fn capture;
};

static void capture_once(void *argument)
{
    const struct shifted *shifted = argument;
    shifted->capture(shifted->job->buffer, shifted->job->max);
}

static __attribute__((noinline)) void descend(struct shifted *shifted, size_t shift)
{
    volatile char *room = alloca(16 * (shift + 1));
    room[0] = 0;
    shifted->job->chain(shifted->job->depth, capture_once, shifted);
    room[1] = 0;
}

/* Descends the chain for each capture, each time from another stack address: every rule is
 * known, and no word of the last stack is at the same address.
 */
void bench_body_shifted(const struct job *job, capture_fn capture, size_t repetitions)
{
    struct shifted shifted = {job, capture};
    for (size_t i = 0; i < repetitions; i++)
        descend(&shifted, i % 61);
}
