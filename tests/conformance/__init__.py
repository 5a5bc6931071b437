"""The engine against real hosts: a :class:`~mxwire.protocol.Node` must behave like the recorded hosts.

* ``test_oracle``: each of the 5,121 frames that were sent one by one to a real host (``tests/data/driver-verdicts-*``)
  is given to a node in the same state (``host``). It must count what the driver counted, by the same names, and send
  the same frames, byte by byte and in the same order; bytes that a sender leaves undefined were 0 on that host, as they
  are here. Frames sent to endpoints that never connected show nothing of the library; the states `lib`, `pull` and
  `danger` do. Frames that brought the real host down are not among the data.
* ``test_captures``: every recording in ``captures/`` is played again (``player``), a node taking the place of each of
  its hosts (``cases``), and must send what that host sent, field by field and not at the wrong time. What decides the
  rest is looked up in the recording: when the applications called (``programs``) and when they let the library work
  (``ring``). ``test_differences`` shows that a node that errs is detected.
"""
