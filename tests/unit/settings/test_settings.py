"""Settings: closed, frozen, and impossible to set to what would break a guarantee."""

from typing import Any

import pytest
from pydantic import ValidationError

from gateway.settings import Settings, hidden_url

PEM = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----\n"
SECRET = "s" * 32


def load(**topics: dict[str, Any]) -> Settings:
    return Settings.model_validate(topics)


def message(**topics: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        load(**topics)
    return "\n".join(error["msg"] for error in caught.value.errors())


def test_every_setting_says_why_it_has_its_default() -> None:
    missing = [
        f"{topic}.{name}"
        for topic in Settings.model_fields
        for name, field in type(getattr(Settings(), topic)).model_fields.items()
        if not field.description
    ]

    assert missing == []


@pytest.mark.parametrize(("seconds", "is_fine"), [(1.99, True), (2.0, False)])
def test_a_round_for_replicas_ends_before_the_server_is_taken_for_dead(seconds: float, is_fine: bool) -> None:
    topics: dict[str, Any] = {
        "append": {"min_replicas": 1, "replica_wait_seconds": seconds},
        "redis": {"call_timeout_seconds": 2},
    }

    if is_fine:
        assert load(**topics).append.min_replicas == 1
    else:
        assert "replica_wait_seconds" in message(**topics)


def test_settings_cannot_be_changed_after_loading() -> None:
    settings = load()

    with pytest.raises(ValidationError, match="frozen"):
        settings.server.port = 1  # type: ignore[misc]


@pytest.mark.parametrize(("lease", "is_good"), [(59.9, False), (60, True), (60.1, True)])
def test_route_lease_holds_three_renewals(lease: float, is_good: bool) -> None:
    """Failure catalogue R14."""
    if is_good:
        assert load(routes={"lease_seconds": lease}).routes.lease_seconds == lease
    else:
        assert "3 x renew_seconds" in message(routes={"lease_seconds": lease})


@pytest.mark.parametrize(("lease", "is_good"), [(1.79, False), (1.8, True)])
def test_member_lease_holds_three_renewals(lease: float, is_good: bool) -> None:
    if is_good:
        assert load(members={"lease_seconds": lease}).members.lease_seconds == lease
    else:
        assert "3 x renew_seconds" in message(members={"lease_seconds": lease})


def test_default_heartbeat_survives_a_proxy_with_a_sixty_second_timeout() -> None:
    """Failure catalogue K10."""
    liveness = load().liveness

    assert liveness.heartbeat_seconds <= 25
    assert liveness.heartbeat_max_seconds < liveness.expect_proxy_timeout_seconds / 2


def test_idle_connections_outlast_the_proxies_of_ours() -> None:
    """Their configurations close after 75 s of silence; who closes second never answers a request with a reset."""
    assert load().server.keepalive_seconds > 75


@pytest.mark.parametrize(("proxy_timeout", "is_good"), [(49, False), (50, False), (51, True)])
def test_heartbeat_of_half_the_proxy_timeout_is_refused(proxy_timeout: float, is_good: bool) -> None:
    liveness = {"expect_proxy_timeout_seconds": proxy_timeout}

    if is_good:
        load(liveness=liveness)
    else:
        assert "a proxy would cut idle connections" in message(liveness=liveness)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "gateway.example.com"])
def test_no_auth_is_refused_where_others_can_reach_it(host: str) -> None:
    assert "lets everybody in" in message(auth={"mode": "none"}, server={"host": host})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_no_auth_is_allowed_on_loopback(host: str) -> None:
    assert load(auth={"mode": "none"}, server={"host": host}).auth.mode == "none"


def test_no_auth_everywhere_needs_the_insecure_flag() -> None:
    settings = load(auth={"mode": "none"}, server={"host": "0.0.0.0", "insecure_no_auth": True})

    assert settings.auth.mode == "none"


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ({"kid": "a", "algorithm": "HS256", "secret": "s" * 31}, "at least 32 bytes"),
        ({"kid": "a", "algorithm": "HS256", "secret": PEM}, "must not be a PEM key"),
        ({"kid": "a", "algorithm": "HS256", "public_key": PEM}, "exactly one of secret and file"),
        ({"kid": "a", "algorithm": "RS256", "secret": SECRET}, "exactly one of public_key and file"),
        ({"kid": "a", "algorithm": "RS256", "public_key": PEM, "secret": SECRET}, "exactly one"),
        ({"kid": "a", "algorithm": "EdDSA", "public_key": "abc"}, "not PEM text"),
        ({"kid": "a", "algorithm": "ES256"}, "exactly one"),
        ({"kid": "a", "algorithm": "none", "secret": SECRET}, "'HS256', 'RS256', 'ES256' or 'EdDSA'"),
    ],
)
def test_key_that_could_let_a_forged_token_in_is_refused(key: dict[str, Any], problem: str) -> None:
    """Failure catalogue U01."""
    assert problem in message(auth={"keys": [key]})


