"""``mxwire library``: build and check libmyriexpress.so, for existing MX programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote

import click

from mxwire.cli.conflicts import conflicts
from mxwire.cli.group import CommandGroup
from mxwire.cli.notes import print_record
from mxwire.cli.option_class import option
from mxwire.cli.options import flag_option, json_option

prefix_option = option(
    "Folder with lib/ and include/.  [default: that of the last build, or mxwire's environment, or ~/.local]",
    "--prefix DIR",
    type=click.Path(path_type=Path, file_okay=False),
)


@click.group(cls=CommandGroup)
def command() -> None:
    """Build the C interface of MX for existing programs: libmyriexpress.so.

    Programs written for MX or Open-MX, such as MPI libraries, then run on the engine of mxwire. The library belongs to
    one version of Python, so it is compiled on this computer.
    """


@command.command()
@prefix_option
@flag_option("Also build the provider of libfabric, for Open MPI, MPICH and others.", "--libfabric")
@json_option("Print one JSON object with the paths.")
def build(prefix: Path | None, libfabric: bool, as_json: bool) -> None:
    """Compile the library, and install it with its headers and its pkg-config file.

    It needs a C compiler, the header files and the shared library of this Python, and cffi; the provider also needs the
    header files of libfabric. CC and CFLAGS in the environment are used.
    """
    from mxwire.myriexpress.build import build as compile_library
    from mxwire.myriexpress.build import default_prefix, remember_prefix

    installation = compile_library((prefix or default_prefix()).absolute(), libfabric)
    remember_prefix(installation.prefix)
    if as_json:
        _print_json(
            {
                "library": installation.library,
                "second_name": installation.second_name,
                "include": installation.include,
                "package": installation.package,
            }
            | ({"provider": installation.provider} if libfabric else {})
        )
        return
    click.echo(f"{installation.library} built, also as {installation.second_name.name} (calls mx_…, not omx_…)")
    click.echo(f"{installation.include / 'myriexpress.h'} and other headers copied")
    if libfabric:
        click.echo(f"{installation.provider} built: export FI_PROVIDER_PATH={quote(str(installation.provider.parent))}")
    click.echo(f"wrote {installation.package}: export PKG_CONFIG_PATH={quote(str(installation.package.parent))}")


@command.command()
@prefix_option
@json_option("Print one JSON object.")
def check(prefix: Path | None, as_json: bool) -> None:
    """Check that this mxwire has built the library, and run its self-test.

    The self-test is a program in C that exchanges messages with itself; it needs neither an interface nor permissions.
    The provider of libfabric, if it was built, must be found by fi_info, and carry the messages of fi_pingpong between
    2 processes in a network namespace of its own.
    """
    from mxwire.myriexpress.build import Installation, last_prefix
    from mxwire.myriexpress.launch import check_provider, run_self_test

    installation = Installation((prefix or last_prefix()).absolute())
    installation.require()
    steps = run_self_test(installation)
    if installation.provider.is_file():
        steps += check_provider(installation)
    if as_json:
        _print_json({"library": installation.library, "steps": steps})
    else:
        click.echo(f"{installation.library}: {', '.join(steps)}")


@command.command()
@prefix_option
@flag_option("Print the folder of the pkg-config file instead.", "--packages")
@flag_option("Print the folder of the provider of libfabric instead.", "--provider")
@conflicts("--packages", "--provider", error="--packages and --provider exclude each other: each prints one folder")
@json_option("Print one JSON object with all paths.")
def path(prefix: Path | None, packages: bool, provider: bool, as_json: bool) -> None:
    """Print the folder of the library, for LD_LIBRARY_PATH."""
    from mxwire.myriexpress.build import Installation, last_prefix

    installation = Installation((prefix or last_prefix()).absolute())
    installation.require()
    if provider:
        installation.require_provider()
    if as_json:
        paths = {"library": installation.library, "include": installation.include, "package": installation.package}
        _print_json(paths | ({"provider": installation.provider} if installation.provider.is_file() else {}))
    elif provider:
        click.echo(installation.provider.parent)
    else:
        click.echo(installation.package.parent if packages else installation.search_folder)


def _print_json(made: Mapping[str, object]) -> None:
    print_record({name: str(value) if isinstance(value, Path) else value for name, value in made.items()})
