/* The lower limit of the cost: follows the frame pointers, and checks only the end of the stack. */
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
