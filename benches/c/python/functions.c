#define _GNU_SOURCE
#include "functions.h"

#include <time.h>

static const char traceback_name[] = "traceback";

static capture_parts_fn probe_capture;
static unsigned probe_parts;
static size_t probe_answer;

void bench_probe_select(capture_parts_fn capture, unsigned parts)
{
    probe_capture = capture;
    probe_parts = parts;
}

size_t bench_probe_answer(void)
{
    return probe_answer;
}

static object none(void)
{
    retain(python.none);
    return python.none;
}

/* probe(): one capture by whoever is selected. */
static object probe(object self, object nothing)
{
    (void)self;
    (void)nothing;
    probe_answer = probe_capture(probe_parts);
    return none();
}

static void capsule_died(object capsule)
{
    bench_torch_way_drop(python.capsule_pointer(capsule, traceback_name));
    bench_torch_way_drain();
}

/* torch_way(parts): a traceback that Python owns. */
static object torch_way(object self, object parts)
{
    (void)self;
    struct traceback *traceback = bench_torch_way_gather((unsigned)python.as_unsigned(parts));
    return python.capsule_new(traceback, traceback_name, capsule_died);
}

static struct method methods[] = {
    {"probe", probe, METH_NOARGS, NULL},
    {"torch_way", torch_way, METH_O, NULL},
};

object bench_python_function(size_t index)
{
    if (index >= sizeof methods / sizeof methods[0])
        return NULL;
    return python.function_new(&methods[index], NULL, NULL);
}

size_t bench_capsule_len(object capsule)
{
    return bench_torch_way_len(python.capsule_pointer(capsule, traceback_name));
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

void bench_time_each(capture_parts_fn capture, unsigned parts, size_t repetitions, double *nanoseconds)
{
    /* Long enough for whoever waits for the GIL to have got it back from the last capture. */
    static const struct timespec pause = {.tv_nsec = 200000};
    for (size_t i = 0; i < repetitions; i++) {
        nanosleep(&pause, NULL);
        double start = now_ns();
        capture(parts);
        nanoseconds[i] = now_ns() - start;
    }
}
