"""CONFIG of a service: sites, prices, policy, fleet, store, tenants, limits; one clear error where something is wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from tradewind.engine.fit import check_fit, check_named
from tradewind.files import documents
from tradewind.files.messages import sentence, shown
from tradewind.files.scalars import Count, Flag, Name, Number, PlainObject, Some, Tenant, Text, rule
from tradewind.files.scenario_build import build
from tradewind.files.schemas_prices import AnyTariff, EgressFile, Strict
from tradewind.files.schemas_scenario import LinkFile, NodeFile, ScenarioFile
from tradewind.model.codec import compact, plain
from tradewind.model.errors import InputError, nearest
from tradewind.model.params import resolve_params
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.model.tariff import Tariff
from tradewind.model.units import US_PER_HOUR
from tradewind.registry import fleets, policies
from tradewind.store.database import Address
from tradewind.version import __version__
from tradewind.worlds.fleets import PROCESSES

VERSION = 1
WITHOUT_END_US = 100 * 365 * 24 * US_PER_HOUR
"""Horizon of a service: a hundred years."""
DEFAULT = "mixed"
"""Policy of a service whose CONFIG names none: it runs every kind of job."""
Role = Literal["admin", "operator", "tenant"]


def _above(value: float) -> float:
    if value <= 0:
        raise rule("it must be above 0")
    return value


Positive = Annotated[Number, AfterValidator(_above)]


class PolicyFile(Strict):
    """The policy that decides."""

    name: Name = Field(description="name of a policy (`tradewind policies`)")
    params: PlainObject = Field(default_factory=dict, description="its parameters")
    seed: Count = Field(default=0, description="seed of its random numbers")


class FleetFile(Strict):
    """Where ranks run."""

    address: Name = Field(
        default=PROCESSES, description="processes, slurm, ray://HOST:PORT or kubernetes[:CONTEXT]"
    )
    machines: dict[Name, list[Name]] = Field(
        default_factory=dict, description="node -> machines of the cluster, where names and labels do not say"
    )
    as_root: Flag = Field(default=False, description="true: a service that is root runs jobs as root")
    grace_s: Positive = Field(default=10.0, description="seconds between SIGTERM and SIGKILL")
    retries: Count = Field(
        default=3,
        description="failures without progress before a job is given up; with progress, 5 x (this + 1) within an hour",
    )
    stall_s: Positive = Field(default=300.0, description="seconds of silence after which a job is restarted")


class TenantFile(Strict):
    """A tenant. Its jobs run only commands that begin with one of `commands`."""

    commands: list[list[Text]] = Field(
        default_factory=list, description="allowed beginnings of commands, each a list of words"
    )
    any_command: Flag = Field(default=False, description="true: every command is allowed")
    jobs: Some | None = Field(default=None, description="most jobs that are not over; no limit if omitted")


class LimitsFile(Strict):
    """Limits of every token."""

    requests_per_s: Positive = Field(default=1000.0, description="requests per second, on average")
    burst: Some = Field(default=2000, description="requests at once")
    body_bytes: Some = Field(default=1_000_000, description="size of a request in bytes")
    streams: Some = Field(
        default=100, description="requests that are open at once, such as event streams and followed logs"
    )


class QuotesFile(Strict):
    """How long people may think about a quote."""

    hold_s: Positive = Field(default=60.0, description="seconds until a quote expires")
    per_tenant: Some = Field(default=4, description="quotes that a tenant may have open; further ones wait")


class ListenFile(Strict):
    """Where the service listens."""

    host: Name = Field(default="127.0.0.1", description="address; another than loopback is meant for proxies")
    certificate: Text = Field(default="", description="file with the TLS certificate; no TLS if omitted")
    key: Text = Field(default="", description="file with the key of the certificate")


class ServiceFile(Strict):
    """A whole CONFIG. Exactly one of `setup` and `inventory` is given."""

    tradewind_service: Literal[1] = Field(description="version of the format: 1")
    name: Name = Field(default="tradewind", description="name of the service, for people")
    setup: PlainObject | None = Field(
        default=None, description="sites, links and tariffs, as in a scenario file without jobs"
    )
    inventory: Name | None = Field(
        default=None, description="a scenario file instead, such as `tradewind inventory` writes"
    )
    prices: Name | None = Field(
        default=None,
        description="a file with `rent`: node -> resource -> tariff, which replaces those of the nodes",
    )
    policy: PolicyFile = Field(
        default=PolicyFile(name=DEFAULT), description=f"the policy that decides; {DEFAULT} if omitted"
    )
    fleet: FleetFile = Field(default=FleetFile(), description="where ranks run")
    store: Text = Field(
        default="", description="address of the store; default: store.db in the data directory"
    )
    tenants: dict[Tenant, TenantFile] = Field(description="tenant -> what it may do")
    limits: LimitsFile = Field(default=LimitsFile(), description="limits of every token")
    quotes: QuotesFile = Field(default=QuotesFile(), description="how long people may think about a quote")
    listen: ListenFile = Field(default=ListenFile(), description="where the service listens")
    speed: Positive = Field(default=1.0, description="factor by which time passes faster, for demonstrations")


class SitesFile(Strict):
    """Sites that join, as in a scenario file."""

    nodes: list[NodeFile] = Field(description="nodes, with capacity and rent")
    links: list[LinkFile] = Field(default_factory=list, description="their links")
    egress: list[EgressFile] = Field(
        default_factory=list, description="what moving data from and to them costs"
    )


class PricesFile(Strict):
    """A price list."""

    rent: dict[Name, dict[Name, AnyTariff]] = Field(description="node -> resource -> tariff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A checked CONFIG. scenario: setup without jobs; params: all parameters of the policy."""

    path: Path
    file: ServiceFile
    scenario: Scenario
    spec: Spec
    params: Mapping[str, Any]

    @property
    def setup(self) -> Setup:
        """Sites, links, tariffs, slot."""
        return self.scenario.setup


