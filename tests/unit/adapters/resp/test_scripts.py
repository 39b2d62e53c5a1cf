"""Commands and scripts as bytes."""

from gateway.adapters.resp.commands import pack
from gateway.adapters.resp.scripts import Script


def test_sha_is_the_servers_name_for_the_source() -> None:
    assert Script("return 1").sha == b"e0e1f9fabfc9d4800c877a703b823ac0578ff8db"


def test_call_holds_sha_number_of_keys_keys_and_arguments() -> None:
    script = Script("return 1")

    packed = script.pack(["k1", b"k2"], [7, "é"])

    assert pack((b"EVALSHA", script.sha, b"2", b"k1", b"k2", b"7", "é".encode())) == packed


def test_source_is_not_in_the_repr() -> None:
    assert "secret" not in repr(Script("-- secret", "append"))
