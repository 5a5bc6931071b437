/* A program that prints the result of mx_init, and whether it has a PYTHONPATH then. */

#include <stdio.h>
#include <stdlib.h>
#include "myriexpress.h"

int main(void)
{
    mx_set_error_handler(MX_ERRORS_RETURN);
    mx_return_t code = mx_init();
    printf("%d %s\n", code, getenv("PYTHONPATH") ? "PYTHONPATH" : "");
    return 0;
}
