/* The native module, mxwire._native: the path of a short message in C, in the compiled build only (tools/compile.py).
 *
 * Each class or function has a counterpart in Python, which defines its behaviour and serves an interpreted mxwire:
 *
 *   Struct          struct.Struct, for formats with a byte order and the codes B, H, I, Q, s and x
 *   Lock            threading.RLock
 *   SlotReader      SlotRing.take_short (link/ring_v2.py)
 *   view_of         memoryview
 *   address_of      _array_address (protocol/arguments.py)
 *   is_flat         _is_flat_view (protocol/arguments.py)
 *   store           _assign_slice (protocol/arguments.py)
 *   send_frames     the loop of FrameSender.send_few (link/sender.py)
 *   RecordWriter    RecordWriter (link/record_ring.py)
 *   RecordReader    RecordReader (link/record_ring.py)
 *   RunForm         the loops of PullReplies.frames (protocol/card/replies.py), over PullTransfer.reply (pull.py), and
 *                   of MediumPacket.emit (protocol/library/outbound.py)
 *   GatheredFrame   one of these frames, whose data is not copied: only ``send_frames`` takes it as it is
 *
 * tests/compiled/test_native.py compares the two. Numbers of a layout come from Python or from the kernel's headers.
 * All functions run with the interpreter's lock held, except where they wait or call the kernel.
 */

#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>
#include <sys/socket.h>

#define BIG_MACHINE (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

static PyObject *struct_error, *invalid_record;

static int
no_keywords(const char *name, PyObject *keywords)
{
    if (keywords == NULL || PyDict_GET_SIZE(keywords) == 0)
        return 1;
    PyErr_Format(PyExc_TypeError, "%s takes no keyword arguments", name);
    return 0;
}

/* Struct */

typedef struct {
    char code;
    Py_ssize_t size;
    Py_ssize_t offset;
} Item;

typedef struct {
    PyObject_HEAD
    PyObject *format;
    Py_ssize_t size;
    Py_ssize_t count;
    int big;
    Item *items;
} Struct;

