"""Predicates that judge the claims of the Eris paper on the rows of its figures, for the printed algorithm and for ours."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tradewind.lab.study import Claims, Holds, Judged, Row, mean_of, region
from tradewind.systems.eris.study.runs import FIXED, PAPER, one, ranged

OURS = "eris"
claim = Claims(PAPER, OURS)


def lead(rival: str, claimed: float) -> Holds:
    """The interval of the lead in welfare lies above 0 and reaches what is claimed."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        row, column = one(rows, policy=rival), f"lead of {policy}"
        low, high = float(row[f"{column} low"]), float(row[f"{column} high"])
        return Judged(low > 0 and high >= claimed, f"{ranged(row, column)} over {rival}")

    return holds


def near_optimal(rows: Sequence[Row], policy: str) -> Judged:
    """Within a tenth of the bound, beyond chance."""
    row = one(rows, policy=policy)
    share, low, high = (float(row[f"of bound{end}"]) for end in ("", " low", " high"))
    return Judged(low >= 0.9, f"{share:.2f} of the bound ({low:.2f} to {high:.2f})")


def fewer_unserved(rows: Sequence[Row], policy: str) -> Judged:
    """Fewer jobs are left unserved than by each stated rival, beyond chance."""
    mine = one(rows, policy=policy)
    held = all(float(mine["high"]) < float(one(rows, policy=n)["low"]) for n in FIXED)
    text = ", ".join(f"{n} {mean_of(rows, 'unserved', policy=n):.2f}" for n in (policy, *FIXED))
    return Judged(held, f"jobs of ten that are not completed: {text}")


def below(limit: float) -> Holds:
    """The interval of the performance ratio ends below a limit."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        row = one(rows, policy=policy)
        found = f"{float(row['loss']):.2f} ({float(row['low']):.2f} to {float(row['high']):.2f})"
        return Judged(float(row["high"]) < limit, found)

    return holds


def least_ratio(rows: Sequence[Row], policy: str) -> Judged:
    """A smaller performance ratio than every stated rival: the intervals do not meet."""
    found = {n: one(rows, policy=n) for n in (policy, *FIXED)}
    held = all(float(found[policy]["high"]) < float(found[n]["low"]) for n in FIXED)
    text = (
        f"{n} {float(r['loss']):.2f} ({float(r['low']):.2f} to {float(r['high']):.2f})"
        for n, r in found.items()
    )
    return Judged(held, ", ".join(text))


def gpus_full(rows: Sequence[Row], policy: str) -> Judged:
    """All GPUs are in use in some slot of some seed."""
    peak = max(float(r["most"]) for r in rows if r["use"] == f"{policy} gpu")
    return Judged(peak > 0.999, f"GPUs {peak:.0%} at most")


def steady(resource: str) -> Holds:
    """Use of a resource varies less over slots than that of GPUs."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        found = {k: mean_of(rows, "steady", use=f"{policy} {k}") for k in (resource, "gpu")}
        text = ", ".join(f"{k} {v:.2f}" for k, v in found.items())
        return Judged(found[resource] < found["gpu"], f"standard deviation over slots: {text}")

    return holds


def _over(rows: Sequence[Row], x: str, policy: str, value: str = "welfare") -> list[float]:
    return [mean_of(rows, value, policy=policy, **{x: at}) for at in sorted({float(r[x]) for r in rows})]


def _text(values: Sequence[float]) -> str:
    return ", ".join(f"{v:.4g}" for v in values)


def best_everywhere(rows: Sequence[Row], policy: str) -> Judged:
    """The lead over every stated rival is above 0 beyond chance at every size."""
    return _ahead([r for r in rows if r["policy"] in FIXED], policy)


def best_with_any_base(rows: Sequence[Row], policy: str) -> Judged:
    """The lead over every stated rival is above 0 beyond chance with every base of the prices, in the simulator."""
    return _ahead([r for r in rows if r["policy"] in {f"{n}, simulator" for n in FIXED}], policy)


