/* Captures through call sites that no unwinder has seen before. */
#include "bench.h"

/* Visits the sites of one group in an order that is independent of their addresses. The stride
 * is prime and does not divide the number of sites, so every site is visited once over all groups.
 */
enum { GROUP = 64, STRIDE = 1597 };

static void visit_group(const struct job *job, capture_fn capture, size_t group)
{
    for (size_t i = 0; i < GROUP; i++) {
        size_t site = (group * GROUP + i) * STRIDE % bench_site_count;
        bench_sites[site](capture, job->buffer, job->max);
    }
}

static double time_group(const struct job *job, capture_fn capture, size_t group)
{
    double start = bench_thread_cpu_ns();
    visit_group(job, capture, group);
    return (bench_thread_cpu_ns() - start) / GROUP;
}

/* Each round visits one group, and then the same group again. The reference visits it before all
 * subjects, so that the group's code and unwind tables are resident for all of them, and the order
 * of the subjects rotates by one each round. The check comes last, because it is a visit, too.
 */
void bench_drive_sites(struct job *job)
{
    for (size_t i = 0; i < job->subject_count; i++)
        job->body(job, job->subjects[i].capture, 3);
    for (size_t round = 0; round < job->rounds && (round + 1) * GROUP <= bench_site_count; round++) {
        visit_group(job, job->reference, round);
        for (size_t turn = 0; turn < job->subject_count; turn++) {
            struct subject *subject = &job->subjects[(round + turn) % job->subject_count];
            subject->samples[2 * round] = time_group(job, subject->capture, round);
            subject->samples[2 * round + 1] = time_group(job, subject->capture, round);
            bench_check_one(job, subject, visit_group, round);
        }
    }
}
