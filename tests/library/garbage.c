/* Random calls with wrong arguments, from several threads at once: each returns a code, and none crashes.
 *
 *   garbage SEED THREADS CALLS [restart]
 *
 * With restart, threads also call mx_finalize and mx_init. */

#include "cases.h"
#include "require.h"

#define POOL 16

/* What threads have posted and opened, read and written without order: handles are stale, or those of another thread. */
static volatile mx_endpoint_t endpoints[POOL];
static volatile mx_request_t requests[POOL];
static mx_endpoint_addr_t addresses[POOL];
static char memory[1 << 16];
static long calls;
static int restarts;

static __thread uint64_t state;

static uint64_t next(uint64_t below)
{
    return shuffle(&state) % below;
}

static uint64_t wild(void)
{
    static const uint64_t values[] = {0, 1, 2, 31, 32, 0xff, 0x100000, 0x7fffffff, 0xffffffff, 1ull << 48, 1ull << 63, ~0ull};
    return next(3) ? values[next(sizeof values / sizeof *values)] : next(~0ull) << next(64);
}

static mx_endpoint_t endpoint(void)
{
    mx_endpoint_t chosen = endpoints[next(POOL)];
    return next(12) ? chosen : (mx_endpoint_t)(uintptr_t)(next(2) ? wild() : (uintptr_t)chosen ^ 1ull << next(64));
}

static mx_request_t request(void)
{
    mx_request_t chosen = requests[next(POOL)];
    return next(12) ? chosen : (mx_request_t)(uintptr_t)(next(2) ? wild() : (uintptr_t)chosen ^ 1ull << next(64));
}

static mx_endpoint_addr_t address(void)
{
    mx_endpoint_addr_t chosen = addresses[next(POOL)];
    if (!next(12))
        chosen.stuff[next(2)] ^= 1ull << next(64);
    if (!next(12))
        chosen.stuff[next(2)] = wild();
    return chosen;
}

static void *maybe(void *pointer)
{
    return next(15) ? pointer : NULL;
}

static mx_unexp_handler_action_t handle(void *context, mx_endpoint_addr_t source, uint64_t info, uint32_t length,
                                        void *data)
{
    mx_status_t status;
    uint32_t result;
    mx_request_t own = request();
    mx_segment_t segment = {memory, length < sizeof memory ? length : sizeof memory};
    (void)context, (void)data;
    switch (next(6)) {
    case 0: mx_irecv(endpoint(), &segment, 1, info, ALL, NULL, NULL); break;
    case 1: mx_isend(endpoint(), &segment, 1, source, info, NULL, NULL); break;
    case 2: mx_close_endpoint(endpoint()); break;
    case 3: mx_wait(endpoint(), &own, 1, &status, &result); break;
    case 4: mx_disconnect(endpoint(), source); break;
    default: mx_probe(endpoint(), 1, 0, 0, &status, &result);
    }
    return (mx_unexp_handler_action_t)next(4);
}

static uint32_t lay_out(mx_segment_t *segments)
{
    uint32_t count = (uint32_t)next(6);
    for (uint32_t each = 0; each < 8; each++) {
        segments[each] = (mx_segment_t){memory, (uint32_t)next(next(3) ? 100 : sizeof memory)};
        /* Lengths that no memory has: of receives and sends that are refused. */
        if (!next(20))
            segments[each] = (mx_segment_t){NULL, (uint32_t)wild()};
    }
    return next(20) ? count : (uint32_t)(257 + next(1u << 31));
}

