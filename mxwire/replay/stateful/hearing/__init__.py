"""Frames of the live host: what they teach us, which recorded ones they are, and how they differ from these."""
