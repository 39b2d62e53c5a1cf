"""The user that docs/redis.md gives to the gateways may do all that they need, and not much more."""

import pytest

from loadtest.plain_http import ask_once
from loadtest.publisher import delta
from loadtest.scenes import flawless, seat
from loadtest.stage import Stage

pytestmark = pytest.mark.fault

RULES = ("~rr:*", "&rr:*", "+@all", "-@admin", "-@dangerous", "+info")


async def test_user_with_few_rights_is_enough(stage: Stage) -> None:
    """Register, append, read, send input, delete: nothing is refused; foreign keys and admin commands are."""
    server = stage.server()
    server.ask("ACL", "SETUSER", "relayrouter", "on", ">secret", *RULES)
    password = stage.folder / "password"
    password.write_text("secret\n")
    gateways = await stage.start_gateways(
        2, f"redis://relayrouter@127.0.0.1:{server.port}/0", redis__password_file=str(password)
    )
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 2)

    for _ in range(20):
        await publisher.publish(delta("r", stage.rng))
    await flawless(stage, publisher.ledger, names)
    spoken = {"client": "me", "seq": 1, "payload": {"text": "by HTTP"}}
    sent = await ask_once(gateways[0].url, "POST", "/v1/sessions/s/input", spoken)
    deleted = await ask_once(gateways[0].url, "DELETE", "/v1/sessions/s")

    refused = sum([await gateway.metric("redis_errors_total") for gateway in gateways])
    assert (sent.status, deleted.status) == (200, 200), (sent.body, deleted.body)
    assert refused == 0
    for forbidden in (("GET", "other"), ("FLUSHALL",), ("CONFIG", "GET", "dir")):
        verdict = server.ask("ACL", "DRYRUN", "relayrouter", *forbidden)
        assert verdict != b"OK"
