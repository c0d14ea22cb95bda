"""The confined process: loads the policy, keeps a mirror of the ledger, and answers calls until the channel is closed.

Messages to it are pickles, because it trusts its parent; its answers are JSON, because its parent does not trust it.
"""

from __future__ import annotations

import gc
import pickle
import socket
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tradewind.engine.isolation.mirror import Change, follow
from tradewind.engine.isolation.origin import Origin, declaration, load_origin
from tradewind.engine.isolation.process import ANSWER, FAILED, HEAD, STATE
from tradewind.engine.ledger import Ledger
from tradewind.model.codec import compact
from tradewind.model.decision import Decision, Quote
from tradewind.model.errors import PolicyError, TradewindError
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec


class Server:
    """One policy and its view. Every public method is a call of the parent."""

    spec: Spec
    ledger: Ledger
    policy: Any

    def describe(self, origin: Origin) -> Any:
        """Load the policy; what it declares."""
        self.spec = load_origin(origin)
        return declaration(self.spec)

    def make(self, origin: Origin, setup: Setup, params: dict[str, Any], random: Any) -> None:
        """Load the policy and make one."""
        self.spec, self.ledger = load_origin(origin), Ledger(setup)
        self.policy = self.spec.factory(setup, params, random)
        gc.freeze()

    def decide(self, changes: Sequence[Change]) -> Decision:
        """The policy's decision after these changes of its view."""
        self.ledger = follow(self.ledger, changes)
        found = self.policy.decide(self.ledger)
        if not isinstance(found, Decision):
            raise PolicyError(
                f"{self.spec.name}.decide returned {type(found).__name__}; it must return a Decision"
            )
        return found

    def quote(self, changes: Sequence[Change], job: int) -> Quote:
        """The policy's quote for a job after these changes of its view."""
        self.ledger = follow(self.ledger, changes)
        found = self.policy.quote(self.ledger, self.ledger.job(job))
        if not isinstance(found, Quote):
            raise PolicyError(
                f"{self.spec.name}.quote returned {type(found).__name__}; it must return a Quote"
            )
        return found

    def charges(self, changes: Sequence[Change]) -> Any:
        """What the policy charges after the run."""
        self.ledger = follow(self.ledger, changes)
        return self.policy.charges(self.ledger)

    def save(self) -> bytes:
        """The policy's state."""
        found = self.policy.save()
        if not isinstance(found, bytes):
            raise PolicyError(f"save() returned {type(found).__name__}; it must return bytes")
        return found

    def restore(self, state: bytes) -> None:
        """Give the policy a state back."""
        self.policy.restore(state)


def main(channel: socket.socket) -> None:
    """Answer calls, one at a time."""
    channel.setblocking(True)
    server = Server()
    stream = channel.makefile("rb")
    while head := stream.read(HEAD.size):
        name, args = pickle.loads(stream.read(HEAD.unpack(head)[1]))
        kind, answer = _answer(getattr(server, name), args)
        channel.sendall(HEAD.pack(kind, len(answer)) + answer)


def _answer(call: Callable[..., Any], args: tuple[Any, ...]) -> tuple[bytes, bytes]:
    """The answer to a call, or what went wrong: class, message, place, and whether the policy refused on purpose."""
    try:
        found = call(*args)
        return (STATE, found) if isinstance(found, bytes) else (ANSWER, compact(found).encode())
    except BaseException as error:  # a policy may fail in any way, also by sys.exit
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        meant = isinstance(error, TradewindError)
        return FAILED, compact([type(error).__name__, _text(error), where, meant]).encode()


def _text(error: BaseException) -> str:
    return str(error)[:2000].encode(errors="replace").decode()
