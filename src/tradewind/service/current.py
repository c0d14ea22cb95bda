"""What a service is now: its CONFIG, with the setup that its store began with and the policy that it was changed to."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tradewind.engine.fit import check_fit
from tradewind.model.codec import plain, read
from tradewind.model.errors import InputError
from tradewind.model.hash import setup_hash
from tradewind.model.params import resolve_params
from tradewind.model.setup import Setup
from tradewind.model.tariff import Tariff
from tradewind.registry import policies
from tradewind.service import config as configs
from tradewind.service.config import Config, PolicyFile
from tradewind.service.operations import OWN, kept_value
from tradewind.store.board import Board
from tradewind.store.database import FILE
from tradewind.store.store import Entry, Store
from tradewind.version import __version__

FREE = Tariff(usd=(0.0,))


def store_address(config: Config, data: Path) -> str:
    """Where the store of a service is."""
    return config.file.store or str(data / FILE)


def current_config(path: Path, data: Path) -> Config:
    """CONFIG of a service as it is now."""
    config = configs.load(path)
    address = store_address(config, data)
    if "://" not in address and not Path(address).exists():
        return config
    with Board(address) as board:
        first, changed = board.row("records", number=1), kept_value(board, OWN)
    if first is None:
        return config
    found = json.loads(first["body"])
    setup = read(Setup, found["setup"], "setup")
    if _frame(setup) == _frame(config.setup):  # capacities and prices are changed while it runs
        config = replace(config, scenario=replace(config.scenario, setup=setup))
    return config if changed is None or found["policy"] != config.spec.name else with_policy(config, changed)


def with_policy(config: Config, wanted: Mapping[str, Any]) -> Config:
    """CONFIG with another policy; InputError says why it cannot be."""
    spec = policies.get(wanted["name"])
    if not spec.online:
        raise InputError(f"{spec.name} decides in hindsight; choose an online policy")
    params = resolve_params(spec.name, spec.params, wanted["params"])
    check_fit(spec, config.scenario)
    file = PolicyFile(name=wanted["name"], params=dict(wanted["params"]), seed=wanted["seed"])
    return replace(config, spec=spec, params=params, file=config.file.model_copy(update={"policy": file}))


def _frame(setup: Setup) -> str:
    """Hash of what of a setup cannot be changed while a service runs."""
    nodes = tuple(replace(node, capacity_milli=(0,) * len(node.capacity_milli)) for node in setup.nodes)
    return setup_hash(replace(setup, nodes=nodes, rent=dict.fromkeys(setup.rent, FREE)))


def header_of(config: Config, store: Store) -> dict[str, Any]:
    """The first record of the store, which is written where there is none; another setup or policy is refused."""
    first = store.first()
    mine = {"setup": setup_hash(config.setup), "policy": config.spec.name, "params": dict(config.params)}
    if first is None:
        header = {
            "version": 1, "by": __version__, "scenario": mine["setup"], "policy": mine["policy"],
            "params": mine["params"], "seed": config.file.policy.seed, "pace": 1e6 * config.file.speed,
            "token": secrets.token_hex(16), "name": config.file.name, "world": "processes",
            "setup": plain(config.setup), "customers": {},
        }  # fmt: skip
        store.write([Entry("header", header)])
        return header
    found = first.data
    with Board(store.address) as board:
        changed = kept_value(board, OWN)
    policy, params = found["policy"], found["params"]
    if changed is not None:
        spec = policies.get(changed["name"])
        policy, params = spec.name, resolve_params(spec.name, spec.params, changed["params"])
    for name, old in (("setup", found.get("scenario")), ("policy", policy), ("params", params)):
        if json.loads(json.dumps(old)) != json.loads(json.dumps(mine[name])):
            raise InputError(
                f"it belongs to a service with {name} {old!r}; CONFIG has {mine[name]!r}. Use the same {name}, or another "
                "--data; capacities, prices and the policy are changed while it runs (tradewind sites, prices, policy)",
                where=store.name,
            )
    return found