def _ahead(found: Sequence[Row], policy: str) -> Judged:
    beaten = sum(float(r[f"lead of {policy} low"]) > 0 for r in found)
    least = min(float(r[f"lead of {policy}"]) for r in found)
    return Judged(
        beaten == len(found), f"ahead in {beaten} of {len(found)} comparisons, least lead {least:+.0%}"
    )


def lead_grows(x: str) -> Holds:
    """The lead over every stated rival is larger at the largest size than at the smallest: the intervals do not meet."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        column = f"lead of {policy}"
        leads = {n: _over(rows, x, n, column) for n in FIXED}
        text = "; ".join(f"{n} {v[0]:+.0%} to {v[-1]:+.0%}" for n, v in leads.items())
        clear = [
            _over(rows, x, n, f"{column} low")[-1] > _over(rows, x, n, f"{column} high")[0] for n in FIXED
        ]
        return Judged(
            all(clear),
            f"lead from the smallest to the largest: {text}; clear over {sum(clear)} of {len(clear)}",
        )

    return holds


def fewer_completed(rows: Sequence[Row], policy: str) -> Judged:
    """The policy and the stated rivals complete fewer jobs with every step of jobs, from end to end beyond chance."""
    some: list[Row] = [
        {
            **r,
            "completed": float(r["jobs"]) - float(r["unserved"]),
            "low": float(r["jobs"]) - float(r["unserved high"]),
            "high": float(r["jobs"]) - float(r["unserved low"]),
        }
        for r in rows
    ]
    found = courses("jobs", "completed", rises=False)(some, policy)
    return Judged(found.holds, f"jobs completed: {found.found}")


def courses(x: str, value: str, *, rises: bool, names: Sequence[str] = FIXED) -> Holds:
    """The policy and the stated rivals all rise, or all fall, with every step of x, from end to end beyond chance."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        some = [r for r in rows if r.get(x, "") != ""]
        there = {r["policy"] for r in some}
        found = {n: _over(some, x, n, value) for n in (policy, *(n for n in names if n in there))}
        ends = {n: [_over(some, x, n, end) for end in ("low", "high")] for n in found}
        held = all((b > a) is rises and a != b for v in found.values() for a, b in pairwise(v))
        clear = sum(low[-1] > high[0] if rises else high[-1] < low[0] for low, high in ends.values())
        text = "; ".join(f"{n} {_text(v)}" for n, v in found.items())
        return Judged(held and clear == len(ends), f"{text}; clear for {clear} of {len(ends)}")

    return holds


def never_falls(rows: Sequence[Row], policy: str) -> Judged:
    """Welfare does not fall as jobs are added."""
    found = _over(rows, "jobs", policy)
    return Judged(all(b >= a for a, b in pairwise(found)), _text(found))


def profit(what: str, *, rises: bool) -> Holds:
    """Payments to the policy and to the stated rivals all rise, or all fall, over the cases of sites or of jobs."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        some: list[Row] = [
            {**r, what: float(str(r["case"]).split()[0])} for r in rows if str(r["case"]).endswith(what)
        ]
        found = courses(what, "profit", rises=rises)(some, policy)
        sizes = ", ".join(f"{size:g}" for size in sorted({float(r[what]) for r in some}))
        return Judged(found.holds, f"thousand USD over {sizes} {what}: {found.found}")

    return holds


def falls_with_gamma(rows: Sequence[Row], policy: str) -> Judged:
    """Every larger base earns less in the simulator, from end to end beyond chance."""
    found = courses("gamma", "welfare", rises=False, names=())(rows, f"{policy}, simulator")
    return Judged(found.holds, f"thousand USD: {found.found}")


def any_count(rows: Sequence[Row], policy: str) -> Judged:
    """Ahead of every rival with every number of workers, beyond chance for the printed algorithm."""
    column = f"lead of {policy}"
    low = "low" if column == "lead of eris-paper" else f"{column} low"
    ahead = sum(float(r[low]) > 0 for r in rows)
    values = [float(r[column]) for r in rows]
    return Judged(
        ahead == len(rows), f"ahead in {ahead} of {len(rows)} cases, {min(values):+.0%} to {max(values):+.0%}"
    )


def finishes(reading: str) -> Holds:
    """Every accepted job finishes, at every size; ours has no readings."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        mine = [
            r for r in rows if r["policy"] == policy and r["reading"] == (reading if policy != OURS else "")
        ]
        text = ", ".join(f"{r['size']} {float(r['finish']):.0%}" for r in mine)
        return Judged(all(float(r["finish"]) > 0.999 for r in mine), f"finish of what was accepted: {text}")

    return holds