def in_force(setup: Setup, factors: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], Tariff]:
    """The tariffs of a setup with the factors on them that are in force."""
    return {
        key: tariff if factors.get(key, 1.0) == 1 else tariff.times(factors[key])
        for key, tariff in setup.rent.items()
    }


def price_hash(setup: Setup, factors: Mapping[tuple[int, int], float]) -> str:
    """Hash of the price list in force; the same list has the same hash, however it came about."""
    prices = [plain(in_force(setup, factors)), plain(setup.egress)]
    return sha256(compact(prices).encode()).hexdigest()[:16]


def version_of(config: Config) -> str:
    """Name and version of the policy that decides: of the package, and the hash of its parameters."""
    params = sha256(compact(plain(dict(config.params))).encode()).hexdigest()[:8]
    return f"{config.spec.name} {__version__} {params}"


def load(path: str | Path) -> Config:
    """Read and check a CONFIG; raises InputError that says where a mistake is."""
    path = Path(path)
    try:
        return parse(documents.read(path), path)
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(str(path)) else f"{path}: {text}") from None


def parse(raw: Any, path: Path) -> Config:
    """A Config from the plain values of a file; other files are looked for beside `path`."""
    if not isinstance(raw, dict):
        raise InputError(f"the file contains {shown(raw)}; the configuration of a service must be an object")
    documents.check_version(raw, "tradewind_service", VERSION)
    file = _validated(ServiceFile, raw)
    scenario = scenario_of(file, path)
    spec = policies.get(file.policy.name)
    if not spec.online:
        raise InputError(f"policy.name is {spec.name!r}, which decides in hindsight; choose an online policy")
    params = resolve_params(spec.name, spec.params, file.policy.params)
    check_fit(spec, scenario)
    check_charges(spec, params)
    if not file.tenants:
        raise InputError(
            "tenants is empty; name at least one, such as tenants: {research: {any_command: true}}"
        )
    check_named(spec, params, file.tenants)
    for tenant in scenario.setup.spend_caps:
        if tenant != "*" and tenant not in file.tenants:
            raise InputError(
                f"setup.spend_caps names {tenant!r}, which is no tenant.{nearest(tenant, file.tenants)}"
            )
    _check_addresses(file)
    return Config(path=path, file=file, scenario=scenario, spec=spec, params=params)