static int
Struct_init(Struct *self, PyObject *arguments, PyObject *keywords)
{
    PyObject *format;
    /* A value may run code of its own while it is packed, which must not change the items. */
    if (self->items != NULL) {
        PyErr_SetString(PyExc_TypeError, "Struct is made once");
        return -1;
    }
    if (!no_keywords("Struct", keywords) || !PyArg_ParseTuple(arguments, "U", &format))
        return -1;
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(format, &length);
    if (text == NULL)
        return -1;
    if ((size_t)length != strlen(text)) {
        PyErr_SetString(struct_error, "a format has no null character");
        return -1;
    }
    if (*text == '>' || *text == '!')
        self->big = 1;
    else if (*text == '<')
        self->big = 0;
    else if (*text == '=')
        self->big = BIG_MACHINE;
    else {
        PyErr_SetString(struct_error, "a format begins with its byte order");
        return -1;
    }
    /* At most as many values as digits allow, which formats of packets do not come near. */
    Py_ssize_t room = 64;
    self->items = PyMem_Calloc(room, sizeof(Item));
    if (self->items == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    self->size = self->count = 0;
    for (text++; *text; text++) {
        Py_ssize_t times = 1;
        if (*text >= '0' && *text <= '9') {
            for (times = 0; *text >= '0' && *text <= '9' && times <= 1 << 16; text++)
                times = times * 10 + (*text - '0');
        }
        Py_ssize_t size = *text == 'B' ? 1 : *text == 'H' ? 2 : *text == 'I' ? 4 : *text == 'Q' ? 8 : 0;
        if (size == 0 && *text != 's' && *text != 'x') {
            PyErr_Format(struct_error, "%R has a code that is not supported", format);
            return -1;
        }
        if (*text == 'x') {
            self->size += times;
            continue;
        }
        Py_ssize_t values = size ? times : 1;
        if (values > room - self->count) {
            PyErr_Format(struct_error, "%R has too many values", format);
            return -1;
        }
        for (Py_ssize_t each = 0; each < values; each++) {
            Item *item = &self->items[self->count++];
            item->code = *text;
            item->size = size ? size : times;
            item->offset = self->size;
            self->size += item->size;
        }
    }
    Py_INCREF(format);
    Py_XSETREF(self->format, format);
    return 0;
}

static void
Struct_dealloc(Struct *self)
{
    Py_XDECREF(self->format);
    PyMem_Free(self->items);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Numbers of 1, 2, 4 or 8 bytes, in the byte order of this machine. */
static void
put_number(uint8_t *out, uint64_t number, Py_ssize_t size)
{
    uint32_t four = (uint32_t)number;
    uint16_t two = (uint16_t)number;
    if (size == 2)
        memcpy(out, &two, 2);
    else if (size == 4)
        memcpy(out, &four, 4);
    else if (size == 1)
        *out = (uint8_t)number;
    else
        memcpy(out, &number, 8);
}

static uint64_t
get_number(const uint8_t *at, Py_ssize_t size)
{
    uint64_t eight;
    uint32_t four;
    uint16_t two;
    if (size == 2) {
        memcpy(&two, at, 2);
        return two;
    }
    if (size == 4) {
        memcpy(&four, at, 4);
        return four;
    }
    if (size == 1)
        return *at;
    memcpy(&eight, at, 8);
    return eight;
}

static int
pack_integer(uint8_t *out, const Item *item, int big, PyObject *value)
{
    uint64_t number;
    int large = 1;
    if (PyLong_CheckExact(value)) {
        /* The quickest conversion, for all numbers but the largest. */
        long small = PyLong_AsLongAndOverflow(value, &large);
        large |= small < 0;
        number = large ? PyLong_AsUnsignedLongLong(value) : (uint64_t)small;
    } else {
        PyObject *index = PyNumber_Index(value);
        number = index == NULL ? (uint64_t)-1 : PyLong_AsUnsignedLongLong(index);
        Py_XDECREF(index);
    }
    if ((large && number == (uint64_t)-1 && PyErr_Occurred()) || (item->size < 8 && number >> (8 * item->size))) {
        PyErr_Clear();
        PyErr_Format(struct_error, "%R is not an integer of %zd bytes without a sign", value, item->size);
        return -1;
    }
    if (big != BIG_MACHINE)
        number = __builtin_bswap64(number) >> (8 * (8 - item->size));
    put_number(out, number, item->size);
    return 0;
}

static PyObject *
Struct_pack(Struct *self, PyObject *const *values, Py_ssize_t given)
{
    if (given != self->count) {
        PyErr_Format(struct_error, "pack expected %zd items for packing (got %zd)", self->count, given);
        return NULL;
    }
    PyObject *packed = PyBytes_FromStringAndSize(NULL, self->size);
    if (packed == NULL)
        return NULL;
    uint8_t *out = (uint8_t *)PyBytes_AS_STRING(packed);
    memset(out, 0, self->size);
    for (Py_ssize_t each = 0; each < self->count; each++) {
        const Item *item = &self->items[each];
        PyObject *value = values[each];
        if (item->code != 's') {
            if (pack_integer(out + item->offset, item, self->big, value) < 0)
                goto failed;
        } else if (PyBytes_Check(value)) {
            Py_ssize_t length = PyBytes_GET_SIZE(value);
            memcpy(out + item->offset, PyBytes_AS_STRING(value), length < item->size ? length : item->size);
        } else if (PyByteArray_Check(value)) {
            Py_ssize_t length = PyByteArray_GET_SIZE(value);
            memcpy(out + item->offset, PyByteArray_AS_STRING(value), length < item->size ? length : item->size);
        } else {
            PyErr_SetString(struct_error, "argument for 's' must be a bytes object");
            goto failed;
        }
    }
    return packed;
failed:
    Py_DECREF(packed);
    return NULL;
}

static PyObject *
unpack_item(const uint8_t *at, const Item *item, int big)
{
    if (item->code == 's')
        return PyBytes_FromStringAndSize((const char *)at, item->size);
    uint64_t number = get_number(at, item->size);
    if (big != BIG_MACHINE)
        number = __builtin_bswap64(number) >> (8 * (8 - item->size));
    /* Not a long for 4 bytes: on a machine of 32 bits it has a sign. */
    return item->size < 4 ? PyLong_FromLong((long)number) : PyLong_FromUnsignedLongLong(number);
}

static PyObject *
Struct_unpack_from(Struct *self, PyObject *const *arguments, Py_ssize_t given)
{
    Py_ssize_t offset = 0;
    if (given < 1 || given > 2) {
        PyErr_SetString(PyExc_TypeError, "unpack_from takes a buffer and an offset");
        return NULL;
    }
    if (given == 2) {
        offset = PyLong_AsSsize_t(arguments[1]);
        if (offset == -1 && PyErr_Occurred())
            return NULL;
    }
    Py_buffer view = {.obj = NULL};
    if (PyBytes_CheckExact(arguments[0])) {
        view.buf = PyBytes_AS_STRING(arguments[0]);
        view.len = PyBytes_GET_SIZE(arguments[0]);
    } else if (PyObject_GetBuffer(arguments[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *found = NULL;
    if (offset < 0 || offset > view.len || view.len - offset < self->size) {
        PyErr_Format(struct_error, "unpack_from requires %zd bytes at offset %zd of %zd", self->size, offset, view.len);
        goto done;
    }
    found = PyTuple_New(self->count);
    for (Py_ssize_t each = 0; found != NULL && each < self->count; each++) {
        const Item *item = &self->items[each];
        PyObject *value = unpack_item((const uint8_t *)view.buf + offset + item->offset, item, self->big);
        if (value == NULL)
            Py_CLEAR(found);
        else
            PyTuple_SET_ITEM(found, each, value);
    }
done:
    if (view.obj != NULL)
        PyBuffer_Release(&view);
    return found;
}

static PyMethodDef Struct_methods[] = {
    {"pack", (PyCFunction)(void (*)(void))Struct_pack, METH_FASTCALL, "Pack values."},
    {"unpack_from", (PyCFunction)(void (*)(void))Struct_unpack_from, METH_FASTCALL, "Unpack values from a buffer."},
    {NULL},
};
static PyMemberDef Struct_members[] = {
    {"format", T_OBJECT, offsetof(Struct, format), READONLY, "The format."},
    {"size", T_PYSSIZET, offsetof(Struct, size), READONLY, "Bytes of all values."},
    {NULL},
};
static PyTypeObject StructType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mxwire._native.Struct",
    .tp_basicsize = sizeof(Struct),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)Struct_init,
    .tp_dealloc = (destructor)Struct_dealloc,
    .tp_methods = Struct_methods,
    .tp_members = Struct_members,
};

/* Lock */

typedef struct {
    PyObject_HEAD
    PyThread_type_lock lock;
    unsigned long owner;
    unsigned long count;
    PyObject *references;
} Lock;

static PyObject *
Lock_new(PyTypeObject *type, PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords))
{
    Lock *self = (Lock *)type->tp_alloc(type, 0);
    if (self != NULL && (self->lock = PyThread_allocate_lock()) == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void
Lock_dealloc(Lock *self)
{
    if (self->references != NULL)
        PyObject_ClearWeakRefs((PyObject *)self);
    if (self->lock != NULL) {
        if (self->count)
            PyThread_release_lock(self->lock);
        PyThread_free_lock(self->lock);
    }
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Wait for the lock; run handlers of signals meanwhile, as any wait in Python does. */
static int
take_lock(Lock *self)
{
    if (PyThread_acquire_lock(self->lock, 0))
        return 0;
    for (;;) {
        PyLockStatus status;
        Py_BEGIN_ALLOW_THREADS
        status = PyThread_acquire_lock_timed(self->lock, -1, 1);
        Py_END_ALLOW_THREADS
        if (status == PY_LOCK_ACQUIRED)
            return 0;
        if (Py_MakePendingCalls() < 0)
            return -1;
    }
}

static PyObject *
Lock_acquire(Lock *self, PyObject *Py_UNUSED(nothing))
{
    unsigned long me = PyThread_get_thread_ident();
    if (self->count && self->owner == me)
        self->count++;
    else {
        if (take_lock(self) < 0)
            return NULL;
        self->owner = me;
        self->count = 1;
    }
    Py_RETURN_TRUE;
}

static int
must_own(Lock *self)
{
    if (self->count && self->owner == PyThread_get_thread_ident())
        return 1;
    PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
    return 0;
}

static PyObject *
Lock_release(Lock *self, PyObject *Py_UNUSED(nothing))
{
    if (!must_own(self))
        return NULL;
    if (--self->count == 0) {
        self->owner = 0;
        PyThread_release_lock(self->lock);
    }
    Py_RETURN_NONE;
}

static PyObject *
Lock_exit(Lock *self, PyObject *const *Py_UNUSED(arguments), Py_ssize_t Py_UNUSED(given))
{
    return Lock_release(self, NULL);
}

static PyObject *
Lock_is_owned(Lock *self, PyObject *Py_UNUSED(nothing))
{
    return PyBool_FromLong(self->count && self->owner == PyThread_get_thread_ident());
}

static PyObject *
Lock_release_save(Lock *self, PyObject *Py_UNUSED(nothing))
{
    if (!must_own(self))
        return NULL;
    PyObject *depth = PyLong_FromUnsignedLong(self->count);
    if (depth != NULL) {
        self->count = self->owner = 0;
        PyThread_release_lock(self->lock);
    }
    return depth;
}

static PyObject *
Lock_acquire_restore(Lock *self, PyObject *depth)
{
    unsigned long count = PyLong_AsUnsignedLong(depth);
    if (count == (unsigned long)-1 && PyErr_Occurred())
        return NULL;
    if (!PyThread_acquire_lock(self->lock, 0)) {
        Py_BEGIN_ALLOW_THREADS
        PyThread_acquire_lock(self->lock, 1);
        Py_END_ALLOW_THREADS
    }
    self->owner = PyThread_get_thread_ident();
    self->count = count;
    Py_RETURN_NONE;
}

static PyMethodDef Lock_methods[] = {
    {"acquire", (PyCFunction)Lock_acquire, METH_NOARGS, "Acquire the lock."},
    {"release", (PyCFunction)Lock_release, METH_NOARGS, "Release the lock."},
    {"__enter__", (PyCFunction)Lock_acquire, METH_NOARGS, "Acquire the lock."},
    {"__exit__", (PyCFunction)(void (*)(void))Lock_exit, METH_FASTCALL, "Release the lock."},
    {"_is_owned", (PyCFunction)Lock_is_owned, METH_NOARGS, "Return whether this thread holds the lock."},
    {"_release_save", (PyCFunction)Lock_release_save, METH_NOARGS, "Release the lock, and return its depth."},
    {"_acquire_restore", (PyCFunction)Lock_acquire_restore, METH_O, "Acquire the lock to a depth."},
    {NULL},
};
static PyTypeObject LockType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mxwire._native.Lock",
    .tp_basicsize = sizeof(Lock),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = Lock_new,
    .tp_dealloc = (destructor)Lock_dealloc,
    .tp_methods = Lock_methods,
    .tp_weaklistoffset = offsetof(Lock, references),
};

/* SlotReader: the slots of a TPACKET_V2 ring */

#define SLOTS_AT_ONCE 256

typedef struct {
    PyObject_HEAD
    Py_buffer memory;
    Py_ssize_t slot, slots, head;
    Py_ssize_t few;
    Py_ssize_t shortest;
    int quiet;
} SlotReader;

static int
SlotReader_init(SlotReader *self, PyObject *arguments, PyObject *keywords)
{
    PyObject *memory;
    if (self->memory.obj != NULL) {
        PyErr_SetString(PyExc_TypeError, "SlotReader is made once");
        return -1;
    }
    if (!no_keywords("SlotReader", keywords) ||
        !PyArg_ParseTuple(arguments, "Onnn", &memory, &self->slot, &self->few, &self->shortest))
        return -1;
    if (self->slot < (Py_ssize_t)sizeof(struct tpacket2_hdr) || self->few > SLOTS_AT_ONCE || self->few < 1 ||
        self->shortest < 0) {
        PyErr_SetString(PyExc_ValueError, "the slots are too small, or too many at once");
        return -1;
    }
    if (PyObject_GetBuffer(memory, &self->memory, PyBUF_WRITABLE) < 0)
        return -1;
    self->slots = self->memory.len / self->slot;
    if (self->slots == 0) {
        PyErr_SetString(PyExc_ValueError, "the memory has no slot");
        PyBuffer_Release(&self->memory);
        return -1;
    }
    return 0;
}

static void
SlotReader_dealloc(SlotReader *self)
{
    if (self->memory.obj != NULL)
        PyBuffer_Release(&self->memory);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static struct tpacket2_hdr *
slot_at(SlotReader *self, Py_ssize_t place)
{
    return (struct tpacket2_hdr *)((char *)self->memory.buf + place * self->slot);
}

static uint32_t
status_at(SlotReader *self, Py_ssize_t place)
{
    return __atomic_load_n(&slot_at(self, place)->tp_status, __ATOMIC_ACQUIRE);
}

static PyObject *
SlotReader_take(SlotReader *self, PyObject *Py_UNUSED(nothing))
{
    /* Python may set the head. */
    if (self->head < 0 || (self->memory.obj != NULL && self->head >= self->slots)) {
        PyErr_SetString(PyExc_ValueError, "the ring has no such slot");
        return NULL;
    }
    if (self->memory.obj == NULL || !(status_at(self, self->head) & TP_STATUS_USER)) {
        self->quiet = 1;
        Py_RETURN_NONE;
    }
    PyObject *frames[SLOTS_AT_ONCE];
    Py_ssize_t count = 0, place = self->head, most = self->quiet ? 1 : self->few;
    if (most > self->slots - place)
        most = self->slots - place;
    self->quiet = 0;
    Py_ssize_t beyond = place + self->few;
    int many = -1;
    do {
        struct tpacket2_hdr *note = slot_at(self, place);
        if (note->tp_snaplen > self->shortest && many < 0)
            many = beyond < self->slots && status_at(self, beyond) & TP_STATUS_USER;
        if ((note->tp_snaplen > self->shortest && many) || note->tp_snaplen != note->tp_len ||
            (note->tp_status & TP_STATUS_VLAN_VALID) || (Py_ssize_t)note->tp_mac + note->tp_snaplen > self->slot)
            break;
        frames[count] = PyBytes_FromStringAndSize((char *)note + note->tp_mac, note->tp_snaplen);
        if (frames[count] == NULL)
            break;
        count++;
        __atomic_store_n(&note->tp_status, 0, __ATOMIC_RELEASE);
        place++;
    } while (count < most && status_at(self, place) & TP_STATUS_USER);
    self->head = place == self->slots ? 0 : place;
    PyObject *found = PyErr_Occurred() ? NULL : PyList_New(count);
    for (Py_ssize_t each = 0; each < count; each++)
        if (found != NULL)
            PyList_SET_ITEM(found, each, frames[each]);
        else
            Py_DECREF(frames[each]);
    return found;
}

static PyObject *
SlotReader_close(SlotReader *self, PyObject *Py_UNUSED(nothing))
{
    if (self->memory.obj != NULL)
        PyBuffer_Release(&self->memory);
    Py_RETURN_NONE;
}

static PyMethodDef SlotReader_methods[] = {
    {"take", (PyCFunction)SlotReader_take, METH_NOARGS, "Take copies of the next frames; None if there are none."},
    {"close", (PyCFunction)SlotReader_close, METH_NOARGS, "Release the memory."},
    {NULL},
};
static PyMemberDef SlotReader_members[] = {
    {"head", T_PYSSIZET, offsetof(SlotReader, head), 0, "The next slot."},
    {NULL},
};
static PyTypeObject SlotReaderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mxwire._native.SlotReader",
    .tp_basicsize = sizeof(SlotReader),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)SlotReader_init,
    .tp_dealloc = (destructor)SlotReader_dealloc,
    .tp_methods = SlotReader_methods,
    .tp_members = SlotReader_members,
};

/* GatheredFrame: a header, and data that stays in the memory of the application until the kernel copies it */

#define RUN_HEADER_MAXIMUM 64

typedef struct {
    PyObject_HEAD
    Py_buffer memory;
    uint8_t *data;
    Py_ssize_t header, length, padding;
    uint8_t head[RUN_HEADER_MAXIMUM];
} GatheredFrame;

static const uint8_t zeros[RUN_HEADER_MAXIMUM];

static void
GatheredFrame_dealloc(GatheredFrame *self)
{
    PyBuffer_Release(&self->memory);
    PyObject_Free(self);
}

static Py_ssize_t
GatheredFrame_length(GatheredFrame *self)
{
    return self->header + self->length + self->padding;
}

static PyObject *
GatheredFrame_bytes(GatheredFrame *self, PyObject *Py_UNUSED(nothing))
{
    PyObject *whole = PyBytes_FromStringAndSize(NULL, GatheredFrame_length(self));
    if (whole == NULL)
        return NULL;
    uint8_t *out = (uint8_t *)PyBytes_AS_STRING(whole);
    memcpy(out, self->head, (size_t)self->header);
    memcpy(out + self->header, self->data, (size_t)self->length);
    memset(out + self->header + self->length, 0, (size_t)self->padding);
    return whole;
}

static PyMethodDef GatheredFrame_methods[] = {
    {"__bytes__", (PyCFunction)GatheredFrame_bytes, METH_NOARGS, "Build the frame, with a copy of its data."},
    {NULL},
};
static PySequenceMethods GatheredFrame_sequence = {.sq_length = (lenfunc)GatheredFrame_length};
static PyTypeObject GatheredFrameType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mxwire._native.GatheredFrame",
    .tp_basicsize = sizeof(GatheredFrame),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)GatheredFrame_dealloc,
    .tp_as_sequence = &GatheredFrame_sequence,
    .tp_methods = GatheredFrame_methods,
};

/* System calls with the interpreter's lock held before one without it. To give it up costs half as much as to send a
 * short frame, but compiled code that never does so would keep other threads from running. */
#define HELD_CALLS 16

/* Frames handed over in one system call. */
#define SENT_AT_ONCE 64

/* A header for the kernel, that of the frame, its data, and the padding. */
#define PIECES 4

/* The kernel copies a frame of about a page or more into separate pages, which takes a fifth of the time of sending
 * it, unless a header before the frame (PACKET_VNET_HDR) requests one piece of memory. The length of the piece is
 * limited, since long ones become rare as memory fragments. */
#define WHOLE_FROM 4000
#define WHOLE_MAXIMUM 15000

/* Prepare a message from a frame, which ``view`` keeps alive and whose length it has; return -1 with an exception if it
 * is none. */
static int
compose(PyObject *frame, Py_buffer *view, struct iovec *pieces, struct mmsghdr *message)
{
    size_t count = 1;
    if (Py_IS_TYPE(frame, &GatheredFrameType)) {
        GatheredFrame *gathered = (GatheredFrame *)frame;
        *view = (Py_buffer){.obj = Py_NewRef(frame), .len = GatheredFrame_length(gathered)};
        pieces[0] = (struct iovec){gathered->head, (size_t)gathered->header};
        pieces[1] = (struct iovec){gathered->data, (size_t)gathered->length};
        pieces[2] = (struct iovec){(void *)zeros, (size_t)gathered->padding};
        count = gathered->padding ? 3 : 2;
    } else {
        if (PyObject_GetBuffer(frame, view, PyBUF_SIMPLE) < 0)
            return -1;
        pieces[0] = (struct iovec){view->buf, (size_t)view->len};
    }
    *message = (struct mmsghdr){.msg_hdr = {.msg_iov = pieces, .msg_iovlen = count}};
    return 0;
}

/* Send frames, each a bytes object or gathered, in as few system calls as possible; return the number sent before the
 * first that is refused. If one frame of a system call is long, all of the call pass through the second socket, each
 * behind its header for the kernel. */
static PyObject *
send_frames(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given)
{
    if (given != 3 || !PyList_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "send_frames takes a descriptor, a list and a second descriptor");
        return NULL;
    }
    int descriptor = (int)PyLong_AsLong(arguments[0]), second = (int)PyLong_AsLong(arguments[2]);
    if (PyErr_Occurred())
        return NULL;
    static unsigned calls;
    Py_ssize_t sent = 0;
    /* Other code that runs meanwhile may change the list. */
    while (sent < PyList_GET_SIZE(arguments[1])) {
        Py_buffer views[SENT_AT_ONCE];
        struct iovec pieces[SENT_AT_ONCE][PIECES];
        struct mmsghdr messages[SENT_AT_ONCE];
        struct virtio_net_hdr heads[SENT_AT_ONCE];
        int some = 0, done, whole = 0;
        for (; some < SENT_AT_ONCE && sent + some < PyList_GET_SIZE(arguments[1]); some++) {
            PyObject *frame = PyList_GET_ITEM(arguments[1], sent + some);
            if (compose(frame, &views[some], pieces[some] + 1, &messages[some]) < 0)
                break;
            whole |= second >= 0 && views[some].len >= WHOLE_FROM;
        }
        for (int each = 0; whole && each < some; each++) {
            Py_ssize_t length = views[each].len < WHOLE_MAXIMUM ? views[each].len : WHOLE_MAXIMUM;
            heads[each] = (struct virtio_net_hdr){.hdr_len = (uint16_t)length};
            pieces[each][0] = (struct iovec){&heads[each], sizeof *heads};
            messages[each].msg_hdr.msg_iov = pieces[each];
            messages[each].msg_hdr.msg_iovlen++;
        }
        int last = sent + some >= PyList_GET_SIZE(arguments[1]), failed = PyErr_Occurred() != NULL;
        /* Only after the last frame: another thread that runs meanwhile may close the descriptor. */
        PyThreadState *released = !failed && ++calls >= HELD_CALLS && last ? PyEval_SaveThread() : NULL;
        if (failed)
            done = -1;
        else if (some == 1 && messages->msg_hdr.msg_iovlen == 1)
            done = send(descriptor, pieces[0][1].iov_base, pieces[0][1].iov_len, MSG_DONTWAIT) < 0 ? -1 : 1;
        else
            done = sendmmsg(whole ? second : descriptor, messages, (unsigned)some, MSG_DONTWAIT);
        if (released != NULL) {
            calls = 0;
            PyEval_RestoreThread(released);
        }
        for (int each = 0; each < some; each++)
            PyBuffer_Release(&views[each]);
        if (failed)
            return NULL;
        if (done > 0)
            sent += done;
        if (done < some)
            break;
    }
    return PyLong_FromSsize_t(sent);
}

