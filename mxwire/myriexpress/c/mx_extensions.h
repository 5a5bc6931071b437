/* The extensions of MX 1.2: connects that do not block, the unexpected handler, contexts of addresses. */

#ifndef MX_EXTENSIONS_H
#define MX_EXTENSIONS_H

#include "myriexpress.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The handler is called with each message that no posted receive matches, before the message is queued.
 * data_if_available is the whole message, valid during the call, or NULL. */
enum mx_unexp_handler_action { MX_RECV_CONTINUE = 0, MX_RECV_FINISHED = 1 };
typedef enum mx_unexp_handler_action mx_unexp_handler_action_t;
typedef mx_unexp_handler_action_t (*mx_unexp_handler_t)(void *context, mx_endpoint_addr_t source, uint64_t match_info,
                                                        uint32_t length, void *data_if_available);

mx_return_t mx_register_unexp_handler(mx_endpoint_t ep, mx_unexp_handler_t handler, void *context);

#define MX_HAS_ICONNECT_V2 1
mx_return_t mx_iconnect(mx_endpoint_t ep, uint64_t nic_id, uint32_t eid, uint32_t key, uint64_t match_info,
                        void *context, mx_request_t *request);
mx_return_t mx_disconnect(mx_endpoint_t ep, mx_endpoint_addr_t addr);

mx_return_t mx_set_request_timeout(mx_endpoint_t endpoint, mx_request_t request, uint32_t milli_seconds);
mx_return_t mx_forget(mx_endpoint_t endpoint, mx_request_t *request);
mx_return_t mx_progress(mx_endpoint_t ep);

mx_return_t mx_set_endpoint_addr_context(mx_endpoint_addr_t endpoint_addr, void *context);
mx_return_t mx_get_endpoint_addr_context(mx_endpoint_addr_t endpoint_addr, void **context);
mx_return_t mx_decompose_endpoint_addr2(mx_endpoint_addr_t endpoint_addr, uint64_t *nic_id, uint32_t *endpoint_id,
                                        uint32_t *session_id);

/* Of mxwire: the NIC ids of the boards that mx_init would open, at most room. It may be called before mx_init, and is
 * quick. If it fails, reason is a line of text, of at most length bytes. */
mx_return_t mx__boards(uint64_t *nic_ids, uint32_t room, uint32_t *count, char *reason, size_t length);
/* Of mxwire: return whether MX progresses while the program makes no call. It does not with MX_MONOTHREAD, nor if the
 * program is Python. */
int mx__progresses(void);
/* Of mxwire: a descriptor for poll and epoll, which is open until the endpoint is closed. It is readable when a call for
 * the endpoint may find something: a frame, a completed request, an unexpected message, the end of a timer, mx_wakeup.
 * Before a program sleeps, it calls mx__arm, and sleeps only if idle is 1: nothing is there, and whatever comes will make
 * the descriptor readable. Otherwise it makes calls (mx_test_any, mx_progress, ...) and tries again. */
mx_return_t mx__descriptor(mx_endpoint_t ep, int *descriptor);
mx_return_t mx__arm(mx_endpoint_t ep, uint32_t *idle);

/* Of mxwire: receive one message, whatever other receives and messages match. Its identity is asked in the unexpected
 * handler, which may then claim it; or it returns MX_RECV_CONTINUE, and the message is claimed later. It is MX_BAD_REQUEST
 * if the message is there no longer. */
mx_return_t mx__identity(mx_endpoint_t endpoint, uint64_t *identity);
mx_return_t mx__claim(mx_endpoint_t endpoint, uint64_t identity, mx_segment_t *segments, uint32_t count, void *context,
                      mx_request_t *request);

/* Of mxwire: a function that is called before the unexpected handler with each message that MX has as a whole. It costs a
 * tenth of the handler, because it runs in the middle of MX's work: it must not wait, take no lock that is held during
 * calls of MX (it may try to), and make no call but mx_decompose_endpoint_addr and mx_wakeup. If it returns
 * MX_RECV_CONTINUE, the handler is called. Messages that an agent receives go to the handler only. */
mx_return_t mx__register_consumer(mx_endpoint_t endpoint, mx_unexp_handler_t consumer, void *context);

/* Of mxwire: whether there is nothing for a call on this endpoint to do. It takes no lock, and does not yield. */
int mx__is_idle(mx_endpoint_t endpoint);

#ifdef __cplusplus
}
#endif

#endif
