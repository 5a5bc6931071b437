"""``python -m mxwire`` is the ``mxwire`` command."""

from mxwire.cli import main

if __name__ == "__main__":
    main()
