/* The functions of the engine in Python, each of which the library in C reaches by its name. They return MXW_OK plus a
 * return code of MX, since 0 is the result of cffi when Python cannot be reached. cffi reads this file. */

int mxw_open(struct mxw_shared *shared, char *error, uint32_t room);
int mxw_close(void);
/* Give the calling thread its state in Python, which it keeps; entries of direct.h need it. */
int mxw_enter(void);
int64_t mxw_pause(void);
int mxw_open_endpoint(uint32_t endpoint, uint32_t board, uint32_t *number, uint32_t key, uint32_t bits, uint32_t shift,
                      uint32_t *partner);
int mxw_close_endpoint(uint32_t endpoint);
int mxw_unacked(uint32_t endpoint);
int mxw_connect(uint32_t endpoint, uint64_t nic_id, uint32_t number, uint32_t key, uint64_t match_info,
                uint64_t request);
int mxw_cancel(uint32_t endpoint, uint64_t request);
int mxw_disconnect(uint32_t endpoint, uint32_t partner);
int mxw_probe(uint32_t endpoint, uint64_t match_info, uint64_t mask, struct mxw_record *found);
int mxw_suspend(uint32_t endpoint, int suspended);
int mxw_handle(uint32_t endpoint, int handled);
int mxw_set_timeout(uint32_t endpoint, uint64_t request, uint32_t milliseconds);
int mxw_find_host(char *name, uint64_t *nic_id);
int mxw_find_nic(uint64_t nic_id, char *name);
int mxw_board(uint32_t board, uint64_t *nic_id);
int mxw_info(uint32_t board, uint32_t key, void *out, uint32_t room);
