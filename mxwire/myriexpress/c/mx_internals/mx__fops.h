/* Internal calls of MX that Open MPI uses: the handle of a board. */

#ifndef MX__FOPS_H
#define MX__FOPS_H

#include "myriexpress.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int mx_endpt_handle_t;
#define MX__INVALID_HANDLE (-1)

mx_return_t mx_open_board(int board, mx_endpt_handle_t *handle);

#ifdef __cplusplus
}
#endif

#endif
