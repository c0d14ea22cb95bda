"""Pydantic models of prices and machines in the scenario file."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from tradewind.files.scalars import Bps, Name, Number, Some, SpanUs, Usd
from tradewind.model.tariff import TariffRule

Names = list[Name]


class Strict(BaseModel):
    """Immutable; unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TariffFile(Strict):
    """A price in volume tiers; a plain number means a single tier."""

    usd: list[Usd] = Field(
        description="price of each tier: USD per unit-hour (rent) or USD per GB (egress); must not increase"
    )
    starts: list[Number] = Field(
        default_factory=lambda: [0.0],
        description="start of each tier: units (rent) or GB of a slot (egress); the first is 0",
    )
    rule: TariffRule = Field(
        default="graduated",
        description="graduated: each unit at its tier's price; retroactive: all units at the price of the last tier reached",
    )


def _tariff_tag(value: Any) -> str:
    return "tiers" if isinstance(value, dict | TariffFile) else "flat"


AnyTariff = Annotated[
    Annotated[Usd, Tag("flat")] | Annotated[TariffFile, Tag("tiers")], Discriminator(_tariff_tag)
]


class MachineFile(Strict):
    """The machines that a node rents out; a worker of a job with `gpus` is one of them."""

    gpu: Name = Field(description="name of the GPU type")
    gpus: Some = Field(description="GPUs of a machine (a number)")
    bus_bps: Bps = Field(description="bit/s between the GPUs of a machine")
    network_bps: Bps = Field(description="bit/s between machines")


class EgressFile(Strict):
    """Price of data sent from one site to another; `*` matches every site without an entry of its own."""

    src: Name = Field(description="name of the source, or *")
    dst: Name = Field(description="name of the destination, or *")
    tariff: AnyTariff = Field(description="tariff in USD per GB, by the GB of a slot")


class SpendCapFile(Strict):
    """Limits on what a tenant spends, at list price; give one or both."""

    slot_usd: Usd | None = Field(default=None, description="USD per slot; no limit if omitted")
    total_usd: Usd | None = Field(default=None, description="USD in total; no limit if omitted")


class PairFile(Strict):
    """A pair of sites."""

    src: Name = Field(description="name of the source, or *")
    dst: Name = Field(description="name of the destination, or *")


class PoolFile(Strict):
    """A discount on what several nodes or pairs of sites cost together in a period."""

    name: Name = Field(description="name of the pool")
    rent: dict[Name, Names] = Field(
        default_factory=dict, description="resource -> names of the nodes whose rent of it counts"
    )
    egress: list[PairFile] = Field(
        default_factory=list,
        description="pairs of sites whose egress counts; * stands for all that have a price",
    )
    period_us: SpanUs = Field(description="billing period in microseconds: a slot, or a month such as '30 d'")
    tariff: AnyTariff = Field(
        description="USD paid per USD spent at the members' own prices; tiers start at USD spent in the period"
    )
    free_usd: Usd = Field(
        default=0.0, description="USD spent in each period that cost nothing, before the tariff"
    )
    carried_usd: Usd = Field(default=0.0, description="USD spent in the first period before the run")
