/* The mechanisms of this package in C: the limit of each. Same lines as pair.py, for the roles trips, operations and
 * release:
 *
 *     mechanisms MECHANISM SLOT PROCESSOR PROCESSOR [INTERFACE INTERFACE]
 *     mechanisms senders SENDERS SIZE COUNT PROCESSOR PROCESSOR
 *     mechanisms copies PROCESSOR
 *
 * The second form is that of senders.py, with one queue of cells for all senders; the third one that of copies.py.
 *
 * Two processes, one forked from the other. A mechanism is a row of the table at the end: open before the fork, join
 * after it, give and take. The interfaces are those of "veth", which the caller makes, as NAMESPACE/INTERFACE. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <emmintrin.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <netpacket/packet.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, PAGE = 4096, PACKET = 8192, SLOTS = 2, CELLS = 8, PERIOD = 251, MTU = 9000 };
enum { BARE_ETHERTYPE = 0x88B6, LONGEST_PACKET = 65536, HEAP = 16 << 20, POLLS = 256 };

struct flag {
    _Alignas(LINE) atomic_long value;
};

static int rank;
static pid_t partner;
static size_t slot;
static const char *interfaces[2];
/* Removes what outlives the processes. */
static void (*leave)(void);

/* Also called by the handler of a signal, which may have interrupted printf. */
static _Noreturn void fail(const char *call)
{
    char line[256];
    int length = snprintf(line, sizeof line, "{\"error\": \"%s: %s\"}\n", call, strerror(errno));
    if (length > 0 && write(1, line, length < (int)sizeof line ? length : (int)sizeof line - 1) < 0)
        _exit(2);
    if (!rank && leave)
        leave();
    _exit(1);
}

/* A side may block in a call of the kernel, for data that will not arrive. */
static void child_ended(int number)
{
    siginfo_t ended = {0};
    (void)number;
    if (!waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid) {
        errno = ECHILD;
        fail("the other process");
    }
}

