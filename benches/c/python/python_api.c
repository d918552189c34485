#define _GNU_SOURCE
#include "python_api.h"

#include <dlfcn.h>
#include <string.h>

struct python_api python;

/* The offset of the last instruction in a frame object of 3.10, the only supported version without a getter for it. */
enum { LASTI_OFFSET_3_10 = 96, BYTES_PER_UNIT = 2 };

static const struct {
    const char *name;
    void *slot;
} functions[] = {
    {"PyGILState_Ensure", &python.gil_ensure},
    {"PyGILState_Release", &python.gil_release},
    {"PyEval_GetFrame", &python.current_frame},
    {"PyFrame_GetBack", &python.frame_back},
    {"PyFrame_GetCode", &python.frame_code},
    {"_Py_Dealloc", &python.dealloc},
    {"PyCapsule_New", &python.capsule_new},
    {"PyCapsule_GetPointer", &python.capsule_pointer},
    {"PyCFunction_NewEx", &python.function_new},
    {"PyObject_CallFunctionObjArgs", &python.call},
    {"PyLong_AsUnsignedLong", &python.as_unsigned},
    {"_Py_NoneStruct", &python.none},
};

static void put(void *slot, void *symbol)
{
    memcpy(slot, &symbol, sizeof symbol);
}

const char *bench_python_bind(void)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *symbol = dlsym(RTLD_DEFAULT, functions[i].name);
        if (!symbol)
            return functions[i].name;
        put(functions[i].slot, symbol);
    }
    put(&python.frame_lasti, dlsym(RTLD_DEFAULT, "PyFrame_GetLasti"));
    return NULL;
}

int bench_frame_lasti(object frame)
{
    if (python.frame_lasti)
        return python.frame_lasti(frame);
    int units;
    memcpy(&units, (const char *)frame + LASTI_OFFSET_3_10, sizeof units);
    return units < 0 ? units : units * BYTES_PER_UNIT;
}
