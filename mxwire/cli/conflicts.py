"""Options that exclude or need each other, declared beside the options and checked before the command runs.

An option is named as on the command line or by its parameter, an argument by its metavar. With a value (``--by
conversation``), a declaration concerns that value only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import click
from click.core import ParameterSource

from mxwire.errors import OptionError

ATTRIBUTE: Final = "mxwire_conflicts"
"""Attribute of a class of options, and of the function of a command; decorators that wrap the function copy it."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Options that a command refuses together, or without another one."""

    causes: tuple[str, ...]
    """Options of which at least one must be given for the declaration to apply."""
    refused: tuple[str, ...]
    """Options that must not be given then."""
    needed: tuple[str, ...]
    """Options of which at least one must have a value then; empty if none is needed."""
    error: str
    """The whole message; ``{option}`` stands for the refused options, or for those that need another, ``{are}`` for is
    or are.
    """

    def check(self, context: click.Context) -> None:
        """Raise :class:`~mxwire.errors.OptionError` if the options of a command contradict the declaration."""
        causes = [name for each in self.causes if (name := given_name(context, each))]
        refused = [name for each in self.refused if (name := given_name(context, each))]
        if causes and (refused or (self.needed and not any(_has_value(context, each) for each in self.needed))):
            named = refused or causes
            raise OptionError(self.error.format(option=", ".join(named), are="is" if len(named) == 1 else "are"))


def conflicts(option: str, *others: str, error: str) -> Callable[[Any], Any]:
    """Refuse ``others`` beside ``option``."""
    return _declare(Conflict((option,), others, (), error))


def requires(*options: str, one_of: tuple[str, ...], error: str) -> Callable[[Any], Any]:
    """Refuse ``options`` unless one of others has a value."""
    return _declare(Conflict(options, (), one_of, error))


def conflicts_of(command: click.Command) -> list[Conflict]:
    """Return the declarations of a command, in the order of its source."""
    declared: list[Conflict] = getattr(command.callback, ATTRIBUTE, [])
    return declared


def parameter_of(command: click.Command, name: str) -> click.Parameter:
    """Return the option or argument of a command that ``name`` denotes, without its value."""
    word = name.partition(" ")[0]
    return next(each for each in command.params if word in (each.name, *each.opts, _metavar(each)))


def given_name(context: click.Context, name: str) -> str | None:
    """Return the last name of an option if it is on the command line, with the value if ``name`` has one."""
    parameter = parameter_of(context.command, name)
    assert parameter.name is not None
    value = name.partition(" ")[2]
    if value:
        return name if str(context.params[parameter.name]) == value else None
    given = context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    return (_metavar(parameter) or parameter.opts[-1]) if given else None


def _metavar(parameter: click.Parameter) -> str:
    """Return the word that stands for an argument; empty for an option."""
    return parameter.human_readable_name.strip("[].") if isinstance(parameter, click.Argument) else ""


def _has_value(context: click.Context, name: str) -> bool:
    parameter = parameter_of(context.command, name)
    return context.params.get(parameter.name or "") not in (None, False, ())


def _declare(conflict: Conflict) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        # Decorators are applied from the last one to the first.
        setattr(function, ATTRIBUTE, [conflict, *getattr(function, ATTRIBUTE, [])])
        return function

    return decorate
