/* The entries that every message needs, and the start of Python. The engine's library (embedding.c) calls the functions
 * of the entries in Python directly, with numbers and memory as their only arguments, which takes a quarter of the time
 * of a call by cffi. Results are those of entries.h. */

int mxw_step(void);
/* MXW_ENDED is the result if the send has succeeded already, MXW_COPIED if its data was copied. */
int mxw_send(uint32_t endpoint, uint32_t partner, const struct mxw_segment *segments, uint32_t count,
             uint64_t match_info, int synchronous, uint64_t request);
int mxw_receive(uint32_t endpoint, const struct mxw_segment *segments, uint32_t count, uint64_t match_info,
                uint64_t mask, uint64_t request);
int mxw_claim(uint32_t endpoint, const struct mxw_segment *segments, uint32_t count, uint64_t identity,
              uint64_t request);

/* Start Python, with what the engine shares with the library in C. *own is 1 unless this process runs Python already.
 * Return 0, or -1 with the reason in error. */
int mxw_start(const struct mxw_callbacks *callbacks, struct mxw_shared *shared, char *error, size_t room, int *own);