static pid_t forked(void)
{
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        fail("fork");
    if (!child) {
        /* The parent may have ended before this call. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
    }
    return child;
}

static void *shared(size_t length)
{
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    return memory;
}

/* Yield from time to time: the other side may have no processor of its own. */
static void relax(void)
{
    static unsigned polls;
    if (++polls % POLLS)
        __builtin_ia32_pause();
    else
        sched_yield();
}

static void set(struct flag *flag, long value)
{
    atomic_store_explicit(&flag->value, value, memory_order_release);
}

static long get(struct flag *flag)
{
    return atomic_load_explicit(&flag->value, memory_order_acquire);
}

static void wait_least(struct flag *flag, long value)
{
    while (get(flag) < value)
        relax();
}

static void wait_for(struct flag *flag, long value)
{
    while (get(flag) != value)
        relax();
}

static size_t part_of(size_t length, size_t done, size_t most)
{
    return length - done < most ? length - done : most;
}

/* Shared buffer: two slots per direction. */

static struct flag *slot_flags;
static char *slots;

static void open_slots(void)
{
    slot_flags = shared(2 * SLOTS * sizeof *slot_flags);
    slots = shared(2 * SLOTS * slot);
}

static void open_memfd(void)
{
    slot_flags = shared(2 * SLOTS * sizeof *slot_flags);
    int descriptor = memfd_create("mxwire-intranode", MFD_CLOEXEC);
    if (descriptor < 0 || ftruncate(descriptor, 2 * SLOTS * slot))
        fail("memfd_create");
    slots = mmap(NULL, 2 * SLOTS * slot, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
    if (slots == MAP_FAILED)
        fail("mmap");
}

static void give_slots(char *data, size_t length)
{
    int place = SLOTS * rank;
    for (size_t done = 0; done < length; done += slot, place ^= 1) {
        size_t part = part_of(length, done, slot);
        wait_for(slot_flags + place, 0);
        memcpy(slots + place * slot, data + done, part);
        set(slot_flags + place, 1);
    }
}

static char *take_slots(char *data, size_t length)
{
    int place = SLOTS * !rank;
    for (size_t done = 0; done < length; done += slot, place ^= 1) {
        size_t part = part_of(length, done, slot);
        wait_for(slot_flags + place, 1);
        memcpy(data + done, slots + place * slot, part);
        set(slot_flags + place, 0);
    }
    return data;
}

/* Cell queue as in Nemesis: a free and a receive queue per process, for any number of senders. Cells are numbered from
 * 1, and 0 ends a queue. */

struct cell {
    _Alignas(LINE) atomic_long next;
    size_t length;
    char data[];
};

struct queue {
    _Alignas(LINE) atomic_long head;
    _Alignas(LINE) atomic_long tail;
};

static struct queue *queues;
static char *cells;

static struct cell *cell(long number)
{
    return (struct cell *)(cells + (number - 1) * (sizeof(struct cell) + slot));
}

static void enqueue(struct queue *queue, long number)
{
    atomic_store_explicit(&cell(number)->next, 0, memory_order_relaxed);
    long before = atomic_exchange(&queue->tail, number);
    atomic_store_explicit(before ? &cell(before)->next : &queue->head, number, memory_order_release);
}

static long dequeue(struct queue *queue)
{
    long first, next, expected;
    while (!(first = atomic_load_explicit(&queue->head, memory_order_acquire)))
        relax();
    next = atomic_load_explicit(&cell(first)->next, memory_order_acquire);
    if (!next) {
        /* The last one: empty the head before the tail, where a sender may add another one meanwhile. */
        atomic_store_explicit(&queue->head, 0, memory_order_relaxed);
        expected = first;
        if (atomic_compare_exchange_strong(&queue->tail, &expected, 0))
            return first;
        while (!(next = atomic_load_explicit(&cell(first)->next, memory_order_acquire)))
            relax();
    }
    atomic_store_explicit(&queue->head, next, memory_order_relaxed);
    return first;
}

static struct queue *free_queue(int side) { return queues + 2 * side; }
static struct queue *receive_queue(int side) { return queues + 2 * side + 1; }
static int owner(long number) { return (number - 1) / CELLS; }

static void open_cells_of(int sides)
{
    slot = (slot + LINE - 1) / LINE * LINE;
    queues = shared(2 * sides * sizeof *queues);
    cells = shared(sides * CELLS * (sizeof(struct cell) + slot));
    for (long number = 1; number <= sides * CELLS; number++)
        enqueue(free_queue(owner(number)), number);
}

static void open_cells(void) { open_cells_of(2); }

static void give_cells_to(int side, char *data, size_t length)
{
    for (size_t done = 0; done < length; done += slot) {
        long number = dequeue(free_queue(rank));
        cell(number)->length = part_of(length, done, slot);
        memcpy(cell(number)->data, data + done, cell(number)->length);
        enqueue(receive_queue(side), number);
    }
}

static void give_cells(char *data, size_t length) { give_cells_to(!rank, data, length); }

static char *take_cells(char *data, size_t length)
{
    for (size_t done = 0; done < length;) {
        long number = dequeue(receive_queue(rank));
        memcpy(data + done, cell(number)->data, cell(number)->length);
        done += cell(number)->length;
        enqueue(free_queue(owner(number)), number);
    }
    return data;
}

/* Heap in place. */

static struct flag *heap_flags;
static char *heap;

static void open_heap(void)
{
    heap_flags = shared(2 * sizeof *heap_flags);
    heap = shared(2 * HEAP);
}

static void give_heap(char *data, size_t length)
{
    wait_for(heap_flags + rank, 0);
    memcpy(heap + (size_t)rank * HEAP, data, length);
    set(heap_flags + rank, 1);
}

static char *take_heap(char *data, size_t length)
{
    (void)data, (void)length;
    wait_for(heap_flags + !rank, 1);
    set(heap_flags + !rank, 0);
    return heap + (size_t)!rank * HEAP;
}

/* Queues of the kernel. */

static struct {
    long type;
    char data[PACKET];
} message = {.type = 1};
static int system_v[2];
static mqd_t posix[2];

static void open_system_v(void)
{
    for (int side = 0; side < 2; side++)
        if ((system_v[side] = msgget(IPC_PRIVATE, 0600)) < 0)
            fail("msgget");
}

/* They outlive the processes that use them, and their removal would end them at once. */
static void close_system_v(void)
{
    for (int side = 0; side < 2; side++)
        msgctl(system_v[side], IPC_RMID, NULL);
}

static void give_system_v(char *data, size_t length)
{
    for (size_t done = 0; done < length; done += PACKET) {
        size_t part = part_of(length, done, PACKET);
        memcpy(message.data, data + done, part);
        if (msgsnd(system_v[rank], &message, part, 0))
            fail("msgsnd");
    }
}

static char *take_system_v(char *data, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t part = msgrcv(system_v[!rank], &message, PACKET, 0, 0);
        if (part < 0)
            fail("msgrcv");
        memcpy(data + done, message.data, part);
        done += part;
    }
    return data;
}

static void open_posix(void)
{
    for (int side = 0; side < 2; side++) {
        char name[64];
        struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = PACKET};
        snprintf(name, sizeof name, "/mxwire-intranode-%d-%d", getpid(), side);
        posix[side] = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
        if (posix[side] == (mqd_t)-1)
            fail("mq_open");
        mq_unlink(name);
    }
}

static void give_posix(char *data, size_t length)
{
    for (size_t done = 0; done < length; done += PACKET)
        if (mq_send(posix[rank], data + done, part_of(length, done, PACKET), 0))
            fail("mq_send");
}

static char *take_posix(char *data, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t part = mq_receive(posix[!rank], message.data, PACKET, NULL);
        if (part < 0)
            fail("mq_receive");
        memcpy(data + done, message.data, part);
        done += part;
    }
    return data;
}

