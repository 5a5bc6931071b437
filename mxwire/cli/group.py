"""Groups of commands: complete help, and suggestions for mistyped names."""

from __future__ import annotations

import click

from mxwire.words import suggestion


class CommandGroup(click.Group):
    """A group that prints its help without a subcommand, and suggests the nearest one for an unknown name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Print the help if there are no arguments; exit code 0, as for ``mxwire`` alone."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit(0)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand in the first argument; raise :class:`click.UsageError` with a suggestion."""
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            raise click.UsageError(f"No such command {name!r}{suggestion(name, self.list_commands(ctx))}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands with their whole first sentences, wrapped instead of cut."""
        rows = []
        for name in self.list_commands(ctx):
            found = self.get_command(ctx, name)
            if found is not None and not found.hidden:
                rows.append((name, found.get_short_help_str(_NOTHING_CUT)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


_NOTHING_CUT = 1000
"""Characters of a short help; click cuts longer ones."""
