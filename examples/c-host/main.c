/* A host in C11: a small interpreter whose frames are woven with the native frames of captured stacks.
 *
 * It prints a stack captured inside its program, a stack that a signal interrupted, and the library's statistics.
 */
#define _XOPEN_SOURCE 700 // SA_ONSTACK

#include "stackweave.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* The interpreter: a program is a list of calls, and the running functions are a chain of frames on the C stack. */
struct function {
    const char *name;
    unsigned line;
    const struct function *callee;
};

struct running {
    const struct function *function;
    struct running *caller;
};

static const struct function print = {"print", 3, NULL};
static const struct function loop = {"loop", 7, &print};
static const struct function program = {"program", 12, &loop};

static _Thread_local struct running *innermost;

static void fail(const char *what, int status)
{
    fprintf(stderr, "%s: %s: %s\n", what, stackweave_status_text(status), stackweave_last_error());
    exit(EXIT_FAILURE);
}

/* Called in each capture, so it only reads. */
static size_t walk(void *data, stackweave_source_walk *walk)
{
    (void)data;
    size_t count = 0;
    for (const struct running *frame = innermost; frame; frame = frame->caller) {
        if (count == walk->capacity) {
            walk->is_cut = true;
            break;
        }
        walk->words[count] = (uint64_t)(uintptr_t)frame->function;
        walk->activations[count] = (uint64_t)(uintptr_t)frame;
        count++;
    }
    return count;
}

static void locate(void *data, uint64_t word, stackweave_location_list *locations)
{
    const struct function *function = (const struct function *)(uintptr_t)word;
    const stackweave_location location = {
        .size = sizeof location, .name = function->name, .filename = data, .line = function->line};
    (void)stackweave_add_location(locations, &location);
}

static int show(void *data, size_t stack, size_t frame, const stackweave_frame *named)
{
    (void)data;
    (void)stack;
    const char *kind = named->kind == STACKWEAVE_FRAME_SCRIPT ? "script" : "native";
    printf("  %2zu %s %s", frame, kind, named->name);
    if (named->filename)
        printf(" %s:%" PRIu32, named->filename, named->line);
    puts(named->is_inlined ? " (inlined)" : "");
    return 0;
}

static void print_stack(const char *title, stackweave_stack stack)
{
    puts(title);
    stackweave_status status = stackweave_resolve(&stack, 1, show, NULL);
    if (status != STACKWEAVE_OK)
        fail("resolve", status);
}

static stackweave_stack interrupted;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    (void)stackweave_capture_from_context(context, NULL, &interrupted, NULL);
}

static void leaf(void)
{
    stackweave_stack stack = STACKWEAVE_NO_STACK;
    stackweave_stop_reason stop;
    stackweave_status status = stackweave_capture(NULL, &stack, &stop);
    if (status != STACKWEAVE_OK)
        fail("capture", status);
    if (stop != STACKWEAVE_STOP_NONE)
        fprintf(stderr, "the stack is incomplete: %s\n", stackweave_stop_reason_text(stop));
    print_stack("captured in a call", stack);
    status = stackweave_release(stack);
    if (status != STACKWEAVE_OK)
        fail("release", status);
    raise(SIGUSR1);
    print_stack("interrupted by a signal", interrupted);
}

static void interpret(const struct function *function)
{
    struct running frame = {function, innermost};
    innermost = &frame;
    if (function->callee)
        interpret(function->callee);
    else
        leaf();
    innermost = frame.caller;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    static char file[] = "program.calc";
    const stackweave_frame_source source = {sizeof source, file, walk, locate};
    uint64_t handle;
    stackweave_status status = stackweave_register_frame_source(&source, &handle);
    if (status != STACKWEAVE_OK)
        fail("register", status);
    /* Before the first signal, because a handler must not make the first capture of its thread. */
    status = stackweave_prepare_thread();
    if (status != STACKWEAVE_OK || sigaction(SIGUSR1, &action, NULL) != 0)
        fail("prepare", status);
    interpret(&program);
    stackweave_stats stats = {.size = sizeof stats};
    (void)stackweave_get_stats(&stats);
    printf("%" PRIu64 " captures, stackweave %s\n", stats.captures, stackweave_version());
    status = stackweave_remove_frame_source(handle);
    if (status != STACKWEAVE_OK)
        fail("remove", status);
    return EXIT_SUCCESS;
}
