/* Progress: of the program's calls, and of a thread while the program makes none.
 *
 * Theory of operation
 * -------------------
 * MX progresses by a thread of its own, so that messages arrive, and the handler of receives.c runs, while the program
 * computes. But the ends of requests are seen only by who polls for them. Most can wait until the program does; those on
 * which another host waits cannot: connects, behind which sends queue, and the accesses of others to regions. They are
 * counted as urgent. While there are any, and the program has made no call for a while, a thread per endpoint polls.
 *
 * Domains with manual progress have no such thread: those of programs that ask for it, of MX without its thread, and of
 * programs that are Python, which may hold the interpreter, which the engine needs, while they wait for the lock here. */

#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "provider.h"

/* Completions of MX that one poll takes. */
#define POLLS 32
/* Time in ms without a call of the program after which the thread polls instead of it. */
#define IDLE_MS 2
/* Longest sleep of the thread in ms, while something is urgent. */
#define SLEEP_MS 20

/* Other libraries do not have it. */
#pragma weak mx__is_idle

void mxf_poll(struct mxf_endpoint *endpoint)
{
    mx_status_t status;
    uint32_t found;
    if (mxf_waits(endpoint))
        mxf_probe(endpoint);
    if (!endpoint->enabled)
        return;
    /* A call that finds nothing may yield the processor, and the lock is held here. */
    int idle = mx__is_idle && mx__is_idle(endpoint->mx);
    for (int poll = 0; poll < POLLS && !idle; poll++) {
        if (mx_test_any(endpoint->mx, 0, 0, &status, &found) != MX_SUCCESS || !found)
            break;
        struct mxf_work *work = status.context;
        work->ended(work, &status);
    }
    /* Others may have ended without a completion of MX. */
    if (endpoint->postponed.first)
        mxf_resume_visits(endpoint);
}

void mxf_progress(struct mxf_endpoint *endpoint)
{
    endpoint->calls++;
    mxf_poll(endpoint);
}

void mxf_urge(struct mxf_endpoint *endpoint)
{
    endpoint->urgent++;
    if (endpoint->resting)
        pthread_cond_signal(&endpoint->urged);
}

/* Wait for a time in ms, for something urgent (only, if the time is negative), or for the end of the endpoint. */
static void rest(struct mxf_endpoint *endpoint, int milliseconds)
{
    endpoint->resting = milliseconds < 0;
    mxf_await(&endpoint->urged, mxf_deadline(milliseconds));
    endpoint->resting = 0;
}

static void *run(void *argument)
{
    struct mxf_endpoint *endpoint = argument;
    mx_request_t request;
    uint32_t found;
    mxf_enter();
    unsigned seen = endpoint->calls - 1;
    while (!endpoint->closing) {
        if (!endpoint->urgent) {
            rest(endpoint, -1);
        } else if (endpoint->calls != seen) {
            seen = endpoint->calls;
            rest(endpoint, IDLE_MS);
        } else {
            mxf_leave();
            mx_return_t code = mx_peek(endpoint->mx, SLEEP_MS, &request, &found);
            mxf_enter();
            mxf_poll(endpoint);
            /* An interface that is gone ends mx_peek at once. */
            if (code != MX_SUCCESS && !endpoint->closing)
                rest(endpoint, SLEEP_MS);
        }
    }
    mxf_leave();
    return NULL;
}

/* Without a thread, the program's calls have to do. */
void mxf_start_thread(struct mxf_endpoint *endpoint)
{
    sigset_t all, before;
    mxf_prepare_condition(&endpoint->urged);
    /* Signals belong to the threads of the program. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    endpoint->process = getpid();
    endpoint->threaded = !pthread_create(&endpoint->thread, NULL, run, endpoint);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Of an endpoint that is closing; without the lock. The child of a fork has no thread. */
void mxf_stop_thread(struct mxf_endpoint *endpoint)
{
    if (!endpoint->threaded || endpoint->process != getpid())
        return;
    mxf_enter();
    pthread_cond_signal(&endpoint->urged);
    mxf_leave();
    mx_wakeup(endpoint->mx);
    pthread_join(endpoint->thread, NULL);
    pthread_cond_destroy(&endpoint->urged);
}
