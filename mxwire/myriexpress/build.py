"""Build libmyriexpress.so and its engine with the user's C compiler, and install them with their headers."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import sysconfig
import tempfile
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Final

import mxwire
from mxwire.errors import MxwireError
from mxwire.extras import import_extra
from mxwire.lab.child import ProgramLateError, run_program
from mxwire.myriexpress.stamp import SOURCES, stamp
from mxwire.native import native

LIBRARY: Final = "libmyriexpress.so"
SECOND_NAME: Final = "libopen-mx.so.0"
"""Library name required by MX programs that were linked with Open-MX, if they call it by the names of MX."""
ENGINE: Final = Path("mxwire", "engine.so")
"""Path of the engine relative to the library; ``c/engine.c`` contains the same path."""
PACKAGE: Final = "mxwire-mx"
"""Name of the pkg-config file."""
_ENGINE_MODULE: Final = "mxwire_engine"
_PARTS: Final = ("tables", "progress", "errors", "engine", "calls", "information", "boards", "descriptors")
_COMPILE_TIMEOUT: Final = 600
PROVIDER: Final = Path("libfabric", "libmx-fi.so")
"""Path of the libfabric provider relative to the library."""
_PROVIDER_PARTS: Final = (
    *("provider", "information", "addresses", "completions", "event_queues", "wait_objects", "endpoint", "progress"),
    *("messages", "match_information", "sends", "receives", "remote_access", "regions", "atomics", "memory", "probes"),
)
_HEADERS: Final = (
    Path("myriexpress.h"),
    Path("mx_extensions.h"),
    Path("mx_io.h"),
    Path("mx_internals", "mx__fops.h"),
    Path("mx_internals", "mx__driver_interface.h"),
)
_CALLED_BY_PYTHON: Final = """
void mxwc_name_partner(uint32_t partner, uint32_t endpoint, uint64_t nic_id, uint32_t number, uint32_t session);
const char *mxwc_build(void);
char *getenv(const char *name);
char *secure_getenv(const char *name);
"""
_START: Final = (
    f"import mxwire_calls\nfrom {_ENGINE_MODULE} import ffi, lib\nfrom mxwire.myriexpress.entries import attach\n"
    "attach(ffi, lib, mxwire_calls)\n"
)


@dataclass(frozen=True, slots=True)
class Installation:
    """The files of a built library below a prefix."""

    prefix: Path

    @property
    def folder(self) -> Path:
        """Folder of the library, for linking."""
        return self.prefix / "lib"

    @property
    def search_folder(self) -> Path:
        """Folder for ``LD_LIBRARY_PATH``, with links to the library only.

        In an environment of Python, ``folder`` may have libraries that shadow those of programs, such as PyPI's libmpi.
        """
        return self.folder / "mxwire"

    @property
    def library(self) -> Path:
        """The library."""
        return self.folder / LIBRARY

    @property
    def engine(self) -> Path:
        """The engine, with Python embedded."""
        return self.folder / ENGINE

    @property
    def second_name(self) -> Path:
        """The library under the name of Open-MX."""
        return self.folder / SECOND_NAME

    @property
    def provider(self) -> Path:
        """The libfabric provider, whose folder is for ``FI_PROVIDER_PATH``; built on request."""
        return self.folder / PROVIDER

    @property
    def include(self) -> Path:
        """Folder of the headers."""
        return self.prefix / "include"

    @property
    def package(self) -> Path:
        """The pkg-config file."""
        return self.folder / "pkgconfig" / f"{PACKAGE}.pc"

    @property
    def stamp_file(self) -> Path:
        """File with the stamp of the build, and the Python for which it was built."""
        return self.folder / "mxwire" / "stamp"

    def require(self) -> None:
        """Raise :class:`~mxwire.errors.MxwireError` unless the library was built, by this version of mxwire and of
        Python."""
        try:
            found = self.stamp_file.read_text(encoding="utf-8").strip()
        except OSError:
            found = ""
        missing = [each for each in (self.library, self.engine) if not each.is_file()]
        if missing or not found:
            raise MxwireError(f"{self.library} is not built: run mxwire library build{prefix_option(self.prefix)}")
        if found != _full_stamp():
            # Without the path of the Python, since recordings contain this text.
            version, own = (each.partition(" /")[0] for each in (found, _full_stamp()))
            other = "installation of Python" if version == own else "version of mxwire or Python"
            raise MxwireError(
                f"{self.library} was built by another {other} ({version}): run mxwire library "
                f"build{prefix_option(self.prefix)} again"
            )

    def require_provider(self) -> None:
        """Raise :class:`~mxwire.errors.MxwireError` unless the libfabric provider was built, too."""
        if not self.provider.is_file():
            option = prefix_option(self.prefix)
            raise MxwireError(f"{self.provider} is not built: run mxwire library build --libfabric{option}")


def default_prefix() -> Path:
    """The virtual environment of mxwire, or without one ``~/.local``."""
    return Path(sys.prefix) if sys.prefix != sys.base_prefix else Path.home() / ".local"


def last_prefix() -> Path:
    """The prefix that :func:`remember_prefix` was given last; without one, the default."""
    try:
        return Path(_prefix_file().read_text(encoding="utf-8"))
    except OSError:
        return default_prefix()


def remember_prefix(prefix: Path) -> None:
    """Let later commands of this environment use the library below ``prefix``, if a file for that can be written."""
    with suppress(OSError):
        if prefix == default_prefix():
            _prefix_file().unlink(missing_ok=True)
        else:
            _prefix_file().parent.mkdir(parents=True, exist_ok=True)
            _prefix_file().write_text(str(prefix), encoding="utf-8")


def _prefix_file() -> Path:
    return default_prefix() / "lib" / "mxwire" / "prefix"


def prefix_option(prefix: Path) -> str:
    """The option that selects a prefix, with the space before it; empty for the default one."""
    return "" if prefix == default_prefix() else f" --prefix {shlex.quote(str(prefix))}"


def _full_stamp() -> str:
    return f"{stamp()} Python {sys.version_info.major}.{sys.version_info.minor} {sys.executable}"


def compiler() -> list[str]:
    """The command of the C compiler: ``CC``, else cc, gcc or clang. Raises MxwireError if there is none."""
    chosen = shlex.split(os.environ.get("CC", ""))
    for each in [chosen] if chosen else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(each[0]):
            return each
    wanted = f"CC={chosen[0]}" if chosen else "cc"
    raise MxwireError(f"there is no C compiler ({wanted}): install one, such as the package gcc or build-essential")


def build(prefix: Path, libfabric: bool = False) -> Installation:
    """Compile and install below ``prefix``, and return the files; ``libfabric``: with the provider for it.

    ``CC`` and ``CFLAGS`` in the environment are used. Raises :class:`~mxwire.errors.MxwireError` if a tool, a header or
    libpython is missing, or if compiling fails.
    """
    cffi = import_extra("cffi", "library", "mxwire library build")
    cc = compiler()
    include = _python_include()
    libpython = _libpython()
    made = Installation(prefix)
    _require_writable(made)
    with tempfile.TemporaryDirectory(prefix="mxwire-build-") as folder:
        work = Path(folder)
        _write_engine(cffi, work / "engine.c")
        quoted = {"MXW_BUILD": stamp(), "MXW_EXECUTABLE": sys.executable, "MXW_COMPILED": _compiled()}
        _compile(
            [
                *(*cc, *_flags(), f"-I{include}", f"-I{SOURCES}"),
                *(f'-D{name}="{text}"' for name, text in quoted.items()),
                # A string of C that is one of Python.
                f"-DMXW_PACKAGES={json.dumps(json.dumps(sysconfig.get_path('purelib')))}",
            ],
            [str(work / "engine.c")],
            [str(libpython), f"-Wl,-rpath,{libpython.parent}", "-o", str(work / "engine.so")],
        )
        _compile(
            [*cc, *_flags(), "-Wall", "-Wextra", "-fvisibility=hidden", f"-I{SOURCES}", f'-DMXW_PYTHON="{_version()}"'],
            [str(SOURCES / f"{each}.c") for each in _PARTS],
            [
                f"-Wl,-soname,{LIBRARY},--version-script={SOURCES / 'versions.map'},-z,nodelete",
                *("-pthread", "-ldl", "-o", str(work / LIBRARY)),
            ],
        )
        if libfabric:
            _compile_provider(cc, work)
        _install(made, work)
    return made


def _compiled() -> str:
    """The folder of this mxwire if it is a compiled one, which no environment of Python contains; else nothing."""
    return "" if native is None else str(Path(mxwire.__file__).resolve().parents[1])


def _compile_provider(cc: list[str], work: Path) -> None:
    """Compile the provider, which finds the library beside its folder, and uses no symbol of libfabric."""
    try:
        _compile(
            [*cc, *_flags(), "-Wall", "-Wextra", "-fvisibility=hidden", f"-I{SOURCES}"],
            [str(SOURCES / "libfabric" / f"{each}.c") for each in _PROVIDER_PARTS],
            [
                f"-Wl,-soname,{PROVIDER.name},-z,nodelete,-z,defs,-rpath,$ORIGIN/..",
                *("-pthread", f"-L{work}", "-lmyriexpress", "-o", str(work / PROVIDER.name)),
            ],
        )
    except MxwireError as error:
        if "rdma/" not in str(error):
            raise
        raise MxwireError(
            "there are no header files of libfabric: install them, such as the package libfabric-dev"
        ) from None


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _flags() -> list[str]:
    return ["-shared", "-fPIC", "-O2", "-g", *shlex.split(os.environ.get("CFLAGS", ""))]


def _python_include() -> str:
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").is_file():
        raise MxwireError(
            f"{include} has no Python.h: install the header files of Python {_version()}, such as the package "
            f"python{_version()}-dev"
        )
    return include


def _libpython() -> Path:
    """The shared library of this Python."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    folders = [sysconfig.get_config_var(each) for each in ("LIBDIR", "LIBPL")]
    multiarch = sysconfig.get_config_var("MULTIARCH")
    if multiarch:
        folders += [f"{folders[0]}/{multiarch}", f"/usr/lib/{multiarch}"]
    if ".so" in name:
        for each in filter(None, folders):
            if Path(each, name).is_file():
                return Path(each, name)
    raise MxwireError(
        f"Python {_version()} ({sys.executable}) has no shared library{f' {name}' if '.so' in name else ''}, which "
        f"programs would load: install libpython{_version()}, or use a Python that was built with --enable-shared"
    )


