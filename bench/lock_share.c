/* How long the interpreter's lock is held, by all threads, for `bin/bench ingest held`.
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
static __thread double since; /* 0 in a thread that has not waited yet */
static double total;          /* changed by who has the lock */

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
    if (since)
        total += now() - since;
    return save_thread();
}

void PyEval_RestoreThread(void *thread) {
    restore_thread(thread); /* waiting for others is no part of it */
    since = now();
}

double held_seconds(void) { return total; }
