"""Turns pydantic errors into one sentence: where, what was found, what is allowed, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError

from tradewind.model.errors import InputError, ScenarioError, nearest

Model = TypeVar("Model", bound=BaseModel)
REQUIRED = "required"
"""What is said of a field without a description."""


def shown(value: Any) -> str:
    """A value as text for a message, at most 60 characters."""
    try:
        text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    except ValueError:
        text = "a number of thousands of digits"
    if value is None:
        text = "null"
    elif isinstance(value, dict):
        text = "an object"
    elif isinstance(value, list):
        text = f"a list of {len(value)}"
    return text if len(text) <= 60 else text[:57] + "…"


def find(index: Mapping[str, int], name: str, what: str, where: str) -> int:
    """Index of a name, or an error that suggests the nearest one."""
    found = index.get(name)
    if found is None:
        raise ScenarioError(f"{where} refers to an unknown {what}, {name!r}.{nearest(name, index)}")
    return found


def _label(item: Any, number: int) -> str:
    if isinstance(item, dict):
        for key in ("id", "name"):
            if isinstance(item.get(key), str):
                return str(item[key])[:60]
        if isinstance(item.get("a"), str) and isinstance(item.get("b"), str):
            return f"{item['a'][:60]}-{item['b'][:60]}"
    return str(number)


def place(location: tuple[int | str, ...], raw: Any) -> str:
    """Path of a value in the file: `("jobs", 7, "work", "rounds", "count")` -> `jobs[job-7].work.count`."""
    text, at = "", raw
    for step in location:
        if isinstance(step, int) and isinstance(at, list) and step < len(at):
            at = at[step]
            text += f"[{_label(at, step)}]"
        elif isinstance(at, dict) and step in at:
            at = at[step]
            text += f".{step:.60}" if text else f"{step:.60}"
        elif isinstance(at, dict) and step == location[-1] and step != "[key]":
            text += f".{step}" if text else str(step)
        # anything else is the tag of a union, which is not in the file
    return text


def _inside(kind: Any, step: int | str) -> Any:
    """The type one step deeper, or None."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        field = kind.model_fields.get(str(step))
        return field.annotation if field else None
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _inside(args[0], step)
    if origin in (Union, UnionType):
        rest = [arg for arg in args if arg is not NoneType]
        for arg in rest:
            if any(isinstance(mark, Tag) and mark.tag == step for mark in get_args(arg)[1:]):
                return get_args(arg)[0]
        return _inside(rest[0], step) if len(rest) == 1 else None
    if origin is list:
        return args[0]
    return args[1] if origin is dict else None


def _bare(kind: Any) -> Any:
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        rest = [arg for arg in get_args(kind) if arg is not NoneType]
        return _bare(rest[0]) if len(rest) == 1 else kind
    return kind


def _fields(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Fields that are allowed at the location of an unknown one."""
    kind: Any = model
    for step in location[:-1]:
        kind = _inside(kind, step)
    kind = _bare(kind)
    return list(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else []


def sentence(error: ValidationError, model: type[BaseModel], raw: Any) -> str:
    """The first validation error as a sentence; unknown fields come first, as they may be misspelt required ones."""
    errors = error.errors(include_url=False)
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    location, kind = first["loc"], first["type"]
    where = place(location, raw) or "the file"
    found = shown(first.get("input"))
    match kind:
        case "extra_forbidden":
            return f"{where} is not a known field.{nearest(str(location[-1]), _fields(model, location))}"
        case "missing":
            return f"{where} is missing; add it ({_described(model, location)})"
        case "tradewind":
            return f"{where} is {found}; {first['msg']}"
        case "literal_error" | "union_tag_invalid":
            context = first.get("ctx", {})
            allowed = context.get("expected") or " or ".join(context.get("expected_tags", "").rsplit(", ", 1))
            where = f"{where}.kind" if kind == "union_tag_invalid" else where
            found = shown(context["tag"]) if "tag" in context else found
            return f"{where} is {found}; it must be {allowed}"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{where} is {found}; it must be an object{_made_of(model, location)}"
        case "list_type":
            return f"{where} is {found}; it must be a list"
    return f"{where} is {found}; {first['msg'][:200]}"


def _made_of(model: type[BaseModel], location: tuple[int | str, ...]) -> str:
    """` (tenant -> limits)`, ` with slot_usd, total_usd`, or nothing: what an object that is missing contains."""
    fields = _fields(model, (*location, ""))
    if fields:
        return f" with {', '.join(fields[:10])}{', …' if len(fields) > 10 else ''}"
    text = _described(model, location)
    return f" ({text})" if text not in ("", REQUIRED) else ""


def validated(model: type[Model], raw: Any, where: str) -> Model:
    """A value as a model; raises an error with one sentence."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise InputError(sentence(error, model, raw), where=where) from None


def _described(model: type[BaseModel], location: tuple[int | str, ...]) -> str:
    kind: Any = model
    for step in location[:-1]:
        kind = _inside(kind, step)
    kind = _bare(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel) and str(location[-1]) in kind.model_fields:
        return kind.model_fields[str(location[-1])].description or ""
    return REQUIRED
