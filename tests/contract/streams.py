"""Every online policy under many random streams of cancellations, failures and late answers.

`python -m tests.contract.streams 1000 [SECONDS]` plays up to 1,000 streams per policy, each twice (the second time through a
snapshot in the middle) and for at most SECONDS of CPU time per policy (default 60), and prints one line per policy.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from itertools import islice
from time import process_time

from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.registry import policies
from tradewind.testing import contract
from tradewind.testing.disturbed import disturbed_run
from tradewind.testing.scenarios import fitting_scenarios

KINDS = ("arrived", "cancelled", "voided", "quoted", "answered", "expired", "withdrawn", "accepted")
SCENARIOS = 6
"""Scenarios per policy; a stream is a seed on one of them."""


def play(name: str, count: int, seconds: float) -> tuple[int, Counter[str]]:
    """The number of streams played and the events in them; raises at the first that fails."""
    spec = policies.find(name)
    made = [each for seed in range(1, SCENARIOS + 1) for each in islice(fitting_scenarios(spec, seed), 1)]
    end, events = process_time() + seconds, Counter[str]()
    for seed in range(count):
        if process_time() > end:
            return seed, events
        events += _stream(spec, replace(made[seed % len(made)], changes=()), seed)
    return count, events


def _stream(spec: Spec, given: Scenario, seed: int) -> Counter[str]:
    """The events of one stream, after it was found to be sound and the same through a snapshot."""
    contract.handles_unscripted_events(spec, given, seeds=(seed,))
    tables = disturbed_run(spec, given, lambda: contract.fresh(spec, given), seed)
    return Counter[str](tables["events"]["kind"])


def main() -> None:
    """Print one line per policy, and the sum."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
    total = 0
    for name in policies.names():
        if policies.find(name).online:
            done, events = play(name, count, seconds)
            total += done
            print(
                f"{name}: {done} streams, " + ", ".join(f"{events[k]} {k}" for k in KINDS if events[k]),
                flush=True,
            )
    print(f"{total} streams in all, no rule broken")


if __name__ == "__main__":
    main()