/* Descriptors: pipes and sockets. */

static int ends[2][2], writing, reading;

static void open_pipes(void)
{
    for (int side = 0; side < 2; side++) {
        if (pipe(ends[side]))
            fail("pipe");
        fcntl(ends[side][1], F_SETPIPE_SZ, 1 << 20);
    }
}

static void join_pipes(void)
{
    writing = ends[rank][1];
    reading = ends[!rank][0];
    close(ends[rank][0]);
    close(ends[!rank][1]);
}

static void open_socket_pair(int type)
{
    int pair[2];
    if (socketpair(AF_UNIX, type, 0, pair))
        fail("socketpair");
    for (int side = 0; side < 2; side++)
        ends[side][0] = ends[side][1] = pair[side];
}

static void open_unix_stream(void) { open_socket_pair(SOCK_STREAM); }
static void open_unix_polled(void) { open_socket_pair(SOCK_STREAM | SOCK_NONBLOCK); }
static void open_unix_packets(void) { open_socket_pair(SOCK_SEQPACKET); }

static void open_tcp(void)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof place;
    if (bind(listener, (void *)&place, sizeof place) || listen(listener, 1) ||
        getsockname(listener, (void *)&place, &length))
        fail("listen");
    int near = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(near, (void *)&place, sizeof place))
        fail("connect");
    /* Another process of this machine could connect first. */
    struct sockaddr_in own, peer;
    socklen_t sizes[2] = {sizeof own, sizeof peer};
    int far = accept(listener, (void *)&peer, sizes + 1);
    close(listener);
    if (far < 0 || getsockname(near, (void *)&own, sizes) || own.sin_port != peer.sin_port) {
        errno = ECONNREFUSED;
        fail("accept");
    }
    setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    ends[0][0] = ends[0][1] = near;
    ends[1][0] = ends[1][1] = far;
}

static void join_sockets(void)
{
    writing = reading = ends[rank][0];
    close(ends[!rank][0]);
}

static void give_stream(char *data, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t part = write(writing, data + done, length - done);
        if (part >= 0)
            done += part;
        else if (errno == EAGAIN)
            relax();
        else
            fail("write");
    }
}

static void give_pages(char *data, size_t length)
{
    for (size_t done = 0; done < length;) {
        struct iovec pages = {data + done, length - done};
        ssize_t part = vmsplice(writing, &pages, 1, 0);
        if (part < 0)
            fail("vmsplice");
        done += part;
    }
}

static void give_packets(char *data, size_t length)
{
    for (size_t done = 0; done < length; done += LONGEST_PACKET)
        if (send(writing, data + done, part_of(length, done, LONGEST_PACKET), 0) < 0)
            fail("send");
}

static char *take_stream(char *data, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t part = read(reading, data + done, length - done);
        if (!part)
            errno = ECONNRESET;
        if (part > 0)
            done += part;
        else if (errno == EAGAIN)
            relax();
        else
            fail("read");
    }
    return data;
}

/* The memory of the other process. */

