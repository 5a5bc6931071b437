/* A program that closes an endpoint which is not open. */

#include "myriexpress.h"

int main(void)
{
    mx_init();
    mx_close_endpoint(0);
    return 0;
}
