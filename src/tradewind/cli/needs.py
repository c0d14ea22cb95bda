"""Commands that need an extra say so."""

from __future__ import annotations

from importlib.util import find_spec

from tradewind.model.errors import InputError


def extra(name: str, *modules: str) -> None:
    """Raise InputError that names the extra if one of its modules is not installed."""
    if missing := [module for module in modules if find_spec(module) is None]:
        raise InputError(f"{missing[0]} is not installed: pip install 'tradewind[{name}]'")
