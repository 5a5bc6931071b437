/* A program with room for the name of a host, and what follows it in memory. */

#include <string.h>
#include "myriexpress.h"

int main(void)
{
    struct { char name[MX_MAX_HOSTNAME_LEN], after[200]; } place;
    memset(&place, 'x', sizeof place);
    mx_init();
    mx_nic_id_to_hostname(0x020000000099, place.name);
    return strlen(place.name) != MX_MAX_HOSTNAME_LEN - 1 || place.after[0] != 'x';
}
