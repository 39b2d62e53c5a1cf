"""Which of several views of a cluster is believed."""

import random

from gateway.adapters.resp.address import Address
from gateway.adapters.resp.cluster_map import BACK_AFTER, ClusterMap
from gateway.adapters.resp.replies import ReplyError
from gateway.adapters.resp.slots import SLOTS, View
from gateway.settings.redis import RedisSettings

ONE, TWO = ("one", 1), ("two", 2)
URL = "redis+cluster://seed"


def a_map() -> ClusterMap:
    return ClusterMap(Address.parse(URL), RedisSettings.model_validate({"url": URL}), rng=random.Random(1))


def view(owner: tuple[str, int], epoch: int, *, is_ok: bool = True) -> View:
    return View((owner,) * SLOTS, frozenset(), epoch, is_ok)


async def test_a_newer_view_replaces_the_older_one() -> None:
    it = a_map()
    it._judge(view(ONE, 1))

    it._judge(view(TWO, 2))

    assert (it.owner(0), it.primaries) == (TWO, {TWO})


async def test_who_is_cut_off_is_not_believed_at_once() -> None:
    """An old primary that still answers says that nothing has happened."""
    it = a_map()
    it._judge(view(TWO, 2))

    it._judge(view(ONE, 1))
    it._judge(view(ONE, 9, is_ok=False))

    assert it.owner(0) == TWO


async def test_an_older_view_that_nobody_contradicts_is_true_in_the_end() -> None:
    """The cluster was made anew."""
    it = a_map()
    it._judge(view(TWO, 2))

    for _ in range(BACK_AFTER):
        it._judge(view(ONE, 1))
    before = it.owner(0)
    it._judge(view(ONE, 1))

    assert (before, it.owner(0)) == (TWO, ONE)


async def test_a_redirection_is_believed_for_its_slot() -> None:
    it = a_map()
    it._judge(view(ONE, 1))
    told: list[frozenset[tuple[str, int]]] = []
    it.on_change(lambda: told.append(it.primaries))

    it.heard(ReplyError("MOVED 7 two:2"), ONE)

    assert (it.owner(6), it.owner(7), it.owner(8)) == (ONE, TWO, ONE)
    assert told == [{ONE, TWO}]
