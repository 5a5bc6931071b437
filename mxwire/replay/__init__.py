"""Replay of captures to live hosts: frame by frame as recorded (``raw``), or one of its hosts (``stateful``)."""
