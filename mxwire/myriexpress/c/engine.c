/* mx_init and mx_finalize: load the engine, which starts Python, and end it; forks and the exit of the program. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

#ifndef MXW_PYTHON
#error "MXW_PYTHON is the version of Python to build for, such as 3.11"
#endif
#define ENGINE "mxwire/engine.so"
/* Time to wait at the end for partners to acknowledge: some retransmissions, one per half second. */
#define LINGER_SECONDS 5.0
/* Time that the end may take besides. */
#define END_SECONDS 2.0

struct mxw_entries mxw_engine;
int mxw_alive;

static int loaded, forked;
int mxw_own_python;
static int busy; /* a thread starts or ends the engine */
static __thread int finalizing;
static __thread int prepared; /* Python is prepared for a fork of this thread */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static void (*before_fork)(void), (*after_fork)(int child);

static const struct {
    const char *name;
    size_t offset;
} entries[] = {
#define ENTRY(name) {"mxw_" #name, offsetof(struct mxw_entries, name)}
    ENTRY(open),    ENTRY(close),      ENTRY(step),    ENTRY(pause),       ENTRY(open_endpoint), ENTRY(close_endpoint),
    ENTRY(unacked), ENTRY(send),       ENTRY(receive), ENTRY(claim),       ENTRY(connect),       ENTRY(cancel),
    ENTRY(probe),   ENTRY(disconnect), ENTRY(suspend), ENTRY(handle),      ENTRY(set_timeout),   ENTRY(find_host),
    ENTRY(board),   ENTRY(find_nic),   ENTRY(info),
};

mx_return_t mxw_code(int result)
{
    return result >= MXW_OK && result <= MXW_OK + MX_NOT_SUPPORTED_WITH_CONTEXT_ID ? (mx_return_t)(result - MXW_OK)
                                                                                   : MX_FAILURE;
}

double mxw_seconds(const char *variable, double otherwise)
{
    const char *value = getenv(variable);
    char *end;
    /* The locale of the program may have a decimal comma. */
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    double seconds = value ? strtod_l(value, &end, plain) : otherwise;
    freelocale(plain);
    return value && (end == value || *end || !(seconds >= 0 && seconds < 1e6)) ? otherwise : seconds;
}

static mx_return_t complain(mx_return_t code, const char *text)
{
    fprintf(stderr, "mxwire: %s\n", text);
    return code;
}

static void prepare_fork(void)
{
    prepared = loaded && before_fork;
    if (prepared)
        before_fork();
    pthread_mutex_lock(&mxw_lock);
}

static void parent_forked(void)
{
    pthread_mutex_unlock(&mxw_lock);
    if (prepared)
        after_fork(0);
}

/* The endpoints belong to the parent, so that nothing of them may be used, or closed, here. A thread of the parent that
 * was starting or ending the engine does not exist here, and has left it in an unknown state. */
static void child_forked(void)
{
    pthread_mutex_unlock(&mxw_lock);
    pthread_mutex_init(&starting, NULL);
    if (prepared)
        after_fork(1);
    if (!mxw_alive && !busy)
        return;
    mxw_alive = busy = 0;
    forked = 1;
    mxw_reset_waits();
    mxw_free_everything();
}

static void prepare_for_forks(void)
{
    pthread_atfork(prepare_fork, parent_forked, child_forked);
}

static void *run_finalize(void *ended)
{
    mx_finalize();
    __atomic_store_n((int *)ended, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* A handler that exits cannot wait for its own end, nor can the handler of a signal that has interrupted the engine,
 * which it cannot know. The end is therefore left to another thread, and an exit waits for it, or for a handler that
 * does not return, for a limited time: the kernel frees what is left. */
static void at_exit(void)
{
    static int ended;
    uint64_t limit = mxw_now() + (uint64_t)((mxw_seconds("MXWIRE_LINGER", LINGER_SECONDS) + END_SECONDS) * 1e9);
    pthread_t thread;
    if (!mxw_alive || mxw_in_handler || finalizing)
        return;
    while (__atomic_load_n(&mxw_handlers, __ATOMIC_ACQUIRE) && mxw_now() < limit)
        usleep(1000);
    if (__atomic_load_n(&mxw_handlers, __ATOMIC_ACQUIRE) || pthread_create(&thread, NULL, run_finalize, &ended))
        return;
    pthread_detach(thread);
    while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE) && mxw_now() < limit)
        usleep(100);
}