static mx_return_t call(void)
{
    mx_segment_t segments[8];
    mx_status_t status, *to = maybe(&status);
    uint32_t result = 0, number = 0, *out = maybe(&result), count = lay_out(segments);
    uint64_t nic_id = 0, info = next(4), mask = next(5) ? ALL : wild();
    mx_request_t own = request(), *variable = maybe(&own), posted = NULL, *wanted = maybe(&posted);
    mx_endpoint_t used = endpoint();
    mx_endpoint_addr_t peer = address();
    void *context;
    char name[MX_MAX_HOSTNAME_LEN + 20];
    mx_return_t code = mx_board_number_to_nic_id(0, &nic_id);
    mx_param_t params[2] = {{.key = (mx_param_key_t)next(4)}, {.key = MX_PARAM_CONTEXT_ID}};
    params[0].val.unexp_queue_max = 0;
    params[1].val.context_id.bits = (uint8_t)next(20);
    params[1].val.context_id.shift = (uint8_t)next(70);
    switch (next(38)) {
    case 0: case 1: {
        mx_endpoint_t opened = NULL;
        code = mx_open_endpoint(next(5) ? 0 : (uint32_t)wild(), next(8) ? (uint32_t)next(6) : (uint32_t)wild(), 1,
                                next(4) ? NULL : params, next(4) ? 0 : (uint32_t)next(3), next(20) ? &opened : NULL);
        if (opened) {
            endpoints[next(POOL)] = opened;
            mx_get_endpoint_addr(opened, &addresses[next(POOL)]);
            if (next(2))
                mx_register_unexp_handler(opened, handle, NULL);
        }
        break;
    }
    case 2: code = mx_close_endpoint(used); break;
    case 3: code = mx_wakeup(used); break;
    case 4:
        code = mx_disable_progression(used);
        mx_reenable_progression(used);
        break;
    case 5: code = mx_reenable_progression(used); break;
    case 6: case 7: case 8: code = mx_isend(used, maybe(segments), count, peer, info, memory, wanted); break;
    case 9: code = mx_issend(used, maybe(segments), count, peer, info, memory, wanted); break;
    case 10: case 11: case 12: code = mx_irecv(used, maybe(segments), count, info & mask, mask, memory, wanted); break;
    case 13: code = mx_irecv(used, segments, 1, wild(), wild(), memory, wanted); break;
    case 14: code = mx_cancel(used, variable, out); break;
    case 15: case 16: code = mx_test(used, variable, to, out); break;
    case 17: code = mx_wait(used, variable, 1 + (uint32_t)next(3), to, out); break;
    case 18: code = mx_test_any(used, info & mask, mask, to, out); break;
    case 19: code = mx_wait_any(used, 1, wild(), wild(), to, out); break;
    case 20: code = mx_ipeek(used, wanted, out); break;
    case 21: code = mx_peek(used, 1, wanted, out); break;
    case 22: code = mx_iprobe(used, info & mask, mask, to, out); break;
    case 23: code = mx_probe(used, 1, wild(), wild(), to, out); break;
    case 24: code = mx_ibuffered(used, variable, out); break;
    case 25: code = mx_buffered(used, variable, 1, out); break;
    case 26: code = mx_context(variable, next(9) ? &context : NULL); break;
    case 27: code = mx_iconnect(used, next(3) ? nic_id : wild(), next(3) ? (uint32_t)next(6) : (uint32_t)wild(),
                                next(3) ? 1 : (uint32_t)wild(), info, NULL, wanted); break;
    case 28: {
        mx_endpoint_addr_t found;
        code = mx_connect(used, next(3) ? nic_id : wild(), next(3) ? (uint32_t)next(6) : (uint32_t)wild(),
                          next(3) ? 1 : (uint32_t)wild(), 1 + (uint32_t)next(20), next(20) ? &found : NULL);
        break;
    }
    case 29: code = mx_disconnect(used, peer); break;
    case 30: code = mx_forget(used, variable); break;
    case 31: code = mx_set_request_timeout(used, own, (uint32_t)wild()); break;
    case 32: code = mx_set_endpoint_addr_context(peer, memory); break;
    case 33: code = mx_get_endpoint_addr_context(peer, next(9) ? &context : NULL); break;
    case 34: code = mx_decompose_endpoint_addr2(peer, maybe(&nic_id), maybe(&number), maybe(&result)); break;
    case 35: {
        char out_memory[128 * 128];
        code = mx_get_info(next(2) ? used : NULL, (mx_get_info_key_t)next(20), maybe(&number), (uint32_t)next(6),
                           maybe(out_memory), (uint32_t)next(sizeof out_memory + 1));
        break;
    }
    case 36:
        memset(name, next(2) ? 'x' : (int)next(256), sizeof name);
        name[next(sizeof name)] = 0;
        code = next(2) ? mx_hostname_to_nic_id(maybe(name), maybe(&nic_id)) : mx_nic_id_to_hostname(wild(), maybe(name));
        break;
    default:
        if (restarts && !next(40))
            code = next(3) ? mx_finalize() : mx_init();
        else if (restarts)
            mx_init();
        else
            code = mx_register_unexp_handler(used, next(2) ? handle : NULL, NULL);
    }
    if (posted)
        requests[next(POOL)] = posted;
    return code;
}

static void *make_calls(void *argument)
{
    state = 0x9e3779b97f4a7c15ull * ((uintptr_t)argument + 1);
    for (long each = 0; each < calls; each++) {
        mx_return_t code = call();
        if (code < MX_SUCCESS || code > MX_NOT_SUPPORTED_WITH_CONTEXT_ID) {
            failures++;
            printf("a call returned %d\n", code);
        }
    }
    return NULL;
}

int main(int count, char **words)
{
    if (count < 4)
        return 2;
    pthread_t threads[8];
    uintptr_t seed = strtoull(words[1], NULL, 0), running = strtoull(words[2], NULL, 0) % 9;
    calls = atol(words[3]);
    restarts = count > 4;
    mx_set_error_handler(MX_ERRORS_RETURN);
    MUST(mx_init());
    for (uintptr_t each = 0; each < running; each++)
        pthread_create(&threads[each], NULL, make_calls, (void *)(seed * 8 + each));
    for (uintptr_t each = 0; each < running; each++)
        pthread_join(threads[each], NULL);
    mx_finalize();
    MUST(mx_init());
    MUST(mx_finalize());
    printf("done\n");
    return failures != 0;
}
