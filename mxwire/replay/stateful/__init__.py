"""Stateful replay: one host of a capture, played against a live host whose sessions and numbers differ."""
