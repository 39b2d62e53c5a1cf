"""Frames that have a seq and are in the log: payloads as types, each with an example."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tools.api.frame_types import At, Frame, Ms, RunName, Seen, Sha256


class SegmentChoice(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How the run's text is cut; what is not named has its default."""

    mode: Literal["tokens", "sentence", "structure", "pattern", "raw"]
    tokens: int | UnsetType = UNSET
    max_delay_ms: int | UnsetType = UNSET
    max_bytes: int | UnsetType = UNSET
    first_immediately: bool | UnsetType = UNSET
    pattern: str | UnsetType = UNSET


class RunStart(Frame, tag="run_start"):
    """A run begins."""

    run: RunName
    dialect: Annotated[str | UnsetType, Meta(description="What the producer sends; `tokens`: one by one.")] = UNSET
    segment: SegmentChoice | UnsetType = UNSET


class Delta(Frame, tag="delta"):
    """A segment of the run's text. Text of all deltas and code blocks in order is the run's text."""

    run: RunName
    text: str
    at: At


class CodeBlock(Frame, tag="code_block"):
    """A segment of the run's text inside a code block (segment mode `structure`): its fences are part of the text."""

    run: RunName
    block: Annotated[int, Meta(description="Number of the block in the run.")]
    part: Annotated[int, Meta(description="Number of this part of the block.")]
    last: Annotated[bool, Meta(description="The block ends with this part.")]
    language: str | None
    text: str
    at: At


class Thinking(Frame, tag="thinking"):
    """A segment of the run's reasoning; has an `at` of its own. When a stretch of it ends: its duration."""

    run: RunName
    text: str
    at: At | UnsetType = UNSET
    duration_ms: Ms | UnsetType = UNSET
    done: bool | UnsetType = UNSET


class Tool(Frame, tag="tool"):
    """Tool calls as the provider sent them."""

    run: RunName
    data: Any


class Data(Frame, tag="data"):
    """Anything of the application's, or structured content of a provider that is neither text nor tool."""

    data: Any
    run: RunName | UnsetType = UNSET
    text: str | UnsetType = UNSET


class TextDigest(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Counts of a whole text; null where it is not known to be whole (interrupted, abandoned, past its cap)."""

    bytes: int
    code_points: int | None
    sha256: Sha256 | None
    duration_ms: Ms | UnsetType | None = UNSET


class RunEnd(Frame, tag="run_end"):
    """The run has ended; none of its text follows. `sha256` is of the run's whole text, null when it is not whole."""

    run: RunName
    reason: Literal["complete", "incomplete", "failed", "cancelled", "interrupted", "abandoned"]
    bytes: int
    code_points: int | None
    sha256: Sha256 | None
    reasoning: TextDigest
    finish_reason: str | UnsetType = UNSET
    usage: Any | UnsetType = UNSET
    problem: Annotated[str | UnsetType, Meta(description="What went wrong, for a person.")] = UNSET
    replaced: Annotated[int | UnsetType, Meta(description="U+FFFD put in for bytes that were no UTF-8.")] = UNSET
    seen: Annotated[Seen | UnsetType, Meta(description="What the interrupting user had seen.")] = UNSET
    by: Annotated[str | UnsetType, Meta(description="The user that interrupted or cancelled.")] = UNSET
    why: Annotated[str | UnsetType, Meta(description="What a cancelling user said.")] = UNSET
    message: Annotated[str | UnsetType, Meta(description="What a cancelling producer said.")] = UNSET


class Cut(Frame, tag="cut"):
    """Only for the client that interrupted: messages first_seq to seq had text of the run and are not shown."""

    run: RunName


class Ask(Frame, tag="ask"):
    """The agent wants a decision."""

    ask: str
    message: str
    expiresAt: str  # noqa: N815  AG-UI's spelling
    run: RunName | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    options: Any | UnsetType = UNSET
    responseSchema: Any | UnsetType = UNSET  # noqa: N815  AG-UI's spelling
    toolCallId: str | UnsetType = UNSET  # noqa: N815  AG-UI's spelling
    metadata: Any | UnsetType = UNSET
    who: Any | UnsetType = UNSET


class AskResolved(Frame, tag="ask_resolved"):
    """An ask was answered, or expired, or was cancelled. The first valid answer wins."""

    ask: str
    status: Literal["answered", "expired", "cancelled"]
    run: RunName | UnsetType = UNSET
    value: Any | UnsetType = UNSET
    user: str | UnsetType = UNSET
    client: str | UnsetType = UNSET


class Echo(Frame, tag="echo"):
    """What a user sent, shown on the user's other devices."""

    client: str
    user: str
    input_seq: int
    payload: Any


class ProducerGap(Frame, tag="producer_gap"):
    """Messages of a producer are missing here: they never came (`missing`), or the server lost them (`lost_writes`)."""

    reason: Literal["missing", "lost_writes"]
    producer: str | UnsetType = UNSET
    first: int | UnsetType = UNSET
    last: int | UnsetType = UNSET


TEXT_FRAMES: dict[type[Frame], Frame] = {
    RunStart: RunStart(run="r7", dialect="openai", segment=SegmentChoice(mode="structure")),
    Thinking: Thinking(run="r7", text="The user wants ", at=0),
    Delta: Delta(run="r7", text="Hello, wörld. ", at=0),
    CodeBlock: CodeBlock(
        run="r7", block=1, part=1, last=True, language="python", text="```python\nprint(1)\n```\n", at=15
    ),
    Tool: Tool(run="r7", data={"id": "call_1", "name": "search", "arguments": '{"q":'}),
    Data: Data(data={"progress": 0.4}),
    RunEnd: RunEnd(
        run="r7",
        reason="complete",
        finish_reason="stop",
        usage={"input_tokens": 12, "output_tokens": 9},
        bytes=39,
        code_points=38,
        sha256="44ae9d9c9c9f9d0a77b5d7a5b8d5dcb8f8a1f5a7e2dcf4f0d3ec2f1b5a6c7d8e",
        reasoning=TextDigest(bytes=15, code_points=15, sha256="9a" * 32, duration_ms=830),
    ),
    Cut: Cut(run="r7"),
    Ask: Ask(ask="a1", message="Delete 3 files?", options=["yes", "no"], expiresAt="2026-11-30T12:00:00Z", run="r7"),
    AskResolved: AskResolved(ask="a1", status="answered", value="yes", user="u1", client="phone", run="r7"),
    Echo: Echo(client="phone", user="u1", input_seq=3, payload={"text": "And in Python?"}),
    ProducerGap: ProducerGap(producer="agent", first=18, last=19, reason="missing"),
}

__all__ = ["TEXT_FRAMES", "Cut"]
