"""Bytes to meaning and back: the formats of MXoE, written once, and what is derived from them."""