def _write_engine(cffi: object, path: Path) -> None:
    """Write the source of the engine in C."""
    ffi = cffi.FFI()  # type: ignore[attr-defined]
    ffi.cdef((SOURCES / "interface.h").read_text(encoding="utf-8"))
    ffi.embedding_api((SOURCES / "entries.h").read_text(encoding="utf-8"))
    ffi.cdef(_CALLED_BY_PYTHON)
    ffi.set_source(_ENGINE_MODULE, (SOURCES / "embedding.c").read_text(encoding="utf-8"))
    ffi.embedding_init_code(_START)
    # cffi reports each file that it writes.
    with redirect_stdout(StringIO()):
        ffi.emit_c_code(str(path))


def _compile(command: list[str], sources: list[str], output: list[str]) -> None:
    try:
        done = run_program([*command, *sources, *output], timeout=_COMPILE_TIMEOUT)
    except ProgramLateError:
        raise MxwireError(f"{command[0]} has not ended within {_COMPILE_TIMEOUT} s") from None
    if done.returncode:
        lines = (
            [each for each in done.stderr.splitlines() if "error" in each] or done.stderr.splitlines() or ["no reason"]
        )
        raise MxwireError(f"{command[0]} fails: {lines[0].strip()}")


def _require_writable(made: Installation) -> None:
    """Before compiling, raise :class:`~mxwire.errors.MxwireError` if the files could not be installed."""
    for each in (made.engine.parent, made.package.parent, made.include):
        there = next(folder for folder in (each, *each.parents) if folder.exists())
        if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
            reason = "no permission to write" if there.is_dir() else "not a directory"
            raise MxwireError(f"{there}: the library cannot be installed: {reason}; choose another --prefix")


