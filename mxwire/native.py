"""The native module: classes and functions of mxwire that are written in C too (``native.c``), with the same behaviour.

Only a compiled mxwire has it. If mxwire is interpreted, ``native`` is None, and each caller uses the Python version.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from struct import Struct
from typing import TYPE_CHECKING, Any, Final


def _load() -> Any:
    try:
        return import_module("mxwire._native")
    except ImportError:
        return None


native: Final[Any] = _load()

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(**_: object) -> Callable[[type], type]:
        """Decorate a class for the compiler; ``free_list_len=1`` keeps the memory of one released object for reuse.

        Only for classes whose attributes run no code when they are released: mypyc offers the memory to the next object
        before it has cleared the attributes, and would clear those of an object made at that moment.
        """
        return lambda each: each


def is_compiled() -> bool:
    """Return whether mxwire's engine is compiled in this process: the native module is always compiled with it."""
    return native is not None


view_of: Final[Callable[[Any], memoryview]] = memoryview if native is None else native.view_of
"""The type ``memoryview``, or a function in C that does the same in a third of the time."""


def quick_struct(form: Struct) -> Any:
    """Return the same struct in C, which packs and unpacks in a third of the time, or ``form`` itself."""
    return form if native is None else native.Struct(form.format)
