/* The engine's library: starts Python, and passes calls between the library in C and Python. The calls that every
 * message needs are here: the entries of direct.h, which C calls, and the module mxwire_calls, which Python calls. cffi
 * adds all others. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "interface.h"
#include "direct.h"

static const struct mxw_callbacks *mxw_library;
static struct mxw_shared *mxw_memory;

static void mxwc_name_partner(uint32_t partner, uint32_t endpoint, uint64_t nic_id, uint32_t number, uint32_t session)
{
    mxw_library->name_partner(partner, endpoint, nic_id, number, session);
}

static const char *mxwc_build(void)
{
    return MXW_BUILD;
}

/* Calls of Python. */

enum direct { MXW_STEP, MXW_SEND, MXW_RECEIVE, MXW_CLAIM, MXW_FAILURE, MXW_CALLS };
static PyObject *mxw_calls[MXW_CALLS];
static uint32_t mxw_short; /* length of the longest message that is copied when it is sent */

/* Defined by cffi. */
int mxw_enter(void);

/* Acquire the interpreter; return 0 if Python cannot be reached. mxw_enter gives a thread a state that it keeps;
 * otherwise Python would create and delete one in each call. */
static int acquire(PyGILState_STATE *state)
{
    if (!PyGILState_GetThisThreadState() && !mxw_enter())
        return 0;
    *state = PyGILState_Ensure();
    return 1;
}

/* Call a function, and return its result; after an exception, the result of MXW_FAILURE. Release the references to the
 * arguments, and the interpreter. */
static int call(enum direct function, PyObject **arguments, size_t count, PyGILState_STATE state)
{
    PyObject *result = NULL;
    int complete = 1, outcome = 0;
    for (size_t place = 0; place < count; place++)
        complete &= arguments[place] != NULL;
    if (complete)
        result = PyObject_Vectorcall(mxw_calls[function], arguments, count, NULL);
    for (size_t place = 0; place < count; place++)
        Py_XDECREF(arguments[place]);
    if (!result) {
        PyObject *error[3];
        PyErr_Fetch(&error[0], &error[1], &error[2]);
        PyErr_NormalizeException(&error[0], &error[1], &error[2]);
        if (!error[2])
            error[2] = Py_NewRef(Py_None);
        result = PyObject_Vectorcall(mxw_calls[MXW_FAILURE], error, 3, NULL);
        for (int part = 0; part < 3; part++)
            Py_DECREF(error[part]);
    }
    if (result) {
        outcome = (int)PyLong_AsLong(result);
        Py_DECREF(result);
    }
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(mxw_calls[function]);
    PyGILState_Release(state);
    return outcome;
}

static PyObject *view_of(const struct mxw_segment *segment, int mode)
{
    static char nothing;
    return PyMemoryView_FromMemory(segment->length ? segment->pointer : &nothing, segment->length, mode);
}

/* The memory of a request, in place: the view of its only segment, or a list of views. */
static PyObject *memory_of(const struct mxw_segment *segments, uint32_t count, int mode)
{
    if (count == 1)
        return view_of(segments, mode);
    PyObject *views = PyList_New(count);
    for (uint32_t place = 0; views && place < count; place++) {
        PyObject *view = view_of(&segments[place], mode);
        if (view)
            PyList_SET_ITEM(views, place, view);
        else
            Py_CLEAR(views);
    }
    return views;
}

/* A copy of all segments. */
static PyObject *gather(const struct mxw_segment *segments, uint32_t count, Py_ssize_t length)
{
    PyObject *data = PyBytes_FromStringAndSize(NULL, length);
    char *end = data ? PyBytes_AS_STRING(data) : NULL;
    for (uint32_t place = 0; data && place < count; place++) {
        if (segments[place].length)
            memcpy(end, segments[place].pointer, segments[place].length);
        end += segments[place].length;
    }
    return data;
}

CFFI_DLLEXPORT int mxw_step(void)
{
    PyGILState_STATE state;
    return acquire(&state) ? call(MXW_STEP, NULL, 0, state) : 0;
}