def optimal_slots(rows: Sequence[Row], policy: str) -> Judged:
    """Every state is solved at the least cost."""
    del policy
    text = ", ".join(f"{r['outcome']} {float(r['share']):.0%}" for r in rows)
    excess = mean_of(rows, "excess", outcome="dearer")
    return Judged(
        mean_of(rows, "share", outcome="equal") > 0.999, f"{text}; median excess where dearer {excess:.0%}"
    )


def useless(*lies: str) -> Holds:
    """No lie of these kinds pays."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        mine = [
            r for r in rows if r["mechanism"] == policy and any(str(r["lie"]).startswith(x) for x in lies)
        ]
        parts = [
            f"{r['lie']} {int(r['paid'])} of {int(r['lies'])}, up to {float(r['largest gain']):.4g} USD"
            for r in mine
        ]
        return Judged(not any(r["paid"] for r in mine), f"lies that pay: {'; '.join(parts)}")

    return holds


def rational(rows: Sequence[Row], policy: str) -> Judged:
    """No honest buyer has a negative payoff."""
    least = min(float(r["least payoff"]) for r in rows if r["mechanism"] == policy)
    return Judged(least >= 0, f"least payoff of an honest buyer {least:.4g} USD")


def somewhere(knobs: Sequence[str], claimed: dict[str, float]) -> Holds:
    """Among the settings, one in which the mean lead over every rival reaches what is claimed, and is above 0 beyond chance.

    Where many settings are tried, an interval that reaches it would be found by chance.
    """

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        column, settings = f"lead of {policy}", dict.fromkeys(tuple(r[k] for k in knobs) for r in rows)
        found: list[Row] = []
        for setting in settings:
            where = dict(zip(knobs, setting, strict=True))
            leads = {n: one(rows, rival=n, **where) for n in claimed}
            margin = min(float(leads[n][column]) - claimed[n] for n in claimed)
            good = margin >= 0 and all(float(leads[n][f"{column} low"]) > 0 for n in claimed)
            found.append({**where, "measured": margin, "holds": "yes" if good else "no"})
        return Judged(
            any(r["holds"] == "yes" for r in found),
            f"{region(found, knobs)} (measured: least lead minus what is claimed)",
        )

    return holds


def ratio_somewhere(knobs: Sequence[str], most: float) -> Holds:
    """Among the settings, one in which the interval of bound / welfare ends below a limit."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        high = "high" if policy == PAPER else f"{policy} high"
        found: list[Row] = [
            {
                **{k: r[k] for k in knobs},
                "measured": r[policy],
                "holds": "yes" if float(r[high]) < most else "no",
            }
            for r in rows
        ]
        return Judged(
            any(r["holds"] == "yes" for r in found),
            f"{region(found, knobs, largest=False)} (measured: bound / welfare)",
        )

    return holds


def covered(column: str) -> Holds:
    """The printed base covers every bid of every size and seed."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        del policy
        found = {str(r["size"]): float(r[column]) for r in rows}
        text = ", ".join(f"{size} {value:,.0f}" for size, value in found.items())
        return Judged(all(v <= 1000 for v in found.values()), f"the bids ask for up to {text}")

    return holds


def derived_below(base: str, most: float) -> Holds:
    """With the bases derived from bids, bound / welfare is below a limit on every size."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        mine = [r for r in rows if r["base"] == (base if policy == PAPER else policy)]
        text = ", ".join(f"{r['size']} {1 / max(float(r['of bound']), 1e-9):.2f}" for r in mine)
        return Judged(all(float(r["low"]) * most > 1 for r in mine), f"bound / welfare {text}")

    return holds
