"""What a log is at one moment: its epoch, forks, head and what it has lost. Positions are judged against it."""

from dataclasses import dataclass, field

from gateway.domain.wire.cursor import Cursor, Line


@dataclass(frozen=True, slots=True)
class Fork:
    """One stretch of an epoch, opened when the head was `base`. `runs`: retained run -> its text's bytes at `base`;
    `thinking`: the same of their reasoning, of those that have any."""

    id: str
    base: int
    runs: dict[str, int] = field(default_factory=dict)
    thinking: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogState:
    """`forks` is oldest first and ends with the current one. `lost`: highest seq that is gone for good."""

    epoch: str
    forks: tuple[Fork, ...]
    head: int
    lost: int
    void: int = 0
    """Highest seq <= lost that no run text and no kept item can rebuild: a gap ends there, the rest is a snapshot (G4).
    """
    held: int = 0
    """Messages above `head` that wait for replicas: not to be seen yet, though somebody may have before a fail-over."""

    @property
    def fork(self) -> str:
        return self.forks[-1].id

    @property
    def line(self) -> Line:
        return Line(f"{self.epoch}.{self.fork}".encode())

    def cursor(self, seq: int) -> Cursor:
        return Cursor(self.epoch, self.fork, seq)


__all__ = ["Fork", "LogState"]
