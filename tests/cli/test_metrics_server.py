"""The HTTP server of ``mxwire watch``, with clients that are slow, hostile or many."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request
from contextlib import ExitStack, suppress

import pytest

from mxwire.cli import metrics_server
from mxwire.cli.metrics_server import served

PAGE = b"mxwire_frames_total 7\n" * 200_000
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"


def _page(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4"
        return answer.read()


def _serving():
    return served("127.0.0.1", 0, lambda: PAGE, "text/plain; version=0.0.4")


def test_hostile_clients_neither_start_threads_nor_print_nor_delay_others(capfd):
    threads = threading.active_count()
    hostile = (b"", b"G", b"\x16\x03\x01\x02", b"POST / HTTP/1.1\r\n\r\n", b"X" * 100_000, REQUEST, REQUEST[:-2])
    with _serving() as port, ExitStack() as stack:
        for number in range(70 * len(hostile)):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            with suppress(ConnectionError):
                client.sendall(hostile[number % len(hostile)])
            if number % 3 == 0:
                client.close()
            if number % 100 == 0:
                assert _page(port) == PAGE
        assert threading.active_count() == threads + 1
        assert _page(port) == PAGE
    assert threading.active_count() == threads
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.1\r\n", REQUEST])
def test_a_client_that_stalls_is_disconnected(monkeypatch, sent):
    monkeypatch.setattr(metrics_server, "_CONNECTION_SECONDS", 0.2)
    ended = threading.Event()
    accept = metrics_server._Server._accept

    def accepted(self, reader, writer):
        accept(self, reader, writer)
        next(reversed(self._connections)).add_done_callback(lambda _: ended.set())

    monkeypatch.setattr(metrics_server._Server, "_accept", accepted)
    with _serving() as port, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(60)
        client.connect(("127.0.0.1", port))
        client.sendall(sent)
        assert ended.wait(60)
        received = 0
        with suppress(ConnectionError):
            while data := client.recv(1 << 20):
                received += len(data)
    assert received < len(PAGE)


def test_another_method_is_refused():
    with _serving() as port, pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", data=b"x", timeout=60)
    with caught.value as answer:
        assert (answer.code, answer.headers["Allow"]) == (405, "GET")


def test_a_port_without_a_host_is_of_this_machine_only():
    from mxwire.cli.watch import _address

    assert _address(":9086") == _address("9086") == ("127.0.0.1", 9086)
    assert _address("[::1]:9086") == ("::1", 9086)
