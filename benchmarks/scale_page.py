"""The part of docs/lab/scale.md about decisions: tables by decades, exponents, projections, before and after."""

from __future__ import annotations

from benchmarks.scale_decisions import BEFORE, IMPROVED, LADDERS, Ladder, Point, exponent, read

HEAD = "## Decisions: time, memory and gap to the bound by decades"
TEXT = """CPU seconds of one process (`python -m benchmarks.scale_decisions`; at most 300 s and 14 GB per point). Memory is
the growth of the peak over the smallest case. The gap is that of the decision to a certified bound, 0 is optimal. The
exponent is the slope of log time over log size in the last two decades that were measured. Figures in brackets are
**projections** from it, not measurements; points that are not measured yet are added by the same command."""


def decisions(kept: str = "") -> list[str]:
    """Lines of the section; rows of ladders of which no point is there are taken over from the page `kept`."""
    found = read()
    lines = [HEAD, "", *TEXT.splitlines(), ""]
    lines += [
        "| system | size | CPU time | per decision | memory | gap | exponent |",
        "|---|---|---|---|---|---|---|",
    ]
    for ladder in LADDERS:
        points = found.get(ladder.name, [])
        lines += _rows(ladder, points) if points else _kept_rows(ladder, kept) or _rows(ladder, points)
    lines += [
        "",
        "### Improved exponents",
        "",
        "The same points with the code of the commit before.",
        "",
    ]
    lines += ["| system | before | now | exponent before | now |", "|---|---|---|---|---|"]
    for name in IMPROVED:
        if name + BEFORE in found and name in found:
            lines += _improved(name, found[name + BEFORE], found[name])
        else:
            _, _, after = kept.partition("### Improved exponents")
            system, grows = name.split(", ")
            rows = (line for line in after.splitlines() if line.startswith(f"| {system}, "))
            lines += [line for line in rows if line.split("|")[1].endswith(f" {grows} ")]
    return [*lines, ""]


def _kept_rows(ladder: Ladder, page: str) -> list[str]:
    """The rows of a ladder in a page: the one that names it with its first size, and those after it without a name."""
    lines = page.splitlines()
    first = f"| {ladder.system}, {ladder.note} | {_size(ladder, 0)} |"
    begins = [number for number, line in enumerate(lines) if line.startswith(first)]
    if not begins:
        return []
    end = begins[0] + 1
    while end < len(lines) and lines[end].startswith("|  |"):
        end += 1
    return lines[begins[0] : end]


def _size(ladder: Ladder, step: int) -> str:
    size, other = ladder.sizes[step]
    return f"{size:,} {ladder.grows}" + (f" × {other:,} {ladder.other}" if ladder.other else "")


def _rows(ladder: Ladder, points: list[Point]) -> list[str]:
    slope = exponent(points)
    lines, known = [], [point for point in points if "cpu_s" in point]
    for step, (size, _) in enumerate(ladder.sizes):
        name = f"{ladder.system}, {ladder.note}" if step == 0 else ""
        what = _size(ladder, step)
        shown = f"{slope:.2f}" if slope is not None and known and size == known[-1]["size"] else ""
        point = next((p for p in points if p["size"] == size), None)
        if point is not None and "cpu_s" in point:
            cells = _cells(point)
        elif point is not None:  # a projection below what it took would mislead
            cells = [point["broke"], "", "", ""]
        elif slope is not None:
            seconds = known[-1]["cpu_s"] * (size / known[-1]["size"]) ** slope
            cells = [f"[{_seconds(seconds)}]", "", "", "not measured"]
        else:
            cells = ["not measured", "", "", ""]
        lines.append(f"| {name} | {what} | {' | '.join(cells)} | {shown} |")
    return lines


def _cells(point: Point) -> list[str]:
    gap = (
        f"{point['gap']:.2%}" if point.get("gap") is not None else f"no bound: {point.get('no_gap', 'none')}"
    )
    each = _seconds(point["cpu_s"] / point["decisions"])
    return [_seconds(point["cpu_s"]), each, f"{point['bytes'] / 1e6:,.0f} MB", gap]


def _seconds(value: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1.0 or unit == "µs":
            return f"{value * factor:,.{0 if value * factor >= 100 else 1}f} {unit}"
    raise AssertionError(value)


def _improved(name: str, before: list[Point], now: list[Point]) -> list[str]:
    lines, slopes = [], [exponent(before), exponent(now)]
    for old in before:
        new = next((p for p in now if p["size"] == old["size"] and "cpu_s" in p), None)
        if new is None:
            continue
        was = _seconds(old["cpu_s"]) if "cpu_s" in old else old["broke"]
        last = old is before[-1]
        ends = " | ".join(f"{s:.2f}" if last and s is not None else "" for s in slopes)
        system, grows = name.split(", ")
        lines.append(f"| {system}, {old['size']:,} {grows} | {was} | {_seconds(new['cpu_s'])} | {ends} |")
    return lines
