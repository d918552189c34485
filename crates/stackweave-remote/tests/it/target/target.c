/* A program that is inspected from outside. Its first argument selects what it does; it writes a line when it is ready. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int sink;
static sem_t is_ready;

static void start(void *(*body)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) != 0) exit(90);
    pthread_detach(thread);
}

static void say(const char *word) {
    printf("%s\n", word);
    fflush(stdout);
}

/* Threads that wait, each in a call chain that is hard to unwind in a different way. */

__attribute__((noinline)) static void stand_still(void) {
    sem_post(&is_ready);
    for (;;) pause();
}

static void handler(int signal) {
    sink = signal;
    stand_still();
    sink = 0;
}

__attribute__((noinline)) static int call_deep(int depth, int (*last)(int)) {
    char block[depth * 16 + 8];
    memset(block, depth, sizeof block);
    int result = depth ? call_deep(depth - 1, last) : last(block[0]);
    sink = block[1];
    return result;
}

static int wait_here(int number) {
    stand_still();
    return number;
}

__attribute__((noinline)) static int interrupt_itself(int number) {
    raise(SIGUSR1);
    return number + sink;
}

static int crash(int number) {
    *(volatile int *)(long)number = 1;
    return number;
}

static int compare(const void *left, const void *right) {
    stand_still();
    return *(const int *)left - *(const int *)right;
}

/* The call is the last instruction: its return address belongs to the next function. */
__attribute__((noreturn, noinline)) static void never_returns(void) {
    for (;;) stand_still();
}

__attribute__((noinline)) static void ends_with_a_call(int number) {
    sink = number;
    never_returns();
}

static void *in_deep_calls(void *unused) { call_deep(12, wait_here); return unused; }

static void *in_handler(void *unused) { call_deep(3, interrupt_itself); return unused; }

static void *in_handler_on_other_stack(void *unused) {
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, NULL);
    call_deep(3, crash);
    return unused;
}

static void *in_callback(void *unused) {
    int numbers[] = {2, 1};
    qsort(numbers, 2, sizeof *numbers, compare);
    return unused;
}

static void *at_noreturn_end(void *unused) { ends_with_a_call(3); return unused; }

static void wait_in_many_places(void) {
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &action, NULL);
    start(in_deep_calls);
    start(in_handler);
    start(in_handler_on_other_stack);
    start(in_callback);
    start(at_noreturn_end);
    for (int threads = 0; threads < 5; threads++) sem_wait(&is_ready);
    say("there");
    for (;;) pause();
}

/* Work whose result must not change when the process is inspected. */

static volatile sig_atomic_t signals;
static pthread_t main_thread;

static void count_signal(int signal) { (void)signal; signals++; }

static unsigned long compute(unsigned rounds) {
    unsigned long value = 1;
    for (unsigned round = 0; round < rounds; round++) value = value * 6364136223846793005UL + 1442695040888963407UL;
    return value;
}

static volatile int is_done;
static unsigned long results[2];
static sem_t never, finished;
static int interrupted_calls;

static void *compute_repeatedly(void *result) {
    unsigned long value = 0;
    sem_post(&is_ready);
    while (!is_done) value = compute(100000);
    *(unsigned long *)result = value;
    sem_post(&finished);
    return NULL;
}

/* Each of these calls continues after an inspection, as it does after a debugger's. */
static void *sleep_in_calls(void *unused) {
    int ends[2];
    if (pipe(ends) != 0) exit(91);
    sem_post(&is_ready);
    while (!is_done) {
        struct timespec left = {0, 30000000}, until;
        if (nanosleep(&left, &left) != 0) interrupted_calls++;
        struct pollfd poll_one = {.fd = ends[0], .events = POLLIN};
        if (poll(&poll_one, 1, 30) != 0) interrupted_calls++;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 30000000;
        if (until.tv_nsec >= 1000000000) { until.tv_sec++; until.tv_nsec -= 1000000000; }
        if (sem_timedwait(&never, &until) != -1 || errno != ETIMEDOUT) interrupted_calls++;
    }
    sem_post(&finished);
    return unused;
}

static int work(void) {
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    sigaction(SIGRTMIN, &action, NULL);
    sem_init(&never, 0, 0);
    sem_init(&finished, 0, 0);
    main_thread = pthread_self();
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    pthread_t thread;
    for (int index = 0; index < 2; index++) pthread_create(&thread, NULL, compute_repeatedly, &results[index]);
    pthread_create(&thread, NULL, sleep_in_calls, NULL);
    for (int threads = 0; threads < 3; threads++) sem_wait(&is_ready);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    say("there");
    /* A byte ends the work. */
    char byte;
    if (read(0, &byte, 1) != 1) exit(92);
    is_done = 1;
    for (int thread_count = 0; thread_count < 3; thread_count++)
        while (sem_wait(&finished) != 0) {}
    printf("%lu %lu %d %d\n", results[0], results[1], (int)signals, interrupted_calls);
    return 7;
}

/* Threads that start and end. */

static void *short_life(void *unused) { sink += (int)compute(2000); return unused; }

static void spawn_repeatedly(void) {
    say("there");
    for (;;) {
        pthread_t threads[4];
        for (int index = 0; index < 4; index++) pthread_create(&threads[index], NULL, short_life, NULL);
        for (int index = 0; index < 4; index++) pthread_join(threads[index], NULL);
    }
}

/* A thread that nothing can stop: it waits for a child that runs in its memory. */

static void *wait_for_vfork(void *unused) {
    sem_post(&is_ready);
    if (vfork() == 0) {
        sleep(3);
        _exit(0);
    }
    say("back");
    exit(5);
    return unused;
}

int main(int count, char **arguments) {
    const char *wanted = count > 1 ? arguments[1] : "";
    sem_init(&is_ready, 0, 0);
    alarm(60);
    if (strcmp(wanted, "places") == 0) wait_in_many_places();
    if (strcmp(wanted, "work") == 0) return work();
    if (strcmp(wanted, "spawn") == 0) spawn_repeatedly();
    if (strcmp(wanted, "vfork") == 0) {
        start(wait_for_vfork);
        sem_wait(&is_ready);
        say("there");
        for (;;) pause();
    }
    return 93;
}
