"""Own contracts on top of a list: percent off or a fixed price, per cloud, region, machine or GPU, and for egress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tradewind.model.errors import InputError, LookupFailed
from tradewind.prices.listing import EgressPrice, ListedMachine, PriceList
from tradewind.prices.places import means


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a contract says of the machines that it covers; the last terms that cover a machine hold."""

    cloud: str = ""
    region: str = ""
    machine: str = ""
    gpu: str = ""
    percent_off: float | None = None
    usd_per_hour: float | None = None

    def cover(self, machine: ListedMachine) -> bool:
        """Whether they hold for a machine."""
        return (
            self.cloud in ("", machine.cloud)
            and (not self.region or means(self.region, machine.place))
            and self.machine in ("", machine.machine)
            and self.gpu in ("", machine.gpu)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressTerms:
    """What a contract says of egress from regions to regions; the last terms that cover a pair hold."""

    src: str
    dst: str = "*"
    percent_off: float | None = None
    usd_per_gb: float | None = None

    def cover(self, src: str, dst: str) -> bool:
        """Whether they hold for a pair."""
        return means(self.src, src) and means(self.dst, dst)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """A named set of terms. Prices of spot machines stay as they are listed."""

    name: str
    machines: tuple[Terms, ...] = ()
    egress: tuple[EgressTerms, ...] = ()

    def apply(self, prices: PriceList) -> PriceList:
        """The list at these terms; raises an error where terms cover nothing, as they may be misspelt."""
        for number, terms in enumerate(self.machines):
            if not any(map(terms.cover, prices.machines)):
                raise _unused(f"{self.name}: machines[{number}]", terms, prices)
        for number, rule in enumerate(self.egress):
            if not any(rule.cover(*pair) for pair in prices.egress.prices):
                raise InputError(
                    f"egress[{number}] covers no pair of regions of {prices.name} (src {rule.src!r}, dst {rule.dst!r})",
                    where=self.name,
                )
        egress = {
            pair: EgressPrice(usd, price.filled and usd == price.usd_per_gb)
            for pair, price in prices.egress.prices.items()
            for usd in [_egress(self.egress, pair, price.usd_per_gb)]
        }
        return replace(
            prices,
            name=f"{prices.name} at {self.name}",
            machines=tuple(self._priced(machine) for machine in prices.machines),
            egress=replace(prices.egress, prices=egress),
        )

    def _priced(self, machine: ListedMachine) -> ListedMachine:
        usd = machine.usd_per_hour
        for terms in self.machines:
            if terms.cover(machine):
                fixed, percent = terms.usd_per_hour, terms.percent_off or 0.0
                usd = machine.usd_per_hour * (1 - percent / 100) if fixed is None else fixed
        spot = machine.spot_usd_per_hour
        keep = spot is not None and spot < usd
        return replace(machine, usd_per_hour=usd, spot_usd_per_hour=spot if keep else None)


def _egress(rules: tuple[EgressTerms, ...], pair: tuple[str, str], usd: float) -> float:
    found = usd
    for rule in rules:
        if rule.cover(*pair):
            found = (
                usd * (1 - (rule.percent_off or 0.0) / 100) if rule.usd_per_gb is None else rule.usd_per_gb
            )
    return found


def _unused(where: str, terms: Terms, prices: PriceList) -> InputError:
    """An error that names the first field whose value no machine has."""
    fields: tuple[tuple[str, str, Callable[[ListedMachine], str]], ...] = (
        ("cloud", terms.cloud, lambda each: each.cloud),
        ("machine", terms.machine, lambda each: each.machine),
        ("gpu", terms.gpu, lambda each: each.gpu),
    )
    for name, value, of in fields:
        known = {of(machine) for machine in prices.machines}
        if value and value not in known:
            return InputError(f"{where}.{name}: {LookupFailed(name, value, known)}")
    if terms.region and not any(means(terms.region, place) for place in prices.places):
        regions = {place.partition(":")[2] for place in prices.places}
        return InputError(f"{where}.region: {LookupFailed('region', terms.region, regions)}")
    return InputError(f"{where} covers no machine of {prices.name}; its fields exclude each other")
