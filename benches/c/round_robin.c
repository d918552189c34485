/* Turns repetitions into samples. Each subject runs once per round, so that a disturbance of the
 * machine affects all of them.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <time.h>

double bench_thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

size_t bench_capture_nothing(void **buffer, size_t max)
{
    (void)buffer;
    (void)max;
    return 0;
}

int bench_is_timed(const struct subject *subject)
{
    return subject->uncheckable || subject->verdict == VERDICT_WHOLE;
}

double bench_time_batch(const struct job *job, const struct subject *subject)
{
    double start = bench_thread_cpu_ns();
    job->body(job, subject->capture, subject->batch);
    return (bench_thread_cpu_ns() - start) / (double)subject->batch;
}

/* Doubles each subject's batch until it is about long enough to time. */
void bench_calibrate(struct job *job)
{
    for (size_t i = 0; i < job->subject_count; i++) {
        struct subject *subject = &job->subjects[i];
        subject->batch = 1;
        if (!bench_is_timed(subject))
            continue;
        bench_time_batch(job, subject);
        for (;;) {
            double each = bench_time_batch(job, subject);
            if (each * (double)subject->batch * 1.4 >= job->batch_ns || subject->batch >= (1u << 24))
                break;
            subject->batch *= 2;
        }
    }
}

void bench_drive_round_robin(struct job *job)
{
    bench_check_all(job);
    bench_calibrate(job);
    for (size_t round = 0; round < job->rounds; round++)
        for (size_t i = 0; i < job->subject_count; i++)
            if (bench_is_timed(&job->subjects[i]))
                job->subjects[i].samples[round] = bench_time_batch(job, &job->subjects[i]);
}

/* Times the first capture in the process, before anything has been checked. */
void bench_drive_once(struct job *job)
{
    for (size_t i = 0; i < job->subject_count; i++) {
        job->subjects[i].batch = 1;
        job->subjects[i].samples[0] = bench_time_batch(job, &job->subjects[i]);
    }
    bench_check_all(job);
}