CFFI_DLLEXPORT int mxw_send(uint32_t endpoint, uint32_t partner, const struct mxw_segment *segments, uint32_t count,
                            uint64_t match_info, int synchronous, uint64_t request)
{
    PyGILState_STATE state;
    if (!acquire(&state))
        return 0;
    /* The engine copies a short message anyway; one object costs less than views, above all of several segments. */
    uint64_t length = 0;
    for (uint32_t place = 0; place < count; place++)
        length += segments[place].length;
    PyObject *data = length <= mxw_short ? gather(segments, count, (Py_ssize_t)length)
                                         : memory_of(segments, count, PyBUF_READ);
    PyObject *arguments[] = {PyLong_FromUnsignedLong(endpoint),
                             PyLong_FromUnsignedLong(partner),
                             data,
                             PyLong_FromUnsignedLongLong(match_info),
                             PyBool_FromLong(synchronous),
                             PyLong_FromUnsignedLongLong(request)};
    return call(MXW_SEND, arguments, sizeof arguments / sizeof *arguments, state);
}

CFFI_DLLEXPORT int mxw_receive(uint32_t endpoint, const struct mxw_segment *segments, uint32_t count,
                               uint64_t match_info, uint64_t mask, uint64_t request)
{
    PyGILState_STATE state;
    if (!acquire(&state))
        return 0;
    PyObject *arguments[] = {PyLong_FromUnsignedLong(endpoint), memory_of(segments, count, PyBUF_WRITE),
                             PyLong_FromUnsignedLongLong(match_info), PyLong_FromUnsignedLongLong(mask),
                             PyLong_FromUnsignedLongLong(request)};
    return call(MXW_RECEIVE, arguments, sizeof arguments / sizeof *arguments, state);
}

CFFI_DLLEXPORT int mxw_claim(uint32_t endpoint, const struct mxw_segment *segments, uint32_t count, uint64_t identity,
                             uint64_t request)
{
    PyGILState_STATE state;
    if (!acquire(&state))
        return 0;
    PyObject *arguments[] = {PyLong_FromUnsignedLong(endpoint), memory_of(segments, count, PyBUF_WRITE),
                             PyLong_FromUnsignedLongLong(identity), PyLong_FromUnsignedLongLong(request)};
    return call(MXW_CLAIM, arguments, sizeof arguments / sizeof *arguments, state);
}

/* The module mxwire_calls. */

static PyObject *attach(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given[MXW_CALLS];
    unsigned int longest;
    if (!PyArg_ParseTuple(arguments, "OOOOOI", &given[MXW_STEP], &given[MXW_SEND], &given[MXW_RECEIVE],
                          &given[MXW_CLAIM], &given[MXW_FAILURE], &longest))
        return NULL;
    for (int function = 0; function < MXW_CALLS; function++) {
        Py_INCREF(given[function]);
        Py_XSETREF(mxw_calls[function], given[function]);
    }
    mxw_short = longest;
    Py_RETURN_NONE;
}

/* Read numbers; return 0 after an error. */
static int numbers_of(PyObject *const *values, Py_ssize_t count, uint64_t *numbers, Py_ssize_t wanted)
{
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "%zd arguments, not %zd", count, wanted);
        return 0;
    }
    for (Py_ssize_t place = 0; place < count; place++) {
        numbers[place] = PyLong_AsUnsignedLongLong(values[place]);
        if (numbers[place] == UINT64_MAX && PyErr_Occurred())
            return 0;
    }
    return 1;
}

/* Called within the section of the host, so there is one writer. */
static PyObject *record(PyObject *Py_UNUSED(module), PyObject *const *values, Py_ssize_t count)
{
    uint64_t field[6];
    if (!numbers_of(values, count, field, 6))
        return NULL;
    uint64_t written = mxw_memory->written;
    if (written - __atomic_load_n(&mxw_memory->taken, __ATOMIC_ACQUIRE) >= MXW_RECORDS)
        mxw_library->drain();
    mxw_memory->records[written % MXW_RECORDS] =
        (struct mxw_record){.request = field[0], .match_info = field[1], .status = (uint32_t)field[2],
                            .partner = (uint32_t)field[3], .length = (uint32_t)field[4],
                            .transferred = (uint32_t)field[5]};
    __atomic_store_n(&mxw_memory->written, written + 1, __ATOMIC_RELEASE);
    Py_RETURN_NONE;
}

/* Call the unexpected handler of a program: endpoint, partner, match information, length and identity of the message, and
 * its data or None. It runs without the interpreter, which it may need on another thread. */
