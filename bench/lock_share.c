/* How long the interpreter's lock is let go of, for `bin/bench ingest held`.
 *
 * Preloaded into Python, whose extension modules, and its own library, then call these
 * functions in place of the interpreter's. A program finds its own functions first: where
 * Python is no shared library (as Debian's), nothing is seen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

static void *(*save_thread)(void);
static void (*restore_thread)(void *);
static __thread double since;
static double total; /* changed by who has the lock */

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + 1e-9 * at.tv_nsec;
}

__attribute__((constructor)) static void find(void) {
    save_thread = (void *(*)(void))dlsym(RTLD_NEXT, "PyEval_SaveThread");
    restore_thread = (void (*)(void *))dlsym(RTLD_NEXT, "PyEval_RestoreThread");
}

void *PyEval_SaveThread(void) {
    void *thread = save_thread();
    since = now();
    return thread;
}

void PyEval_RestoreThread(void *thread) {
    /* Waiting for others is no part of it. */
    double seconds = now() - since;
    restore_thread(thread);
    total += seconds;
}

double released_seconds(void) { return total; }
