/* The C part of the demo's stack: sort_in_c -> qsort -> compare_in_c -> back into Rust. */

#include <stdlib.h>

typedef void (*visitor)(void *context);

/* qsort passes no context to its callback. */
static _Thread_local visitor visit;
static _Thread_local void *visit_context;

static int compare_in_c(const void *left, const void *right)
{
    visit(visit_context);
    int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

void sort_in_c(int *values, size_t count, visitor visitor, void *context)
{
    visit = visitor;
    visit_context = context;
    qsort(values, count, sizeof *values, compare_in_c);
    visit = NULL;
    visit_context = NULL;
}
