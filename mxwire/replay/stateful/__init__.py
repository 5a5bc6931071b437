"""Stateful replay: one host of a capture, played against a live one that uses other sessions and numbers."""
