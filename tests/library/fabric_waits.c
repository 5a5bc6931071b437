/* Programs that sleep in poll until libfabric has something. Without arguments: queues, counters, wait sets and poll sets
 * of one endpoint, and a race with a thread that sends. "server": print the address, and return messages. "client
 * ADDRESS": send messages at irregular times, and wait for their return. A sleep of WAIT_MS is a lost wake-up. */

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "fabric_endpoint.h"

enum { RACES = 3000, TURNS = 400, LENGTH = 64 };
static char out[LONGEST], in[LONGEST];

static void sleep_until(struct fid *fid)
{
    struct pollfd readable = {.events = POLLIN};
    REQUIRE(!fi_control(fid, FI_GETWAIT, &readable.fd));
    int result = fi_trywait(fabric, &fid, 1);
    REQUIRE(!result || result == -FI_EAGAIN);
    REQUIRE(result || poll(&readable, 1, WAIT_MS) == 1);
}

static struct fi_cq_tagged_entry awaited(struct fid_cq *cq)
{
    struct fi_cq_tagged_entry entry;
    ssize_t count;
    while ((count = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN)
        sleep_until(&cq->fid);
    REQUIRE(count == 1);
    return entry;
}

static int taken;

/* Each message waits for the one before: a later one would end the sleep that a lost wake-up leaves. */
static void *send_all(void *unused)
{
    for (int number = 0; number < RACES; number++) {
        while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) != number)
            sched_yield();
        pause_shortly();
        while (fi_tinject(ep, &number, sizeof number, self, 1) == -FI_EAGAIN)
            usleep(100);
    }
    return unused;
}

static void race(void)
{
    pthread_t sender;
    int found;
    REQUIRE(!pthread_create(&sender, NULL, send_all, NULL));
    for (int number = 0; number < RACES; number++) {
        REQUIRE(!fi_trecv(ep, &found, sizeof found, NULL, self, 1, 0, NULL));
        awaited(rx);
        REQUIRE(found == number);
        __atomic_store_n(&taken, number + 1, __ATOMIC_RELEASE);
    }
    pthread_join(sender, NULL);
}

static void objects(void)
{
    int descriptor;
    enum fi_wait_obj kind;
    REQUIRE(!fi_control(&rx->fid, FI_GETWAIT, &descriptor) && descriptor > 0);
    REQUIRE(!fi_control(&rx->fid, FI_GETWAITOBJ, &kind) && kind == FI_WAIT_FD);
    struct pollfd readable = {descriptor, POLLIN, 0};
    struct fid *fids[2] = {&rx->fid, &tx->fid};
    for (int turn = 0; turn < 3; turn++) {
        while (fi_trywait(fabric, fids, 2) == -FI_EAGAIN)
            REQUIRE(empty(rx) && empty(tx));
        REQUIRE(!poll(&readable, 1, 10));
        REQUIRE(!fi_cq_signal(rx) && poll(&readable, 1, 0) == 1 && fi_trywait(fabric, fids, 2) == -FI_EAGAIN);
        REQUIRE(fi_cq_sread(rx, in, 1, NULL, 0) == -FI_EAGAIN);
    }
}

static void counters(void)
{
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_FD};
    struct fid_cntr *counter;
    struct fid *fid;
    REQUIRE(!fi_cntr_open(domain, &attr, &counter, NULL));
    fid = &counter->fid;
    REQUIRE(!fi_trywait(fabric, &fid, 1) && !fi_cntr_add(counter, 2));
    sleep_until(fid);
    REQUIRE(fi_cntr_read(counter) == 2 && !fi_trywait(fabric, &fid, 1) && !fi_close(fid));
}

static void sets(void)
{
    struct fi_wait_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
    struct fid_wait *set;
    struct fid_poll *polls;
    struct fid_cntr *first, *second;
    struct fid_eq *events;
    void *contexts[2];
    REQUIRE(!fi_wait_open(fabric, &attr, &set) && !fi_poll_open(domain, NULL, &polls));
    struct fi_cntr_attr counted = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_SET, .wait_set = set};
    struct fi_eq_attr evented = {.wait_obj = FI_WAIT_SET, .wait_set = set};
    REQUIRE(!fi_cntr_open(domain, &counted, &first, &first) && !fi_cntr_open(domain, &counted, &second, &second));
    REQUIRE(!fi_eq_open(fabric, &evented, &events, NULL));
    REQUIRE(!fi_poll_add(polls, &first->fid, 0) && !fi_poll_add(polls, &second->fid, 0));
    REQUIRE(fi_wait(set, 10) == -FI_ETIMEDOUT && !fi_poll(polls, contexts, 2));
    REQUIRE(!fi_cntr_add(second, 1) && !fi_wait(set, WAIT_MS) && fi_poll(polls, contexts, 2) == 1);
    REQUIRE(contexts[0] == &second && fi_cntr_read(second) == 1 && !fi_poll(polls, contexts, 2));
    REQUIRE(fi_wait(set, 0) == -FI_ETIMEDOUT && fi_close(&set->fid) == -FI_EBUSY);
    REQUIRE(!fi_poll_del(polls, &first->fid, 0) && fi_poll_del(polls, &first->fid, 0) == -FI_EINVAL);
    REQUIRE(!fi_close(&first->fid) && !fi_close(&second->fid) && !fi_close(&events->fid));
    REQUIRE(!fi_close(&set->fid) && !fi_close(&polls->fid));
}

