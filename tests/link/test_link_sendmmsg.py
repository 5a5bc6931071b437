"""Many frames by one system call, through sockets that are closed under it."""

from __future__ import annotations

import os
import socket

from mxwire.frames import FrameBatch
from mxwire.link.sender import FrameSender
from mxwire.link.sendmmsg import BatchSender


def test_nothing_is_sent_through_a_file_that_took_the_number_of_a_closed_socket() -> None:
    one, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    other, unrelated = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    batch = FrameBatch.from_frames([bytes([each] * 60) for each in range(9)])
    with one, far, other, unrelated:
        sender = BatchSender(one)
        assert sender.send(batch) == 9
        number = one.fileno()
        one.close()
        os.dup2(other.fileno(), number)
        try:
            assert sender.send(batch) == 0
        finally:
            os.close(number)
        unrelated.setblocking(False)
        try:
            unrelated.recv(100)
        except BlockingIOError:
            pass
        else:
            raise AssertionError("frames were sent through the wrong file")


def test_frames_in_small_lists_all_arrive_in_order() -> None:
    one, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, far:
        sender = FrameSender(one)
        frames = [number.to_bytes(2, "big") * 30 for number in range(120)]
        for first in range(0, len(frames), 4):
            part = frames[first : first + 4]
            assert sender.send_few(part) == len(part)
            assert [far.recv(100) for _ in part] == part
        assert (sender.sent, sender.refused) == (120, 0)