static struct offer {
    struct flag told, done, place;
} *offers;
static long given, taken;
static int process_file = -1;

static void open_offers(void)
{
    offers = shared(2 * sizeof *offers);
}

static void permit(void)
{
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

static void offer(char *data)
{
    set(&offers[rank].place, (long)(intptr_t)data);
    set(&offers[rank].told, ++given);
}

static char *offered(void)
{
    wait_for(&offers[!rank].told, ++taken);
    return (char *)(intptr_t)get(&offers[!rank].place);
}

static void give_offer(char *data, size_t length)
{
    (void)length;
    offer(data);
    wait_for(&offers[rank].done, given);
}

static void read_file(int file, char *data, char *place, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t part = pread(file, data + done, length - done, (off_t)(intptr_t)place + done);
        /* Nothing is read from a process that has ended. */
        if (!part)
            errno = ESRCH;
        if (part <= 0)
            fail("pread");
        done += part;
    }
}

static int open_process(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", partner);
    int file = open(path, O_RDWR);
    if (file < 0)
        fail(path);
    return file;
}

static char *take_by_file(char *data, size_t length)
{
    char *place = offered();
    if (process_file < 0)
        process_file = open_process();
    read_file(process_file, data, place, length);
    set(&offers[!rank].done, taken);
    return data;
}

static char *take_by_ptrace(char *data, size_t length)
{
    char *place = offered();
    int status;
    if (ptrace(PTRACE_ATTACH, partner, NULL, NULL))
        fail("ptrace");
    if (waitpid(partner, &status, __WALL) < 0 || !WIFSTOPPED(status))
        fail("waitpid");
    int file = open_process();
    read_file(file, data, place, length);
    close(file);
    if (ptrace(PTRACE_DETACH, partner, NULL, NULL))
        fail("ptrace");
    set(&offers[!rank].done, taken);
    return data;
}

static char *take_by_readv(char *data, size_t length)
{
    struct iovec here = {data, length}, there = {offered(), length};
    ssize_t done = process_vm_readv(partner, &here, 1, &there, 1, 0);
    if (done >= 0 && done != (ssize_t)length)
        errno = EFAULT;
    if (done != (ssize_t)length)
        fail("process_vm_readv");
    set(&offers[!rank].done, taken);
    return data;
}

static void give_by_writev(char *data, size_t length)
{
    struct iovec here = {data, length}, there = {offered(), length};
    ssize_t done = process_vm_writev(partner, &here, 1, &there, 1, 0);
    if (done >= 0 && done != (ssize_t)length)
        errno = EFAULT;
    if (done != (ssize_t)length)
        fail("process_vm_writev");
    set(&offers[!rank].done, taken);
}

static char *take_offer(char *data, size_t length)
{
    (void)length;
    offer(data);
    wait_for(&offers[rank].done, given);
    return data;
}

/* Frames. */

static int frame_sockets[2];
static struct sockaddr_ll frame_ends[2];

static void open_frames(void)
{
    for (int side = 0; side < 2; side++) {
        char path[128], *name;
        if (!interfaces[side]) {
            errno = EINVAL;
            fail("two interfaces");
        }
        snprintf(path, sizeof path, "/run/netns/%s", interfaces[side]);
        if (!(name = strrchr(path, '/'))) {
            errno = EINVAL;
            fail(path);
        }
        *name++ = 0;
        int space = open(path, O_RDONLY), buffer = 4 << 20;
        if (space < 0 || setns(space, CLONE_NEWNET))
            fail(path);
        close(space);
        struct ifreq asked = {0};
        memcpy(asked.ifr_name, name, strnlen(name, IFNAMSIZ - 1));
        int made = frame_sockets[side] = socket(AF_PACKET, SOCK_DGRAM, htons(BARE_ETHERTYPE));
        if (made < 0 || ioctl(made, SIOCGIFHWADDR, &asked))
            fail(name);
        setsockopt(made, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
        struct sockaddr_ll *end = frame_ends + side;
        *end = (struct sockaddr_ll){.sll_family = AF_PACKET, .sll_protocol = htons(BARE_ETHERTYPE), .sll_halen = 6,
                                    .sll_ifindex = (int)if_nametoindex(name)};
        if (bind(made, (void *)end, sizeof *end))
            fail("bind");
        memcpy(end->sll_addr, asked.ifr_hwaddr.sa_data, 6);
    }
}

static void give_frames(char *data, size_t length)
{
    struct sockaddr_ll there = frame_ends[!rank];
    there.sll_ifindex = frame_ends[rank].sll_ifindex;
    for (size_t done = 0; done < length; done += MTU)
        if (sendto(frame_sockets[rank], data + done, part_of(length, done, MTU), 0, (void *)&there, sizeof there) < 0)
            fail("sendto");
}

static char *take_frames(char *data, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t part = recv(frame_sockets[rank], data + done, length - done, 0);
        if (part < 0)
            fail("recv");
        done += part;
    }
    return data;
}

