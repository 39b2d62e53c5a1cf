"""The listener's TLS: the same bytes arrive however they are cut, and everything below is seen from above."""

import random
import ssl

import pytest

from gateway.adapters.http.tls_transport import MAX_ANSWER_BYTES, MAX_HELLO_BYTES, RECORD_BYTES
from tests.unit.adapters.http.tls_scene import SERVER_CONTEXT, Client, Scene, settle


async def connected(step_bytes: int = 1 << 20) -> tuple[Scene, Client]:
    it, client = Scene(), Client()
    await it.shake_hands(client, step_bytes)
    assert it.above.transport is it.tls
    return it, client


@pytest.mark.parametrize("step_bytes", [1, 7, 1 << 20])
async def test_bytes_arrive_however_the_network_cuts_them(step_bytes: int) -> None:
    it, client = await connected(step_bytes)
    text = random.Random(step_bytes).randbytes(40_000)
    client.tls.write(text[:5])
    for begin in range(5, len(text), 9_000):
        client.tls.write(text[begin : begin + 9_000])
    await it.sends(client.outgoing.read(), step_bytes)

    assert text == it.above.got


@pytest.mark.parametrize("size_bytes", [1, 16 * 1024, 16 * 1024 + 1, 300_000])
async def test_what_is_written_is_handed_to_the_kernel_at_once(size_bytes: int) -> None:
    """Nothing stays behind here, where no figure would show it."""
    it, client = await connected()
    text = random.Random(size_bytes).randbytes(size_bytes)
    it.tls.write(text)
    client.incoming.write(it.taken())

    assert text == client.read_all()


async def test_parts_are_written_as_one() -> None:
    it, client = await connected()
    it.tls.writelines([b"a", bytearray(b"b"), memoryview(b"c")])
    client.incoming.write(it.taken())

    assert b"abc" == client.read_all()


async def test_bytes_that_come_with_the_last_of_the_handshake_arrive() -> None:
    """A client of TLS 1.3 sends its request in the same packet."""
    it, client = Scene(), Client()
    client.shake()
    await it.sends(client.outgoing.read())
    client.incoming.write(it.taken())
    assert client.shake()
    client.tls.write(b"GET / HTTP/1.1\r\n\r\n")
    await it.sends(client.outgoing.read())

    assert b"GET / HTTP/1.1\r\n\r\n" == it.above.got


async def test_unsent_bytes_limits_and_the_peer_are_those_of_the_socket() -> None:
    it, _ = await connected()
    it.below.waiting_bytes = 12_345
    it.tls.set_write_buffer_limits(64, 32)

    assert (12_345, (32, 64), ("192.0.2.1", 1234)) == (
        it.tls.get_write_buffer_size(),
        it.below.limits,
        it.tls.get_extra_info("peername"),
    )


async def test_a_full_socket_stops_and_starts_the_writer() -> None:
    it, _ = await connected()
    it.tls.pause_writing()
    it.tls.resume_writing()

    assert ["pause", "resume"] == it.above.ends


async def test_nothing_is_handed_up_while_reading_is_paused_and_all_of_it_afterwards() -> None:
    it, client = await connected()
    it.above.pauses_after = 100
    for _ in range(5):
        client.tls.write(b"x" * 100)
    await it.sends(client.outgoing.read())
    while_paused, was_read_below = len(it.above.got), it.below.is_read
    it.above.pauses_after = None
    it.tls.resume_reading()
    within_the_call = len(it.above.got)
    await settle()

    assert (100, False, 100) == (while_paused, was_read_below, within_the_call)
    assert (500, True) == (len(it.above.got), it.below.is_read)


async def test_the_peers_goodbye_is_the_end() -> None:
    it, client = await connected()
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.unwrap()
    await it.sends(client.outgoing.read())

    assert (["eof"], False, False) == (it.above.ends, it.below.is_open, it.below.was_aborted)


async def test_closing_says_goodbye_and_does_not_wait_for_an_answer() -> None:
    it, client = await connected()
    it.tls.write(b"last words")
    it.tls.close()
    client.incoming.write(it.taken())

    assert b"last words" == client.read_all()
    assert (b"", False) == (client.tls.read(1), it.below.is_open)


async def test_after_the_end_nothing_is_written() -> None:
    """The socket's transport would raise."""
    it, _ = await connected()
    it.below.close()
    it.taken()
    it.tls.write(b"too late")
    it.tls.close()

    assert b"" == it.taken()


