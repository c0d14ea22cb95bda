"""Compiled kernels: numba's njit with a cache on disk per folder of kernels.

numba checks only a kernel's own file to decide whether its cache is valid, but kernels call each other across files. So the
cache folder is named after a hash of everything compiled into the kernels of a folder: its files and the solvers that they
import. An edit in one system does not recompile the kernels of the others.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, overload

import numba
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator

F = TypeVar("F", bound=Callable[..., Any])
SOLVERS = Path(__file__).parent
LOG = logging.getLogger("tradewind")
_IMPORT = re.compile(r"^\s*from tradewind\.solvers\.(\w+) import", re.MULTILINE)


@overload
def kernel(function: F) -> F: ...
@overload
def kernel(**options: Any) -> Callable[[F], F]: ...
def kernel(function: Any = None, **options: Any) -> Any:
    """Compile a function on its first call and cache the machine code; `options` are those of numba.njit."""
    if function is None:
        return lambda other: kernel(other, **options)
    before = numba.config.CACHE_DIR
    folder = Path(function.__code__.co_filename).parent
    try:
        numba.config.CACHE_DIR = before or cache_folder(folder)
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder at all can be written, as in a confined process
        numba.config.CACHE_DIR = before or str(_kept(folder))
        made = numba.njit(**options)(function)
        made._cache = _ReadCache(function)
        return made
    finally:
        numba.config.CACHE_DIR = before


class _Notice(event.Listener):  # type: ignore[misc]
    """Logs, once per process, that kernels are being compiled: a run that is silent for a minute looks as if it hung."""

    logged = False

    def on_start(self, started: Any) -> None:
        """Called by numba when a kernel is in no cache."""
        module: str = started.data["dispatcher"].py_func.__module__
        if not self.logged and module.startswith("tradewind."):
            self.logged = True
            LOG.info("compiling what %s needs, up to a minute; it is kept for the next time", module)

    def on_end(self, ended: Any) -> None:
        """Nothing to say."""


event.register("numba:compile", _Notice())


class _ReadLocator(UserProvidedCacheLocator):  # type: ignore[misc]
    def ensure_cache_path(self) -> None:
        """Nothing is written."""


class _ReadImplementation(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_ReadLocator,)


class _ReadCache(FunctionCache):  # type: ignore[misc]
    """Uses what is in the cache and adds nothing."""

    _impl_class = _ReadImplementation

    def save_overload(self, sig: Any, data: Any) -> None:
        """Nothing is written."""


@cache
def cache_folder(folder: Path) -> str:
    """Cache folder for the kernels of a folder; "" (numba's default) if it cannot be written."""
    kept = _kept(folder)
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""
    return str(kept) if os.access(kept, os.W_OK) else ""


def _kept(folder: Path) -> Path:
    return folder / "__pycache__" / f"kernels-{digest(folder)}"


def digest(folder: Path) -> str:
    """16 hex digits over the names and contents of a folder's files and of the solvers that they import, directly or not."""
    files, queue = set[Path](), sorted(folder.glob("*.py"))
    while queue:
        path = queue.pop()
        if path not in files and path.exists():
            files.add(path)
            queue += [SOLVERS / f"{name}.py" for name in _IMPORT.findall(path.read_text(encoding="utf-8"))]
    found = hashlib.sha256()
    for path in sorted(files):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()[:16]
