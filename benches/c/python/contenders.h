/* The contenders that capture Python stacks when C code calls them. */
#ifndef STACKWEAVE_BENCH_PYTHON_CONTENDERS_H
#define STACKWEAVE_BENCH_PYTHON_CONTENDERS_H

#include "python_api.h"

enum parts { PART_PYTHON = 1, PART_NATIVE = 2 };

/* Captures the calling thread's stack and keeps nothing. Returns the number of frames, or, for ours, the stack's id. */
typedef size_t (*capture_parts_fn)(unsigned parts);

/* PyTorch's algorithm. */
struct traceback;
struct traceback *bench_torch_way_gather(unsigned parts);
size_t bench_torch_way_len(const struct traceback *traceback);
/* Queues the references for the next thread that holds the GIL. */
void bench_torch_way_drop(struct traceback *traceback);
/* Releases the references of dropped tracebacks. The caller holds the GIL. */
void bench_torch_way_drain(void);
size_t bench_torch_way_capture(unsigned parts);
/* The unwinder for native frames; null if there is none. */
extern int (*bench_torch_way_unwind)(void **buffer, int max);

/* torch's `CapturedTraceback::gather`. */
size_t bench_torch_capture(unsigned parts);
/* Looks it up in torch's loaded library. Returns 0, or -1 if it is not there. */
int bench_torch_bind(const char *library);

size_t bench_python_nothing(unsigned parts);

#endif
