"""The address of a cluster: some of its servers, nothing else."""

import pytest
from pydantic import SecretStr, ValidationError

from gateway.adapters.resp.address import Address
from gateway.settings.redis import RedisSettings, hidden_url
from gateway.settings.redis_cluster_url import MAX_SEEDS, parse_cluster_url


def test_all_parts_are_found() -> None:
    parts = parse_cluster_url("rediss+cluster://me:se%40cret@one:7000,two,[::1]:7001,[::2]?ssl_cert_reqs=none")

    assert parts.seeds == (("one", 7000), ("two", 6379), ("::1", 7001), ("::2", 6379))
    assert (parts.username, parts.password, parts.is_tls) == ("me", "se@cret", True)


@pytest.mark.parametrize("end", ["", "/", "/0"])
def test_the_only_database_may_be_named(end: str) -> None:
    assert parse_cluster_url(f"redis+cluster://one{end}").seeds == (("one", 6379),)


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("", "no host"),
        ("one,", "no host"),
        ("one:x", "not a number"),
        ("one:0", "not a number"),
        ("one:65536", "not a number"),
        ("one/1", "one database"),
        ("one,one:6379", "twice"),
        ("p#w@one", "%23"),
        ("a:p@one,b:q@two", "written once"),
        ("[::1", "brackets"),
        (",".join(f"h{number}" for number in range(MAX_SEEDS + 1)), "more than 64"),
    ],
)
def test_what_cannot_be_an_address_is_refused_with_its_reason(rest: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_cluster_url(f"redis+cluster://{rest}")


def test_the_most_seeds_are_taken() -> None:
    assert len(parse_cluster_url("redis+cluster://" + ",".join(f"h{n}" for n in range(MAX_SEEDS))).seeds) == MAX_SEEDS


def test_a_shown_url_has_no_secret() -> None:
    assert hidden_url(SecretStr("redis+cluster://me:secret@one:1,two:2?password=x")) == (
        "redis+cluster://me:***@one:1,two:2?***"
    )


def test_an_address_shows_its_seeds_only() -> None:
    address = Address.parse("rediss+cluster://me:secret@one:1,[::1]:2")

    assert str(address) == "rediss+cluster://one:1,[::1]:2"
    assert "secret" not in repr(address)
    assert str(address.at("two", 3)) == "rediss://two:3/0"


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "redis+cluster://me:secret@one", "password_file": "/secret"},
        {"url": "redis+cluster://one", "tls_ca_file": "/ca"},
        {"url": "redis+cluster://one", "sentinel_username": "me"},
        {"url": "redis://one", "shard_publish": True},
        {"url": "redis+cluster://one:x"},
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as refusal:
        RedisSettings.model_validate(settings)

    assert "secret@" not in str(refusal.value)


def test_a_cluster_takes_what_a_server_takes() -> None:
    settings = RedisSettings.model_validate({
        "url": "rediss+cluster://me@one", "password_file": "/secret", "tls_ca_file": "/ca", "shard_publish": True,
    })  # fmt: skip

    address = Address.of(settings)
    assert settings.is_cluster
    assert (address.password_file, address.at("h", 1).password_file) == ("/secret", "/secret")
    assert address.tls is not None
    assert address.tls.ca_file == "/ca"
