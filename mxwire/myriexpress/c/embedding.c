/* The engine's library: starts Python, and passes calls between the library in C and Python. cffi adds its own part. */

#include <stdlib.h>
#include <string.h>

#include "interface.h"

static const struct mxw_callbacks *mxw_library;

static void mxwc_drain(void)
{
    mxw_library->drain();
}

static void mxwc_name_partner(uint32_t partner, uint32_t endpoint, uint64_t nic_id, uint32_t number, uint32_t session)
{
    mxw_library->name_partner(partner, endpoint, nic_id, number, session);
}

static int mxwc_unexpected(uint32_t endpoint, uint32_t partner, uint64_t match_info, uint32_t length, void *data)
{
    return mxw_library->unexpected(endpoint, partner, match_info, length, data);
}

static const char *mxwc_build(void)
{
    return MXW_BUILD;
}

/* Start Python with the executable of the build, so that it finds the packages of its environment. A Python that runs
 * in this process already is used as it is. */
CFFI_DLLEXPORT int mxw_start(const struct mxw_callbacks *callbacks, char *error, size_t room, int *own)
{
    mxw_library = callbacks;
    *own = !Py_IsInitialized();
    if (!*own)
        return 0;
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    /* Signals and arguments are those of the program. */
    config.install_signal_handlers = 0;
    config.parse_argv = 0;
    PyStatus status = PyConfig_SetBytesString(&config, &config.executable, MXW_EXECUTABLE);
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesString(&config, &config.program_name, MXW_EXECUTABLE);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status)) {
        snprintf(error, room, "Python (%s) does not start: %.200s", MXW_EXECUTABLE,
                 status.err_msg ? status.err_msg : "without a reason");
        return -1;
    }
    PyEval_SaveThread();
    return 0;
}

static PyGILState_STATE mxw_forking;

CFFI_DLLEXPORT void mxw_before_fork(void)
{
    mxw_forking = PyGILState_Ensure();
    PyOS_BeforeFork();
}

CFFI_DLLEXPORT void mxw_after_fork(int child)
{
    if (child)
        PyOS_AfterFork_Child();
    else
        PyOS_AfterFork_Parent();
    PyGILState_Release(mxw_forking);
}
