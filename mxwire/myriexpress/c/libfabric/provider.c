/* The provider, its fabric and its domains; the lock, and the warnings.
 *
 * libfabric loads the provider by dlopen and calls fi_prov_ini. MX is initialised by the first domain and ended by the
 * last one, unless the program itself has initialised it. Warnings go to stderr, once per place, since libfabric's own
 * log functions are out of reach. */

#define _GNU_SOURCE
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "provider.h"

/* Polls of a thread that found nothing before it yields the processor, as in libmyriexpress, but without the lock. */
#define IDLE_POLLS 16

pthread_mutex_t mxf_lock;

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static int foreign; /* the program has initialised MX itself */

/* A call of MX may call the handler on the same thread. */
static void prepare(void)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mxf_lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
}

void mxf_enter(void)
{
    pthread_mutex_lock(&mxf_lock);
}

void mxf_leave(void)
{
    pthread_mutex_unlock(&mxf_lock);
}

void mxf_leave_idle(void)
{
    static __thread unsigned polls;
    mxf_leave();
    if (++polls % IDLE_POLLS == 0)
        sched_yield();
}

uint64_t mxf_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t mxf_deadline(int timeout)
{
    /* mxf_now() is rounded down. */
    return timeout < 0 ? UINT64_MAX : mxf_now() + (uint64_t)timeout + (timeout > 0);
}

