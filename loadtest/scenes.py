"""What most fault tests do on a stage: seat readers, wait until all have all, judge. Called by fault tests only."""

from collections.abc import Iterable, Sequence
from typing import Any

from loadtest.processes import Gateway
from loadtest.publisher import Ledger
from loadtest.stage import Stage, assert_flawless, assert_texts
from loadtest.witness import Verdict


async def seat(
    stage: Stage, session: str, gateways: Sequence[Gateway], count: int = 1, *, prefix: str = "", **fields: Any
) -> list[str]:
    """Open readers of a session and wait for their welcome; every second one acknowledges. Returns their names."""
    names = [f"{prefix or session}-{number}" for number in range(count)]
    urls = [gateway.url for gateway in gateways]
    await stage.witness.open(
        *(
            {"name": name, "session": session, "urls": urls, "is_acking": number % 2 == 0, **fields}
            for number, name in enumerate(names)
        )
    )
    await stage.witness.wait(10, names, welcomes=1)
    return names


async def arrived(stage: Stage, ledger: Ledger, names: Iterable[str], seconds: float = 10) -> float:
    """All that was acknowledged is with all of these readers. Returns the seconds that it took."""
    return await stage.witness.wait(seconds, list(names), position=ledger.head)


async def flawless(stage: Stage, ledger: Ledger, names: Iterable[str], seconds: float = 10) -> list[Verdict]:
    """Nothing lost, repeated, reordered or changed, no gap, every text equal to the byte."""
    names = list(names)
    await arrived(stage, ledger, names, seconds)
    verdicts = await stage.witness.judge(ledger, names)
    assert_flawless(verdicts)
    assert_texts(verdicts, ledger)
    return verdicts


__all__ = ["arrived", "flawless", "seat"]
