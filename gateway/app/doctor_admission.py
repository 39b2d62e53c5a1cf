"""What `relayrouter doctor` says about admission: budgets that do not fit, addresses that are all the same, memory."""

from collections.abc import Iterator

from gateway.adapters.machine.memory import memory_reader
from gateway.app.findings import Finding, ok, warn
from gateway.domain.admission.pressure import Memory
from gateway.settings import Settings
from gateway.settings.admission import problem_of_returns

_MIB = 1024**2


def check_admission(settings: Settings, memory: Memory | None = None) -> Iterator[Finding]:
    """`memory`: of this machine, when it is not to be looked at."""
    admission = settings.admission
    yield _returns(settings)
    yield _turns(settings)
    if admission.address_connections or admission.address_connects_per_minute:
        yield _addresses(settings)
    yield _memory(memory_reader(admission.memory_limit_bytes)() if memory is None else memory)


def _returns(settings: Settings) -> Finding:
    per_second, limit = settings.drain.returns_per_second, settings.admission.resumes_per_second
    problem = problem_of_returns(per_second, settings.admission)
    if problem is None:
        return ok("returns of a drain", f"{per_second:g} a second, and each gateway admits {limit:g}")
    return warn("returns of a drain", problem, "lower drain.returns_per_second, or raise admission.resumes_per_second")


def _turns(settings: Settings) -> Finding:
    """A place under way is of no use without memory for its page."""
    places, limits = settings.server.max_handshakes, settings.limits
    pages = limits.recovery_memory_bytes // limits.replay_page_bytes
    seen = f"{places} may be under way, and limits.recovery_memory_bytes has room for {pages}"
    if pages >= places:
        return ok("connects at once", seen)
    return warn(
        "connects at once",
        seen,
        f"raise it to {places * limits.replay_page_bytes // _MIB + 1} MiB, or lower server.max_handshakes to {pages}",
    )


def _addresses(settings: Settings) -> Finding:
    server = settings.server
    if server.trusted_proxies or server.is_loopback:
        return ok("client addresses", f"{server.forwarded_header} of {len(server.trusted_proxies)} trusted networks")
    return warn(
        "client addresses",
        "limits of addresses are set and server.trusted_proxies is empty",
        "behind a proxy all clients have its address: name its network, or take the limits away",
    )


def _memory(memory: Memory) -> Finding:
    if not memory.limit_bytes:
        return ok("memory limit", "none is known, so no memory watermark: see admission.memory_limit_bytes")
    return ok("memory limit", f"{memory.limit_bytes // _MIB} MiB")


__all__ = ["check_admission"]