static void nothing(void) {}

static const struct mechanism {
    const char *name;
    size_t slot; /* of a buffer or cell; of "heap" and "veth" the longest message */
    void (*open)(void), (*join)(void), (*give)(char *, size_t);
    char *(*take)(char *, size_t);
    void (*close)(void);
} mechanisms[] = {
    {"shared-buffer", 65536, open_slots, nothing, give_slots, take_slots, nothing},
    {"memfd", 65536, open_memfd, nothing, give_slots, take_slots, nothing},
    {"cell-queue", 32768, open_cells, nothing, give_cells, take_cells, nothing},
    {"heap", HEAP, open_heap, nothing, give_heap, take_heap, nothing},
    {"system-v-queue", 0, open_system_v, nothing, give_system_v, take_system_v, close_system_v},
    {"posix-queue", 0, open_posix, nothing, give_posix, take_posix, nothing},
    {"pipe", 0, open_pipes, join_pipes, give_stream, take_stream, nothing},
    {"vmsplice", 0, open_pipes, join_pipes, give_pages, take_stream, nothing},
    {"unix-stream", 0, open_unix_stream, join_sockets, give_stream, take_stream, nothing},
    {"unix-stream-polled", 0, open_unix_polled, join_sockets, give_stream, take_stream, nothing},
    {"unix-packets", 0, open_unix_packets, join_sockets, give_packets, take_stream, nothing},
    {"ptrace", 0, open_offers, permit, give_offer, take_by_ptrace, nothing},
    {"process-file", 0, open_offers, permit, give_offer, take_by_file, nothing},
    {"cma-get", 0, open_offers, permit, give_offer, take_by_readv, nothing},
    {"cma-put", 0, open_offers, permit, give_by_writev, take_offer, nothing},
    {"tcp", 0, open_tcp, join_sockets, give_stream, take_stream, nothing},
    {"veth", LONGEST_PACKET, open_frames, nothing, give_frames, take_frames, nothing},
};

/* The pair. */

static const struct mechanism *chosen;
static struct pair {
    struct flag arrived[2];
    struct values {
        double ns, user, system;
    } values[2];
} *pair;
static long barriers;

static void barrier(void)
{
    set(&pair->arrived[rank], ++barriers);
    wait_least(&pair->arrived[!rank], barriers);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static double processor(int system)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    struct timeval *spent = system ? &usage.ru_stime : &usage.ru_utime;
    return spent->tv_sec * 1e9 + spent->tv_usec * 1e3;
}

/* Memory of a side, kept as in memory.py: its content is that of a source, or zeros. */
struct pool {
    char *memory;
    size_t length;
    long used; /* messages of the last step */
    size_t step;
};

static void release(struct pool *pool)
{
    free(pool->memory);
    *pool = (struct pool){0};
}

static void use(struct pool *pool, size_t size, size_t step, size_t length, int full)
{
    if (!size || size > length) {
        errno = EINVAL;
        fail("a message of this length");
    }
    if (step != pool->step && step)
        pool->used = (pool->used * pool->step + step - 1) / step;
    pool->step = step;
    if (length == pool->length)
        return;
    release(pool);
    if (posix_memalign((void **)&pool->memory, PAGE, length)) {
        errno = ENOMEM;
        fail("posix_memalign");
    }
    pool->length = length;
    pool->step = step;
    char pattern[PERIOD];
    for (int place = 0; place < PERIOD; place++)
        pattern[place] = full ? place : 0;
    for (size_t place = 0; place < length; place += PERIOD)
        memcpy(pool->memory + place, pattern, part_of(length, place, PERIOD));
}