def _install(made: Installation, work: Path) -> None:
    """Copy the built files below the prefix; a running program keeps the files that it has opened."""
    try:
        made.engine.parent.mkdir(parents=True, exist_ok=True)
        made.package.parent.mkdir(parents=True, exist_ok=True)
        _replace(work / LIBRARY, made.library)
        _replace(work / "engine.so", made.engine)
        # One of an earlier build need not fit the new library.
        made.provider.unlink(missing_ok=True)
        if (work / PROVIDER.name).exists():
            made.provider.parent.mkdir(exist_ok=True)
            _replace(work / PROVIDER.name, made.provider)
        _link(made.second_name, Path(LIBRARY))
        for name in (LIBRARY, SECOND_NAME):
            _link(made.search_folder / name, Path("..", LIBRARY))
        for each in _HEADERS:
            (made.include / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(SOURCES / each, made.include / each)
        made.package.write_text(_package_text(made), encoding="utf-8")
        # Last, so that an interrupted installation is not taken for a whole one.
        made.stamp_file.write_text(f"{_full_stamp()}\n", encoding="utf-8")
    except OSError as error:
        raise MxwireError(
            f"{error.filename}: the library cannot be installed: {error.strerror}; choose another --prefix"
        ) from error


def _link(place: Path, target: Path) -> None:
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def _replace(source: Path, target: Path) -> None:
    beside = target.with_name(f".{target.name}.new")
    shutil.copyfile(source, beside)
    beside.chmod(0o755)
    beside.replace(target)


def _package_text(made: Installation) -> str:
    # pkg-config treats an unescaped space as the end of an option.
    prefix, libdir, includedir = (str(each).replace(" ", r"\ ") for each in (made.prefix, made.folder, made.include))
    # Some linkers drop libraries that precede the objects that need them.
    return (
        f"prefix={prefix}\nlibdir={libdir}\nincludedir={includedir}\n\n"
        f"Name: {PACKAGE}\nDescription: C interface of Myrinet Express (MX) over Ethernet\n"
        f"Version: {mxwire.__version__}\nCflags: -I${{includedir}}\n"
        "Libs: -L${libdir} -Wl,--push-state,--no-as-needed -lmyriexpress -Wl,--pop-state\n"
    )