async def test_a_word_after_the_goodbye_does_not_cut_off_what_is_unsent() -> None:
    it, _ = await connected()
    it.tls.write(b"last words")
    it.tls.close()
    it.tls.write(b"too late")

    assert not it.below.was_aborted


async def test_what_is_no_tls_ends_the_connection() -> None:
    it, _ = await connected()
    await it.sends(b"\x17\x03\x03\x00\x20" + b"?" * 32)

    assert it.below.was_aborted


async def test_the_end_below_is_told_above() -> None:
    it, _ = await connected()
    it.tls.connection_lost(None)

    assert ["lost"] == it.above.ends


async def test_plain_http_is_told_what_this_port_speaks() -> None:
    it = Scene()
    await it.sends(b"GET / HTTP/1.1\r\nHost: relay.example.com\r\n\r\n")
    head, _, body = it.taken().partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"Content-Length: %d" % len(body) in head
    assert (b"This port speaks TLS: use https:// or wss://.\n", {"failed": 1}) == (body, it.outcomes())


async def test_a_client_that_is_too_old_gets_an_alert_and_is_counted() -> None:
    it = Scene()
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    client = Client(old)
    client.shake()
    await it.sends(client.outgoing.read())
    client.incoming.write(it.taken())

    with pytest.raises(ssl.SSLError, match="ALERT_PROTOCOL_VERSION"):
        client.shake()
    assert ({"failed": 1}, False) == (it.outcomes(), it.below.is_open)


@pytest.mark.parametrize(("more_bytes", "is_cut"), [(0, False), (1, True)])
async def test_a_hello_without_an_end_is_cut(more_bytes: int, is_cut: bool) -> None:
    """Strangers need no credentials for it, and what they send is kept until they have said all of it."""
    it = Scene()
    part = b"\x16\x03\x01\x20\x00"
    hello = (part + b"\x01\x01\xff\xf0\x03\x03" + b"x" * (0x2000 - 6)) + (part + b"x" * 0x2000) * 8
    await it.sends(hello[: MAX_HELLO_BYTES + more_bytes])

    assert (is_cut, {"failed": 1} if is_cut else {}) == (it.below.was_aborted, it.outcomes())
    assert len(it.handshakes) == (not is_cut)


async def test_a_peer_that_leaves_in_its_handshake_is_counted_and_never_served() -> None:
    it, client = Scene(), Client()
    client.shake()
    await it.sends(client.outgoing.read())
    it.tls.connection_lost(None)

    assert ({"left": 1}, None, 0) == (it.outcomes(), it.above.transport, len(it.handshakes))


async def test_requests_are_seen_as_https() -> None:
    it, _ = await connected()

    assert it.tls.get_extra_info("sslcontext") is SERVER_CONTEXT


async def test_no_more_than_a_record_is_held_at_once_in_either_direction() -> None:
    """What a MemoryBIO has held it keeps room for: a page for each of ten thousand clients would be gigabytes."""
    it, _ = await connected()
    it.tls.write(b"x" * 300_000)

    assert it.below.most_bytes <= RECORD_BYTES + 256  # what TLS adds to a record
    assert len(it.tls.get_buffer(-1)) == RECORD_BYTES


async def test_connections_that_are_read_in_turns_mix_nothing() -> None:
    """They share one buffer."""
    (one, one_client), (other, other_client) = await connected(), await connected()
    text, other_text = (random.Random(seed).randbytes(100_000) for seed in (1, 2))
    one_client.tls.write(text)
    other_client.tls.write(other_text)
    ways = [(one, one_client.outgoing.read()), (other, other_client.outgoing.read())]
    for begin in range(0, 110_000, 5_000):
        for scene, data in ways:
            scene.arrives(data[begin : begin + 5_000])

    assert (text, other_text) == (one.above.got, other.above.got)


@pytest.mark.parametrize(("waiting_bytes", "answers", "is_cut"), [(1, 64, False), (1, 65, True), (0, 65, False)])
async def test_who_has_tls_answer_and_reads_no_answer_is_cut(waiting_bytes: int, answers: int, is_cut: bool) -> None:
    """A peer of TLS 1.3 may ask for new keys for ever, each time for an answer, without a request."""
    it, client = await connected()
    it.below.waiting_bytes = waiting_bytes
    for _ in range(answers):
        it.tls._outgoing.write(b"k" * (MAX_ANSWER_BYTES // 64))  # as OpenSSL does
        client.tls.write(b".")
        await it.sends(client.outgoing.read())

    assert is_cut is it.below.was_aborted
