"""Line-rate tests: a generator of valid MXoE frames, a sink that counts and checks them, and searches for limits.

Theory of operation
-------------------
*Frames.* A test frame is a valid frame of one packet type, built once by the codec (``template.py``). Its last 20 bytes
are a stamp: the run, the stream, a sequence number per stream, and the time. A generator keeps a few hundred frames in
memory, one per slot, and sends them repeatedly (``slots.py``). For each batch, a few array operations update the stamps
and the fields that depend on the sequence number, so the cost does not grow with the frame length. A field patch is
data, not code, so that the sink and the BPF program in the kernel compute the same values.

*Sending.* The generator (``generator.py``) hands batches to anything that sends frames: a packet socket, an AF_XDP
socket, or a network in memory. A token bucket (``pacing.py``) decides how many frames are due; it has no clock. A
sequence number is used only once the interface has accepted its frame. A gap at the receiver is therefore always a loss
beyond the interface, never a full queue at the sender. Alternatively, the kernel creates, numbers and paces the frames
itself (``live_frames.py``); it does not report whether the interface accepted them.

*Receiving.* A sink (``sink.py``) derives from the first frame of a kind all bytes that further ones must have, because
a template is a function of packet type, length and addresses. A batch of one kind is checked in place, by comparing
words with a mask and patched fields with their function of the sequence number. The same few operations check that the
sequence numbers are consecutive; only batches with a gap or a reordering are examined per stream or per frame
(``accounting.py``). The cost per batch is constant, so a sink that falls behind receives larger batches and spends less
time per frame.

*Agreement.* Generator and sink exchange control messages in RAW packets over the measured path (``control.py``,
``station.py``): one program can find the other, begin a run, and compare the numbers at its end, on one machine or on
two, without any other network. ``generator_run.py`` is one run from the generator's side. Latencies are exact if both
sides share a clock, which they detect by comparing the boot identifiers of their kernels; otherwise only differences of
latencies are reported.

*Tests.* ``search.py`` decides the next rate or burst length from the outcome of the last trial, without frames or a
clock. ``line_tester.py`` runs the trials and judges them, except those of ``incast.py`` and ``message_tester.py``.

*Limits of the tester.* A loss is attributed to a place if the counters allow it (``drops.py``): the card of either
side, the backlog of the kernel, the ring of the receiver, or the path between. A test measures the limit of the tester
itself first, and marks results near it: they describe the tester, not the network.
"""