/* Return a view of a buffer, as memoryview does. */
static PyObject *
view_of(PyObject *Py_UNUSED(module), PyObject *buffer)
{
    return PyMemoryView_FromObject(buffer);
}

/* Return the address of the bytes of a buffer. */
static PyObject *
address_of(PyObject *Py_UNUSED(module), PyObject *buffer)
{
    Py_buffer view;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *address = PyLong_FromVoidPtr(view.buf);
    PyBuffer_Release(&view);
    return address;
}

/* Return whether a view consists of plain bytes, and is writable if the second argument is true. */
static PyObject *
is_flat(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given)
{
    if (given != 2 || !PyMemoryView_Check(arguments[0])) {
        PyErr_SetString(PyExc_TypeError, "is_flat takes a view, and whether it must be writable");
        return NULL;
    }
    Py_buffer view;
    /* A released view gives no buffer. */
    if (PyObject_GetBuffer(arguments[0], &view, PyBUF_FULL_RO) < 0) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError))
            return NULL;
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    /* As the view reports it: PyBuffer_IsContiguous also accepts an empty view with a step. */
    int contiguous = ((PyMemoryViewObject *)arguments[0])->flags & (_Py_MEMORYVIEW_C | _Py_MEMORYVIEW_FORTRAN);
    int flat = strcmp(view.format, "B") == 0 && view.ndim == 1 && contiguous;
    int read_only = view.readonly;
    PyBuffer_Release(&view);
    if (flat && read_only) {
        int writable = PyObject_IsTrue(arguments[1]);
        if (writable < 0)
            return NULL;
        flat = !writable;
    }
    return PyBool_FromLong(flat);
}

