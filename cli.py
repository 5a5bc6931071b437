"""``python cli.py …`` is the ``mxwire`` command, straight from a checkout."""

from mxwire.__main__ import main

if __name__ == "__main__":
    main()
