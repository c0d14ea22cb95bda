"""Changes of a scenario: converts objects with names (file) to rows of integers (model) and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tradewind.files.messages import find, shown
from tradewind.files.scalars import natural
from tradewind.files.schemas_scenario import ChangeFile
from tradewind.model.errors import ScenarioError, nearest
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI, UNLIMITED
from tradewind.model.view import Change

NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "capacity": ("node", "resource", "amount"),
    "bandwidth": ("link", "bps"),
    "price": ("node", "resource", "factor"),
    "egress": ("src", "dst", "factor"),
    "node_down": ("node",),
    "node_up": ("node",),
    "link_down": ("link",),
    "link_up": ("link",),
}
"""Required fields of each kind of change."""
MAY: Final = {"bandwidth": ("direction",), "price": ("of",), "egress": ("of",)}
"""Fields that a kind of change may have besides."""
DIRECTIONS: Final = ("ab", "ba", "both")
BOTH: Final = 2


def link_labels(setup: Setup) -> dict[str, tuple[int, int] | None]:
    """`a->b` and `a-b` -> (link, direction); None if a label is ambiguous."""
    labels: dict[str, tuple[int, int] | None] = {}
    for number, link in enumerate(setup.links):
        a, b = setup.nodes[link.a].name, setup.nodes[link.b].name
        for label, direction in ((f"{a}->{b}", 0), (f"{b}->{a}", 1), (f"{a}-{b}", BOTH), (f"{b}-{a}", BOTH)):
            labels[label] = None if label in labels else (number, direction)
    return labels


def build_changes(setup: Setup, files: Sequence[ChangeFile]) -> tuple[Change, ...]:
    """Convert the changes of a file to the model."""
    if not files:
        return ()
    labels = link_labels(setup)
    return tuple(_change(setup, labels, file, row) for row, file in enumerate(files))


def _change(setup: Setup, labels: Mapping[str, tuple[int, int] | None], file: ChangeFile, row: int) -> Change:
    where, needs = f"changes[{row}]", NEEDS[file.kind]
    for name in ("node", "resource", "link", "direction", "src", "dst", "amount", "bps", "factor", "of"):
        given = getattr(file, name) is not None
        if given and name not in (*needs, *MAY.get(file.kind, ())):
            raise ScenarioError(f"{where}.{name} does not apply to changes of kind {file.kind}; drop it")
        if not given and name in needs:
            raise ScenarioError(
                f"{where}.{name} is missing; changes of kind {file.kind} need {', '.join(needs)}"
            )
    a = b = 0
    match file.kind:
        case "capacity" | "price":
            a = find(setup.node_index, file.node or "", "node", f"{where}.node")
            b = find(setup.resource_index, file.resource or "", "resource", f"{where}.resource")
        case "egress":
            a = find(setup.node_index, file.src or "", "node", f"{where}.src")
            b = find(setup.node_index, file.dst or "", "node", f"{where}.dst")
        case "node_down" | "node_up":
            a = find(setup.node_index, file.node or "", "node", f"{where}.node")
        case _:
            a, b = _link(setup, labels, file, where)
    amount = UNLIMITED if file.amount == "unlimited" else file.amount
    value = next((v for v in (amount, file.bps, file.factor) if v is not None), 0)
    of = MILLI if file.of is None else file.of
    return Change(at_us=file.at_us, kind=file.kind, a=a, b=b, value=value, of=of)


def _link(
    setup: Setup, labels: Mapping[str, tuple[int, int] | None], file: ChangeFile, where: str
) -> tuple[int, int]:
    """(link, direction); link failures have no direction."""
    whole = file.kind != "bandwidth"
    link: Any = file.link
    if type(link) is str and link not in labels and link.isdecimal() and len(link) < 10:
        link = int(link)  # a table column has one type, so numbers mixed with names arrive as text
    if type(link) is int:
        if not 0 <= link < len(setup.links):
            raise ScenarioError(
                f"{where}.link is {shown(link)}; link numbers are 0 to {len(setup.links) - 1}"
            )
        direction = DIRECTIONS.index(file.direction) if file.direction is not None else BOTH
        return link, 0 if whole else direction
    text = str(link)[:500]
    if text not in labels:
        raise ScenarioError(f"{where}.link refers to an unknown link, {shown(link)}.{nearest(text, labels)}")
    found = labels[text]
    if found is None:
        raise ScenarioError(
            f"{where}.link is {shown(link)}, which matches several links; give the number of the link, counted from 0"
        )
    if file.direction is not None:
        raise ScenarioError(
            f"{where}.direction is only for links given by number; write 'a->b' or 'a-b' as link instead"
        )
    if whole and found[1] != BOTH:
        raise ScenarioError(f"{where}.link is {shown(link)}; a link fails in both directions, so write 'a-b'")
    return found[0], 0 if whole else found[1]


def write_changes(setup: Setup, changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Convert changes of the model to objects of a file."""
    labels = link_labels(setup) if changes else {}
    return [_object(setup, labels, change) for change in changes]


def _object(setup: Setup, labels: Mapping[str, tuple[int, int] | None], change: Change) -> dict[str, Any]:
    row: dict[str, Any] = {"at_us": int(change.at_us), "kind": change.kind}
    match change.kind:
        case "capacity":
            amount: Any = "unlimited" if change.value >= UNLIMITED else natural(change.value)
            row |= {
                "node": setup.nodes[change.a].name,
                "resource": setup.resources[change.b],
                "amount": amount,
            }
        case "price":
            row |= {
                "node": setup.nodes[change.a].name,
                "resource": setup.resources[change.b],
                **_factor(change),
            }
        case "egress":
            row |= {"src": setup.nodes[change.a].name, "dst": setup.nodes[change.b].name, **_factor(change)}
        case "node_down" | "node_up":
            row["node"] = setup.nodes[change.a].name
        case "bandwidth":
            row |= _named_link(setup, labels, change.a, change.b) | {"bps": int(change.value)}
        case _:
            row |= _named_link(setup, labels, change.a, BOTH)
            row.pop("direction", None)
    return row


def _factor(change: Change) -> dict[str, Any]:
    of = {} if change.of == MILLI else {"of": natural(change.of)}
    return {"factor": natural(change.value), **of}


def _named_link(
    setup: Setup, labels: Mapping[str, tuple[int, int] | None], number: int, direction: int
) -> dict[str, Any]:
    link = setup.links[number]
    a, b = setup.nodes[link.a].name, setup.nodes[link.b].name
    label = (f"{a}->{b}", f"{b}->{a}", f"{a}-{b}")[direction]
    if labels[label] == (number, direction):
        return {"link": label}
    return {"link": int(number), "direction": DIRECTIONS[direction]}
