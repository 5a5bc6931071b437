"""The rules of the specification in one line each, a file for some chapters; data only."""
