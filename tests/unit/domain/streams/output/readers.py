"""Readers as strict as the client libraries are: what those refuse, these refuse. Each joins what it was sent.

Written after the libraries' own sources; tests/integration/dialects reads with the libraries themselves.
"""

import json
from typing import Any, Protocol

from gateway.domain.streams.output import OutputFormat


class Event:
    """One event of a stream as it arrived."""

    def __init__(self, block: str) -> None:
        self.id = ""
        self.data = ""
        for line in block.split("\n"):
            name, _, value = line.partition(": ")
            assert name in ("id", "data"), f"a line that libraries may stumble on: {line!r}"
            setattr(self, name, value)

    @property
    def is_done(self) -> bool:
        return self.data == "[DONE]"

    @property
    def value(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.data)
        return value


def events_of(stream: bytes) -> list[Event]:
    blocks = stream.decode().split("\n\n")
    assert blocks.pop() == "", "the last event is not whole"
    return [Event(block) for block in blocks]


class Reader(Protocol):
    text: str
    thinking: str
    calls: dict[str, tuple[str, str]]
    """id -> (name, arguments), of calls in order."""
    others: dict[tuple[str, str], Any]
    end: str

    def take(self, event: Event) -> None: ...


class OpenAiReader:
    def __init__(self) -> None:
        self.text = self.thinking = self.end = ""
        self.others: dict[tuple[str, str], Any] = {}
        self.usage: dict[str, Any] = {}
        self._calls: list[dict[str, str]] = []
        self._has_role = False
        self._id = ""

    @property
    def calls(self) -> dict[str, tuple[str, str]]:
        return {call["id"]: (call["name"], call["arguments"]) for call in self._calls}

    def take(self, event: Event) -> None:
        if event.is_done:
            return
        chunk = event.value
        if "error" in chunk:
            self.end = f"error:{chunk['error']['code']}"
            return
        assert chunk["object"] == "chat.completion.chunk"
        assert self._id in ("", chunk["id"]), "chunks of two answers"
        self._id = chunk["id"]
        [choice] = chunk["choices"]
        delta = choice["delta"]
        self._has_role = self._has_role or delta.get("role") == "assistant"
        assert self._has_role, "the first chunk names the role"
        self.text += delta.get("content") or ""
        self.thinking += delta.get("reasoning_content") or ""
        for call in delta.get("tool_calls", ()):
            if call["index"] == len(self._calls):
                assert call["type"] == "function"
                self._calls.append({"id": call["id"], "name": call["function"]["name"], "arguments": ""})
            self._calls[call["index"]]["arguments"] += call["function"]["arguments"]
        if "relayrouter" in chunk and "id" in chunk["relayrouter"]:
            note = chunk["relayrouter"]
            self.others[note["kind"], note["id"]] = note["value"]
        self.usage = chunk.get("usage") or self.usage
        if choice["finish_reason"]:
            assert not self.end, "finished twice"
            self.end = choice["finish_reason"]


class AiSdkReader:
    def __init__(self) -> None:
        self.text = self.thinking = self.end = ""
        self.others: dict[tuple[str, str], Any] = {}
        self.calls: dict[str, tuple[str, str]] = {}
        self.inputs: dict[str, Any] = {}
        self.parts: list[str] = []
        self.steps = 0
        self._id = ""
        self._open: set[str] = set()

    def take(self, event: Event) -> None:
        if event.is_done:
            return
        chunk = event.value
        kind = chunk["type"]
        if kind != "error":
            assert self._id or kind == "start", "`start` names the message"
        match kind:
            case "start":
                assert self._id in ("", chunk["messageId"])
                self._id = chunk["messageId"]
            case "text-start" | "reasoning-start":
                self._open.add(chunk["id"])
                self.parts.append(kind.removesuffix("-start"))
            case "text-delta" | "reasoning-delta":
                assert chunk["id"] in self._open, "delta of a part that is not open"
                assert chunk["delta"]
                if kind == "text-delta":
                    self.text += chunk["delta"]
                else:
                    self.thinking += chunk["delta"]
            case "text-end" | "reasoning-end":
                self._open.remove(chunk["id"])
            case "tool-input-start":
                self.calls[chunk["toolCallId"]] = (chunk["toolName"], "")
            case "tool-input-delta":
                name, arguments = self.calls[chunk["toolCallId"]]
                self.calls[chunk["toolCallId"]] = (name, arguments + chunk["inputTextDelta"])
            case "tool-input-available" | "tool-input-error":
                self.inputs[chunk["toolCallId"]] = chunk["input"]
            case "finish":
                assert not self._open, "finished with open parts"
                assert self.steps <= 1, "a step that began twice"
                assert not self.end or self.end.startswith("error:"), "finished twice"
                self.end = self.end or chunk["finishReason"]
            case "error":
                self.end = f"error:{chunk['errorText']}"
            case "start-step":
                self.steps += 1
            case "abort" | "finish-step":
                pass
            case _:
                assert kind.startswith("data-"), kind
                if not chunk.get("transient"):
                    self.others[kind.removeprefix("data-"), chunk["id"]] = chunk["data"]


