/* What the benchmark's Python scripts call. */
#ifndef STACKWEAVE_BENCH_PYTHON_FUNCTIONS_H
#define STACKWEAVE_BENCH_PYTHON_FUNCTIONS_H

#include "contenders.h"

/* From now on the probe captures in this way. */
void bench_probe_select(capture_parts_fn capture, unsigned parts);
/* What the probe's last capture answered. */
size_t bench_probe_result(void);
/* Nanoseconds of wall-clock time for each of so many captures, with pauses between; and what the last one answered. */
size_t bench_time_each(capture_parts_fn capture, unsigned parts, size_t repetitions, double *nanoseconds);

/* New function objects: probe(), torch_way(parts), and one that times the calls of another. */
object bench_new_probe(void);
object bench_new_torch_way(void);
object bench_new_timed(object callable);
/* Nanoseconds of a timed call: the mean of the middle half since the last query. An interrupted call does not move
 * it, and it is finer than the counter's steps, which some machines make 10 ns wide.
 */
double bench_take_timed_ns(void);
/* Frames of what torch_way returned. */
size_t bench_capsule_len(object capsule);

#endif
