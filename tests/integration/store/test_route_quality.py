"""The quality that a route keeps, also beside gateways of the version before, which know no such field (A4, G13)."""

import pytest

from gateway.ports import Renewal, RenewClient
from tests.integration.store.stage import Stage

SINCE = 10
"""Place of the last field that the version before knew."""


async def quality_of(stage: Stage) -> str:
    info = await stage.store.info(stage.ref)
    assert info is not None
    [route] = info.routes
    return route.quality


async def renewed(stage: Stage, quality: str) -> RenewClient:
    client = stage.renew_client(await stage.claimed())._replace(quality=quality)
    assert [result.outcome for result in await stage.renew(client)] == [Renewal.OK]
    return client


async def test_a_renewal_writes_it_and_one_that_does_not_know_leaves_it(stage: Stage) -> None:
    client = await renewed(stage, "poor 0.36")
    assert await quality_of(stage) == "poor 0.36"

    await stage.renew(client._replace(quality=""))
    assert await quality_of(stage) == "poor 0.36"
    await stage.renew(client._replace(quality="good 0.98"))
    assert await quality_of(stage) == "good 0.98"


async def test_a_new_connection_is_not_judged_yet(stage: Stage) -> None:
    await renewed(stage, "poor 0.36")
    await stage.claimed("c2")

    assert await quality_of(stage) == ""


async def test_of_several_clients_each_has_its_own(stage: Stage) -> None:
    phone = stage.renew_client(await stage.claimed())._replace(quality="fair 0.7")
    laptop = stage.renew_client(await stage.claimed("c2", client="laptop"), "c2", "laptop")._replace(quality="good 1.0")
    await stage.renew(phone, laptop)

    info = await stage.store.info(stage.ref)
    assert info is not None
    assert {route.client: route.quality for route in info.routes} == {"phone": "fair 0.7", "laptop": "good 1.0"}


@pytest.mark.parametrize("fields", [SINCE + 1, SINCE + 2])
async def test_a_route_as_the_version_before_stores_it_is_renewed(stage: Stage, fields: int) -> None:
    client = stage.renew_client(await stage.claimed())
    key = stage.key("routes")
    stored = stage.admin.hget(key, "phone")
    stage.admin.hset(key, "phone", "\t".join(stored.split("\t")[:fields]))

    assert [result.outcome for result in await stage.renew(client)] == [Renewal.OK]
    assert await quality_of(stage) == ""
    assert await stage.owners() == {"phone": "c1"}
    assert stage.admin.hget(key, "phone").count("\t") >= SINCE + 1  # whole again, with what came later
