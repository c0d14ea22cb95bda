"""A policy that lives in a process of its own, for everybody else a policy like any other.

`isolated(policy)` is its Spec: same declaration, but what it makes is an `IsolatedPolicy`.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from tradewind.engine.isolation.mirror import Recorder
from tradewind.engine.isolation.origin import Origin, SpecData, declaration, load_origin, origin_of, spec_of
from tradewind.engine.isolation.process import DEFAULT, FAILED, STATE, Limits, Process
from tradewind.engine.ledger import Ledger
from tradewind.model.codec import read
from tradewind.model.decision import Charge, Decision, Quote
from tradewind.model.errors import InputError, PolicyError, TradewindError, Unsupported
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.model.view import Policy, View

LEAST, MOST = -(1 << 63), (1 << 63) - 1
MEANT: dict[str, type[TradewindError]] = {"InputError": InputError, "Unsupported": Unsupported}
"""Errors by which a policy refuses a scenario or a parameter when it is made."""


class Failure(NamedTuple):
    """What a confined process says about an error; meant: one of Tradewind's own errors, whose text says all."""

    kind: str
    text: str
    where: str
    meant: bool


class Unreadable(Exception):
    """An answer that is not what it must be; the text says where."""


class Failed(Exception):
    """The policy raised an error; its process goes on."""

    def __init__(self, failure: Failure) -> None:
        kind, text, where, self.meant = failure
        self.kind = kind
        message = text if self.meant else f"{kind}: {text} ({where})"
        super().__init__("".join(sign if sign.isprintable() else " " for sign in message))


class IsolatedFactory(NamedTuple):
    """Makes a policy that runs in a process of its own."""

    name: str
    origin: Origin
    limits: Limits

    def __call__(self, setup: Setup, params: Mapping[str, Any], random: np.random.Generator) -> Policy:
        return IsolatedPolicy(self.name, (self.origin, setup, dict(params), random), self.limits)


def isolated(policy: str | Spec, limits: Limits = DEFAULT) -> Spec:
    """The Spec of a policy (name, FILE.py:NAME or Spec) that runs in a process of its own.

    Code that is not ours is not even loaded here: the process that it runs in says what it declares.
    """
    origin = origin_of(policy)
    data = declaration(load_origin(origin)) if origin.ours else _declared(origin, limits)
    if data.hindsight:
        raise InputError(
            f"{data.name} computes its parameters from the whole scenario, so it cannot be isolated from it; leave out the "
            "isolation for this policy"
        )

    return spec_of(data, IsolatedFactory(data.name, origin, limits))


def _declared(origin: Origin, limits: Limits) -> SpecData:
    """What a policy declares, from a process that ends afterwards."""
    where = origin.ref or str(origin.file)
    process = Process(limits, origin.package)
    try:
        found: SpecData = _ask(process, "describe", (origin,), SpecData)
        return found
    except Failed as error:
        raise InputError(str(error), where="" if error.meant else where) from None
    except (PolicyError, Unreadable) as error:
        raise InputError(f"cannot be loaded: {error}", where=where) from None
    finally:
        process.end()


def decode(kind: Any, text: bytes) -> Any:
    """A value of the type `kind` from the JSON of a confined process, which nobody trusts."""
    try:
        return read(kind, json.loads(text, parse_int=_number), "")
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is not JSON ({error})") from None
    except InputError as error:
        raise Unreadable(str(error)) from None


def _number(digits: str) -> int:
    if len(digits) > 20 or not LEAST <= (number := int(digits)) <= MOST:
        raise ValueError(f"found {digits:.60}; numbers have 64 bits")
    return number


def _ask(process: Process, what: str, args: tuple[Any, ...], kind: Any) -> Any:
    """Call a method of the server; an answer of the type `kind`."""
    form, answer = process.ask(pickle.dumps((what, args), pickle.HIGHEST_PROTOCOL), what)
    if form == FAILED:
        raise Failed(decode(Failure, answer))
    if (form == STATE) != (kind is bytes):
        raise Unreadable(f"found the kind {form!r}")
    return answer if kind is bytes else decode(kind, answer)


class IsolatedPolicy:
    """Implements Policy, Pricer and Charger by asking a confined process.

    After a failure that ended its process, the next call starts a new one with the state that was last saved or restored.
    """

    def __init__(self, name: str, made_of: tuple[Origin, Setup, dict[str, Any], Any], limits: Limits) -> None:
        self._name, self._made_of, self._limits = name, made_of, limits
        self._state: bytes | None = None
        self._recorder = Recorder()
        self._process = self._start()

    def decide(self, view: View) -> Decision:
        """The decision of the confined policy."""
        found: Decision = self._call(view, "decide", Decision)
        return found

    def quote(self, view: View, job: Job) -> Quote:
        """The quote of the confined policy."""
        found: Quote = self._call(view, "quote", Quote, job.index)
        return found

    def charges(self, view: View) -> tuple[Charge, ...]:
        """The charges of the confined policy."""
        found: tuple[Charge, ...] = self._call(view, "charges", tuple[Charge, ...])
        return found

    def save(self) -> bytes:
        """The state of the confined policy."""
        with self._errors("failed to save"):
            self._revive()
            state: bytes = _ask(self._process, "save", (), bytes)
        self._state = state
        return state

    def restore(self, state: bytes) -> None:
        """Give the confined policy a state back; a process that has ended gets it when it is started again."""
        self._state = state
        if self._process.alive:
            with self._errors("failed to restore"):
                _ask(self._process, "restore", (state,), NoneType)

    def _call(self, view: View, what: str, kind: Any, *args: Any) -> Any:
        """Tell the process what has happened since the last call, and ask for an answer."""
        assert isinstance(view, Ledger)
        with self._errors(f"failed at {view.now_us} us (slot {view.slot})"):
            self._revive()
            return _ask(self._process, what, (self._recorder.take(view), *args), kind)

    @contextmanager
    def _errors(self, failed: str) -> Iterator[None]:
        """Whatever goes wrong is an error of this policy."""
        try:
            yield
        except Failed as error:
            text = str(error) if error.meant else f"{self._name} {failed}: {error}"
            raise PolicyError(text) from None
        except Unreadable as error:
            self._process.end()  # whatever it sends next would be no answer either
            raise PolicyError(f"{self._name} {failed}: its answer cannot be read: {error}") from None
        except TradewindError as error:
            raise PolicyError(f"{self._name} {failed}: {error}") from None

    def _revive(self) -> None:
        if not self._process.alive:
            self._process = self._start()

    def _start(self) -> Process:
        """A process with the policy in it, in its last known state."""
        self._recorder.forget()
        process = Process(self._limits, self._made_of[0].package)
        try:
            _ask(process, "make", self._made_of, NoneType)
            if self._state is not None:
                _ask(process, "restore", (self._state,), NoneType)
        except Failed as error:
            process.end()
            raise MEANT.get(error.kind, PolicyError)(str(error)) from None
        except Unreadable as error:
            process.end()
            raise PolicyError(f"{self._name} cannot be made: {error}") from None
        return process
