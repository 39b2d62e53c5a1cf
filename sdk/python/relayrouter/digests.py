"""A run whose text differs from its digest is read once more from history, from its beginning on."""

from typing import Any

from relayrouter.events import DigestEvent, Events, TextEvent
from relayrouter.history import pages
from relayrouter.http import Http
from relayrouter.texts import Run, RunTexts


async def heal(http: Http, client: str, texts: RunTexts, events: Events, run: str, told: dict[str, Any]) -> None:
    """Once a run. Tells the outcome as a `digest` event, and new texts as `text` and `thinking`."""
    known = texts.runs.get(run)
    if known is None or known.was_healed or known.begin is None:
        events.emit("digest", DigestEvent(run, ok=False, healed=False))
        return
    known.was_healed = True
    found = RunTexts()
    async for page in pages(http, client, known.begin):
        is_over = False
        for frame in page.frames:
            if frame.run == run:
                found.apply(frame)
                is_over = is_over or frame.kind == "run_end"
        if is_over:
            break
    fresh = found.runs.get(run)
    if texts.runs.get(run) is not known or known.reason is None:
        return  # it began anew meanwhile
    is_healed = fresh is not None and _is_right(fresh, told)
    if fresh is not None and is_healed:
        _replace(known, fresh, run, events)
    events.emit("digest", DigestEvent(run, ok=is_healed, healed=is_healed))


def _is_right(fresh: Run, told: dict[str, Any]) -> bool:
    reasoning = told.get("reasoning")
    verdicts = fresh.text.equals(told), fresh.reasoning.equals(reasoning if isinstance(reasoning, dict) else {})
    return verdicts[0] is not False and verdicts[1] is not False and True in verdicts


def _replace(known: Run, fresh: Run, run: str, events: Events) -> None:
    for name, old, new in (("text", known.text, fresh.text), ("thinking", known.reasoning, fresh.reasoning)):
        if old.value() != new.value():
            old.replace(new.value())
            events.emit(name, TextEvent(run, "", is_rewritten=True))  # type: ignore[arg-type]


__all__ = ["heal"]