/* Copy a part of data to an offset in writable memory, which has room for it. */
static PyObject *
store_data(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given)
{
    if (given != 5) {
        PyErr_SetString(PyExc_TypeError, "store takes memory, an offset, data, a start and a size");
        return NULL;
    }
    Py_ssize_t offset = PyLong_AsSsize_t(arguments[1]), start = PyLong_AsSsize_t(arguments[3]);
    Py_ssize_t size = PyLong_AsSsize_t(arguments[4]);
    if (PyErr_Occurred())
        return NULL;
    Py_buffer memory, data;
    if (PyObject_GetBuffer(arguments[0], &memory, PyBUF_WRITABLE) < 0)
        return NULL;
    if (PyObject_GetBuffer(arguments[2], &data, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&memory);
        return NULL;
    }
    int fits = offset >= 0 && size >= 0 && size <= memory.len - offset && start >= 0 && size <= data.len - start;
    if (fits)
        memmove((char *)memory.buf + offset, (char *)data.buf + start, (size_t)size);
    else
        PyErr_SetString(PyExc_ValueError, "the memory has no room for the data, or the data is shorter");
    PyBuffer_Release(&memory);
    PyBuffer_Release(&data);
    if (!fits)
        return NULL;
    Py_RETURN_NONE;
}

/* RecordWriter and RecordReader: the two sides of a ring of records in shared memory */

