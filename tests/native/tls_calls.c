/* Preloaded: counts how often a handler of real-time signals looks up thread-local memory, which may allocate. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>

typedef void *(*get_address)(void *);
typedef void (*handler)(int, siginfo_t *, void *);
typedef int (*set_action)(int, const struct sigaction *, struct sigaction *);

static __thread __attribute__((tls_model("initial-exec"))) int inside;
static handler original[65];
static get_address next_get;
int tls_calls, tls_calls_in_handlers, handlers_run;

void *__tls_get_addr(void *index)
{
    __atomic_fetch_add(&tls_calls, 1, __ATOMIC_SEQ_CST);
    if (inside)
        __atomic_fetch_add(&tls_calls_in_handlers, 1, __ATOMIC_SEQ_CST);
    /* Constructors of other libraries may run first. */
    if (!next_get)
        next_get = (get_address)dlsym(RTLD_NEXT, "__tls_get_addr");
    return next_get(index);
}

static void around(int signal, siginfo_t *info, void *context)
{
    inside++;
    original[signal](signal, info, context);
    inside--;
    __atomic_fetch_add(&handlers_run, 1, __ATOMIC_SEQ_CST);
}

int sigaction(int signal, const struct sigaction *new, struct sigaction *old)
{
    set_action next = (set_action)dlsym(RTLD_NEXT, "sigaction");
    if (!new || signal < 34 || !(new->sa_flags & SA_SIGINFO)) {
        int done = next(signal, new, old);
        if (!done && old && old->sa_sigaction == around)
            old->sa_sigaction = original[signal];
        return done;
    }
    struct sigaction wrapped = *new;
    original[signal] = new->sa_sigaction;
    wrapped.sa_sigaction = around;
    return next(signal, &wrapped, old);
}