/* The message at "turn" after those that were used. */
static char *piece(const struct pool *pool, size_t size, long turn)
{
    if (!pool->step)
        return pool->memory;
    return pool->memory + (size_t)(pool->used + turn) % ((pool->length - size) / pool->step + 1) * pool->step;
}

/* "place" is that of the message in the source's pool. */
static void check(const char *arrived, size_t place, size_t size)
{
    for (size_t each = 0; each < size; each++)
        if (arrived[each] != (char)((place + each) % PERIOD)) {
            errno = EBADMSG;
            fail("content");
        }
}

static void play(const char *role, size_t size, long turns, size_t step, size_t length)
{
    static struct pool pool;
    char *arrived = NULL, *last = NULL;
    long warm = turns / 10 + 1;
    double alone = 0, begin = 0, user = 0, system = 0;
    int trips = !strcmp(role, "trips");
    if (!strcmp(role, "release")) {
        release(&pool);
        pair->values[rank] = (struct values){0};
        barrier();
        return;
    }
    if ((chosen->take == take_heap || chosen->take == take_frames) && size > chosen->slot) {
        errno = EMSGSIZE;
        fail(chosen->name);
    }
    use(&pool, size, step, length, !rank);
    if (rank)
        memset(piece(&pool, size, turns - 1 + warm), 0, size);
    if (!trips) {
        barrier();
        begin = now();
        for (long turn = 0; turn < turns; turn++)
            barrier();
        alone = now() - begin;
    }
    for (long turn = -warm; turn < turns; turn++) {
        if (!turn) {
            barrier();
            begin = now(), user = processor(0), system = processor(1);
        }
        last = piece(&pool, size, turn + warm);
        if (!trips)
            barrier();
        if (rank) {
            arrived = chosen->take(last, size);
            if (trips)
                chosen->give(last, size);
        } else {
            chosen->give(last, size);
            if (trips)
                chosen->take(last, size);
        }
    }
    long messages = trips ? 2 * turns : turns;
    pair->values[rank] = (struct values){(now() - begin - alone) / messages, (processor(0) - user) / messages,
                                         (processor(1) - system) / messages};
    if (rank)
        check(arrived, last - pool.memory, size);
    pool.used += turns + warm;
    barrier();
}

static void run_on(int processor_number)
{
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(processor_number, &own);
    if (sched_setaffinity(0, sizeof own, &own))
        fail("sched_setaffinity");
}

/* Copies without the other side: as the C library chooses, by the processor's instruction for strings, and past the
 * caches, as the paper's MMX stores. */

static void copy_string(char *to, const char *from, size_t length)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
}

static void copy_past(char *to, const char *from, size_t length)
{
    size_t head = part_of(length, 0, -(uintptr_t)to % sizeof(__m128i));
    memcpy(to, from, head);
    for (; length - head >= sizeof(__m128i); head += sizeof(__m128i))
        _mm_stream_si128((__m128i *)(to + head), _mm_loadu_si128((const __m128i *)(from + head)));
    memcpy(to + head, from + head, length - head);
    _mm_sfence();
}

static void copy_usual(char *to, const char *from, size_t length) { memcpy(to, from, length); }

static const struct routine {
    const char *name;
    void (*copy)(char *, const char *, size_t);
} routines[] = {{"memcpy", copy_usual}, {"string", copy_string}, {"past-caches", copy_past}};

static void copies(int processor_number)
{
    static struct pool from, to;
    char line[256], role[32];
    size_t size, step, length;
    long turns;
    run_on(processor_number);
    while (fgets(line, sizeof line, stdin)) {
        const struct routine *routine = NULL;
        if (sscanf(line, "%31s %zu %ld %zu %zu", role, &size, &turns, &step, &length) != 5)
            exit(2);
        for (size_t number = 0; number < sizeof routines / sizeof *routines; number++)
            if (!strcmp(role, routines[number].name))
                routine = routines + number;
        if (routine) {
            use(&from, size, step, length, 1);
            use(&to, size, step, length, 0);
            memset(piece(&to, size, turns - 1), 0, size);
            double begin = now();
            for (long turn = 0; turn < turns; turn++)
                routine->copy(piece(&to, size, turn), piece(&from, size, turn), size);
            double took = now() - begin;
            check(piece(&to, size, turns - 1), piece(&from, size, turns - 1) - from.memory, size);
            from.used += turns, to.used += turns;
            printf("{\"ns\": %.2f}\n", took / turns);
        } else if (!strcmp(role, "release")) {
            release(&from), release(&to);
            printf("{}\n");
        } else
            exit(2);
        fflush(stdout);
    }
}