#define SHORT_RECORD 512

typedef struct {
    PyObject_HEAD
    Py_buffer memory;
    PyObject *view;
    Py_ssize_t control;
    uint8_t *data;
    uint64_t *produced, *consumed, *asleep, *starved;
    uint64_t room, longest;
    uint64_t position, seen, span;
    char blocked;
} Records;

static int
Records_init(Records *self, PyObject *arguments, PyObject *keywords)
{
    PyObject *memory;
    Py_ssize_t control, produced, consumed, asleep, starved;
    unsigned long long longest;
    if (self->memory.obj != NULL) {
        PyErr_SetString(PyExc_TypeError, "a ring is made once");
        return -1;
    }
    if (!no_keywords("a ring", keywords) || !PyArg_ParseTuple(arguments, "OnKnnnn", &memory, &control, &longest,
                                                              &produced, &consumed, &asleep, &starved))
        return -1;
    if (PyObject_GetBuffer(memory, &self->memory, PyBUF_WRITABLE) < 0)
        return -1;
    Py_ssize_t words = control / 8, room = self->memory.len - control;
    if (produced >= words || consumed >= words || asleep >= words || starved >= words || room <= 0 ||
        room & (room - 1) || longest > (uint64_t)room || control & 7 || (uintptr_t)self->memory.buf & 7 ||
        (produced | consumed | asleep | starved) < 0) {
        PyErr_SetString(PyExc_ValueError, "the memory has no such ring");
        PyBuffer_Release(&self->memory);
        return -1;
    }
    uint64_t *word = self->memory.buf;
    self->produced = word + produced;
    self->consumed = word + consumed;
    self->asleep = word + asleep;
    self->starved = word + starved;
    self->data = (uint8_t *)self->memory.buf + control;
    self->room = (uint64_t)room;
    self->longest = longest;
    self->control = control;
    self->view = PyMemoryView_FromObject(memory);
    return self->view == NULL ? -1 : 0;
}