def _check_addresses(file: ServiceFile) -> None:
    """Check what else would only be noticed when it starts: fleet, store, certificate."""
    if file.fleet.address != PROCESSES:
        fleets.find(file.fleet.address.partition(":")[0])
    if file.store:
        Address(file.store)
    given = {"listen.certificate": file.listen.certificate, "listen.key": file.listen.key}
    for where, name in given.items():
        if not name and any(given.values()):
            raise InputError(f"{where} is missing; TLS needs the files of both certificate and key")
        if name and not os.access(name, os.R_OK):
            raise InputError(f"{where} is {name!r}, a file that cannot be read")


def check_charges(spec: Spec, params: Mapping[str, Any]) -> None:
    """Refuse a policy that says what jobs pay only when a run is over: a service has no end."""
    if spec.charges_with(params):
        without = ", ".join(f"{name}: {value}" for name, value in spec.uncharged.items())
        raise InputError(
            f"policy {spec.name} charges jobs when a run ends, and a service has no end; "
            + (f"set policy.params to {{{without}}}, or " if without else "")
            + "choose a policy that quotes prices"
        )


def _validated(model: Any, raw: Any, prefix: str = "") -> Any:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise InputError(prefix + sentence(error, model, raw)) from None


def scenario_of(file: ServiceFile, path: Path, added: Sequence[Mapping[str, Any]] = ()) -> Scenario:
    """The setup, as a scenario without jobs and without end; added: sites that joined (`SitesFile`)."""
    if (file.setup is None) == (file.inventory is None):
        raise InputError("give either setup (sites, links, tariffs) or inventory (a file with them)")
    where, raw = "setup.", dict(file.setup or {})
    if file.inventory is not None:
        where = f"{file.inventory}: "
        found = documents.read(path.parent / file.inventory)
        raw = dict(found) if isinstance(found, dict) else {}
        for table in ("jobs", "changes", "volumes"):
            raw.pop(table, None)
    raw = {"tradewind_scenario": 1, **raw, "horizon_us": raw.get("slot_us")}  # the end is set below
    for each in added:
        for name, rows in each.items():
            raw[name] = [*(raw.get(name) or ()), *rows]
    if file.prices is not None:
        raw["nodes"] = _priced(raw.get("nodes"), path.parent / file.prices)
    known: ScenarioFile = _validated(ScenarioFile, raw, where)
    if known.jobs or known.jobs_file or known.changes or known.changes_file or known.volumes_file:
        raise InputError(f"{where}jobs and changes come in while the service runs; remove them")
    try:
        found = build(known, file.name)
        return replace(found, setup=replace(found.setup, horizon_us=WITHOUT_END_US))
    except InputError as error:
        raise InputError(f"{where}{error}") from None


def _priced(nodes: Any, path: Path) -> Any:
    """Nodes with the tariffs of a price list."""
    raw = documents.read(path)
    prices: PricesFile = _validated(PricesFile, raw, f"{path.name}: ")
    if not isinstance(nodes, list):
        return nodes
    names = [node.get("name") for node in nodes if isinstance(node, dict)]
    for name in prices.rent:
        if name not in names:
            raise InputError(
                f"{path.name}: rent names {name!r}, which is no node.{nearest(name, map(str, names))}"
            )
    return [
        {**node, "rent": raw["rent"][node["name"]]}
        if isinstance(node, dict) and node.get("name") in prices.rent
        else node
        for node in nodes
    ]
