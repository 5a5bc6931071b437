/* A program that only starts the library; its exit code is the result. */

#include "myriexpress.h"

int main(void)
{
    mx_set_error_handler(MX_ERRORS_RETURN);
    return mx_init();
}
