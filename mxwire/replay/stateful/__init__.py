"""Stateful replay: one host of a capture, played against a live one that numbers things otherwise."""
