/* The functions that the benchmark's Python scripts call. */
#ifndef STACKWEAVE_BENCH_PYTHON_FUNCTIONS_H
#define STACKWEAVE_BENCH_PYTHON_FUNCTIONS_H

#include "contenders.h"

/* Selects the contender and the parts that the probe captures from now on. */
void bench_probe_select(capture_parts_fn capture, unsigned parts);
/* Returns the result of the probe's last capture. */
size_t bench_probe_result(void);
/* Captures `repetitions` times with pauses between. Stores the wall-clock nanoseconds of each, and returns the last
 * result.
 */
size_t bench_time_each(capture_parts_fn capture, unsigned parts, size_t repetitions, double *nanoseconds);

/* Create function objects: probe(), torch_way(parts), and one that times the calls of another. */
object bench_new_probe(void);
object bench_new_torch_way(void);
object bench_new_timed(object callable);
/* Returns the nanoseconds of a timed call: the mean of the middle half since the last query. An interrupted call does
 * not change it, and it is finer than the steps of the counter, which are 10 ns wide on some machines.
 */
double bench_take_timed_ns(void);
/* Returns the number of frames in a traceback from torch_way. */
size_t bench_capsule_len(object capsule);

#endif
