"""All commands by task, each with its usage and one line of help."""

from __future__ import annotations

from typing import Final, NamedTuple


class Entry(NamedTuple):
    """One command."""

    name: str
    usage: str
    """Arguments of a typical call."""
    help: str
    """One line of at most 64 characters, without a full stop."""


GROUPS: Final[dict[str, tuple[Entry, ...]]] = {
    "Read captures": (
        Entry("decode", "FILE", "Every frame: one line, all fields, JSON, columns or a table"),
        Entry("info", "FILE", "Hosts, dialects, endpoints and messages at a glance"),
        Entry("messages", "FILE", "Every message: kind, length, duration, how it ended"),
        Entry("follow", "3 FILE", "The frames of one message as a ladder between two hosts"),
        Entry("extract", "3 FILE -w DATA", "Reassemble the bytes of one message"),
        Entry("stats", "FILE", "Round trips, throughput, delays and gaps, with plots"),
        Entry("report", "FILE --html DIR", "Pages with findings, graphs, messages and their ladders"),
        Entry("merge", "A B -w FILE", "Join captures from both ends: clocks, delays, losses"),
    ),
    "Find faults": (
        Entry("verify", "FILE", "Check captures against the rules of the protocol"),
        Entry("diagnose", "FILE", "Find faults in hosts and network, with evidence and advice"),
        Entry("compat", "A B", "Check whether two hosts can talk, and what to change"),
    ),
    "Watch a network": (
        Entry("capture", "-i eth0 -w FILE", "Record or print the frames that pass an interface"),
        Entry("top", "-i eth0", "Pairs, rates and findings live, on the whole screen"),
        Entry("watch", "-i eth0 --prometheus :9086", "Metrics and open findings of an interface for Prometheus"),
        Entry("discover", "-i eth0", "Find the hosts on an Ethernet"),
        Entry("doctor", "-i eth0", "Find problems of an interface"),
    ),
    "Run a host": (
        Entry("perf", "-i eth0 -d alpha:0", "Measure latency and bandwidth as omx_perf does"),
        Entry("ping", "alpha:0 -i eth0", "Measure round trips to a host"),
        Entry("serve", "--echo -i eth0", "Open an endpoint that echoes or consumes messages"),
        Entry("send", "alpha:0 -i eth0 FILE", "Send files as messages"),
        Entry("receive", "-i eth0 > FILE", "Receive messages into files"),
        Entry("replay", "FILE -i eth0", "Resend a capture, or play one of its hosts (--as MAC)"),
        Entry("ss", "--watch", "State of the hosts that mxwire runs on this machine"),
        Entry("linerate", "generate -i eth0", "Send and count test frames at line rate, and find limits"),
    ),
    "Run MX programs": (
        Entry("library", "build", "Build libmyriexpress.so, the C interface of MX"),
        Entry("run", "-i eth0 -- PROGRAM", "Start an MX program on an interface"),
        Entry("agent", "-i eth0", "Run the endpoints of programs, also while they compute"),
    ),
    "Test implementations": (
        Entry("simulate", "--loss 0.05", "Run hosts in a simulated network with faults"),
        Entry("scenario", "run", "Test hosts with short scripts of frames and answers"),
        Entry("interop", "", "Matrix of implementations: which pairs work together"),
        Entry("bench", "path", "Studies: where the time goes, IMB, MTU, claims of papers"),
    ),
    "Reference": (
        Entry("formats", "[TYPE]", "Layout of the packets and names of their fields"),
        Entry("rules", "[NUMBER]", "Rules of the specification, and where they are judged"),
        Entry("plugin", "install", "Install and check the plugin for Wireshark and tshark"),
        Entry("config", "", "The settings, and where each value comes from"),
        Entry("help", "[COMMAND|TOPIC]", "Explain a command, or a topic such as filter"),
    ),
}
"""The commands by task, in the order in which they are shown."""

FIRST: Final = ("info", "decode", "messages", "diagnose", "verify", "report", "capture", "perf")
"""The commands with which new users begin; ``--help`` describes these, and only names the others."""
ENTRIES: Final = {entry.name: entry for entries in GROUPS.values() for entry in entries}
"""All commands by name."""
MOVED: Final = {"conversations": "mxwire messages --by conversation"}
"""Former names of commands, and where they went."""
TOPICS: Final = {
    "commands": "All commands, each in one line",
    "filter": "Select frames and messages: hosts, types, times, expressions",
    "hosts": "Name hosts and endpoints, and let hosts find each other",
    "dialects": "The formats on which two hosts must agree: mxoe, omx, omx:M",
    "files": "Captures, tables and other files that commands read and write",
    "output": "Lines, colours, JSON and progress",
    "workers": "Share work among processes and machines",
    "permissions": "Use interfaces without being root",
    "exit-codes": "The codes with which commands end",
    "environment": "Variables that mxwire reads",
    "completion": "Complete commands, options and values in shells",
}
"""The topics of ``mxwire help``, each in one line. Their texts are in the folder ``topics``."""
