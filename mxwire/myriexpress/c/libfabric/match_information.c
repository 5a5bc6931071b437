/* The match information of messages without an envelope: all that the receiver has to know besides the payload.
 *
 * Theory of operation
 * -------------------
 * A message of MX with a header before the payload would be longer than that of the program, and cross a limit where that
 * does not: the longest message in one frame, or the longest that MX copies. So there is no header if 64 bits suffice:
 *
 *   - A tag without data is itself, if its first byte is below PACKED.
 *   - A tag with data follows the byte PACKED: a byte whose bits tell which bytes of the tag are not 0, then those bytes,
 *     the lowest first, and above them the data. MPI has small numbers in few fields of the tag, and a rank as data.
 *   - An untagged message has MATCH_MESSAGE, or MATCH_DATA with data of up to 48 bits. */

#include "provider.h"

#define PACKED UINT64_C(0xfe)
#define MATCH_MESSAGE MATCH(0)
#define MATCH_DATA MATCH(1)
#define BITS 48
#define LOW ((UINT64_C(1) << BITS) - 1)

static int pack_tag(uint64_t tag, uint64_t data, uint64_t *match)
{
    uint64_t present = 0, packed = 0;
    int used = 0;
    for (int place = 0; place < 8; place++) {
        uint64_t byte = tag >> 8 * place & 0xff;
        if (!byte)
            continue;
        if (used == BITS)
            return 0;
        present |= UINT64_C(1) << place;
        packed |= byte << used;
        used += 8;
    }
    *match = PACKED << 56 | present << BITS | packed | data << used;
    return !(data >> (BITS - used));
}

static uint64_t unpack_tag(uint64_t match, uint64_t *data)
{
    uint64_t tag = 0, packed = match & LOW;
    for (int place = 0; place < 8; place++)
        if (match >> BITS >> place & 1) {
            tag |= (packed & 0xff) << 8 * place;
            packed >>= 8;
        }
    *data = packed;
    return tag;
}

int mxf_pack(const struct mxf_operation *operation, uint64_t *match)
{
    int with_data = !!(operation->flags & FI_REMOTE_CQ_DATA);
    if (operation->tagged && with_data)
        return pack_tag(operation->tag, operation->data, match);
    *match = operation->tagged ? operation->tag : with_data ? MATCH_DATA | operation->data : MATCH_MESSAGE;
    return operation->tagged ? operation->tag >> 56 < PACKED : !with_data || operation->data <= LOW;
}

int mxf_unpack(uint64_t match, struct mxf_message *message)
{
    message->tagged = match < MATCH_MESSAGE;
    message->with_data = match >> 56 == PACKED || (match & ~LOW) == MATCH_DATA;
    if (match >> 56 == PACKED)
        message->tag = unpack_tag(match, &message->data);
    else if (message->tagged)
        message->tag = match;
    else if (message->with_data)
        message->data = match & LOW;
    return message->tagged || message->with_data || match == MATCH_MESSAGE;
}
