/* New threads for jobs, so that every measured stack has a short, known root. */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

__thread char *bench_outermost_frame;

struct pair {
    pthread_barrier_t barrier;
};

static void enter_driver(void *argument)
{
    struct job *job = argument;
    job->driver(job);
}

static void *thread_root(void *argument)
{
    struct job *job = argument;
    bench_outermost_frame = __builtin_frame_address(0);
    if (job->driver_at_base)
        enter_driver(job);
    else
        job->chain(job->depth, enter_driver, job);
    return NULL;
}

int bench_run(struct job *job)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, thread_root, job);
    if (error)
        return error;
    return pthread_join(thread, NULL);
}

/* Finds the first two CPUs this process may run on. */
static int two_cpus(cpu_set_t cpus[2])
{
    cpu_set_t allowed;
    size_t found = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return errno;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        CPU_ZERO(&cpus[found]);
        CPU_SET(cpu, &cpus[found]);
        found++;
    }
    return found == 2 ? 0 : ENODEV;
}

int bench_run_pair(struct job *first, struct job *second)
{
    struct job *jobs[2] = {first, second};
    cpu_set_t cpus[2];
    struct pair pair;
    pthread_t threads[2];
    pthread_attr_t attributes;

    int error = two_cpus(cpus);
    if (error)
        return error;
    pthread_barrier_init(&pair.barrier, NULL, 2);
    for (size_t lane = 0; lane < 2; lane++) {
        jobs[lane]->shared = &pair;
        jobs[lane]->lane = lane;
        pthread_attr_init(&attributes);
        pthread_attr_setaffinity_np(&attributes, sizeof cpus[lane], &cpus[lane]);
        error = pthread_create(&threads[lane], &attributes, thread_root, jobs[lane]);
        pthread_attr_destroy(&attributes);
        if (error)
            return error; /* the first thread then waits at the barrier until the process ends */
    }
    for (size_t lane = 0; lane < 2; lane++)
        pthread_join(threads[lane], NULL);
    pthread_barrier_destroy(&pair.barrier);
    return 0;
}

/* For each round and subject, lane 0 runs alone while lane 1 sleeps at the barrier; then both run at
 * once. Lane 0's samples alternate between alone and together; lane 1 fills only every second one.
 */
void bench_drive_pair(struct job *job)
{
    struct pair *pair = job->shared;
    bench_check_all(job);
    pthread_barrier_wait(&pair->barrier);
    if (job->lane == 0)
        bench_calibrate(job);
    pthread_barrier_wait(&pair->barrier);
    if (job->lane == 1)
        bench_calibrate(job);
    for (size_t round = 0; round < job->rounds; round++) {
        for (size_t i = 0; i < job->subject_count; i++) {
            struct subject *subject = &job->subjects[i];
            pthread_barrier_wait(&pair->barrier);
            if (job->lane == 0 && bench_is_timed(subject))
                subject->samples[2 * round] = bench_time_batch(job, subject);
            pthread_barrier_wait(&pair->barrier);
            if (bench_is_timed(subject))
                subject->samples[2 * round + 1] = bench_time_batch(job, subject);
        }
    }
}