static PyObject *unexpected(PyObject *Py_UNUSED(module), PyObject *const *values, Py_ssize_t count)
{
    uint64_t number[5];
    Py_buffer data = {0};
    int consumed;
    if (!numbers_of(values, count - 1, number, 5) ||
        (values[5] != Py_None && PyObject_GetBuffer(values[5], &data, PyBUF_SIMPLE)))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    consumed = mxw_library->unexpected((uint32_t)number[0], (uint32_t)number[1], number[2], (uint32_t)number[3], data.buf,
                                       number[4]);
    Py_END_ALLOW_THREADS
    if (data.obj)
        PyBuffer_Release(&data);
    return PyBool_FromLong(consumed);
}

/* Call the consumer of a program, within the section of the host: endpoint, partner and match information of the message,
 * and its data. It does not wait, so it keeps the interpreter. */
static PyObject *consume(PyObject *Py_UNUSED(module), PyObject *const *values, Py_ssize_t count)
{
    uint64_t number[3];
    Py_buffer data;
    if (!numbers_of(values, count - 1, number, 3) || PyObject_GetBuffer(values[3], &data, PyBUF_SIMPLE))
        return NULL;
    int consumed = mxw_library->consume((uint32_t)number[0], (uint32_t)number[1], number[2], (uint32_t)data.len, data.buf);
    PyBuffer_Release(&data);
    return PyBool_FromLong(consumed);
}

