/* Compares an unwinder's frames with the reference's in the places where it will be timed. */
#include "bench.h"

#include <string.h>

enum { MAX_FRAMES = 1024, MAX_OWN_FRAMES = 8 };

/* This is small because a library that is loaded late gets little space for thread-local data. */
static __thread struct {
    const struct job *job;
    struct subject *subject;
    void **reference; /* MAX_FRAMES words */
} checking;

static size_t without_trailing_nulls(void **frames, size_t count)
{
    while (count && !frames[count - 1])
        count--;
    return count;
}

/* Returns the index of the frame that called the checking capture; the frames before it belong to the unwinder. */
static size_t index_of(void *site, void **frames, size_t count)
{
    for (size_t i = 0; i < count && i < MAX_OWN_FRAMES; i++)
        if (frames[i] == site)
            return i;
    return count;
}

static void record(struct subject *subject, enum verdict verdict, size_t equal, size_t expected)
{
    if (subject->verdict == VERDICT_UNCHECKED || subject->verdict == VERDICT_WHOLE) {
        subject->verdict = verdict;
        subject->equal = equal;
        subject->expected = expected;
    }
}

static void judge(struct subject *subject, void *site, size_t whole, void **frames, size_t count)
{
    whole = without_trailing_nulls(checking.reference, whole);
    count = without_trailing_nulls(frames, count);
    size_t first = index_of(site, checking.reference, whole);
    size_t own = index_of(site, frames, count);
    size_t expected = whole - first;
    size_t present = count - own;
    size_t equal = 0;

    while (equal < present && equal < expected && frames[own + equal] == checking.reference[first + equal])
        equal++;
    subject->checked++;
    subject->frame_total += count ? count - 1 : 0; /* without the frame of the check itself */
    if (count == 0)
        record(subject, VERDICT_NO_FRAMES, 0, expected);
    else if (first == whole || equal + subject->root_slack < expected)
        record(subject, equal == present ? VERDICT_SHORT : VERDICT_WRONG, equal, expected);
    else if (present > expected)
        record(subject, VERDICT_WRONG, equal, expected);
    else
        record(subject, VERDICT_WHOLE, equal, expected);
}

/* Captures with the reference and the subject, and compares them. To its caller, it is like any other capture. */
static __attribute__((noinline)) size_t checking_capture(void **buffer, size_t max)
{
    void *site = __builtin_return_address(0);
    size_t limit = max < MAX_FRAMES ? max : MAX_FRAMES;
    size_t whole = checking.job->reference(checking.reference, limit);
    size_t count = checking.subject->capture(buffer, limit);
    judge(checking.subject, site, whole, buffer, count);
    return count;
}

void bench_check_one(const struct job *job, struct subject *subject, body_fn scene, size_t repetitions)
{
    if (subject->uncheckable)
        return;
    void *reference[MAX_FRAMES];
    checking.job = job;
    checking.subject = subject;
    checking.reference = reference;
    memset(job->buffer, 0, job->max * sizeof *job->buffer);
    scene(job, checking_capture, repetitions);
}

void bench_check_all(struct job *job)
{
    for (size_t i = 0; i < job->subject_count; i++)
        bench_check_one(job, &job->subjects[i], job->body, 3);
}
