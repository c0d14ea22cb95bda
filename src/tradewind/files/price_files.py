"""Reads lists of prices, egress and bandwidth, and contracts, from files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from tradewind.files import documents
from tradewind.files.messages import validated
from tradewind.files.scalars import Name, Number
from tradewind.model.errors import InputError
from tradewind.prices.builtin import CATALOGUE, catalogue
from tradewind.prices.builtin import egress as built_in_egress
from tradewind.prices.contract import Contract, EgressTerms, Terms
from tradewind.prices.imports import FORMS, read_foreign
from tradewind.prices.listing import Egress, PriceList
from tradewind.prices.table import MOST_USD_PER_GB, MOST_USD_PER_HOUR, read_egress, read_machines
from tradewind.prices.wan import Wan, measured, read_wan

LARGEST_TABLE: Final = 100 * 10**6


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Terms(_Part):
    cloud: Name | None = Field(None, description="cloud")
    region: Name | None = Field(None, description="region, continent or pattern such as us-*")
    machine: Name | None = Field(None, description="machine type")
    gpu: Name | None = Field(None, description="GPU type")
    percent_off: Number | None = Field(None, description="percent off the list price")
    usd_per_hour: Number | None = Field(None, description="fixed price per machine-hour")


class _EgressTerms(_Part):
    src: Name = Field(description="source: cloud, region, continent or pattern")
    dst: Name = Field("*", description="destination likewise")
    percent_off: Number | None = Field(None, description="percent off the list price")
    usd_per_gb: Number | None = Field(None, description="fixed price per GB")


class _Contract(_Part):
    tradewind_contract: int = Field(description="version of the format: 1")
    name: Name = Field(description="name of the contract")
    machines: list[_Terms] = Field(default_factory=list, description="terms for machines")
    egress: list[_EgressTerms] = Field(default_factory=list, description="terms for egress")


def load_prices(
    name: str = CATALOGUE, *, egress: str = CATALOGUE, contract: str = "", day: str = ""
) -> PriceList:
    """A list by name: `catalogue`, or a CSV file; egress likewise; contract: a YAML or JSON file, or none."""
    routes = load_egress(egress)
    if name == CATALOGUE:
        found = catalogue() if egress == CATALOGUE else replace(catalogue(), egress=routes)
    else:
        found = read_machines(documents.read_text(Path(name), LARGEST_TABLE), name, egress=routes, day=day)
    return load_contract(Path(contract)).apply(found) if contract else found


def import_prices(path: Path, *, form: str, cloud: str = "", day: str = "") -> PriceList:
    """A list from a file of another catalogue; form: skypilot, gpuhunt or csv."""
    text = documents.read_text(path, LARGEST_TABLE)
    if form == "csv":
        return read_machines(text, str(path), egress=built_in_egress(), day=day)
    if form not in FORMS:
        raise InputError(f"found {form!r:.40}; allowed are csv, {', '.join(FORMS)}", where="--from")
    if not cloud:
        raise InputError(f"a file of {form} has one cloud and does not name it; give it", where="--cloud")
    return read_foreign(text, str(path), form=form, cloud=cloud, day=day, egress=built_in_egress())


def load_egress(name: str = CATALOGUE) -> Egress:
    """Egress prices: `catalogue`, or a CSV file."""
    if name == CATALOGUE:
        return built_in_egress()
    return read_egress(documents.read_text(Path(name), LARGEST_TABLE), name)


def load_wan(name: str = CATALOGUE, *, day: str = "") -> Wan:
    """Bandwidth: `catalogue`, or a CSV file."""
    if name == CATALOGUE:
        return measured()
    return read_wan(documents.read_text(Path(name), LARGEST_TABLE), name, day=day)


def load_contract(path: Path) -> Contract:
    """A contract from a YAML or JSON file."""
    read = validated(_Contract, documents.read_version(path, "tradewind_contract", 1), str(path))
    if not read.machines and not read.egress:
        raise InputError("has no terms; add machines or egress", where=str(path))
    for number, terms in enumerate(read.machines):
        place = f"{path}: machines[{number}]"
        _check_price(place, terms.percent_off, terms.usd_per_hour, "usd_per_hour", MOST_USD_PER_HOUR)
    for number, rule in enumerate(read.egress):
        place = f"{path}: egress[{number}]"
        _check_price(place, rule.percent_off, rule.usd_per_gb, "usd_per_gb", MOST_USD_PER_GB)
    return Contract(
        name=read.name,
        machines=tuple(
            Terms(**{k: v for k, v in each.model_dump().items() if v is not None}) for each in read.machines
        ),
        egress=tuple(EgressTerms(**each.model_dump()) for each in read.egress),
    )


def _check_price(place: str, percent: float | None, usd: float | None, name: str, most: float) -> None:
    if (percent is None) == (usd is None):
        raise InputError(f"give either percent_off or {name}", where=place)
    if percent is not None and not 0 <= percent < 100:
        raise InputError(f"percent_off is {percent:g}; it must be from 0 to below 100", where=place)
    zero = name == "usd_per_gb" and usd == 0
    if usd is not None and not (0 < usd <= most or zero):
        raise InputError(f"{name} is {usd:g}; it must be above 0 and at most {most:,.0f}", where=place)
