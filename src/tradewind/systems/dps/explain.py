"""What a seller should know about a run: why nothing was sold, and when prices were too low to learn anything."""

from __future__ import annotations

from collections import Counter

from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.systems.dps.shared.order import PER_HOUR, PER_JOB, PriceScale

NEARLY_ALL, FEW = 0.9, 3
"""Share of accepted offers from which on prices look too low, and the offers that it takes to say so."""


def remarks(scenario: Scenario, run: Run) -> list[str]:
    """Sentences about the sales of a run."""
    answers = run.tables["answers"]
    refused = Counter(why for why, code in zip(answers["why"], answers["refused"], strict=True) if code)
    asked, sold = len(answers["job"]), sum(int(taken) >= 0 for taken in answers["taken"])
    offered = asked - sum(refused.values())
    if asked and not offered:
        reason, count = refused.most_common(1)[0]
        return [f"No job was made an offer; {count} of {asked} because of this: {reason}."]
    if offered and not sold:
        asked_usd = [float(usd) for usd in run.tables["offers"]["payment_usd"]]
        return [
            f"None of the {offered} jobs that were made an offer accepted it: all prices were above their budgets "
            f"(they were {min(asked_usd):.4g} to {max(asked_usd):.4g} USD). Try more seeds, or state a lower worth of an "
            f"item in the scenario (forecast: {{{PER_HOUR}: …}}, or {PER_JOB})"
            + (
                ", or set a cap or past offers (--set cap=…, --set history=FILE)."
                if "cap" in run.params
                else "."
            )
        ]
    if offered < FEW or sold < NEARLY_ALL * offered:
        return []
    more = f"{sold} of {offered} offers were accepted: customers may be willing to pay more."
    if cap := run.params.get("cap"):
        return [f"{more} The cap is {cap:.4g}."]
    if run.params.get("scale", "stated") == "learned":
        return [more]
    scale = PriceScale.of(scenario.setup)
    learn = "--set scale=learned" if "scale" in run.params else "--policy dps --set scale=learned"
    return [
        f"{more} Unit prices end at {scale.usd:.4g} {scale.words}. State what an item is usually worth in the scenario "
        f"(forecast: {{{PER_HOUR}: 4}}, or {PER_JOB}), or use {learn} with a cap."
    ]
