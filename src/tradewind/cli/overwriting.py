"""Before a command works for minutes: its outputs can be written, and overwrite nothing that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from tradewind.model.errors import InputError


def keeping_inputs(command: Any) -> Any:
    """The same commands; each refuses an output that is one of its inputs, another of its outputs, or cannot be written.

    Outputs are options that are declared with `writable=True`. Their folders are made.
    """
    command.invoke = partial(_invoke, command.invoke)
    for child in getattr(command, "commands", {}).values():
        keeping_inputs(child)
    return command


def _invoke(call: Any, context: Any) -> Any:
    known = {param.name: param for param in context.command.params}
    for name, path in context.params.items():
        if path is None or not is_output(known.get(name)):
            continue
        for other, value in context.params.items():
            if other == name or not any(_same(path, text) for text in _texts(value)):
                continue
            if is_output(known.get(other)):
                raise InputError(
                    f"{_word(known[name])} and {_word(known[other])} both write {path}; give each a name of its own"
                )
            if path.exists():
                raise InputError(
                    f"{_word(known[name])} {path}: this file is read ({_word(known[other])}) and would be overwritten; "
                    "write to another name"
                )
    for name, path in context.params.items():
        if path is not None and is_output(known.get(name)):
            _make_room(path, _word(known[name]))
    return call(context)


def _make_room(path: Path, option: str) -> None:
    """Make the folder of an output, and try whether a file can be written there."""
    if path.is_dir():
        raise InputError("is a folder; give a file inside it", where=f"{option} {path}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(
            f"cannot be written ({error.strerror}); choose another location", where=f"{option} {path}"
        ) from None


def is_output(param: Any) -> bool:
    """Whether an option is declared as one that writes a file."""
    kind = getattr(param, "type_descriptor", None)
    return bool(getattr(getattr(kind, "parameter_info", None), "writable", False))


def _word(param: Any) -> str:
    """`-o`, `--page`, or the placeholder of an argument."""
    return str(param.metavar if param.param_type_name == "argument" else param.opts[0])


def _texts(value: Any) -> Iterator[str]:
    """What may name a file: a text, each of a list, and what follows the sign of NAME=VALUE."""
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, (str, Path)) and str(value):
        yield str(value)
        _, sign, rest = str(value).partition("=")
        if sign and rest:
            yield rest


def _same(path: Path, text: str) -> bool:
    return path.resolve() == Path(text).resolve()