static PyObject *finalize(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(arguments))
{
    Py_BEGIN_ALLOW_THREADS
    mxw_library->finalize();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef mxw_functions[] = {
    {"finalize", finalize, METH_NOARGS, "Call mx_finalize."},
    {"attach", attach, METH_VARARGS, "Set the functions for direct.h and exceptions, and the longest short message."},
    {"unexpected", (PyCFunction)(void (*)(void))unexpected, METH_FASTCALL, "Call an unexpected handler in C."},
    {"consume", (PyCFunction)(void (*)(void))consume, METH_FASTCALL, "Call a consumer in C."},
    {"record", (PyCFunction)(void (*)(void))record, METH_FASTCALL, "Write a record of the end of a request."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef mxw_module = {PyModuleDef_HEAD_INIT, .m_name = "mxwire_calls", .m_size = -1,
                                        .m_methods = mxw_functions};

/* Enter the module where Python finds it; with the interpreter acquired. */
static int add_module(char *error, size_t room)
{
    PyObject *module = PyModule_Create(&mxw_module), *modules = PyImport_GetModuleDict();
    int failed = !module || PyDict_SetItemString(modules, mxw_module.m_name, module);
    Py_XDECREF(module);
    if (failed) {
        PyErr_Clear();
        snprintf(error, room, "Python (%s) has no memory", MXW_EXECUTABLE);
    }
    return failed ? -1 : 0;
}

/* Start Python with the executable of the build, so that it finds the packages of its environment. Variables such as
 * PYTHONHOME are meant for other programs, and the locale, the streams, the signals and the arguments are the program's:
 * an isolated Python reads and changes none of them. A program with privileges that its user does not have (secure) runs
 * no code of the user. */
static PyStatus start_python(int secure)
{
    PyPreConfig before;
    PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1;
    PyStatus status = Py_PreInitialize(&before);
    if (PyStatus_Exception(status))
        return status;
    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    /* mxwire may be installed there. */
    config.isolated = secure;
    config.user_site_directory = !secure;
    status = PyConfig_SetBytesString(&config, &config.executable, MXW_EXECUTABLE);
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesString(&config, &config.program_name, MXW_EXECUTABLE);
    /* Python's module of signals takes SIGINT from a program that does not handle it, whenever it is imported. */
    struct sigaction own;
    sigaction(SIGINT, NULL, &own);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    if (!PyStatus_Exception(status)) {
        Py_XDECREF(PyImport_ImportModule("_signal"));
        sigaction(SIGINT, &own, NULL);
    }
    PyConfig_Clear(&config);
    return status;
}

/* A compiled mxwire is that of the build, or is selected by PYTHONPATH. The threads of OpenBLAS, one per processor, would
 * do nothing. In a secure program, Python and its packages see no variables: no name of a file, a folder or a library. */
static const char mxw_own_preparation[] =
    "import os, sys\n"
    "threads = 'OPENBLAS_NUM_THREADS'\n"
    "before = os.environ.get(threads)\n"
    "paths = os.environ.get('PYTHONPATH', '').split(os.pathsep)\n"
    "if secure:\n"
    "    os.environ, paths = {}, []\n"
    "paths.append(compiled)\n"
    "sys.path[:0] = [each for each in paths if each and os.path.isdir(os.path.join(each, 'mxwire'))]\n"
    "os.putenv(threads, before or '1')\n"
    "try:\n"
    "    import numpy\n"
    "except ImportError:\n"
    "    pass\n"
    "if before is None:\n"
    "    os.unsetenv(threads)\n"
    "else:\n"
    "    os.putenv(threads, before)\n";

/* The Python of a program may lack mxwire and the packages that it needs: those of the build follow its own. It ends
 * before the exit handlers of C, in which mpi4py ends MPI. */
static const char mxw_guest_preparation[] =
    "import atexit, site, sys\n"
    "site.addsitedir(" MXW_PACKAGES ")\n"
    "@atexit.register\n"
    "def finalize():\n"
    "    import mxwire_calls\n"
    "    mpi = sys.modules.get('mpi4py.MPI')\n"
    "    if mpi and mpi.Is_initialized() and not mpi.Is_finalized() and sys.modules['mpi4py'].rc.finalize is not False:\n"
    "        mpi.Finalize()\n"
    "    mxwire_calls.finalize()\n";

/* cffi would print a traceback. */
static const char mxw_imports[] =
    "import sys\n"
    "try:\n"
    "    import _cffi_backend, mxwire.myriexpress.entries\n"
    "except Exception as error:\n"
    "    reason = f'{type(error).__name__}: {error}'.split('\\n')[0]\n"
    "    failure = f'Python ({sys.executable}) cannot import mxwire ({reason})'\n"
    "else:\n"
    "    failure = ''\n";

/* Import the engine; with the interpreter acquired. Return 0, or -1 with the reason in error. */
static int import_engine(int own, int secure, char *error, size_t room)
{
    PyObject *names = PyDict_New(), *done = NULL;
    const char *failure = NULL;
    if (names && own) {
        PyObject *values = Py_BuildValue("{sisN}", "secure", secure, "compiled", PyUnicode_DecodeFSDefault(MXW_COMPILED));
        if (values && !PyDict_Update(names, values))
            Py_XDECREF(PyRun_String(mxw_own_preparation, Py_file_input, names, names));
        Py_XDECREF(values);
    }
    /* Its functions look their imports up there. */
    if (names && !own)
        Py_XDECREF(PyRun_String(mxw_guest_preparation, Py_file_input, names, names));
    PyErr_Clear();
    if (names)
        done = PyRun_String(mxw_imports, Py_file_input, names, names);
    if (done)
        failure = PyUnicode_AsUTF8(PyDict_GetItemString(names, "failure"));
    PyErr_Clear();
    if (!failure)
        snprintf(error, room, "Python cannot run the engine of mxwire");
    else if (*failure)
        snprintf(error, room, "%s: %s", failure,
                 own ? "run mxwire library build again" : "install mxwire for this Python, too");
    int failed = !failure || *failure;
    Py_XDECREF(done);
    Py_XDECREF(names);
    return failed ? -1 : 0;
}

/* A Python that runs in this process already is used as it is. */
CFFI_DLLEXPORT int mxw_start(const struct mxw_callbacks *callbacks, struct mxw_shared *shared, char *error, size_t room,
                             int *own)
{
    mxw_library = callbacks;
    mxw_memory = shared;
    *own = !Py_IsInitialized();
    /* File capabilities, or another user or group than that of the caller. */
    int secure = getauxval(AT_SECURE) != 0;
    PyGILState_STATE state = PyGILState_UNLOCKED;
    if (*own) {
        PyStatus status = start_python(secure);
        if (PyStatus_Exception(status)) {
            snprintf(error, room, "Python (%s) does not start: %.200s", MXW_EXECUTABLE,
                     status.err_msg ? status.err_msg : "without a reason");
            return -1;
        }
    } else {
        state = PyGILState_Ensure();
    }
    int failed = add_module(error, room) || import_engine(*own, secure, error, room) ? -1 : 0;
    if (*own)
        PyEval_SaveThread();
    else
        PyGILState_Release(state);
    return failed;
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
