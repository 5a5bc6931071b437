/* Small programs that talk to themselves. The first argument is the part:
 *
 *   fork   children call mx_init while another thread of their parent does
 *   exit   the unexpected handler exits
 *   stuck  the unexpected handler does not return, and the program exits
 *   closed the standard streams are closed before mx_init, and nothing that mx_init opens takes their place
 *   show   prints the number of threads, whether 10,000 bytes to the own and to another endpoint are copied, and the
 *          longest message that is copied
 */

#include <dirent.h>
#include <locale.h>
#include <sys/stat.h>

#include "cases.h"

static void *initialize(void *unused)
{
    (void)unused;
    MUST(mx_init());
    return NULL;
}

static void fork_while_starting(void)
{
    pthread_t starting;
    int outcome = -1;
    pthread_create(&starting, NULL, initialize, NULL);
    for (int times = 0; times < 5; times++) {
        usleep(30000);
        pid_t child = fork();
        if (!child) {
            alarm(20);
            mx_return_t code = mx_init();
            _exit(code != MX_NO_DRIVER);
        }
        waitpid(child, &outcome, 0);
        EQUAL(outcome, 0);
    }
    pthread_join(starting, NULL);
    EQUAL(mx_init(), MX_ALREADY_INITIALIZED);
    MUST(mx_finalize());
}

static mx_unexp_handler_action_t leave(void *context, mx_endpoint_addr_t source, uint64_t info, uint32_t length,
                                       void *data)
{
    (void)context, (void)source, (void)info, (void)length, (void)data;
    exit(7);
}

static void exit_in_handler(mx_endpoint_t endpoint, mx_endpoint_addr_t own)
{
    MUST(mx_register_unexp_handler(endpoint, leave, NULL));
    send_to(endpoint, own, "x", 1, 1);
    for (double start = seconds(); seconds() - start < 20;)
        MUST(mx_progress(endpoint));
}

static volatile int entered;

static mx_unexp_handler_action_t stay(void *context, mx_endpoint_addr_t source, uint64_t info, uint32_t length,
                                      void *data)
{
    (void)context, (void)source, (void)info, (void)length, (void)data;
    for (entered = 1; entered;)
        pause();
    return MX_RECV_CONTINUE;
}

static void *send_to_own(void *endpoint)
{
    mx_endpoint_addr_t own;
    MUST(mx_get_endpoint_addr(endpoint, &own));
    send_to(endpoint, own, "x", 1, 1);
    return NULL;
}

static void exit_beside_handler(mx_endpoint_t endpoint)
{
    pthread_t sender;
    MUST(mx_register_unexp_handler(endpoint, stay, NULL));
    pthread_create(&sender, NULL, send_to_own, endpoint);
    while (!entered)
        usleep(1000);
    exit(6);
}

static void expect_character_devices(void)
{
    struct stat found;
    for (int stream = 0; stream <= 2; stream++)
        EXPECT(!fstat(stream, &found) && S_ISCHR(found.st_mode));
}

static int entries_of(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    for (struct dirent *each; (each = readdir(folder));)
        count += *each->d_name != '.';
    closedir(folder);
    return count;
}

static uint32_t buffered(mx_endpoint_t endpoint, mx_endpoint_addr_t to)
{
    static char memory[10000];
    uint32_t result = 2;
    mx_request_t send = send_to(endpoint, to, memory, sizeof memory, 1);
    MUST(mx_ibuffered(endpoint, &send, &result));
    return result;
}

int main(int count, char **words)
{
    mx_endpoint_t endpoint, other;
    mx_endpoint_addr_t own, to_other;
    uint32_t eager;
    mx_set_error_handler(MX_ERRORS_RETURN);
    if (count > 1 && !strcmp(words[1], "fork")) {
        fork_while_starting();
        return failures != 0;
    }
    if (count > 1 && !strcmp(words[1], "closed"))
        for (int stream = 0; stream <= 2; stream++)
            close(stream);
    MUST(mx_init());
    if (count > 1 && !strcmp(words[1], "closed"))
        expect_character_devices();
    /* The surroundings of the program are as they were. */
    EXPECT(!strcmp(setlocale(LC_ALL, NULL), "C"));
    EXPECT(!getenv("LC_CTYPE") && !getenv("OPENBLAS_NUM_THREADS"));
    MUST(mx_open_endpoint(0, 1, 1, NULL, 0, &endpoint));
    MUST(mx_get_endpoint_addr(endpoint, &own));
    if (count > 1 && !strcmp(words[1], "exit"))
        exit_in_handler(endpoint, own);
    if (count > 1 && !strcmp(words[1], "stuck"))
        exit_beside_handler(endpoint);
    MUST(mx_open_endpoint(0, 2, 1, NULL, 0, &other));
    MUST(mx_connect(endpoint, own_nic(), 2, 1, 5000, &to_other));
    MUST(mx_get_info(endpoint, MX_COPY_SEND_MAX, NULL, 0, &eager, sizeof eager));
    printf("%d %u %u %u\n", entries_of("/proc/self/task"), buffered(endpoint, own), buffered(endpoint, to_other), eager);
    MUST(mx_finalize());
    return failures != 0;
}
