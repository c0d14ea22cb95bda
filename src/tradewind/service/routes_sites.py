"""Routes that change sites and prices while a service runs, and that let it read CONFIG again."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tradewind.files.messages import sentence
from tradewind.model.errors import TradewindError
from tradewind.service import changes, reload
from tradewind.service.app_state import Authorization, service_of
from tradewind.service.config import PricesFile, in_force
from tradewind.service.errors import ApiError
from tradewind.service.models import PricesAnswer, ReloadAnswer, SiteAnswer
from tradewind.service.service import Service
from tradewind.service.tokens import Token
from tradewind.store.desk import Writing

routes = APIRouter(prefix="/v1", tags=["sites and prices"])


class SiteRequest(BaseModel):
    """What becomes of a site."""

    model_config = ConfigDict(extra="forbid")

    state: Literal["join", "drain", "leave"] | None = Field(
        default=None,
        description="join: take work again; drain: take no more; leave: stop what runs there, which moves",
    )
    capacity: dict[str, float] = Field(default_factory=dict, description="resource -> units from now on")


async def sites_of(service: Service, name: str | None = None) -> list[SiteAnswer]:
    """What sites have, and at which list price; name: only this one."""
    setup = service.config.setup
    rows = await service.read(lambda: service.board.rows("board_sites", most=100_000))
    rent = {
        (setup.nodes[node].name, setup.resources[resource]): tariff.usd[0]
        for (node, resource), tariff in setup.rent.items()
    }
    return [
        SiteAnswer(**row, list_usd=rent.get((row["node"], row["resource"])))
        for row in rows
        if name in (None, row["node"])
    ]


@routes.get("/sites")
async def sites(request: Request, authorization: Authorization = None) -> list[SiteAnswer]:
    """Sites: capacity, use and price factor of every resource."""
    service = service_of(request)
    service.token(authorization, "read")
    return await sites_of(service)


@routes.post("/sites", status_code=201)
async def join(
    request: Request, body: Annotated[dict[str, Any], Body()], authorization: Authorization = None
) -> list[SiteAnswer]:
    """Let sites join that the service does not know (`nodes`, with `links` and `egress`, as in a scenario file).

    They begin with the next slot: all jobs are suspended and resumed then, and what was sold runs to its end first.
    """
    service = service_of(request)
    token = service.token(authorization, "write", "admin")
    try:
        await reload.join(service, token, body)
    except TradewindError as error:
        raise ApiError("invalid", str(error)) from None
    return await sites_of(service)


@routes.post("/reload")
async def read_again(request: Request, authorization: Authorization = None) -> ReloadAnswer:
    """Read CONFIG again, as SIGHUP does; where it is wrong, what was before goes on."""
    service = service_of(request)
    token = service.token(authorization, "write", "admin")
    try:
        return await reload.reload(service, token)
    except TradewindError as error:
        raise ApiError("invalid", str(error)) from None


@routes.post("/sites/{id}")
async def site(
    request: Request, id: str, body: SiteRequest, authorization: Authorization = None
) -> list[SiteAnswer]:
    """Let a site join again, drain or leave, or change its capacity; quotes that no longer hold are withdrawn."""
    service = service_of(request)
    token = service.token(authorization, "write", "admin", "operator")
    try:
        wanted = changes.of_site(service.config.setup, id, body.state, body.capacity)
    except TradewindError as error:
        raise ApiError("invalid", str(error)) from None
    before = [each.model_dump() for each in await sites_of(service, id)]
    await service.noted(token, "site.change", id, before, body.model_dump())
    await service.change_sites(token, wanted)
    return await sites_of(service, id)


@routes.get("/prices")
async def prices(request: Request, authorization: Authorization = None) -> PricesAnswer:
    """The price list in force, its hash, and when lists were put into force."""
    service = service_of(request)
    service.token(authorization, "read")
    return await prices_of(service)


async def prices_of(service: Service) -> PricesAnswer:
    """The price list in force."""
    setup = service.config.setup
    found = in_force(setup, await service.read(service.factors))
    rent: dict[str, dict[str, Any]] = {}
    for (node, resource), tariff in sorted(found.items()):
        shown = {"starts": list(tariff.starts), "usd": list(tariff.usd), "rule": tariff.rule}
        rent.setdefault(setup.nodes[node].name, {})[setup.resources[resource]] = shown
    told = await service.read(lambda: service.board.rows("board_events", id="", kind="prices", most=100))
    history = [{"at_s": row["at_s"], **json.loads(row["body"])} for row in told]
    return PricesAnswer(price_list=await service.read(service.price_list), rent=rent, history=history)


@routes.post("/prices")
async def set_prices(
    request: Request, body: Annotated[dict[str, Any], Body()], authorization: Authorization = None
) -> PricesAnswer:
    """Put a price list (`rent`: node -> resource -> tariff) into force with the next slot; decisions keep their prices."""
    service = service_of(request)
    token = service.token(authorization, "write", "admin", "operator")
    try:
        file = PricesFile.model_validate(body)
        wanted = changes.of_prices(service.config.setup, file)
    except ValidationError as error:
        raise ApiError("invalid", sentence(error, PricesFile, body)) from None
    except TradewindError as error:
        raise ApiError("invalid", str(error)) from None
    await _price(service, token, wanted)
    return await prices_of(service)


async def _price(service: Service, token: Token, wanted: changes.Wanted) -> None:
    """Put prices into force, and note the list with its date and hash."""
    setup = service.config.setup
    coming = {(a, b): value / of for _, a, b, value, of in wanted}
    list_ = {f"{setup.nodes[a].name}.{setup.resources[b]}": factor for (a, b), factor in coming.items()}
    hash_ = await service.read(lambda: service.price_list(coming))
    before = {"price_list": await service.read(service.price_list)}
    after = {"price_list": hash_, "factors": list_}
    await service.noted(token, "prices.change", "prices", before, after)
    await service.change_sites(token, {"changes": wanted})
    body = json.dumps({**after, "by": token.actor})

    def task(writing: Writing) -> None:
        writing.insert("board_events", id="", tenant="", at_s=time.time(), kind="prices", body=body)

    await service.write(task)