/* Refuse a Python of another version in this process: two of them have the same symbols. */
static mx_return_t check_python(void)
{
    const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
    size_t length = strlen(MXW_PYTHON);
    if (!version || (!strncmp(version(), MXW_PYTHON, length) && version()[length] == '.'))
        return MX_SUCCESS;
    char text[256];
    snprintf(text, sizeof text, "this process runs Python %.*s, but libmyriexpress.so was built for %s: build it with that Python",
             (int)strcspn(version(), " "), version(), MXW_PYTHON);
    return complain(MX_BAD_LIB_VERSION, text);
}

EXPORTED int mx__progresses(void)
{
    int (*initialized)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    if (mxw_monothreaded())
        return 0;
    return loaded ? mxw_own_python : !initialized || !initialized();
}

static mx_return_t load(void)
{
    char text[PATH_MAX + 512], path[PATH_MAX];
    Dl_info here;
    if (check_python() != MX_SUCCESS)
        return MX_BAD_LIB_VERSION;
    if (!dladdr((void *)load, &here) || !realpath(here.dli_fname, path))
        return complain(MX_NO_DRIVER, "libmyriexpress.so cannot find its own file");
    char *slash = strrchr(path, '/');
    size_t room = sizeof path - (size_t)(slash + 1 - path);
    if (room <= sizeof ENGINE)
        return complain(MX_NO_DRIVER, "the path of libmyriexpress.so is too long");
    memcpy(slash + 1, ENGINE, sizeof ENGINE);
    /* Global, since the extension modules of Python take its symbols from the process. */
    void *engine = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!engine) {
        snprintf(text, sizeof text, "the engine of libmyriexpress.so cannot be loaded (%.400s): run mxwire library build", dlerror());
        return complain(MX_NO_DRIVER, text);
    }
    __typeof__(&mxw_start) start = (__typeof__(&mxw_start))dlsym(engine, "mxw_start");
    for (size_t place = 0; place < sizeof entries / sizeof *entries; place++) {
        void *entry = dlsym(engine, entries[place].name);
        if (!entry || !start)
            return complain(MX_BAD_LIB_VERSION, "the engine of libmyriexpress.so is of another build: run mxwire library build");
        memcpy((char *)&mxw_engine + entries[place].offset, &entry, sizeof entry);
    }
    if (start(&mxw_callbacks, &mxw_shared, text, sizeof text, &mxw_own_python))
        return complain(MX_NO_DRIVER, text);
    /* A Python of the program handles its forks itself. */
    if (mxw_own_python) {
        before_fork = (void (*)(void))dlsym(engine, "mxw_before_fork");
        after_fork = (void (*)(int))dlsym(engine, "mxw_after_fork");
    }
    atexit(at_exit);
    loaded = 1;
    return MX_SUCCESS;
}

/* Open the standard streams that the program has closed, since its output would otherwise go into the sockets of the
 * engine, as frames. */
static void occupy_streams(void)
{
    int opened;
    do
        opened = open("/dev/null", O_RDWR);
    while (opened >= 0 && opened <= STDERR_FILENO);
    if (opened >= 0)
        close(opened);
}

