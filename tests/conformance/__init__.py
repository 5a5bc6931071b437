"""The engine against real hosts: a :class:`~mxwire.protocol.Node` must behave like the recorded hosts.

* ``test_oracle``: each of the 5,121 frames that were sent one by one to a real host (``tests/data/driver-verdicts-*``)
  is given to a node in the same state (``host``). It must count what the driver counted, by the same names, and send
  the same frames, byte by byte and in the same order; bytes that a sender leaves undefined were 0 on that host, as they
  are here. Frames to endpoints that never connected do not exercise the library; those in the states `lib`, `pull` and
  `danger` do. Frames that brought the real host down are not among the data.
* ``test_captures``: every recording in ``captures/`` is played again (``player``), a node taking the place of each of
  its hosts (``cases``), and must send the frames of that host, field by field and at the right times. All other inputs
  are taken from the recording: the times at which applications made calls (``programs``) and at which the library ran
  (``ring``). ``test_differences`` shows that a faulty node is detected.
"""
