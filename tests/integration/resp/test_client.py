"""The lean client against a real server that is killed, frozen, demoted, emptied of scripts and out of memory."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.adapters.resp import Address, Client, Reply, ReplyError, Script
from gateway.domain.measures import Measures
from gateway.ports import StoreUnavailable
from gateway.settings.redis import RedisSettings
from tests.integration.resp.certificates import write_certificate
from tests.integration.resp.conftest import Run
from tests.integration.resp.servers import Proxy, Server, running, stand_still

PUT = Script("#!lua\nreturn redis.call('RPUSH', KEYS[1], ARGV[1])")
ALL = Script("#!lua flags=no-writes\nreturn redis.call('LRANGE', KEYS[1], 0, -1)")
QUICK = RedisSettings(
    ping_interval_seconds=0.2,
    call_timeout_seconds=0.5,
    connect_timeout_seconds=0.5,
    backoff_min_ms=20,
    backoff_max_ms=100,
)
PATIENT = RedisSettings(ping_interval_seconds=0.2, call_timeout_seconds=5, backoff_min_ms=20, backoff_max_ms=100)


class Probe:
    """A running client and what it told of itself."""

    def __init__(self, address: Address, settings: RedisSettings, seed: int = 1) -> None:
        self.measures = Measures()
        self.states: list[tuple[bool, str]] = []
        self._changed = asyncio.Event()
        self.client = Client(
            address,
            settings,
            rng=random.Random(seed),
            measures=self.measures,
            name="probe",
            scripts=[PUT, ALL],
            on_state=self._on_state,
        )

    def _on_state(self, is_up: bool, reason: str) -> None:
        self.states.append((is_up, reason))
        self._changed.set()

    async def until(self, *, is_up: bool) -> None:
        async with asyncio.timeout(10):
            while self.client.is_up is not is_up:
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def probe(address: Address, settings: RedisSettings = QUICK) -> AsyncIterator[Probe]:
    it = Probe(address, settings)
    async with running(it.client.run()):
        await it.until(is_up=True)
        yield it


async def outcome(call: "asyncio.Future[Reply]") -> tuple[str, bool]:
    """(reason, outcome_unknown) of a call that must fail."""
    with pytest.raises(StoreUnavailable) as failed:
        await asyncio.wait_for(call, 10)
    return failed.value.reason, failed.value.outcome_unknown


def test_incarnation_is_known_before_the_first_call(run: Run, server: Server) -> None:
    async def scenario() -> None:
        it = Probe(server.address, QUICK)
        early = it.client.call("PING")
        async with running(it.client.run()):
            seen: list[str] = []
            early.add_done_callback(lambda _: seen.append(it.client.incarnation))
            await early
            await asyncio.sleep(0)

            assert [server.admin.info("replication")["master_replid"]] == seen
            assert [(True, "connected")] == it.states
        assert (False, "closed") == it.states[-1]

    run(scenario())


def test_killed_connection_fails_what_is_in_flight_and_comes_back(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with probe(server.address) as it:
            blocked = it.client.call("BLPOP", "nothing", 0)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            while not server.admin.info("clients")["blocked_clients"]:
                await asyncio.sleep(0)

            killed = server.kill_clients("normal")
            after = await outcome(blocked)
            answer = await it.client.call("PING")

            assert killed == 1
            assert after[1]
            assert after[0].startswith("connection lost")
            assert (b"PONG", 1) == (answer, it.measures.redis_reconnects)

    run(scenario())


def test_each_answered_health_ping_is_measured(run: Run, server: Server) -> None:
    """The latency of Redis on the dashboards comes from them."""

    async def scenario() -> None:
        async with probe(server.address) as it:
            while not sum(it.measures.redis_ping_seconds.counts):
                await asyncio.sleep(0.01)

            assert 0 < it.measures.redis_ping_seconds.total < 10

    run(scenario())


def test_calls_wait_while_there_is_no_connection(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with probe(server.address, PATIENT) as it:
            server.kill_clients("normal")
            await it.until(is_up=False)
            waiting = [it.client.evaluate(PUT, ["list"], [f"{i}"], repeats=False) for i in range(5)]

            assert [1, 2, 3, 4, 5] == await asyncio.gather(*waiting)
            assert [b"%d" % i for i in range(5)] == await it.client.call("LRANGE", "list", 0, -1)

    run(scenario())


def test_calls_for_the_incarnation_before_are_not_sent_to_the_next(run: Run, server: Server) -> None:
    """They name the old one, which a promoted replica would find in a log's meta: a loss would not be seen (G10)."""

    async def scenario() -> None:
        async with probe(server.address, PATIENT) as it:
            await it.client.evaluate(PUT, ["list"], ["before"], repeats=False)
            old = it.client.incarnation
            server.end()
            await it.until(is_up=False)
            waiting = [it.client.evaluate(PUT, ["list"], [old], repeats=False) for _ in range(5)]

            server.start()
            after = {await outcome(call) for call in waiting}

            assert after == {("another server answers", False)}
            assert it.client.incarnation not in ("", old)
            assert [b"before"] == await it.client.call("LRANGE", "list", 0, -1)

    run(scenario())


