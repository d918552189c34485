#define _GNU_SOURCE
#include "functions.h"
#include "ticks.h"

#include <stdlib.h>

static const char traceback_name[] = "traceback";

static capture_parts_fn probe_capture;
static unsigned probe_parts;
static size_t probe_result;

void bench_probe_select(capture_parts_fn capture, unsigned parts)
{
    probe_capture = capture;
    probe_parts = parts;
}

size_t bench_probe_result(void)
{
    return probe_result;
}

static object none(void)
{
    retain(python.none);
    return python.none;
}

/* probe(): makes one capture with the selected contender. */
static object probe(object self, object nothing)
{
    (void)self;
    (void)nothing;
    probe_result = probe_capture(probe_parts);
    return none();
}

static void capsule_died(object capsule)
{
    bench_torch_way_drop(python.capsule_pointer(capsule, traceback_name));
    bench_torch_way_drain();
}

/* torch_way(parts): returns a traceback that Python owns. */
static object torch_way(object self, object parts)
{
    (void)self;
    struct traceback *traceback = bench_torch_way_gather((unsigned)python.as_unsigned(parts));
    return python.capsule_new(traceback, traceback_name, capsule_died);
}

enum { MOST_TIMED = 4096 };
static double timed_ticks[MOST_TIMED];
static size_t timed_count;

static int by_value(const void *one, const void *other)
{
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

double bench_take_timed_ns(void)
{
    size_t kept = timed_count < MOST_TIMED ? timed_count : MOST_TIMED;
    timed_count = 0;
    if (kept == 0)
        return 0;
    static double scale;
    if (scale == 0)
        scale = ns_per_tick();
    qsort(timed_ticks, kept, sizeof *timed_ticks, by_value);
    double sum = 0;
    for (size_t i = kept / 4; i < kept - kept / 4; i++)
        sum += timed_ticks[i];
    return sum / (double)(kept - kept / 4 * 2) * scale;
}

/* timed(): calls the function that it was created for. */
static object timed(object self, object nothing)
{
    (void)nothing;
    uint64_t start = ticks();
    object result = python.call(self, NULL);
    timed_ticks[timed_count++ % MOST_TIMED] = (double)(ticks() - start);
    return result;
}

static struct method probe_method = {"probe", probe, METH_NOARGS, NULL};
static struct method torch_way_method = {"torch_way", torch_way, METH_O, NULL};
static struct method timed_method = {"timed", timed, METH_NOARGS, NULL};

object bench_new_probe(void)
{
    return python.function_new(&probe_method, NULL, NULL);
}

object bench_new_torch_way(void)
{
    return python.function_new(&torch_way_method, NULL, NULL);
}

object bench_new_timed(object callable)
{
    return python.function_new(&timed_method, callable, NULL);
}

size_t bench_capsule_len(object capsule)
{
    return bench_torch_way_len(python.capsule_pointer(capsule, traceback_name));
}

size_t bench_time_each(capture_parts_fn capture, unsigned parts, size_t repetitions, double *nanoseconds)
{
    /* Long enough for a thread that waits for the GIL to get it back after the last capture. */
    static const struct timespec pause = {.tv_nsec = 1000000};
    size_t result = 0;
    for (size_t i = 0; i < repetitions; i++) {
        nanosleep(&pause, NULL);
        double start = monotonic_ns();
        result = capture(parts);
        nanoseconds[i] = monotonic_ns() - start;
    }
    return result;
}
