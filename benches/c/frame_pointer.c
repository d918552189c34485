/* The physical limit: follow the frame pointers, check nothing but the stack's end. */
#include "bench.h"

size_t bench_capture_frame_pointers(void **buffer, size_t max)
{
    char *frame = __builtin_frame_address(0);
    char *outermost = bench_outermost_frame;
    size_t count = 0;
    while (count < max && frame <= outermost) {
        void **words = (void **)frame;
        buffer[count++] = words[1];
        if ((char *)words[0] <= frame)
            break;
        frame = words[0];
    }
    return count;
}
