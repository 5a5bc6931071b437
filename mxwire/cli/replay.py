"""``mxwire replay``: a capture sent unchanged, or one of its hosts played against a live one."""

from __future__ import annotations

from mxwire.cli.group import command_with
from mxwire.cli.replay_options import ReplayOptions
from mxwire.errors import MxwireError


@command_with(ReplayOptions)
def command(options: ReplayOptions) -> None:
    """Send the frames of a capture, or play one of its hosts against a live one.

    mxwire scenario run plays scenarios (.mxs) against a live host.
    """
    if options.file.endswith(".mxs"):
        raise MxwireError(f"a scenario is played by mxwire scenario run {options.file} -i IF --target HOST --ladder")
    if options.played is None:
        from mxwire.cli.replay_frames import replay_frames

        replay_frames(options)
    else:
        from mxwire.cli.replay_host import replay_host

        replay_host(options)
