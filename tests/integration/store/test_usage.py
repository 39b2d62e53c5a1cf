"""The board on which gateways tell their tenants' usage: leases by the server's clock, and nothing that stays."""

from gateway.adapters.redis_store.usage import RedisUsageBoard
from gateway.domain.wire.ids import GatewayId
from tests.integration.store.stage import Stage

A, B = GatewayId("gw-a"), GatewayId("gw-b")


def board_of(stage: Stage) -> RedisUsageBoard:
    stage.admin.delete("rr:quotas")
    stage.admin.script_load(RedisUsageBoard.script.source)
    return RedisUsageBoard(stage.client)


async def test_each_hears_what_the_others_told_last(stage: Stage) -> None:
    """Never its own; whatever bytes it is."""
    board = board_of(stage)
    first = await board.tell(A, b"old", 10)
    await board.tell(A, b'{"acme \xc3\xbc\n":[1,2]}', 10)
    second = await board.tell(B, b"b", 10)
    third = await board.tell(A, b"new", 10)

    assert (first, second, third) == ([], [b'{"acme \xc3\xbc\n":[1,2]}'], [b"b"])


async def test_a_gateway_that_died_is_heard_no_more(stage: Stage) -> None:
    """After its lease, and what it told goes; so does what nobody can read."""
    board = board_of(stage)
    await board.tell(A, b"a", 10)
    stage.admin.hset("rr:quotas", "gw-dead", f"{stage.now_ms() - 1} d")
    stage.admin.hset("rr:quotas", "gw-odd", "nonsense")

    heard = await board.tell(B, b"b", 10)

    assert heard == [b"a"]
    assert sorted(stage.admin.hkeys("rr:quotas")) == ["gw-a", "gw-b"]


async def test_the_key_ends_with_the_last_gateway(stage: Stage) -> None:
    """By withdrawal at once, by itself after the lease."""
    board = board_of(stage)
    await board.tell(A, b"a", 10)
    left_ms = stage.admin.pttl("rr:quotas")

    await board.withdraw(A)

    assert 10_000 <= left_ms <= 14_000
    assert stage.admin.exists("rr:quotas") == 0