class AgUiReader:
    def __init__(self) -> None:
        self.end = ""
        self.others: dict[tuple[str, str], Any] = {}
        self.calls: dict[str, tuple[str, str]] = {}
        self.usage: list[Any] = []
        self._texts: dict[str, str] = {}
        self._open: set[tuple[str, str]] = set()
        self._is_started = False

    @property
    def text(self) -> str:
        return "".join(text for name, text in self._texts.items() if not name.endswith("-reasoning"))

    @property
    def thinking(self) -> str:
        return "".join(text for name, text in self._texts.items() if name.endswith("-reasoning"))

    def begin_again(self) -> None:
        """A new request of the library; its messages stay."""
        self._open.clear()
        self._is_started = False

    def take(self, event: Event) -> None:
        value = event.value
        kind = value["type"]
        assert not self.end, "an event after the end"
        assert self._is_started or kind in ("RUN_STARTED", "RUN_ERROR"), "first event must be RUN_STARTED"
        match kind:
            case "RUN_STARTED":
                assert not self._is_started, "started twice"
                assert value["threadId"]
                assert value["runId"]
                self._is_started = True
            case "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START" | "REASONING_START":
                key = kind.removesuffix("_START"), value["messageId"]
                assert key not in self._open, f"{key} is already in progress"
                assert kind == "REASONING_START" or value["role"] == ("assistant" if kind[0] == "T" else "reasoning")
                self._open.add(key)
            case "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT":
                key = kind.removesuffix("_CONTENT"), value["messageId"]
                assert key in self._open, f"{key} is not open"
                self._texts[key[1]] = self._texts.get(key[1], "") + value["delta"]
            case "TEXT_MESSAGE_END" | "REASONING_MESSAGE_END" | "REASONING_END":
                self._open.remove((kind.removesuffix("_END"), value["messageId"]))
            case "TOOL_CALL_START":
                key = "TOOL_CALL", value["toolCallId"]
                assert key not in self._open, f"{key} is already in progress"
                self._open.add(key)
                self.calls.setdefault(key[1], (value["toolCallName"], ""))
            case "TOOL_CALL_ARGS":
                assert ("TOOL_CALL", value["toolCallId"]) in self._open
                name, arguments = self.calls[value["toolCallId"]]
                self.calls[value["toolCallId"]] = (name, arguments + value["delta"])
            case "TOOL_CALL_END":
                self._open.remove(("TOOL_CALL", value["toolCallId"]))
            case "CUSTOM":
                self.others[value["name"], value["metadata"]["id"]] = value["value"]
            case "RUN_FINISHED":
                assert not self._open, f"still open: {self._open}"
                self.usage = value.get("usage", [])
                self.end = value["outcome"]["type"]
            case "RUN_ERROR":
                self.end = f"error:{value['code']}"
            case _:
                raise AssertionError(f"unknown event {kind}")


def reader_of(output_format: OutputFormat) -> Reader:
    match output_format:
        case OutputFormat.OPENAI:
            return OpenAiReader()
        case OutputFormat.AI_SDK:
            return AiSdkReader()
        case OutputFormat.AG_UI:
            return AgUiReader()
        case OutputFormat.RELAYROUTER:
            raise ValueError("no dialect")


__all__ = ["AgUiReader", "AiSdkReader", "Event", "OpenAiReader", "Reader", "events_of", "reader_of"]
