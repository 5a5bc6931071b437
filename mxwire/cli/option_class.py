"""The options of a command, declared once: the fields of a dataclass.

::

    @conflicts("--long", "--first", error="--long lists all: omit {option}")
    @options_class
    class ListOptions:
        files: tuple[str, ...] = argument(metavar="FILE...", nargs=-1)
        decoding: DecodingOptions = group(DecodingOptions)
        first: int | None = integer_option("Only the first N.", "--first")
        order: str = option("Order of the files.", "--order [name|size]", default="name")
        long: bool = flag_option("List all properties.", "--long")

    @command_with(ListOptions)
    def command(options: ListOptions) -> None: ...

The help lists options in the order of the fields. A parameter of click has the name of its field. An object that is
made without a value has the default of the option, so that tests and other commands make them too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, dataclass_transform

import click

from mxwire.cli.conflicts import ATTRIBUTE

_Class = TypeVar("_Class", bound=type[Any])
_FIELDS: Final = "mxwire_options"
"""Attribute of a class of options: the parameters of click by field, or the group of a field."""


def option(text: str, *names: str, **properties: Any) -> Any:
    """A field that is given by an option, declared as its help shows it.

    A name may be followed by the metavar of the value (``--to MAC``), or by the values to choose from
    (``--by [host|endpoint]``). The default is shown, unless ``text`` states it. ``properties`` are further ones of
    :func:`click.option`.
    """
    properties = {"show_default": "[default: " not in text} | properties
    for each in names:
        value = each.partition(" ")[2]
        if value[:1] + value[-1:] == "[]":
            properties["type"] = click.Choice(value.strip("[]").split("|"))
        elif value:
            properties["metavar"] = value
    return click.option(*(each.partition(" ")[0] for each in names), help=text, **properties)


def argument(**properties: Any) -> Any:
    """A field that is given by an argument; ``properties`` are those of :func:`click.argument`."""
    return click.argument("value", **properties)


class _OptionGroup:
    """A field whose value is an object of another class of options."""

    def __init__(self, kind: type[Any], omitted: tuple[str, ...]) -> None:
        self.kind = kind
        self.fields = {name: each for name, each in getattr(kind, _FIELDS).items() if name not in omitted}

    def take(self, given: dict[str, Any]) -> Any:
        """Make an object of the values in ``given``, which loses them."""
        values = {}
        for name, each in self.fields.items():
            values[name] = each.take(given) if isinstance(each, _OptionGroup) else given.pop(name)
        return self.kind(**values)

    def parameters(self) -> list[click.Parameter]:
        """Return the parameters of click in the order of the help."""
        return [
            parameter
            for each in self.fields.values()
            for parameter in (each.parameters() if isinstance(each, _OptionGroup) else each)
        ]

    def conflicts(self) -> list[Any]:
        """Return the declared conflicts, those of groups last."""
        inner = (each.conflicts() for each in self.fields.values() if isinstance(each, _OptionGroup))
        return [*getattr(self.kind, ATTRIBUTE, []), *(each for some in inner for each in some)]


def group(kind: type[Any], *omitted: str) -> Any:
    """A field with the options of another class, except those of the ``omitted`` fields, which keep their defaults."""
    return _OptionGroup(kind, omitted)


@dataclass_transform(frozen_default=True)
def options_class(declared: _Class) -> _Class:
    """Make a class a frozen dataclass whose fields are options."""
    found: dict[str, Any] = {}
    for name in declared.__annotations__:
        given = getattr(declared, name)
        found[name] = given if isinstance(given, _OptionGroup) else _parameters(name, given)
        default = field(default_factory=given.kind) if isinstance(given, _OptionGroup) else _default(found[name][0])
        setattr(declared, name, default)
    made: Any = dataclass(frozen=True, slots=True)(declared)
    setattr(made, _FIELDS, found)
    return made  # type: ignore[no-any-return]  # a dataclass with slots is another class


def _parameters(name: str, declaration: Callable[[Any], Any]) -> list[click.Parameter]:
    """Return the parameters that a decorator of click declares, the one with the value first."""

    def function() -> None: ...

    found: list[click.Parameter] = declaration(function).__click_params__[::-1]
    found[0].name = name
    if isinstance(found[0], click.Argument):
        found[0].opts = [name]
    return found


def _default(parameter: click.Parameter) -> Any:
    """Return the value of an option that is not given."""
    if getattr(parameter, "multiple", False) or parameter.nargs == -1:
        return ()
    if isinstance(parameter.default, (str, int, float)):
        return parameter.type_cast_value(click.Context(click.Command("")), parameter.default)
    return False if getattr(parameter, "is_bool_flag", False) else None


def takes(kind: type[Any], *omitted: str, name: str = "") -> Callable[[Any], Any]:
    """Give the function of a command the options of ``kind``, as an object: its first argument, or the one ``name``.

    The options of the ``omitted`` fields keep their defaults.
    """
    whole = _OptionGroup(kind, omitted)

    def decorate(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def wrapped(*arguments: Any, **given: Any) -> Any:
            made = whole.take(given)
            return function(*arguments, **{name: made}, **given) if name else function(*arguments, made, **given)

        parameters: list[click.Parameter] = getattr(function, "__click_params__", [])
        wrapped.__dict__["__click_params__"] = [*parameters, *reversed(whole.parameters())]
        wrapped.__dict__[ATTRIBUTE] = [*whole.conflicts(), *getattr(function, ATTRIBUTE, [])]
        return wrapped

    return decorate
