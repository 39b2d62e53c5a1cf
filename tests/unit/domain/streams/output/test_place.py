"""Event ids carry a reader's place there and back, and nothing that was not ours gets through."""

import base64
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.streams.output.place import MAX_ID_BYTES, UNKNOWN, OpenCall, OpenPart, Place, Resume, event_id
from gateway.domain.streams.output.tool_calls import MAX_OPEN_CALLS
from gateway.domain.wire.cursor import Cursor, InvalidCursor

CURSOR = "e1.f1.7"


def test_a_place_comes_back_as_it_was() -> None:
    calls = [OpenCall(0, "", "c1", "f", 0), OpenCall(-1, "fc_2", "c2", "größe", 1)]
    place = Place("r1", True, False, OpenPart.TEXT, 512, UNKNOWN, 2, calls, 3)

    resume = Resume.parse(event_id(CURSOR, place), is_continued=True)

    assert resume == Resume(Cursor("e1", "f1", 7), place, is_continued=True)


def test_an_id_before_any_position_is_known() -> None:
    resume = Resume.parse(event_id("", Place("r1")), is_continued=True)

    assert (resume.cursor, resume.place) == (None, Place("r1"))


def test_a_plain_cursor_says_nothing_of_the_run() -> None:
    assert Resume.parse(CURSOR, is_continued=False) == Resume(Cursor("e1", "f1", 7), None, is_continued=False)


def test_the_longest_id_is_short_enough_to_come_back() -> None:
    """Everything in it at its bound, and twice as long when it is escaped."""
    run = '"' * 128
    calls = [OpenCall(2**31, '"' * 64, f"{run}-call-127", '"' * 64, 127) for _ in range(MAX_OPEN_CALLS)]
    place = Place(run, True, False, OpenPart.THINKING, 2**53, 2**53, 128, calls, 999)

    text = event_id(f"{'e' * 10}.{'f' * 8}.{2**53 - 1}", place)

    assert len(text) <= MAX_ID_BYTES
    assert Resume.parse(text, is_continued=True).place == place
    assert re.fullmatch("[!-~]+", text)


@pytest.mark.parametrize("size", [MAX_ID_BYTES - 1, MAX_ID_BYTES, MAX_ID_BYTES + 1])
def test_longer_ids_are_refused_unread(size: int) -> None:
    with pytest.raises(InvalidCursor, match="too long" if size > MAX_ID_BYTES else "whole"):
        Resume.parse(f"{CURSOR}~{'A' * size}", is_continued=True)


def _written(value: object) -> str:
    return f"{CURSOR}~{base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip('=')}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "~",
        "x",
        f"{CURSOR}~",
        f"{CURSOR}~%%%",
        f"x~{Place('r1').encode()}",
        f"{CURSOR}~{Place('r1').encode()[:-3]}",
        _written([]),
        _written(["r1", True, False, "z", 0, 0, 0, [], 0]),
        _written(["r1", True, False, "", -2, 0, 0, [], 0]),
        _written(["r1", True, False, "", 0, 0, -1, [], 0]),
        _written(["r1", True, False, "", 0, 0, 0, [["x"]], 0]),
        _written(["r" * 129, True, False, "", 0, 0, 0, [], 0]),
        _written(["r\n1", True, False, "", 0, 0, 0, [], 0]),
        _written(["r1", True, False, "", 0, 0, 0, [], -1]),
    ],
)
def test_what_no_gateway_sent_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor):
        Resume.parse(text, is_continued=True)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        Resume.parse(text, is_continued=True)
    except InvalidCursor:
        return
