"""The quotes of a period: held ones keep their offers and expiry, and are numbered anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tradewind.engine.instants import Trade
from tradewind.engine.journal import Journal
from tradewind.engine.quotes import sold
from tradewind.model.decision import HeldQuote, Quote
from tradewind.model.view import Event


class PeriodQuotes:
    """Writes quotes and answers to the journal of a period; methods return the events that go with them.

    moved   a quote in the period's time and numbers
    number  number of the first held quote that is made in the period, as the whole run counts
    """

    def __init__(self, journal: Journal, moved: Callable[[Quote], Quote], from_us: int, number: int) -> None:
        self._journal, self._moved, self._from_us, self._number = journal, moved, from_us, number
        self._ids: dict[int, int] = {}  # number of a held quote in the whole run -> in the period
        self._count = 0
        self._open: set[int] = set()  # jobs, as the whole run counts

    def sell_again(self, quote: Quote, *, thought: bool) -> list[Event]:
        """What was sold before the period is sold at its start; no script binds a person who thought about it."""
        accepted = Event(0, "accepted", quote.job, 0)
        if not thought:
            self._journal.quote(0, quote, 0)
            return [accepted]
        found = [self._hold(quote, 0, 1), accepted]
        self._journal.quote(0, quote, 0, held=True)
        return found

    def open_again(self, quotes: Iterable[HeldQuote]) -> list[Event]:
        """Quotes that were open at the start are made then, without price list, and expire when they did."""
        found = []
        for held in quotes:
            self._ids[held.id] = self._count
            self._open.add(held.quote.job)
            quote = self._moved(sold(held, self._from_us)._replace(posted=None))
            found.append(self._hold(quote, 0, held.expires_us - self._from_us))
        return found

    def take(self, at_us: int, trade: Trade, *, inside: bool) -> None:
        """Write what became of a quote; of jobs outside the period, held quotes are only counted."""
        event, quote, taken = trade
        opens = event is not None and event.kind == "quoted"
        if inside and opens and event is not None and quote is not None:
            self._ids[self._number] = self._count
            self._open.add(event.job)
            self._hold(self._moved(quote), at_us, event.value - self._from_us)
        elif inside and event is not None:
            if quote is not None:
                self._journal.quote(at_us, self._moved(quote), taken, held=event.job in self._open)
            self._open.discard(event.job)
        self._number += opens

    def number(self, old: int) -> int:
        """The number in the period of a held quote of the whole run."""
        return self._ids.get(old, -1)

    def _hold(self, quote: Quote, at_us: int, expires_us: int) -> Event:
        self._journal.hold(HeldQuote(self._count, quote, at_us, expires_us))
        self._count += 1
        return Event(at_us, "quoted", quote.job, expires_us)
