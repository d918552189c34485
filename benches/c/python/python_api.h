/* The few functions of Python that the benchmarks call, found by name, so that one build serves every version and needs
 * no headers.
 */
#ifndef STACKWEAVE_BENCH_PYTHON_API_H
#define STACKWEAVE_BENCH_PYTHON_API_H

#include <stddef.h>
#include <stdint.h>

typedef void *object;
typedef object (*c_function)(object self, object argument);

/* PyMethodDef, as the stable ABI defines it. */
struct method {
    const char *name;
    c_function function;
    int flags;
    const char *doc;
};
enum { METH_NOARGS = 4, METH_O = 8 };

struct python_api {
    int (*gil_ensure)(void);
    void (*gil_release)(int state);
    object (*current_frame)(void);             /* borrowed */
    object (*frame_back)(object frame);        /* a reference, or null */
    object (*frame_code)(object frame);        /* a reference */
    int (*frame_lasti)(object frame);          /* null before 3.11 */
    void (*dealloc)(object dead);
    object (*capsule_new)(void *pointer, const char *name, void (*destructor)(object));
    void *(*capsule_pointer)(object capsule, const char *name);
    object (*function_new)(struct method *method, object self, object module);
    object (*call)(object callable, object argument, ...);
    unsigned long (*as_unsigned)(object number);
    object none;
};

extern struct python_api python;

/* Looks up every function. Returns null, or the name of one that is missing. */
const char *bench_python_bind(void);

int bench_frame_lasti(object frame);

/* Py_DECREF, as the interpreter's headers inline it where the GIL guards the count. If the low half of a count is
 * negative, the object is immortal.
 */
static inline void release(object held)
{
    int32_t *count = held;
    if (*count < 0)
        return;
    if (--*count == 0)
        python.dealloc(held);
}

static inline void retain(object borrowed)
{
    int32_t *count = borrowed;
    if (*count >= 0)
        ++*count;
}

#endif