static PyObject *
Records_close(Records *self, PyObject *Py_UNUSED(nothing))
{
    Py_CLEAR(self->view);
    if (self->memory.obj != NULL)
        PyBuffer_Release(&self->memory);
    Py_RETURN_NONE;
}

static void
Records_dealloc(Records *self)
{
    Py_XDECREF(Records_close(self, NULL));
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static uint64_t
load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void
store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Clear a flag of the other side, and return whether it was set. The barrier keeps the check behind what this side has
 * just stored: the other side sets the flag first, and looks then. */
static PyObject *
take_flag(Records *self, uint64_t *flag)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (self->memory.obj == NULL || !load(flag))
        Py_RETURN_FALSE;
    store(flag, 0);
    Py_RETURN_TRUE;
}

/* 1 if a number of bytes fit without a wrap, 0 if not, -1 for an impossible position of the reader. */
static int
has_room(Records *self, uint64_t span)
{
    if (span > self->room)
        return 0;
    uint64_t left = self->room - (self->position & (self->room - 1));
    uint64_t needed = span <= left ? span : left + span;
    if (self->position + needed - self->seen <= self->room)
        return 1;
    uint64_t seen = load(self->consumed);
    if (seen < self->seen || seen > self->position) {
        PyErr_SetString(invalid_record, "the consumer's position is impossible");
        return -1;
    }
    self->seen = seen;
    return self->position + needed - seen <= self->room;
}

static PyObject *
RecordWriter_has_room(Records *self, PyObject *span)
{
    uint64_t bytes = PyLong_AsUnsignedLongLong(span);
    if (bytes == (uint64_t)-1 && PyErr_Occurred())
        return NULL;
    int found = self->memory.obj == NULL ? 0 : has_room(self, bytes);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

static PyObject *
RecordWriter_put(Records *self, PyObject *const *arguments, Py_ssize_t given)
{
    if (given != 2) {
        PyErr_SetString(PyExc_TypeError, "put takes two parts");
        return NULL;
    }
    Py_buffer head, data;
    if (PyObject_GetBuffer(arguments[0], &head, PyBUF_SIMPLE) < 0)
        return NULL;
    if (PyObject_GetBuffer(arguments[1], &data, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&head);
        return NULL;
    }
    uint64_t length = (uint64_t)head.len + (uint64_t)data.len, span = 8 + ((length + 7) & ~(uint64_t)7);
    /* The parts may have run code that closed the ring. */
    int closed = self->memory.obj == NULL, fits = closed ? 0 : has_room(self, span);
    if (fits == 0 && !closed) {
        store(self->starved, 1);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        fits = has_room(self, span);
        /* A shorter record that fits later does not end the wait for room. */
        self->blocked |= fits == 0;
    }
    if (fits > 0) {
        uint64_t place = self->position & (self->room - 1);
        if (place + span > self->room) {
            *(uint64_t *)(self->data + place) = UINT64_MAX;
            self->position += self->room - place;
            place = 0;
        }
        *(uint64_t *)(self->data + place) = length;
        memcpy(self->data + place + 8, head.buf, head.len);
        memcpy(self->data + place + 8 + head.len, data.buf, data.len);
        self->position += span;
        store(self->produced, self->position);
    }
    PyBuffer_Release(&head);
    PyBuffer_Release(&data);
    return fits < 0 ? NULL : PyBool_FromLong(fits);
}

static PyObject *
RecordWriter_take_sleep(Records *self, PyObject *Py_UNUSED(nothing))
{
    return take_flag(self, self->asleep);
}

static PyObject *
RecordReader_peek(Records *self, PyObject *Py_UNUSED(nothing))
{
    if (self->memory.obj == NULL)
        Py_RETURN_NONE;
    uint64_t produced = load(self->produced);
    self->seen = produced;
    uint64_t available = produced - self->position;
    if (!available)
        Py_RETURN_NONE;
    const char *wrong = NULL;
    if (available < 8 || available > self->room) {
        wrong = "the producer's position is impossible";
        goto failed;
    }
    uint64_t place = self->position & (self->room - 1);
    /* Read once: the other side may change it. */
    uint64_t length = *(volatile uint64_t *)(self->data + place);
    if (length == UINT64_MAX && place) {
        uint64_t rest = self->room - place;
        self->position += rest;
        if (available < rest + 8) {
            wrong = "the end of the ring is skipped for nothing";
            goto failed;
        }
        available -= rest;
        place = 0;
        length = *(volatile uint64_t *)self->data;
    }
    if (length > self->longest) {
        wrong = "a record is too long";
        goto failed;
    }
    uint64_t span = 8 + ((length + 7) & ~(uint64_t)7);
    if (span > available || place + span > self->room) {
        wrong = "a record exceeds the ring";
        goto failed;
    }
    self->span = span;
    /* A copy of a short record costs less than a view of it. */
    if (length <= SHORT_RECORD)
        return PyBytes_FromStringAndSize((char *)self->data + place + 8, (Py_ssize_t)length);
    Py_ssize_t start = self->control + (Py_ssize_t)place + 8;
    return PySequence_GetSlice(self->view, start, start + (Py_ssize_t)length);
failed:
    PyErr_SetString(invalid_record, wrong);
    return NULL;
}

static PyObject *
RecordReader_advance(Records *self, PyObject *Py_UNUSED(nothing))
{
    if (self->memory.obj != NULL) {
        self->position += self->span;
        store(self->consumed, self->position);
    }
    Py_RETURN_NONE;
}

static PyObject *
RecordReader_waits(Records *self, PyObject *Py_UNUSED(nothing))
{
    return PyBool_FromLong(self->memory.obj != NULL && load(self->produced) != self->position);
}

static PyObject *
RecordReader_take_starved(Records *self, PyObject *Py_UNUSED(nothing))
{
    return take_flag(self, self->starved);
}

static PyMemberDef Records_members[] = {
    {"position", T_ULONGLONG, offsetof(Records, position), READONLY, "Bytes of all records so far."},
    {"seen", T_ULONGLONG, offsetof(Records, seen), READONLY, "The other side's position when it was last read."},
    {"blocked", T_BOOL, offsetof(Records, blocked), 0, "True if a record has found no room."},
    {NULL},
};
static PyMethodDef RecordWriter_methods[] = {
    {"put", (PyCFunction)(void (*)(void))RecordWriter_put, METH_FASTCALL, "Append a record of two parts."},
    {"has_room", (PyCFunction)RecordWriter_has_room, METH_O, "Return whether some bytes fit."},
    {"take_sleep", (PyCFunction)RecordWriter_take_sleep, METH_NOARGS, "Return whether the reader sleeps, once."},
    {"close", (PyCFunction)Records_close, METH_NOARGS, "Release the memory."},
    {NULL},
};
static PyMethodDef RecordReader_methods[] = {
    {"peek", (PyCFunction)RecordReader_peek, METH_NOARGS, "Return the oldest record, or None."},
    {"advance", (PyCFunction)RecordReader_advance, METH_NOARGS, "Remove the oldest record."},
    {"waits", (PyCFunction)RecordReader_waits, METH_NOARGS, "Return whether there is a record."},
    {"take_starved", (PyCFunction)RecordReader_take_starved, METH_NOARGS, "Return whether the writer waits, once."},
    {"close", (PyCFunction)Records_close, METH_NOARGS, "Release the memory."},
    {NULL},
};
static PyTypeObject RecordWriterType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mxwire._native.RecordWriter",
    .tp_basicsize = sizeof(Records),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)Records_init,
    .tp_dealloc = (destructor)Records_dealloc,
    .tp_methods = RecordWriter_methods,
    .tp_members = Records_members,
};
static PyTypeObject RecordReaderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mxwire._native.RecordReader",
    .tp_basicsize = sizeof(Records),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)Records_init,
    .tp_dealloc = (destructor)Records_dealloc,
    .tp_methods = RecordReader_methods,
    .tp_members = Records_members,
};