static void *write_later(void *eq)
{
    struct fi_eq_entry entry = {0};
    pause_shortly();
    REQUIRE(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof entry, 0) == sizeof entry);
    return NULL;
}

/* Events of the program itself. */
static void events(void)
{
    enum { SIZE = 3 };
    struct fi_eq_attr attr = {.size = SIZE, .flags = FI_WRITE, .wait_obj = FI_WAIT_FD};
    struct fi_eq_entry entry = {0};
    struct fid_eq *eq;
    pthread_t writer;
    uint32_t kind;
    REQUIRE(!fi_eq_open(fabric, &attr, &eq, NULL));
    struct fid *fid = &eq->fid;
    REQUIRE(!fi_trywait(fabric, &fid, 1) && fi_eq_read(eq, &kind, &entry, sizeof entry, 0) == -FI_EAGAIN);
    for (size_t number = 0; number < SIZE; number++) {
        entry.data = number;
        REQUIRE(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof entry, 0) == sizeof entry);
    }
    REQUIRE(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof entry, 0) == -FI_EAGAIN);
    sleep_until(fid);
    REQUIRE(fi_trywait(fabric, &fid, 1) == -FI_EAGAIN && fi_eq_read(eq, &kind, &entry, 1, 0) == -FI_ETOOSMALL);
    for (size_t number = 0; number < 2 * SIZE; number++) {
        REQUIRE(fi_eq_sread(eq, &kind, &entry, sizeof entry, WAIT_MS, number % 2 ? 0 : FI_PEEK) == sizeof entry);
        REQUIRE(kind == FI_NOTIFY && entry.data == number / 2);
    }
    REQUIRE(!fi_trywait(fabric, &fid, 1) && fi_eq_sread(eq, &kind, &entry, sizeof entry, 1, 0) == -FI_EAGAIN);
    for (int turn = 0; turn < 100; turn++) {
        REQUIRE(!pthread_create(&writer, NULL, write_later, eq));
        REQUIRE(fi_eq_sread(eq, &kind, &entry, sizeof entry, WAIT_MS, 0) == sizeof entry);
        pthread_join(writer, NULL);
    }
    REQUIRE(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof entry, 0) == sizeof entry && !fi_close(fid));
}

static fi_addr_t insert(const char *name)
{
    fi_addr_t partner;
    REQUIRE(fi_av_insert(av, name, 1, &partner, 0, NULL) == 1);
    return partner;
}

static size_t length_of(int turn)
{
    return turn % 10 == 9 ? LONGEST : LENGTH;
}

static void serve(void)
{
    for (int place = 0; place < ADDRESS; place++)
        printf("%02x", (unsigned char)own[place]);
    puts("");
    fflush(stdout);
    REQUIRE(!fi_trecv(ep, in, ADDRESS, NULL, FI_ADDR_UNSPEC, 0, 0, NULL));
    awaited(rx);
    fi_addr_t partner = insert(in);
    for (int turn = 0; turn < TURNS; turn++) {
        REQUIRE(!fi_trecv(ep, in, sizeof in, NULL, partner, 1, 0, NULL));
        REQUIRE(awaited(rx).len == length_of(turn));
        pause_shortly();
        REQUIRE(!fi_tsend(ep, in, length_of(turn), NULL, partner, 2, NULL));
        awaited(tx);
    }
}

static void ask(const char *address)
{
    char name[ADDRESS];
    for (int place = 0; place < ADDRESS; place++)
        REQUIRE(sscanf(address + 2 * place, "%2hhx", (unsigned char *)&name[place]) == 1);
    fi_addr_t partner = insert(name);
    REQUIRE(!fi_tsend(ep, own, ADDRESS, NULL, partner, 0, NULL));
    awaited(tx);
    for (int turn = 0; turn < TURNS; turn++) {
        memset(out, turn, sizeof out);
        REQUIRE(!fi_tsend(ep, out, length_of(turn), NULL, partner, 1, NULL));
        pause_shortly();
        REQUIRE(!fi_trecv(ep, in, sizeof in, NULL, partner, 2, 0, NULL));
        awaited(tx);
        REQUIRE(awaited(rx).len == length_of(turn) && !memcmp(in, out, length_of(turn)));
    }
}

int main(int count, char **words)
{
    wait_object = FI_WAIT_FD;
    open_endpoint(NULL, FI_SEND);
    if (count > 2) {
        ask(words[2]);
    } else if (count > 1) {
        serve();
    } else {
        objects();
        counters();
        sets();
        events();
        race();
    }
    close_endpoint();
    puts("done");
    return 0;
}
