"""Thinning: what goes first, what is never sent without what it needs, and that every frame is counted once (B10)."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.streams.media_queue import END_SECONDS, MAX_FRAMES, MAX_TRACKS, Dropped, MediaPolicy, MediaQueue
from gateway.domain.wire.media import MediaFlag, MediaHead, MediaType

A, V = MediaType.AUDIO, MediaType.VIDEO
POLICY = MediaPolicy()
EQUALS = MediaPolicy(audio_only=False)
SIZE = 10


def head(kind: MediaType, flags: int = 0, track: bytes = b"t") -> MediaHead:
    return MediaHead(kind, flags, b"", track)


KEY, DELTA, DROPPABLE = head(V, MediaFlag.KEY), head(V), head(V, MediaFlag.DROPPABLE)
SOUND, LAST = head(A), head(V, MediaFlag.END)
NAMES = {KEY: "key", DELTA: "delta", DROPPABLE: "droppable", SOUND: "sound", LAST: "end"}


def filled(frames: int, offered: list[MediaHead], policy: MediaPolicy = POLICY) -> MediaQueue:
    """Room for so many."""
    queue = MediaQueue(frames * SIZE)
    for one in offered:
        queue.offer(one, bytes(SIZE), 0.0, policy)
    return queue


def taken(queue: MediaQueue, now: float = 0.0, policy: MediaPolicy = POLICY) -> list[str]:
    got = []
    while (frame := queue.peek(now, policy)) is not None:
        queue.take(frame)
        got.append(NAMES[frame.head])
    return got


def reasons(queue: MediaQueue) -> dict[str, int]:
    return dict(sum((Counter({reason.value: n}) for (_, reason), n in queue.dropped.items()), Counter[str]()))


def test_what_fits_goes_out_in_order() -> None:
    """Nothing is thinned while there is room."""
    queue = filled(5, [KEY, SOUND, DELTA, DROPPABLE, LAST])

    assert taken(queue) == ["key", "sound", "delta", "droppable", "end"]
    assert (queue.bytes, reasons(queue)) == (0, {})


@pytest.mark.parametrize(
    ("room", "left"),
    [
        (5, ["key", "delta", "droppable", "sound", "end"]),
        (4, ["key", "delta", "sound", "end"]),
        (3, ["key", "sound", "end"]),
        (2, ["sound", "end"]),
        (1, ["end"]),
    ],
)
def test_thinning_goes_by_flags(room: int, left: list[str]) -> None:
    """Droppable first, then deltas, then key frames, then audio; the end of a stream last of all."""
    assert taken(filled(room, [KEY, DELTA, DROPPABLE, SOUND, LAST])) == left


def test_a_dropped_delta_takes_all_until_the_next_key_frame() -> None:
    """They could not be decoded; what the next key frame begins is whole."""
    queue = filled(3, [KEY, DELTA, DELTA, DELTA, KEY, DELTA])

    assert taken(queue) == ["key", "key", "delta"]
    assert reasons(queue) == {"delta": 3}


def test_deltas_come_only_after_a_key_frame() -> None:
    """Who comes into the middle of a stream waits for its next one."""
    assert taken(filled(9, [DELTA, DROPPABLE, KEY, DELTA])) == ["key", "delta"]


def test_a_dropped_droppable_frame_harms_no_other() -> None:
    """That is what its flag says."""
    assert taken(filled(3, [KEY, DROPPABLE, DELTA, DELTA])) == ["key", "delta", "delta"]


def test_streams_do_not_harm_each_other() -> None:
    """What is missing in one is missing in that one."""
    other_key, other_delta = head(V, MediaFlag.KEY, b"u"), head(V, 0, b"u")
    NAMES.update({other_key: "other key", other_delta: "other delta"})
    queue = filled(4, [KEY, other_key, DELTA, SOUND, other_delta])

    assert taken(queue) == ["key", "other key", "sound", "other delta"]


def test_audio_is_as_good_as_a_key_frame_where_audio_only_is_not_allowed() -> None:
    """Then the oldest goes."""
    assert taken(filled(2, [SOUND, KEY, KEY], EQUALS), policy=EQUALS) == ["key", "key"]


@pytest.mark.parametrize(("age", "left"), [(1.9, ["key", "sound"]), (2.0, ["key", "sound"]), (2.1, [])])
def test_what_is_old_is_dropped(age: float, left: list[str]) -> None:
    """Nobody wants to hear late what was said."""
    queue = filled(5, [KEY, SOUND])

    assert taken(queue, now=age) == left
    assert reasons(queue) == ({"stale": 2} if not left else {})


@pytest.mark.parametrize(
    ("age", "left"), [(9.0, ["end"]), (END_SECONDS - 1, ["end"]), (END_SECONDS, ["end"]), (END_SECONDS + 1, [])]
)
def test_the_end_of_a_stream_outlives_its_other_frames_but_not_for_ever(age: float, left: list[str]) -> None:
    """Or its reader would wait for more; but who takes nothing at all would keep the memory of everybody."""
    assert taken(filled(5, [KEY, LAST]), now=age) == left


def test_audio_only_drops_all_video_but_ends() -> None:
    """Audio keeps its order."""
    queue = filled(9, [KEY, SOUND, DELTA, DROPPABLE, LAST, SOUND])
    queue.keep_audio_only()

    assert taken(queue) == ["sound", "end", "sound"]
    assert reasons(queue) == {"audio_only": 3}


def test_after_audio_only_video_begins_with_a_key_frame() -> None:
    """Also when the key frame before it had been sent."""
    queue = filled(9, [KEY])
    taken(queue)
    queue.refuse(DELTA, Dropped.AUDIO_ONLY)
    for one in (DELTA, KEY, DELTA):
        queue.offer(one, bytes(SIZE), 0.0, POLICY)

    assert taken(queue) == ["key", "delta"]


def test_the_number_of_frames_is_bounded() -> None:
    """However small they are."""
    queue = MediaQueue(10**9)
    for _ in range(MAX_FRAMES + 1):
        queue.offer(SOUND, b"", 0.0, POLICY)

    assert (len(queue), reasons(queue)) == (MAX_FRAMES, {"audio": 1})


def test_the_number_of_streams_that_are_remembered_is_bounded() -> None:
    """The one that was forgotten waits for its next key frame."""
    queue = MediaQueue(10**9)
    for number in range(MAX_TRACKS + 1):
        queue.offer(head(V, MediaFlag.KEY, b"%d" % number), b"", 0.0, POLICY)
    queue.offer(head(V, 0, b"0"), b"", 0.0, POLICY)

    assert reasons(queue) == {"delta": 1}


HEADS = st.sampled_from(
    [head(V, flags, track) for flags in range(8) for track in (b"t", b"u")] + [head(A), head(A, 2), head(A, 4)]
)
STEPS = st.lists(st.tuples(HEADS, st.integers(0, 40)) | st.integers(0, 3) | st.floats(0.1, 1.5), max_size=60)


@given(STEPS, st.integers(20, 120), st.booleans())
def test_whatever_comes_every_frame_is_counted_once_and_no_bound_is_passed(
    steps: list[tuple[MediaHead, int] | int | float], room: int, is_equal: bool
) -> None:
    """Offered = sent + dropped + waiting, and what is sent is in order and can be decoded."""
    policy = EQUALS if is_equal else POLICY
    queue, now, offered = MediaQueue(room), 0.0, 0
    sent: list[tuple[MediaHead, int]] = []
    for step in steps:
        match step:
            case (one, size):
                queue.offer(one, bytes(size), now, policy)
                offered += 1
                assert queue.bytes <= room
            case int():
                for _ in range(step):
                    if (frame := queue.peek(now, policy)) is not None:
                        queue.take(frame)
                        sent.append((frame.head, frame.number))
            case _:
                now += step

    assert offered == len(sent) + queue.dropped.total() + len(queue)
    assert sent == sorted(sent, key=lambda pair: pair[1])
    assert _decodable(sent)


def _decodable(sent: list[tuple[MediaHead, int]]) -> bool:
    """No frame of video that needs others comes before a key frame of its stream."""
    begun: set[bytes] = set()
    for one, _ in sent:
        if one.type is V and one.flags & MediaFlag.KEY:
            begun.add(one.track)
        elif one.type is V and not one.is_end and one.track not in begun:
            return False
        if one.type is V and one.is_end:
            begun.discard(one.track)
    return True
