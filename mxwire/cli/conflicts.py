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

    def check(self, context: click.Context, given: dict[str, str]) -> None:
        """Raise :class:`~mxwire.errors.OptionError` if the ``given`` names of options contradict the declaration."""
        causes = [given[each] for each in self.causes if each in given]
        if not causes:
            return
        refused = [given[each] for each in self.refused if each in given]
        if refused or (self.needed and not any(_has_value(context, each) for each in self.needed)):
            named = refused or causes
            raise OptionError(self.error.format(option=", ".join(named), are="is" if len(named) == 1 else "are"))


def conflicts(option: str, *others: str, error: str) -> Callable[[Any], Any]:
    """Refuse ``others`` beside ``option``."""
    return _declare(Conflict((option,), others, (), error))


def requires(*options: str, one_of: tuple[str, ...], error: str) -> Callable[[Any], Any]:
    """Refuse ``options`` unless one of others has a value."""
    return _declare(Conflict(options, (), one_of, error))


def check_conflicts(context: click.Context) -> None:
    """Raise :class:`~mxwire.errors.OptionError` if the options of a command contradict a declaration."""
    declared = conflicts_of(context.command)
    given = _given_names(context) if declared else {}
    for each in declared:
        each.check(context, given)


def conflicts_of(command: click.Command) -> list[Conflict]:
    """Return the declarations of a command, in the order of its source."""
    declared: list[Conflict] = getattr(command.callback, ATTRIBUTE, [])
    return declared


def parameter_of(command: click.Command, name: str) -> click.Parameter:
    """Return the option or argument of a command that ``name`` denotes, without its value."""
    word = name.partition(" ")[0]
    return next(each for each in command.params if word in _names(each))


def _given_names(context: click.Context) -> dict[str, str]:
    """Return the names that declarations may have for the options on the command line and for the values of all
    options; by each, the name for the user.
    """
    given: dict[str, str] = {}
    for parameter in context.command.params:
        names = _names(parameter)
        value = context.params.get(names[0])
        is_given = context.get_parameter_source(names[0]) is ParameterSource.COMMANDLINE
        for name in names:
            given[f"{name} {value}"] = f"{name} {value}"
            if is_given:
                given[name] = names[-1]
    return given


def _names(parameter: click.Parameter) -> list[str]:
    """Return the names of an option, or of an argument with its metavar; the last one is for the user."""
    names = [parameter.name or "", *parameter.opts]
    return [*names, parameter.human_readable_name.strip("[].")] if isinstance(parameter, click.Argument) else names


def _has_value(context: click.Context, name: str) -> bool:
    parameter = parameter_of(context.command, name)
    return context.params.get(parameter.name or "") not in (None, False, ())


def _declare(conflict: Conflict) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        # Decorators are applied from the last one to the first.
        setattr(function, ATTRIBUTE, [conflict, *getattr(function, ATTRIBUTE, [])])
        return function

    return decorate
