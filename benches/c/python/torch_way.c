/* PyTorch's algorithm for capturing a Python and native stack, implemented as a peer that needs no torch: it takes the
 * GIL, walks frame objects, keeps a reference to each code object, and unwinds. A dropped traceback can't release its
 * references without the GIL, so it leaves them in a queue that the next capture empties.
 */
#include "contenders.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NATIVE_FRAMES = 1024 };

struct python_frame {
    object code;
    int lasti;
};

struct python_frames {
    struct python_frame *items;
    size_t len;
    size_t capacity;
};

struct traceback {
    struct python_frames python;
    void **native;
    size_t native_len;
};

int (*bench_torch_way_unwind)(void **buffer, int max);

static pthread_mutex_t to_free_lock = PTHREAD_MUTEX_INITIALIZER;
static struct python_frames to_free;

static void push(struct python_frames *frames, struct python_frame frame)
{
    if (frames->len == frames->capacity) {
        size_t capacity = frames->capacity ? frames->capacity * 2 : 1;
        struct python_frame *items = realloc(frames->items, capacity * sizeof *items);
        if (!items)
            abort();
        frames->items = items;
        frames->capacity = capacity;
    }
    frames->items[frames->len++] = frame;
}

void bench_torch_way_drain(void)
{
    pthread_mutex_lock(&to_free_lock);
    for (size_t i = 0; i < to_free.len; i++)
        release(to_free.items[i].code);
    to_free.len = 0;
    pthread_mutex_unlock(&to_free_lock);
}

static void gather_python(struct python_frames *frames)
{
    int state = python.gil_ensure();
    bench_torch_way_drain();
    object frame = python.current_frame();
    if (frame)
        retain(frame);
    while (frame) {
        push(frames, (struct python_frame){python.frame_code(frame), bench_frame_lasti(frame)});
        object back = python.frame_back(frame);
        release(frame);
        frame = back;
    }
    python.gil_release(state);
}

static void gather_native(struct traceback *traceback)
{
    void *buffer[MOST_NATIVE_FRAMES];
    int count = bench_torch_way_unwind(buffer, MOST_NATIVE_FRAMES);
    if (count <= 0)
        return;
    traceback->native = malloc((size_t)count * sizeof *buffer);
    if (!traceback->native)
        abort();
    memcpy(traceback->native, buffer, (size_t)count * sizeof *buffer);
    traceback->native_len = (size_t)count;
}

struct traceback *bench_torch_way_gather(unsigned parts)
{
    struct traceback *traceback = calloc(1, sizeof *traceback);
    if (!traceback)
        abort();
    if (parts & PART_PYTHON)
        gather_python(&traceback->python);
    if (parts & PART_NATIVE && bench_torch_way_unwind)
        gather_native(traceback);
    return traceback;
}

size_t bench_torch_way_len(const struct traceback *traceback)
{
    return traceback->python.len + traceback->native_len;
}

void bench_torch_way_drop(struct traceback *traceback)
{
    if (traceback->python.len > 0) {
        pthread_mutex_lock(&to_free_lock);
        for (size_t i = 0; i < traceback->python.len; i++)
            push(&to_free, traceback->python.items[i]);
        pthread_mutex_unlock(&to_free_lock);
    }
    free(traceback->python.items);
    free(traceback->native);
    free(traceback);
}

size_t bench_torch_way_capture(unsigned parts)
{
    struct traceback *traceback = bench_torch_way_gather(parts);
    size_t len = bench_torch_way_len(traceback);
    bench_torch_way_drop(traceback);
    return len;
}

size_t bench_python_nothing(unsigned parts)
{
    (void)parts;
    return 0;
}
