/* Internal calls of MX, where programs and the configure script of Open MPI look for them. */

#ifndef MX_IO_H
#define MX_IO_H

#include "mx_internals/mx__driver_interface.h"

#endif
