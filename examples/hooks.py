"""One hook for each place in the stream (docs/hooks.md). Copy what you need; no base class is wanted."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.ports.hooks import DeliveredMessage, ResumedClient, RunContext

MAX_WORD_CHARS = 32


class WordFilter:
    """Before segmentation: replaces words by stars, also when a word is split over chunks.

    A word is only known to be whole when what follows it is known, so its beginning is held back until then.
    """

    def __init__(self, words: Sequence[str]) -> None:
        if not words or any(not word.isalpha() or len(word) > MAX_WORD_CHARS for word in words):
            raise ValueError(f"words: one or more, letters only, at most {MAX_WORD_CHARS} each")
        alternatives = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
        self._pattern = re.compile(rf"\b(?:{alternatives})\b", re.IGNORECASE)

    def open_filter(self, context: RunContext, state: bytes) -> "_OpenFilter":
        """Every run, its answer and its thinking."""
        del context
        return _OpenFilter(self._pattern, state.decode())


class _OpenFilter:
    def __init__(self, pattern: re.Pattern[str], state: str) -> None:
        self._pattern = pattern
        self.held = state[1:]
        self._is_inside_word = state[:1] == "1"
        """What went on last is the beginning of a word too long to be one of ours."""

    def feed(self, text: str) -> str:
        text = self.held + text
        end = len(text)
        while end and _is_word(text[end - 1]) and len(text) - end <= MAX_WORD_CHARS:
            end -= 1
        if len(text) - end > MAX_WORD_CHARS:
            end = len(text)
        ready, self.held = text[:end], text[end:]
        return self._star(ready)

    def flush(self) -> str:
        held, self.held = self.held, ""
        return self._star(held)

    def save(self) -> bytes:
        return (("1" if self._is_inside_word else "0") + self.held).encode()

    def _star(self, text: str) -> str:
        """Every word in `text` is whole, but for one that began before it."""
        start = 0
        while self._is_inside_word and start < len(text) and _is_word(text[start]):
            start += 1
        starred = text[:start] + self._pattern.sub(lambda match: "*" * len(match[0]), text[start:])
        if text:
            self._is_inside_word = _is_word(text[-1])
        return starred


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


class DirectionTag:
    """Before delivery: tells pages which messages are written from right to left."""

    _RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")

    def fields(self, message: DeliveredMessage) -> Mapping[str, Any] | None:
        """Looks at the finished frame: parsing it would cost more than the question is worth."""
        if self._RIGHT_TO_LEFT.search(message.frame.decode()):
            return {"dir": "rtl"}
        return None


class TitleOnResume:
    """On reconnect: brings along state of the application that is no part of the stream."""

    def __init__(self, titles: Mapping[str, str]) -> None:
        self._titles = dict(titles)

    async def on_resume(self, client: ResumedClient) -> Mapping[str, Any] | None:
        """A real one would ask the application's database."""
        title = self._titles.get(client.session)
        return None if title is None else {"title": title}
