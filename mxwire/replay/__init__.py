"""Playing what was recorded to live hosts: frame by frame as it was (``raw``), or one host of it (``stateful``)."""