/* Messages are of one cell, so that those of several senders do not mix. */
static int senders(int count, size_t size, long turns, int near, int far)
{
    struct rusage others;
    struct pool pool = {0};
    use(&pool, size, 0, size, 1);
    slot = size;
    open_cells_of(count + 1);
    for (int side = 1; side <= count; side++) {
        if (!forked()) {
            rank = side;
            run_on(far);
            for (long turn = 0; turn < turns; turn++)
                give_cells_to(0, pool.memory, size);
            _exit(0);
        }
    }
    run_on(near);
    memset(pool.memory, 0, size);
    double begin = now(), used = processor(0) + processor(1);
    for (long turn = 0; turn < turns * count; turn++)
        take_cells(pool.memory, size);
    double took = now() - begin;
    check(pool.memory, 0, size);
    used = processor(0) + processor(1) - used;
    while (wait(NULL) > 0)
        ;
    getrusage(RUSAGE_CHILDREN, &others);
    double spent = (others.ru_utime.tv_sec + others.ru_stime.tv_sec) * 1e9 +
                   (others.ru_utime.tv_usec + others.ru_stime.tv_usec) * 1e3;
    double messages = (double)turns * count;
    printf("{\"ns\": %.1f, \"receiver\": %.1f, \"senders\": %.1f, \"places\": 1, \"memory\": %zu}\n", took / messages,
           used / messages, spent / messages, (count + 1) * CELLS * (sizeof(struct cell) + slot));
    return 0;
}

int main(int count, char **words)
{
    if (count == 7 && !strcmp(words[1], "senders"))
        return senders(atoi(words[2]), strtoul(words[3], NULL, 10), atol(words[4]), atoi(words[5]), atoi(words[6]));
    if (count == 3 && !strcmp(words[1], "copies"))
        return copies(atoi(words[2])), 0;
    if (count < 5)
        return 2;
    for (size_t number = 0; number < sizeof mechanisms / sizeof *mechanisms; number++)
        if (!strcmp(words[1], mechanisms[number].name))
            chosen = mechanisms + number;
    if (!chosen)
        return 2;
    slot = strtoul(words[2], NULL, 10);
    slot = slot ? slot : chosen->slot;
    interfaces[0] = count > 6 ? words[5] : NULL;
    interfaces[1] = count > 6 ? words[6] : NULL;
    pair = shared(sizeof *pair);
    chosen->open();
    leave = chosen->close;
    signal(SIGPIPE, SIG_IGN);
    int lines[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, lines))
        fail("socketpair");
    /* Not for stops, which ptrace makes. */
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = child_ended, .sa_flags = SA_NOCLDSTOP | SA_RESTART}, NULL);
    pid_t child = forked();
    rank = !child;
    partner = child ? child : getppid();
    close(lines[!rank]);
    run_on(atoi(words[3 + rank]));
    chosen->join();
    barrier();
    char line[256], role[32];
    size_t size, step, length;
    long turns;
    for (;;) {
        ssize_t got;
        if (!rank) {
            if (!fgets(line, sizeof line, stdin))
                break;
            if (send(lines[0], line, strlen(line) + 1, 0) < 0)
                fail("send");
        } else if ((got = recv(lines[1], line, sizeof line, 0)) <= 0)
            break;
        if (sscanf(line, "%31s %zu %ld %zu %zu", role, &size, &turns, &step, &length) != 5)
            return 2;
        play(role, size, turns, step, length);
        if (!rank) {
            for (int side = 0; side < 2; side++)
                printf("%s{\"ns\": %.1f, \"user\": %.1f, \"system\": %.1f}%s", side ? ", " : "[", pair->values[side].ns,
                       pair->values[side].user, pair->values[side].system, side ? "]\n" : "");
            fflush(stdout);
        }
    }
    if (!rank) {
        signal(SIGCHLD, SIG_DFL);
        close(lines[0]);
        waitpid(child, NULL, 0);
        chosen->close();
    }
    return 0;
}