static mx_return_t start(void)
{
    char text[1024] = "";
    if (forked)
        return complain(MX_NO_DRIVER, "a process that has forked cannot use MX again: start another program (exec) instead");
    occupy_streams();
    if (!loaded) {
        mx_return_t code = load();
        if (code != MX_SUCCESS)
            return code;
    }
    int result = mxw_engine.open(&mxw_shared, text, sizeof text);
    if (result != MXW_OK) {
        mx_return_t code = result > MXW_OK ? mxw_code(result) : MX_NO_DRIVER;
        return complain(code, *text ? text : "the engine of mxwire cannot be started: run mxwire library check");
    }
    if (!mxw_start_progression()) {
        mxw_engine.close();
        return complain(MX_NO_RESOURCES, "the progression thread cannot be started");
    }
    __atomic_store_n(&mxw_alive, 1, __ATOMIC_RELEASE);
    return MX_SUCCESS;
}

EXPORTED mx_return_t mx__init_api(int api)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    mx_return_t code;
    if (mxw_in_handler)
        return mxw_fail(NULL, "mx_init", MX_ALREADY_INITIALIZED);
    /* Before the lock: a fork while another thread holds it would leave it locked in the child. */
    pthread_once(&once, prepare_for_forks);
    pthread_mutex_lock(&starting);
    busy = 1;
    if (api >> 8 != MX_API >> 8)
        code = MX_BAD_LIB_VERSION;
    else
        code = mxw_alive ? MX_ALREADY_INITIALIZED : start();
    busy = 0;
    pthread_mutex_unlock(&starting);
    return mxw_fail(NULL, "mx_init", code);
}

static int all_acked(struct mxw_endpoint *endpoint, void *unused)
{
    (void)unused;
    return mxw_engine.unacked(endpoint->place) == MXW_OK;
}

static mx_return_t close_endpoint(struct mxw_endpoint *endpoint)
{
    double linger = mxw_seconds("MXWIRE_LINGER", LINGER_SECONDS);
    if (linger > 0 && !all_acked(endpoint, NULL))
        mxw_wait_for(endpoint, all_acked, NULL, mxw_now() + (uint64_t)(linger * 1e9), MXW_STATE);
    mx_return_t code = mxw_code(mxw_engine.close_endpoint(endpoint->place));
    if (code == MX_SUCCESS)
        mxw_free_endpoint(endpoint);
    return code;
}

EXPORTED mx_return_t mx_close_endpoint(mx_endpoint_t handle)
{
    struct mxw_endpoint *endpoint = mxw_endpoint(handle);
    if (!endpoint)
        return mxw_fail_handle("mx_close_endpoint");
    return mxw_fail(endpoint, "mx_close_endpoint", mxw_in_handler ? MX_CLOSE_IN_HANDLER : close_endpoint(endpoint));
}

EXPORTED mx_return_t mx_finalize(void)
{
    /* The unexpected handler exits, or calls this, while this thread closes the endpoints. */
    if (finalizing)
        return MX_SUCCESS;
    /* Closing an endpoint waits for its handler to return. */
    if (mxw_in_handler)
        return mxw_fail(NULL, "mx_finalize", mxw_alive ? MX_CLOSE_IN_HANDLER : MX_NOT_INITIALIZED);
    finalizing = 1;
    pthread_mutex_lock(&starting);
    busy = 1;
    mx_return_t code = mxw_alive ? MX_SUCCESS : MX_NOT_INITIALIZED;
    if (mxw_alive) {
        struct mxw_endpoint *endpoint = NULL;
        while ((endpoint = mxw_next_endpoint(endpoint)))
            close_endpoint(endpoint);
        __atomic_store_n(&mxw_alive, 0, __ATOMIC_RELEASE);
        mxw_stop_progression();
        mxw_engine.close();
        mxw_free_everything();
    }
    busy = 0;
    pthread_mutex_unlock(&starting);
    finalizing = 0;
    /* Programs call it even when mx_init has failed. */
    return code == MX_NOT_INITIALIZED ? code : mxw_fail(NULL, "mx_finalize", code);
}
