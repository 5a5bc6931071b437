"""libmyriexpress.so: the C interface of MX for existing programs, on the engine of mxwire.

The library in C (``c/``; start reading at ``internal.h``) contains the parts that must be fast and safe: handles,
completed requests, waits. It loads the engine, a second library with Python embedded, whose entries are in
``entries.py``, and whose host is opened in ``program_host.py``; ``program_options.py`` reads the environment, except
``MX_ERRORS_ARE_FATAL`` (``c/errors.c``). ``build.py`` compiles both on the user's machine, since the engine belongs to
one version of Python, and ``launch.py`` starts programs with the result, and its self-test.
"""
