/* The memory of endpoints: what their calls and their partners make them keep.
 *
 * Theory of operation
 * -------------------
 * A receive, a send, a message and so on is freed when it ends, and many have not ended when an endpoint is closed: those
 * that MX performs are known to MX alone. So each block is in a list of its endpoint, and closing frees the whole list.
 *
 * Partners decide how much of it unexpected messages and accesses need, so there are limits: HELD_MAXIMUM bytes of messages
 * (receives.c), and VISITS accesses and answers at once (regions.c). Beyond them, messages stay in the queue of MX, which
 * has a limit of its own and lets partners retransmit when it is full. Nothing is lost; how many had to stay is counted,
 * and reported when the endpoint is closed. */

#include "provider.h"

/* Its size keeps what follows aligned. */
struct mxf_block {
    struct mxf_block *previous, *next;
};
_Static_assert(sizeof(struct mxf_block) % _Alignof(max_align_t) == 0, "blocks are aligned");

void *mxf_allocate(struct mxf_endpoint *endpoint, size_t size)
{
    struct mxf_block *block = malloc(sizeof *block + size);
    if (!block)
        return NULL;
    APPEND(&endpoint->blocks, block);
    return block + 1;
}

void mxf_free(struct mxf_endpoint *endpoint, void *memory)
{
    if (!memory)
        return;
    struct mxf_block *block = (struct mxf_block *)memory - 1;
    REMOVE(&endpoint->blocks, block);
    free(block);
}

void mxf_free_blocks(struct mxf_endpoint *endpoint)
{
    while (endpoint->blocks.first)
        mxf_free(endpoint, endpoint->blocks.first + 1);
}
