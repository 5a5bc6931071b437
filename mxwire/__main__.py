"""The ``mxwire`` command, and ``python -m mxwire``: Ctrl-C is handled before anything is imported."""

import sys


def main() -> None:
    """Run the command line and exit; Ctrl-C exits silently with 130, even during imports."""
    try:
        from mxwire.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