void mxf_prepare_condition(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void mxf_await(pthread_cond_t *condition, uint64_t deadline)
{
    struct timespec until = {(time_t)(deadline / 1000), (long)(deadline % 1000) * 1000000};
    if (deadline == UINT64_MAX)
        pthread_cond_wait(condition, &mxf_lock);
    else
        pthread_cond_timedwait(condition, &mxf_lock, &until);
}

/* libfabric's own log functions belong to the libfabric of the program, which may not be in reach. */
void mxf_warn(int *said, const char *format, ...)
{
    const char *level = getenv("FI_LOG_LEVEL");
    va_list arguments;
    if (!level || !strchr("wtid", *level) || !*level || __atomic_exchange_n(said, 1, __ATOMIC_RELAXED))
        return;
    va_start(arguments, format);
    flockfile(stderr);
    fputs("libfabric:mx: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(arguments);
}

ssize_t mxf_unsupported(void)
{
    return -FI_ENOSYS;
}

int mxf_code(mx_return_t code)
{
    switch (code) {
    case MX_SUCCESS:
        return 0;
    case MX_NO_RESOURCES:
        return -FI_EAGAIN;
    case MX_BUSY:
        return -FI_EADDRINUSE;
    case MX_NIC_NOT_FOUND:
    case MX_HOST_NOT_FOUND:
        return -FI_EHOSTUNREACH;
    case MX_NO_DEV:
    case MX_NO_DRIVER:
    case MX_NIC_DEAD:
    case MX_BOARD_UNKNOWN:
        return -FI_ENODEV;
    case MX_NO_PERM:
        return -FI_EACCES;
    case MX_BAD_ENDPOINT_ID:
        return -FI_EADDRNOTAVAIL;
    default:
        return -FI_EIO;
    }
}

int mxf_error(mx_status_code_t code)
{
    switch (code) {
    case MX_STATUS_SUCCESS:
        return 0;
    case MX_STATUS_TRUNCATED:
        return FI_ETRUNC;
    case MX_STATUS_CANCELLED:
        return FI_ECANCELED;
    case MX_STATUS_TIMEOUT:
        return FI_ETIMEDOUT;
    case MX_STATUS_ENDPOINT_UNKNOWN:
    case MX_STATUS_ENDPOINT_CLOSED:
    case MX_STATUS_BAD_SESSION:
    case MX_STATUS_BAD_KEY:
    case MX_STATUS_BAD_ENDPOINT:
        return FI_ECONNREFUSED;
    case MX_STATUS_ENDPOINT_UNREACHABLE:
        return FI_EHOSTUNREACH;
    default:
        return FI_EIO;
    }
}

int mxf_gone(mx_status_code_t code)
{
    int error = mxf_error(code);
    return error == FI_ECONNREFUSED || error == FI_EHOSTUNREACH;
}

int mxf_failed(mx_status_code_t code)
{
    return code != MX_STATUS_SUCCESS && code != MX_STATUS_BUFFERED && code != MX_STATUS_TRUNCATED;
}

/* Start MX for the first user. */
int mxf_use_mx(void)
{
    int error = 0;
    pthread_mutex_lock(&starting);
    if (!users) {
        mx_set_error_handler(MX_ERRORS_RETURN);
        mx_return_t code = mx_init();
        foreign = code == MX_ALREADY_INITIALIZED;
        if (!foreign)
            error = mxf_code(code);
    }
    users += !error;
    pthread_mutex_unlock(&starting);
    return error;
}

/* A program that is Python ends its interpreter before its exit handlers run, so MX must end with the last domain. */
void mxf_release_mx(void)
{
    pthread_mutex_lock(&starting);
    if (!--users && !foreign)
        mx_finalize();
    pthread_mutex_unlock(&starting);
}

/* Domains. */

static int close_domain(struct fid *fid)
{
    struct mxf_domain *domain = OWNER(fid, mxf_domain, fid.fid);
    mxf_enter();
    int busy = domain->users != 0;
    mxf_leave();
    if (busy)
        return -FI_EBUSY;
    free(domain->endpoints.list);
    free(domain);
    mxf_release_mx();
    return 0;
}

static int bind_domain(struct fid *fid, struct fid *other, uint64_t flags)
{
    (void)fid, (void)flags;
    return other->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
}

static struct fi_ops domain_fid_ops = {sizeof domain_fid_ops, close_domain, bind_domain, UNSUPPORTED,
                                       UNSUPPORTED,           UNSUPPORTED,  UNSUPPORTED};
static struct fi_ops_domain domain_ops = {sizeof domain_ops, mxf_av_open, mxf_cq_open, mxf_endpoint_open,
                                          UNSUPPORTED,       mxf_counter_open, mxf_poll_set_open, UNSUPPORTED,
                                          UNSUPPORTED,       mxf_query_atomic, UNSUPPORTED, UNSUPPORTED};

static int open_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **result, void *context)
{
    uint32_t board;
    (void)fabric;
    if (!info || !info->domain_attr || !info->domain_attr->name ||
        sscanf(info->domain_attr->name, "mx%u", &board) != 1)
        return -FI_EINVAL;
    struct mxf_domain *domain = calloc(1, sizeof *domain);
    if (!domain)
        return -FI_ENOMEM;
    int error = mxf_use_mx();
    if (error) {
        free(domain);
        return error;
    }
    domain->board = board;
    domain->automatic = info->domain_attr->data_progress == FI_PROGRESS_AUTO;
    domain->virtual = info->domain_attr->mr_mode & (FI_MR_BASIC | FI_MR_VIRT_ADDR);
    domain->chosen = info->domain_attr->mr_mode & (FI_MR_BASIC | FI_MR_PROV_KEY);
    domain->fid.fid = (struct fid){FI_CLASS_DOMAIN, context, &domain_fid_ops};
    domain->fid.ops = &domain_ops;
    domain->fid.mr = &mxf_mr_ops;
    *result = &domain->fid;
    return 0;
}

static int close_fabric(struct fid *fid)
{
    free(fid);
    return 0;
}

static struct fi_ops fabric_fid_ops = {sizeof fabric_fid_ops, close_fabric, UNSUPPORTED, UNSUPPORTED,
                                       UNSUPPORTED,           UNSUPPORTED,  UNSUPPORTED};
static struct fi_ops_fabric fabric_ops = {sizeof fabric_ops, open_domain,       UNSUPPORTED, mxf_eq_open,
                                          mxf_wait_set_open, mxf_trywait, UNSUPPORTED};

static int open_fabric(struct fi_fabric_attr *attr, struct fid_fabric **result, void *context)
{
    struct fid_fabric *fabric = calloc(1, sizeof *fabric);
    (void)attr;
    if (!fabric)
        return -FI_ENOMEM;
    fabric->fid = (struct fid){FI_CLASS_FABRIC, context, &fabric_fid_ops};
    fabric->ops = &fabric_ops;
    fabric->api_version = attr ? attr->api_version : 0;
    *result = fabric;
    return 0;
}

static void clean_up(void)
{
}

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
    static struct fi_provider provider = {
        .version = FI_VERSION(1, 0),
        /* libfabric skips providers of an older interface than the program asks for. */
        .fi_version = FI_VERSION(2, 99),
        .name = "mx",
        .getinfo = mxf_getinfo,
        .fabric = open_fabric,
        .cleanup = clean_up,
    };
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    return &provider;
}