def test_one_key_id_has_one_algorithm() -> None:
    keys = [
        {"kid": "a", "algorithm": "HS256", "secret": SECRET},
        {"kid": "a", "algorithm": "RS256", "public_key": PEM},
    ]

    assert "used more than once" in message(auth={"keys": keys})


def test_one_key_file_has_one_algorithm() -> None:
    keys = [
        {"kid": "a", "algorithm": "HS256", "file": "k.pem"},
        {"kid": "b", "algorithm": "RS256", "file": "k.pem"},
    ]

    assert "one file, one algorithm" in message(auth={"keys": keys})


def test_two_keys_make_a_rotation() -> None:
    keys = [
        {"kid": "old", "algorithm": "HS256", "secret": SECRET},
        {"kid": "new", "algorithm": "EdDSA", "public_key": PEM},
    ]

    assert [key.kid for key in load(auth={"keys": keys}).auth.keys] == ["old", "new"]


@pytest.mark.parametrize(
    "origin",
    [
        "app.example.com",
        "https://app.example.com/",
        "https://APP.example.com",
        "ftp://a",
        "null",
        "*",
        "https://*",
        "https://*.com",
        "https://*.com:8443",
        "https://app.*.com",
        "https://app-*.example.com",
        "https://*.*.example.com",
        "https://*example.com",
    ],
)
def test_origin_must_be_written_as_browsers_send_it(origin: str) -> None:
    """Failure catalogue U05."""
    assert "is not an origin" in message(server={"allowed_origins": [origin]})


@pytest.mark.parametrize("origin", ["https://*.example.com", "http://*.example.co.uk:8443"])
def test_an_origin_may_have_a_star_for_one_label(origin: str) -> None:
    assert load(server={"allowed_origins": [origin]}).server.allowed_origins == (origin,)


def test_origins_may_be_one_text_with_commas() -> None:
    origins = load(server={"allowed_origins": "https://a.example, http://localhost:3000"}).server.allowed_origins

    assert origins == ("https://a.example", "http://localhost:3000")


@pytest.mark.parametrize(("text", "count"), [("64 KiB", 65536), ("1MiB", 1024**2), ("70000", 70000), (70000, 70000)])
def test_sizes_may_carry_a_unit(text: Any, count: int) -> None:
    assert load(retention={"max_bytes": "1 GiB"}, limits={"unsent_bytes": text}).limits.unsent_bytes == count


@pytest.mark.parametrize("text", ["64 KB", "1.5 MiB", "-1", "many"])
def test_size_with_an_unclear_unit_is_refused(text: str) -> None:
    assert "64 KiB" in message(limits={"unsent_bytes": text})


@pytest.mark.parametrize(("size", "is_good"), [(64 * 1024 - 1, True), (64 * 1024, True), (64 * 1024 + 1, False)])
def test_message_is_at_most_a_quarter_of_the_log(size: int, is_good: bool) -> None:
    topics = {"retention": {"max_bytes": 256 * 1024}, "limits": {"message_bytes": size}}

    if is_good:
        assert load(**topics).limits.message_bytes == size
    else:
        assert "a quarter of retention.max_bytes" in message(**topics)


def test_smallest_sensible_retention_is_accepted() -> None:
    """Requirement C6."""
    assert load(retention={"max_messages": 100, "ttl_seconds": 300}).retention.max_messages == 100
    assert "greater than or equal to 100" in message(retention={"max_messages": 99})


@pytest.mark.parametrize("url", ["http://h", "redis://", "localhost:6379", "redis://h:notaport/0", "unix://"])
def test_redis_url_that_cannot_work_is_refused(url: str) -> None:
    message(redis={"url": url})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h:1/0", "redis://h:1/0"),
        ("redis://:geheim@h:1/0", "redis://:***@h:1/0"),
        ("rediss://ann:geheim@h/2", "rediss://ann:***@h/2"),
        ("redis://h?password=geheim", "redis://h?***"),
        ("redis://ann:geh@eim@h:1", "redis://ann:***@h:1"),
        ("redis+sentinel://ann:geheim@h,i:1/m/0", "redis+sentinel://ann:***@h,i:1/m/0"),
        ("redis+sentinel://:geh@eim@[::1]:5,[::2]/m", "redis+sentinel://:***@[::1]:5,[::2]/m"),
        ("rediss+sentinel://ann@h/m?x=geheim", "rediss+sentinel://ann@h/m?***"),
    ],
)
def test_password_of_redis_is_never_shown(url: str, shown: str) -> None:
    settings = load(redis={"url": url})

    assert shown == hidden_url(settings.redis.url)
    assert "geh" not in repr(settings)