/* RunForm: single PULL_REPLYs that follow each other, or the fragments of a MEDIUM, which have no offset */

typedef struct {
    PyObject_HEAD
    uint8_t fixed[RUN_HEADER_MAXIMUM];
    Py_ssize_t header, shortest, sequence, length, offset;
} RunForm;

static int
RunForm_init(RunForm *self, PyObject *arguments, PyObject *keywords)
{
    const char *fixed;
    Py_ssize_t header, shortest, sequence, length, offset;
    if (!no_keywords("RunForm", keywords) ||
        !PyArg_ParseTuple(arguments, "y#nnnn", &fixed, &header, &shortest, &sequence, &length, &offset))
        return -1;
    if (header > RUN_HEADER_MAXIMUM || shortest < header || shortest - header > RUN_HEADER_MAXIMUM || sequence < 0 ||
        sequence + 1 > header || length < 0 || length + 2 > header || offset < -1 || offset + 4 > header) {
        PyErr_SetString(PyExc_ValueError, "the header has no such fields");
        return -1;
    }
    memcpy(self->fixed, fixed, (size_t)header);
    self->header = header;
    self->shortest = shortest;
    self->sequence = sequence;
    self->length = length;
    self->offset = offset;
    return 0;
}

static uint32_t
big_number(const uint8_t *at, int bytes)
{
    uint32_t number = 0;
    for (int each = 0; each < bytes; each++)
        number = number << 8 | at[each];
    return number;
}

static void
put_big_number(uint8_t *at, uint32_t number, int bytes)
{
    for (int each = bytes; each-- > 0; number >>= 8)
        at[each] = (uint8_t)number;
}

/* Write the header of a frame: ``head``, with the fields in which the frames of a run differ. */
static void
put_head(RunForm *self, uint8_t *out, PyObject *head, uint32_t number, uint32_t length, uint32_t offset)
{
    memcpy(out, PyBytes_AS_STRING(head), (size_t)self->header);
    put_big_number(out + self->sequence, number, 1);
    put_big_number(out + self->length, length, 2);
    if (self->offset >= 0)
        put_big_number(out + self->offset, offset, 4);
}

/* A frame as a bytes object, with room for its header and a copy of its data. */
static PyObject *
whole_frame(RunForm *self, uint8_t **head, const uint8_t *data, Py_ssize_t length, Py_ssize_t padding)
{
    PyObject *frame = PyBytes_FromStringAndSize(NULL, self->header + length + padding);
    if (frame == NULL)
        return NULL;
    *head = (uint8_t *)PyBytes_AS_STRING(frame);
    memcpy(*head + self->header, data, (size_t)length);
    memset(*head + self->header + length, 0, (size_t)padding);
    return frame;
}

/* A frame with room for its header, whose data stays in ``memory``. */
static PyObject *
gathered_frame(RunForm *self, uint8_t **head, PyObject *memory, Py_ssize_t at, Py_ssize_t length, Py_ssize_t padding)
{
    GatheredFrame *frame = PyObject_New(GatheredFrame, &GatheredFrameType);
    if (frame == NULL)
        return NULL;
    frame->memory.obj = NULL;
    if (PyObject_GetBuffer(memory, &frame->memory, PyBUF_SIMPLE) < 0 || frame->memory.len - at < length) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_BufferError, "the memory has become shorter");
        Py_DECREF(frame);
        return NULL;
    }
    frame->data = (uint8_t *)frame->memory.buf + at;
    frame->header = self->header;
    frame->length = length;
    frame->padding = padding;
    *head = frame->head;
    return (PyObject *)frame;
}

/* Build frames with the header ``head``, each with its length in bytes of ``data``, one after another; the first has
 * the given number and offset. */
static PyObject *
build_run(RunForm *self, PyObject *const *arguments, Py_ssize_t given, int gathered)
{
    if (given != 5 || !PyBytes_CheckExact(arguments[0]) || PyBytes_GET_SIZE(arguments[0]) != self->header ||
        !PyList_CheckExact(arguments[4])) {
        PyErr_SetString(PyExc_TypeError, "build takes a header, data, two numbers and a list of lengths");
        return NULL;
    }
    uint32_t number = (uint32_t)PyLong_AsUnsignedLongMask(arguments[2]);
    uint32_t offset = (uint32_t)PyLong_AsUnsignedLongMask(arguments[3]);
    if (PyErr_Occurred())
        return NULL;
    Py_buffer data;
    if (PyObject_GetBuffer(arguments[1], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(arguments[4]), taken = 0;
    PyObject *frames = PyList_New(count);
    for (Py_ssize_t each = 0; frames != NULL && each < count; each++) {
        Py_ssize_t length = PyLong_AsSsize_t(PyList_GET_ITEM(arguments[4], each));
        if (length < 0 || length > UINT16_MAX || length > data.len - taken) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "a frame cannot have such a length");
            Py_CLEAR(frames);
            break;
        }
        Py_ssize_t size = self->header + length, padding = size < self->shortest ? self->shortest - size : 0;
        uint8_t *head;
        PyObject *frame = gathered ? gathered_frame(self, &head, arguments[1], taken, length, padding)
                                   : whole_frame(self, &head, (uint8_t *)data.buf + taken, length, padding);
        if (frame == NULL) {
            Py_CLEAR(frames);
            break;
        }
        put_head(self, head, arguments[0], number + (uint32_t)each, (uint32_t)length, offset + (uint32_t)taken);
        PyList_SET_ITEM(frames, each, frame);
        taken += length;
    }
    PyBuffer_Release(&data);
    return frames;
}

