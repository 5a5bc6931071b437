"""Decoding and encoding of MXoE frames: the formats, written once, and everything derived from them."""