def test_calls_fail_in_time_while_there_is_no_server(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with probe(server.address) as it:
            server.end()
            await it.until(is_up=False)
            loop = asyncio.get_running_loop()
            started = loop.time()

            after = await outcome(it.client.call("PING"))

            assert ("not connected", False) == after
            assert loop.time() - started == pytest.approx(QUICK.call_timeout_seconds, abs=0.3)

    run(scenario())


def test_frozen_server_is_noticed_and_left(run: Run, server: Server) -> None:
    """Half-open (R02): no error comes, the bytes just stay away."""

    async def scenario() -> None:
        async with probe(server.address) as it:
            server.freeze()
            in_flight = it.client.call("INCR", "counter")

            after = await outcome(in_flight)
            await it.until(is_up=False)
            server.thaw()
            answer = await it.client.call("GET", "counter")

            assert ("no answer in time", True) == after
            assert (False, "health ping was not answered") in it.states
            # The given-up call took effect all the same: that is what an unknown outcome means.
            assert answer == b"1"

    run(scenario())


def test_a_pause_of_our_own_is_not_held_against_the_server(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with probe(server.address) as it:
            for pause_seconds in (0.52, 0.6, 0.75):  # beyond every time-out
                call = it.client.call("INCR", "counter")
                await stand_still(pause_seconds)

                assert await call > 0
            await asyncio.sleep(0.3)

            assert [(True, "connected")] == it.states

    run(scenario())


def test_lost_scripts_between_two_pipelined_calls(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with probe(server.address) as it:
            client = it.client
            first = client.evaluate(PUT, ["list"], ["1"], repeats=False)
            flushed = client.call("SCRIPT", "FLUSH")
            lost = [client.evaluate(PUT, ["list"], [f"lost {i}"], repeats=False) for i in range(3)]
            read = client.evaluate(ALL, ["list"], [], repeats=True)
            after = [await outcome(call) for call in lost]
            retried = client.evaluate(PUT, ["list"], ["2"], repeats=False)

            assert (1, b"OK") == (await first, await flushed)
            assert [("NOSCRIPT", False)] * 3 == [(reason.split()[0], is_unknown) for reason, is_unknown in after]
            assert await retried == 2
            assert [b"1"] == await read
            assert it.measures.redis_reconnects == 0

    run(scenario())


def test_scripts_are_there_after_a_restart_without_a_failed_call(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with probe(server.address, PATIENT) as it:
            server.restart()
            await it.until(is_up=False)
            await it.until(is_up=True)

            assert await it.client.evaluate(PUT, ["list"], ["1"], repeats=False) == 1
            assert it.measures.redis_errors["noscript"] == 0

    run(scenario())


def test_cancelled_calls_never_shift_an_answer(run: Run, server: Server) -> None:
    """R25: 300 tasks behind 50 ms of delay, one third cancelled at random times."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201  shown when it fails
    rng = random.Random(seed)

    async def scenario() -> None:
        for i in range(300):
            server.admin.set(f"route:{i}", f"gateway of {i}")

        async def look_up(client: Client, i: int, after: float) -> Reply:
            await asyncio.sleep(after)
            return await client.call("GET", f"route:{i}")

        async with Proxy(server.port, delay_seconds=0.05).running() as proxy, probe(proxy.address, PATIENT) as it:
            tasks = [asyncio.ensure_future(look_up(it.client, i, rng.uniform(0, 0.2))) for i in range(300)]
            loop = asyncio.get_running_loop()
            for task in rng.sample(tasks, 100):
                loop.call_later(rng.uniform(0, 0.3), task.cancel)
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            finished = {i: answer for i, answer in enumerate(answers) if isinstance(answer, bytes)}

            assert {i: b"gateway of %d" % i for i in finished} == finished
            assert 200 <= len(finished) < 300
            assert it.measures.redis_reconnects == 0

    run(scenario())


def test_pending_bytes_are_bounded_while_the_server_takes_nothing(run: Run, server: Server) -> None:
    mib = 1024 * 1024
    settings = QUICK.model_copy(update={"max_pending_bytes": 2 * mib, "call_timeout_seconds": 2.0})

    async def scenario() -> None:
        async with probe(server.address, settings) as it:
            server.freeze()
            calls = []
            for _ in range(40):
                calls.append(it.client.call("SET", "key", b"x" * (mib // 2)))
                await asyncio.sleep(0)
            await asyncio.sleep(0.01)
            refused = [call for call in calls if call.done()]
            # What was refused was not one of those that the kernel had room for.
            first_open = not calls[0].done()
            reasons = {await outcome(call) for call in refused}
            server.thaw()
            taken = await asyncio.gather(*(call for call in calls if call not in refused))

            assert first_open
            assert reasons == {("too much is waiting to be sent", False)}
            assert len(refused) >= 20
            assert {b"OK"} == set(taken)
            assert await it.client.call("SET", "key", "small") == b"OK"

    run(scenario())


def test_demoted_server_is_left_and_found_again(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with probe(server.address, PATIENT) as it:
            old = it.client.incarnation
            server.admin.execute_command("REPLICAOF", "127.0.0.1", "1")
            call = it.client.call("SET", "key", "value")
            after = await outcome(call)
            await it.until(is_up=False)

            server.admin.execute_command("REPLICAOF", "NO", "ONE")
            await it.until(is_up=True)

            assert ("READONLY", False) == (after[0].split()[0], after[1])
            assert await it.client.call("SET", "key", "value") == b"OK"
            assert it.measures.redis_errors["readonly"] >= 1
            assert it.client.incarnation == server.admin.info("replication")["master_replid"] != old

    run(scenario())


def test_replica_is_left_without_being_written_to_and_not_taken_again(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with probe(server.address) as it:
            server.admin.execute_command("REPLICAOF", "127.0.0.1", "1")
            await it.until(is_up=False)
            after = await outcome(it.client.call("SET", "key", "value"))

            assert [(True, "connected"), (False, "it became a replica")] == it.states
            assert ("not connected", False) == after

    run(scenario())


def test_promotion_without_a_lost_connection_is_seen_by_the_health_ping(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with probe(server.address) as it:
            old = it.client.incarnation
            with server.admin.pipeline(transaction=True) as at_once:
                at_once.execute_command("REPLICAOF", "127.0.0.1", "1")
                at_once.execute_command("REPLICAOF", "NO", "ONE")
                at_once.execute()
            async with asyncio.timeout(5):
                while it.client.incarnation == old:
                    await asyncio.sleep(0.02)

            assert server.admin.info("replication")["master_replid"] == it.client.incarnation

    run(scenario())


def test_full_server_refuses_and_the_connection_stays(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with probe(server.address) as it:
            server.admin.config_set("maxmemory", "1")
            after = await outcome(it.client.evaluate(PUT, ["list"], ["1"], repeats=False))
            server.admin.config_set("maxmemory", "0")

            assert after[0].startswith("OOM")
            assert not after[1]
            assert await it.client.evaluate(PUT, ["list"], ["1"], repeats=False) == 1
            assert [(True, "connected")] == it.states

    run(scenario())


def test_busy_server_answers_when_it_is_done(run: Run, server: Server) -> None:
    """Another one's endless script: BUSY is retryable and known not to have run."""

    async def scenario() -> None:
        async with probe(server.address) as it:
            server.admin.config_set("busy-reply-threshold", 50)
            endless = await asyncio.create_subprocess_exec(
                "python3", "-c",
                f"import socket; s = socket.create_connection(('127.0.0.1', {server.port}));"
                "s.sendall(b'EVAL \"while true do end\" 0\\r\\n'); s.recv(99)",
            )  # fmt: skip
            try:
                busy: tuple[str, bool] | None = None
                async with asyncio.timeout(8):
                    while busy is None:
                        try:
                            await it.client.call("GET", "key")
                        except ReplyError as error:
                            busy = error.code, error.outcome_unknown
                        except StoreUnavailable:
                            continue
                server.admin.execute_command("SCRIPT", "KILL")
                await endless.wait()

                assert busy == ("BUSY", False)
                assert await it.client.call("PING") == b"PONG"
            finally:
                await endless.wait()

    run(scenario())


def test_posts_are_executed_in_order_with_the_calls(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with probe(server.address) as it:
            it.client.call("RPUSH", "list", "1")
            it.client.post("RPUSH", "list", "2")
            it.client.post("LPUSH", "list")  # an error that nobody hears
            it.client.call("RPUSH", "list", "3")

            assert [b"1", b"2", b"3"] == await it.client.call("LRANGE", "list", 0, -1)

    run(scenario())


def test_user_and_password_open_the_door_and_reach_no_log(run: Run, server: Server) -> None:
    server.admin.execute_command("ACL", "SETUSER", "anna", "on", ">sesame", "~*", "&*", "+@all")
    server.admin.execute_command("ACL", "SETUSER", "default", "off")

    async def scenario() -> None:
        with capture_logs() as logs:
            async with probe(Address.parse(f"redis://anna:sesame@127.0.0.1:{server.port}/3")) as it:
                who = await it.client.call("ACL", "WHOAMI")
                listed = await it.client.call("CLIENT", "LIST", "ID", await it.client.call("CLIENT", "ID"))
            wrong = Probe(Address.parse(f"redis://anna:open@127.0.0.1:{server.port}/0"), QUICK)
            async with running(wrong.client.run()):
                after = await outcome(wrong.client.call("PING"))

        assert who == b"anna"
        assert b"name=probe " in listed
        assert b" db=3 " in listed
        assert ("not connected", False) == after
        assert ["redis_connected", "redis_connect_failed"] == [line["event"] for line in logs]
        assert "WRONGPASS" in logs[1]["reason"]
        assert not [line for line in logs if "sesame" in str(line) or "anna" in str(line)]

    run(scenario())


def test_unix_socket(run: Run, tmp_path: Path) -> None:
    server = Server(tmp_path, "--unixsocket", "valkey.sock")
    server.start()

    async def scenario() -> None:
        async with probe(Address.parse(f"unix://{tmp_path}/valkey.sock?db=1")) as it:
            assert await it.client.call("PING") == b"PONG"

    try:
        run(scenario())
    finally:
        server.end()
        server.admin.close()


def test_tls_is_verified(run: Run, server: Server, tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path, "localhost")
    listen = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listen.load_cert_chain(certificate, key)

    async def scenario() -> None:
        async with Proxy(server.port).running(ssl=listen) as proxy:
            trusted = Address.parse(f"rediss://localhost:{proxy.port}/0?ssl_ca_certs={certificate}")
            async with probe(trusted) as it:
                assert await it.client.call("PING") == b"PONG"
            stranger = Probe(Address.parse(f"rediss://localhost:{proxy.port}/0"), QUICK)
            async with running(stranger.client.run()):
                assert await outcome(stranger.client.call("PING")) == ("not connected", False)

    run(scenario())


def test_end_of_run_answers_everybody(run: Run, server: Server) -> None:
    async def scenario() -> None:
        async with probe(server.address) as it:
            blocked = it.client.call("BLPOP", "nothing", 0)
            it.client.flush()

        assert await outcome(blocked) == ("connection lost: closed", True)
        assert await outcome(it.client.call("PING")) == ("closed", False)

    run(scenario())