static PyObject *
RunForm_build(RunForm *self, PyObject *const *arguments, Py_ssize_t given)
{
    return build_run(self, arguments, given, 0);
}

static PyObject *
RunForm_gather(RunForm *self, PyObject *const *arguments, Py_ssize_t given)
{
    return build_run(self, arguments, given, 1);
}

/* Return whether two headers differ in a byte that all frames of a run share. */
static int
headers_differ(const RunForm *self, const uint8_t *one, const uint8_t *other)
{
    Py_ssize_t at = 0;
    uint64_t found = 0;
    for (; at + 8 <= self->header; at += 8)
        found |= (get_number(one + at, 8) ^ get_number(other + at, 8)) & get_number(self->fixed + at, 8);
    for (; at < self->header; at++)
        found |= (one[at] ^ other[at]) & self->fixed[at];
    return found != 0;
}

/* Copy the data of at most ``count`` frames from ``place`` into memory, from ``at`` on, while they have the same length
 * as the first, and continue it; return their number. Without memory (None) copy nothing. */
static PyObject *
RunForm_fill(RunForm *self, PyObject *const *arguments, Py_ssize_t given)
{
    if (given != 5 || !PyList_CheckExact(arguments[0]) || self->offset < 0) {
        PyErr_SetString(PyExc_TypeError, "fill takes a list, a place, a count, memory and an offset");
        return NULL;
    }
    Py_ssize_t place = PyLong_AsSsize_t(arguments[1]), count = PyLong_AsSsize_t(arguments[2]);
    Py_ssize_t at = PyLong_AsSsize_t(arguments[4]);
    if (PyErr_Occurred())
        return NULL;
    Py_buffer memory = {.len = PY_SSIZE_T_MAX};
    if (arguments[3] != Py_None && PyObject_GetBuffer(arguments[3], &memory, PyBUF_WRITABLE) < 0)
        return NULL;
    Py_ssize_t done = 0, length = 0;
    const uint8_t *first = NULL;
    for (; place >= 0 && at >= 0 && done < count && place + done < PyList_GET_SIZE(arguments[0]); done++) {
        PyObject *frame = PyList_GET_ITEM(arguments[0], place + done);
        if (!PyBytes_CheckExact(frame) || PyBytes_GET_SIZE(frame) < self->header)
            break;
        const uint8_t *head = (const uint8_t *)PyBytes_AS_STRING(frame);
        if (first == NULL) {
            first = head;
            length = (Py_ssize_t)big_number(head + self->length, 2);
        }
        int differs = big_number(head + self->sequence, 1) != (uint8_t)(big_number(first + self->sequence, 1) + done) ||
                      (Py_ssize_t)big_number(head + self->length, 2) != length ||
                      big_number(head + self->offset, 4) !=
                          (uint32_t)(big_number(first + self->offset, 4) + (uint64_t)done * (uint64_t)length) ||
                      headers_differ(self, head, first);
        if (differs || PyBytes_GET_SIZE(frame) - self->header < length || memory.len < at ||
            memory.len - at < length)
            break;
        if (memory.buf != NULL)
            memcpy((char *)memory.buf + at, head + self->header, (size_t)length);
        at += length;
    }
    if (memory.obj != NULL)
        PyBuffer_Release(&memory);
    return PyLong_FromSsize_t(done);
}

static PyMethodDef RunForm_methods[] = {
    {"build", (PyCFunction)(void (*)(void))RunForm_build, METH_FASTCALL, "Build the frames of a run."},
    {"gather", (PyCFunction)(void (*)(void))RunForm_gather, METH_FASTCALL, "Gather the frames of a run."},
    {"fill", (PyCFunction)(void (*)(void))RunForm_fill, METH_FASTCALL, "Copy the data of a run into memory."},
    {NULL},
};
static PyTypeObject RunFormType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mxwire._native.RunForm",
    .tp_basicsize = sizeof(RunForm),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)RunForm_init,
    .tp_methods = RunForm_methods,
};

/* The module */

static PyMethodDef functions[] = {
    {"view_of", view_of, METH_O, "Return a view of a buffer."},
    {"address_of", address_of, METH_O, "Return the address of the bytes of a buffer."},
    {"is_flat", (PyCFunction)(void (*)(void))is_flat, METH_FASTCALL, "Return whether a view is plain bytes."},
    {"store", (PyCFunction)(void (*)(void))store_data, METH_FASTCALL, "Copy data to an offset in memory."},
    {"send_frames", (PyCFunction)(void (*)(void))send_frames, METH_FASTCALL, "Send frames through a packet socket."},
    {NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "mxwire._native", .m_size = -1, .m_methods = functions,
};

static PyObject *
named(const char *module, const char *name)
{
    PyObject *found = PyImport_ImportModule(module);
    PyObject *value = found == NULL ? NULL : PyObject_GetAttrString(found, name);
    Py_XDECREF(found);
    return value;
}

PyMODINIT_FUNC
PyInit__native(void)
{
    struct_error = named("struct", "error");
    invalid_record = struct_error == NULL ? NULL : named("mxwire.errors", "InvalidRecordError");
    if (invalid_record == NULL)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    PyTypeObject *types[] = {&StructType, &LockType, &SlotReaderType, &RecordWriterType, &RecordReaderType,
                             &RunFormType, &GatheredFrameType};
    for (size_t each = 0; module != NULL && each < sizeof types / sizeof *types; each++)
        if (PyModule_AddType(module, types[each]) < 0)
            Py_CLEAR(module);
    return module;
}
