"""Handlers of frames of the live host: state they update, recorded frames they match, and differences."""
