/* Who captures Python stacks, called from C. */
#ifndef STACKWEAVE_BENCH_PYTHON_CONTENDERS_H
#define STACKWEAVE_BENCH_PYTHON_CONTENDERS_H

#include "python_api.h"

enum parts { PART_PYTHON = 1, PART_NATIVE = 2 };

/* Captures the calling thread's stack and keeps nothing. The answer: how many frames, or ours: the stack's id. */
typedef size_t (*capture_parts_fn)(unsigned parts);

/* PyTorch's algorithm. */
struct traceback;
struct traceback *bench_torch_way_gather(unsigned parts);
size_t bench_torch_way_len(const struct traceback *traceback);
/* Hands the references to the next holder of the GIL. */
void bench_torch_way_drop(struct traceback *traceback);
/* Releases the references of dropped tracebacks. The GIL is held. */
void bench_torch_way_drain(void);
size_t bench_torch_way_capture(unsigned parts);
/* The unwinder for native frames; null: there is none. */
extern int (*bench_torch_way_unwind)(void **buffer, int max);

/* torch's own `CapturedTraceback::gather`. */
size_t bench_torch_capture(unsigned parts);
/* Finds it in torch's loaded library; 0, or -1 if it is not there. */
int bench_torch_bind(const char *library);

size_t bench_python_nothing(unsigned parts);

#endif
