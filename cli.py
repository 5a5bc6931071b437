"""``python cli.py …`` is the ``mxwire`` command, straight from a checkout."""

from mxwire.cli import main

if __name__ == "__main__":
    main()
