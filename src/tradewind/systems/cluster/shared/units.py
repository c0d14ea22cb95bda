"""Room counted in units of one kind, such as the GPUs of a trace; a placement costs about a microsecond."""

from __future__ import annotations

from tradewind.systems.cluster.shared.shape import Place


class Units:
    """Hosts by free units: bit h of level[f] is set where host h has f units free."""

    def __init__(self, nodes: tuple[int, ...], capacity: list[int]) -> None:
        self._nodes = nodes
        self._number = {node: h for h, node in enumerate(nodes)}
        self._used = [0] * len(nodes)
        self._single: dict[tuple[int, int], Place] = {}
        self.resize(capacity)

    def resize(self, capacity: list[int]) -> None:
        """Set the capacity (units per host); what is in use stays."""
        self._cap = capacity
        self.total = sum(capacity)
        self._free = [max(0, c - u) for c, u in zip(capacity, self._used, strict=True)]
        self.free = sum(self._free)
        self._widest = max(capacity, default=0)
        self._level = [0] * (max(self._widest, *self._used, 0) + 1)
        for h, units in enumerate(self._free):
            self._level[units] |= 1 << h

    def take(self, need: int) -> Place | None:
        """Take a place for `need` units; None where they do not fit."""
        if need > self.free:
            return None
        level = self._level
        for units in range(need, self._widest + 1):
            hosts = level[units]
            if hosts:
                low = hosts & -hosts
                h = low.bit_length() - 1
                level[units] = hosts ^ low
                level[units - need] |= low
                self._free[h] = units - need
                self._used[h] += need
                self.free -= need
                place = self._single.get((h, need))
                if place is None:
                    place = self._single[h, need] = Place((self._nodes[h],), (need,))
                return place
        return self._spread(need)

    def _spread(self, need: int) -> Place:
        left, nodes, workers = need, [], []
        while left:
            level, units = self._level, min(left, self._widest)
            while units <= self._widest and not level[units]:
                units += 1
            if units > self._widest:
                units = self._widest
                while not level[units]:
                    units -= 1
            h = (level[units] & -level[units]).bit_length() - 1
            part = min(left, units)
            self._set(h, part)
            nodes.append(self._nodes[h])
            workers.append(part)
            left -= part
        return Place(tuple(nodes), tuple(workers))

    def _set(self, h: int, part: int) -> None:
        """Take `part` units of host h; a negative number returns them."""
        bit, before = 1 << h, self._free[h]
        self._used[h] += part
        after = self._cap[h] - self._used[h]
        after = after if after > 0 else 0
        self._level[before] ^= bit
        self._level[after] |= bit
        self._free[h] = after
        self.free += after - before

    def give(self, place: Place) -> None:
        """Free the units of a place."""
        number, nodes, parts = self._number, place[0], place[1]
        if len(nodes) == 1:
            self._set(number[nodes[0]], -parts[0])
            return
        for node, part in zip(nodes, parts, strict=True):
            self._set(number[node], -part)

    def hold(self, place: Place) -> None:
        """Take exactly this place."""
        for node, part in zip(place.nodes, place.workers, strict=True):
            self._set(self._number[node], part)
