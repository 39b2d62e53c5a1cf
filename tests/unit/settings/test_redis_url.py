"""An address of Redis as operators write it: what is understood, what is refused and why."""

import pytest
from pydantic import ValidationError

from gateway.settings import RedisSettings
from gateway.settings.redis_url import MAX_SENTINELS, check_url, parse_sentinel_url


@pytest.mark.parametrize(
    ("hosts", "sentinels"),
    [
        ("a", (("a", 26_379),)),
        ("a:1,b:65535", (("a", 1), ("b", 65_535))),
        ("10.0.0.1,[::1]:7,[fe80::1]", (("10.0.0.1", 26_379), ("::1", 7), ("fe80::1", 26_379))),
    ],
)
def test_sentinels_are_understood(hosts: str, sentinels: tuple[tuple[str, int], ...]) -> None:
    assert sentinels == parse_sentinel_url(f"redis+sentinel://{hosts}/m").sentinels


def test_all_parts_of_a_sentinel_url_are_understood() -> None:
    parts = parse_sentinel_url("rediss+sentinel://ann:p%40s:s@a,b/my-master.1/3?ssl_cert_reqs=none")

    assert (parts.username, parts.password) == ("ann", "p@s:s")
    assert (parts.service, parts.database, parts.is_tls, parts.query) == ("my-master.1", 3, True, "ssl_cert_reqs=none")


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("a", "names no primary"),
        ("a/", "names no primary"),
        ("/m", "has no host"),
        ("a,/m", "has no host"),
        ("a:0/m", "port"),
        ("a:65536/m", "port"),
        ("a:/m", "port"),
        ("::1/m", "host"),
        ("[::1/m", "brackets"),
        ("[::1]x/m", "brackets"),
        ("a/m/x", "database"),
        ("a/m/0/1", "database"),
        ("a/m m", "name may hold"),
        ("a,b,a:26379/m", "twice"),
        ("a/m#b", "%23"),
        (",".join(f"h{number}" for number in range(MAX_SENTINELS + 1)) + "/m", "more than 16"),
    ],
)
def test_sentinel_url_that_cannot_work_says_why(rest: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_url(f"redis+sentinel://{rest}")


def test_most_sentinels_that_are_allowed() -> None:
    check_url("redis+sentinel://" + ",".join(f"h{number}" for number in range(MAX_SENTINELS)) + "/m")


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://ann:sesame@/m",
        "redis+sentinel://ann:sesame@a:x/m",
        "redis+sentinel://ann:sesame@a,ann:sesame@b/m",
    ],
)
def test_reason_does_not_repeat_the_password(url: str) -> None:
    with pytest.raises(ValidationError) as refused:
        RedisSettings.model_validate({"url": url})

    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"url": "redis://:pw@h", "password_file": "/f"}, "password_file"),
        ({"url": "redis+sentinel://:pw@h/m", "password_file": "/f"}, "password_file"),
        ({"url": "redis://h", "sentinel_password": "x"}, "sentinel_"),
        ({"url": "redis+sentinel://h/m", "sentinel_password": "x", "sentinel_password_file": "/f"}, "one is enough"),
        ({"url": "redis://h", "tls_ca_file": "/f"}, "tls_"),
        ({"url": "redis+sentinel://h/m", "tls_server_name": "x"}, "tls_"),
        ({"url": "rediss://h", "tls_key_file": "/f"}, "tls_certificate_file"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        RedisSettings.model_validate(settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "redis://ann@h", "password_file": "/f"},
        {"url": "redis+sentinel://ann:x@h/m", "sentinel_username": "s", "sentinel_password": "x"},
        {"url": "rediss+sentinel://h/m", "tls_ca_file": "/f", "tls_certificate_file": "/f", "tls_server_name": "x"},
    ],
)
def test_settings_that_fit_are_accepted(settings: dict[str, str]) -> None:
    RedisSettings.model_validate(settings)
