/* What the benchmark's Python scripts call. */
#ifndef STACKWEAVE_BENCH_PYTHON_FUNCTIONS_H
#define STACKWEAVE_BENCH_PYTHON_FUNCTIONS_H

#include "contenders.h"

/* From now on the probe captures in this way. */
void bench_probe_select(capture_parts_fn capture, unsigned parts);
/* What the probe's last capture answered. */
size_t bench_probe_answer(void);
/* Nanoseconds of wall-clock time for each of so many captures, with pauses between. */
void bench_time_each(capture_parts_fn capture, unsigned parts, size_t repetitions, double *nanoseconds);

/* Function objects, in this order: probe, torch_way. Null: there is no such. */
object bench_python_function(size_t index);
/* Frames of what torch_way returned. */
size_t bench_capsule_len(object capsule);

#endif
