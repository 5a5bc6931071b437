"""``mxwire replay``: a capture sent unchanged, or one of its hosts played against a live one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from mxwire.cli import options as shared
from mxwire.cli.conflicts import conflicts, requires
from mxwire.cli.filters import FILTERS, FilterOptions
from mxwire.cli.group import command_with
from mxwire.cli.option_class import argument, group, option, options_class
from mxwire.errors import MxwireError
from mxwire.ethernet import ETHERTYPE_MXOE

if TYPE_CHECKING:
    from mxwire.analysis.host_names import HostChoice

_RAW: Final = frozenset(
    {
        *("speed", "rate", "top_speed", "loop", "mapped", "new_ethertype", "pad", "dry_run", "linger"),
        *FILTERS - {"endpoint", "by_name"},
    }
)
"""Options that only apply to unchanged frames."""
_HOST: Final = ("against", "key", "name", "simulate", "target", "timeout", "write")
"""Options that only apply with --as."""
_PACES: Final = "--speed, --rate and --top-speed are different paces: choose one"
_TIMEOUT: Final = 5.0


@requires(*_HOST, one_of=("--as",), error="{option} {are} for a played host: name one with --as")
@conflicts("--as", *sorted(_RAW), error="{option} {are} for unchanged frames: omit it, or --as")
@conflicts("--speed", "--rate", "--top-speed", error=_PACES)
@conflicts("--rate", "--top-speed", error=_PACES)
@conflicts("--simulate", "--target", error="--target names a live host: omit it, or --simulate")
@options_class
class ReplayOptions:
    """The options of mxwire replay."""

    file: str = argument(metavar="FILE", type=shared.FILE)
    interface: str | None = shared.interface_option()
    via: str = shared.via_option("packet", "xdp")
    speed: float | None = shared.amount_option("Send N times as fast as recorded.", "--speed N")
    rate: str | None = option(
        "Frames (50000/s) or bits (1Gbit/s) per second; k, M, G: 10^3, 10^6, 10^9.", "--rate RATE"
    )
    top_speed: bool = shared.flag_option("Send as fast as possible.", "--top-speed")
    loop: int = shared.integer_option("Repeat N times; 0: until Ctrl-C.  [default: 1]", "--loop", default=1)
    mapped: tuple[str, ...] = option(
        "Replace an Ethernet address; self is that of the interface.", "--map OLD=NEW", multiple=True
    )
    ethertype: int = option(
        "EtherType that MXoE uses in this capture, if not 0x86DF.",
        "--ethertype N",
        type=shared.ether_type,
        default=ETHERTYPE_MXOE,
        show_default=False,
    )
    new_ethertype: int | None = option("EtherType of the sent frames.", "--new-ethertype N", type=shared.ether_type)
    pad: bool = shared.flag_option("Include frames that the capture cut off, padded with zeros.", "--pad")
    dry_run: bool = shared.flag_option("Only print the frames that would be sent, and when.", "--dry-run")
    linger: float = option(
        "Seconds to wait for the last answers.  [default: 0.2]", "--linger S", type=shared.Amount(0), default=0.2
    )
    played: str | None = option("Play this host of the capture against a live one.", "--as MAC")
    against: str | None = option("The recorded partner of that host, if there are several.", "--against MAC")
    filters: FilterOptions = group(FilterOptions, "endpoint", "by_name")
    target: HostChoice | None = option(
        "With --as: the live host, like alpha:0, or an address.  [default: the first one found]",
        "--target HOST",
        type=shared.host_type,
    )
    endpoints: tuple[str, ...] = option(
        "Only this endpoint number, of the source or of the destination. With --as: that of the live host, or "
        "several as RECORDED=LIVE.",
        "--endpoint N",
        multiple=True,
    )
    key: int | None = option("Key of the endpoint.", "--key K", type=shared.number_type(0xFFFF_FFFF))
    name: str | None = option("Name of the played host.  [default: as in the capture]", "--name NAME")
    simulate: str | None = shared.name_option(
        "Play against a simulated host: open-mx, native-mx …", "profile", "--simulate PROFILE"
    )
    timeout: float | None = shared.timeout_option(None, "With --as: seconds to wait for each answer.  [default: 5]")
    write: Path | None = shared.write_option("Write all frames to FILE.", type=shared.PATH)
    dialect: str = shared.dialect_option
    skip_damage: bool = shared.damage_option
    as_json: bool = shared.json_option("JSON Lines: one object per event.")

    @property
    def seconds(self) -> float:
        """Seconds to wait for each answer."""
        return self.timeout or _TIMEOUT


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
