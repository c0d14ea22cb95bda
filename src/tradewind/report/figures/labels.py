"""Where the names of a map's nodes go: beside their discs, clear of other discs, names and lines."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats

CHARACTER, LINE = 6.6, 14.0
"""Width of a character and height of a line of a label, CSS pixels."""
MOST_COVERED = 0.1
"""Part of a spare label that may lie over others."""
ALONG = 40
"""Points of a line that labels keep clear of."""


class Canvas(NamedTuple):
    """What labels keep clear of: points of lines (P, 2), and the half width and height of the picture (2,)."""

    lines: Floats
    half: Floats


def wrapped(name: str, length: int) -> str:
    """The whole name, in lines of about `length` characters, broken after `-`, `:`, `/`, `_`, a comma or a space."""
    lines = [""]
    for piece in re.findall(r"[^-:/_, ]*[-:/_,]? ?", name):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > length:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def points_of(ends: Floats, bend: float = 0.0) -> Floats:
    """Points along straight lines or arcs, (L * ALONG, 2); `ends` (L, 2, 2), `bend` as matplotlib's arc3 has it."""
    first, last = ends[:, 0], ends[:, 1]
    across = (last - first)[:, ::-1] * np.array([1.0, -1.0])
    middle = (first + last) / 2 + bend * across
    t = np.linspace(0.0, 1.0, ALONG)[None, :, None]
    found: Floats = (1 - t) ** 2 * first[:, None] + 2 * t * (1 - t) * middle[:, None] + t**2 * last[:, None]
    return found.reshape(-1, 2)


def spots(
    xy: Floats, gaps: Floats, texts: Mapping[int, str], clear: Canvas, spare: Collection[int] = ()
) -> dict[int, tuple[float, float]]:
    """Node -> centre of its label, of eight places around its disc the one that covers the least; in the order given.

    Labels of the nodes `spare` are left out where they would cover others or discs.
    """
    discs = np.concatenate((xy - gaps[:, None], xy + gaps[:, None]), axis=1)
    taken: list[Floats] = []
    found = {}
    for n, text in texts.items():
        lines = text.split("\n")
        half = np.array([CHARACTER * max(map(len, lines)) / 2, LINE * len(lines) / 2])
        away = gaps[n] + half
        tries = [
            (0, -away[1]),
            (0, away[1]),
            (away[0], 0),
            (-away[0], 0),
            *((x, y) for x in (away[0] - 4, 4 - away[0]) for y in (-away[1], away[1])),
        ]
        others = np.array([*np.delete(discs, n, axis=0), *taken]).reshape(-1, 4)
        room = np.maximum(clear.half - half, 0.0)
        centres = [np.clip(xy[n] + step, -room, room) for step in tries]
        own = discs[n : n + 1] * 0.5 + np.concatenate((xy[n], xy[n])) * 0.5
        boxes = np.concatenate((others, own))
        spot = min(centres, key=lambda at: covered(at, half, boxes) + _crossed(at, half, clear.lines))
        if n in spare and covered(spot, half, others) > MOST_COVERED * 4 * float(half.prod()):
            continue
        taken.append(np.concatenate((spot - half, spot + half)))
        found[n] = (float(spot[0]), float(spot[1]))
    return found


def covered(centre: Floats, half: Floats, boxes: Floats) -> float:
    """Area that a label shares with boxes (left, bottom, right, top), each row one."""
    low = np.maximum(centre - half, boxes[:, :2])
    high = np.minimum(centre + half, boxes[:, 2:])
    return float(np.prod(np.maximum(high - low, 0.0), axis=1).sum())


def _crossed(centre: Floats, half: Floats, points: Floats) -> float:
    """Points of lines within a label, as an area that is comparable with `covered`."""
    inside = (np.abs(points - centre) <= half).all(axis=1)
    return 8.0 * float(inside.sum())


def apart(xy: Floats, least: float, half: Floats) -> Floats:
    """Positions moved as little as needed so that any two are about `least` pixels apart, within `half` of the centre."""
    count = len(xy)
    turn = np.arange(count) * 2.399963  # where two coincide, they part in different directions
    xy = xy + 0.01 * np.stack((np.cos(turn), np.sin(turn)), axis=1)
    for _ in range(60):
        step = xy[:, None] - xy[None]
        distance = np.sqrt((step**2).sum(axis=2)) + np.eye(count) * 1e9
        short = np.maximum(least - distance, 0.0)
        if not short.any():
            break
        xy = np.clip(xy + (step / distance[..., None] * short[..., None] * 0.5).sum(axis=1), -half, half)
    return xy
