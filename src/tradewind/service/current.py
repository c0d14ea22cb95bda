"""What a service is now: its CONFIG, with the sites that its store has and the policy that it was changed to."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tradewind.engine.fit import check_fit
from tradewind.model.codec import plain, read
from tradewind.model.errors import InputError
from tradewind.model.hash import setup_hash
from tradewind.model.params import resolve_params
from tradewind.model.setup import Setup
from tradewind.registry import policies
from tradewind.service import config as configs
from tradewind.service.config import Config, PolicyFile
from tradewind.service.growth import difference
from tradewind.service.operations import OWN, kept_value
from tradewind.store.board import Board
from tradewind.store.database import FILE
from tradewind.store.store import Entry, Store
from tradewind.version import __version__


def store_address(config: Config, data: Path) -> str:
    """Where the store of a service is."""
    return config.file.store or str(data / FILE)


def prepare(config: Config, data: Path) -> None:
    """Make the data directory and the store."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        data.chmod(0o711)  # users of jobs may pass it, but not list it
    except OSError as error:
        raise InputError(f"cannot be the data directory: {error.strerror}", where=str(data)) from None
    address = store_address(config, data)
    if "://" in address or not Path(address).exists():
        with suppress(InputError), Store.open(address, write=True):
            pass  # made, or brought to this version; the engine says what is wrong with it


def current_config(path: Path, data: Path) -> Config:
    """CONFIG of a service as it is now. Sites that only CONFIG has join with the first reload."""
    config = configs.load(path)
    address = store_address(config, data)
    if "://" not in address and not Path(address).exists():
        return config
    with Board(address) as board:
        first = board.row("records", number=1)
        kept = {kind: kept_value(board, key) for kind, key in OWN.items()}
    if first is None:
        return config
    found = json.loads(first["body"])
    setup = read(Setup, (kept["setup"] or found)["setup"], "setup")
    if not difference(setup, config.setup):  # sites join, capacities and prices are changed while it runs
        config = replace(config, scenario=replace(config.scenario, setup=setup))
    policy = kept["policy"] if found["policy"] == config.spec.name else None
    return config if policy is None else with_policy(config, policy)


def changed(config: Config, wanted: Mapping[str, Mapping[str, Any]]) -> Config:
    """CONFIG with another policy, further sites, or both."""
    if "setup" in wanted:
        setup = read(Setup, wanted["setup"]["setup"], "setup")
        config = replace(config, scenario=replace(config.scenario, setup=setup))
    return with_policy(config, wanted["policy"]) if "policy" in wanted else config


def with_policy(config: Config, wanted: Mapping[str, Any]) -> Config:
    """CONFIG with another policy; InputError says why it cannot be."""
    spec = policies.get(wanted["name"])
    if not spec.online:
        raise InputError(f"{spec.name} decides in hindsight; choose an online policy")
    params = resolve_params(spec.name, spec.params, wanted["params"])
    check_fit(spec, config.scenario)
    configs.check_charges(spec, params)
    file = PolicyFile(name=wanted["name"], params=dict(wanted["params"]), seed=wanted["seed"])
    return replace(config, spec=spec, params=params, file=config.file.model_copy(update={"policy": file}))


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
        kept = {kind: kept_value(board, key) for kind, key in OWN.items()}
    policy, params, setup = found["policy"], found["params"], found.get("scenario")
    if kept["policy"] is not None:
        spec = policies.get(kept["policy"]["name"])
        policy, params = spec.name, resolve_params(spec.name, spec.params, kept["policy"]["params"])
    if kept["setup"] is not None:
        setup = setup_hash(read(Setup, kept["setup"]["setup"], "setup"))
    for name, old in (("setup", setup), ("policy", policy), ("params", params)):
        if json.loads(json.dumps(old)) != json.loads(json.dumps(mine[name])):
            raise InputError(
                f"it belongs to a service with {name} {old!r}; CONFIG has {mine[name]!r}. Use the same {name}, or another "
                "--data; capacities, prices and the policy are changed while it runs (tradewind sites, prices, policy)",
                where=store.name,
            )
    return found
