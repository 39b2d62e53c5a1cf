"""What a client says it can take (A4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.wire.capabilities import MAX_BYTES, MAX_WORDS, Capabilities
from gateway.domain.wire.media import MediaType


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("", ()),
        ("media", ("audio", "video")),
        ("video,audio,video", ("audio", "video")),
        ("audio/opus,video/vp8", ("audio/opus", "video/vp8")),
        ("audio,hologram,smell/v2", ("audio",)),
        ("hologram", ()),
    ],
)
def test_what_is_known_is_kept_and_the_rest_ignored(asked: str, words: tuple[str, ...]) -> None:
    """A newer client may ask an older gateway."""
    assert Capabilities.parse(asked).words == words


@pytest.mark.parametrize(
    ("asked", "audio", "video"),
    [
        ("", False, False),
        ("media", True, True),
        ("audio/opus", True, False),
        ("video", False, True),
        ("x", False, False),
    ],
)
def test_a_codec_says_its_type(asked: str, audio: bool, video: bool) -> None:
    """Who names a codec takes frames of that type."""
    capabilities = Capabilities.parse(asked)

    assert (capabilities.takes(MediaType.AUDIO), capabilities.takes(MediaType.VIDEO)) == (audio, video)


@pytest.mark.parametrize("asked", ["Audio", "audio,", ",", "audio video", "a\tb", "audio\n", "é", "-audio", "a" * 33])
def test_another_shape_is_refused(asked: str) -> None:
    """A tab would break the route that keeps it."""
    with pytest.raises(ValueError, match="must"):
        Capabilities.parse(asked)


@pytest.mark.parametrize(("count", "is_taken"), [(MAX_WORDS - 1, True), (MAX_WORDS, True), (MAX_WORDS + 1, False)])
def test_the_number_of_words_is_bounded(count: int, is_taken: bool) -> None:
    """One more is refused, also when it is unknown."""
    asked = ",".join(["audio", *("x" for _ in range(count - 1))])
    if is_taken:
        assert Capabilities.parse(asked).words == ("audio",)
    else:
        with pytest.raises(ValueError, match="at most"):
            Capabilities.parse(asked)


@pytest.mark.parametrize(("size", "is_taken"), [(MAX_BYTES - 1, True), (MAX_BYTES, True), (MAX_BYTES + 1, False)])
def test_the_length_is_bounded(size: int, is_taken: bool) -> None:
    """In characters, which are bytes here."""
    asked = ",".join("a" * 31 for _ in range(8))  # 255
    asked = (asked + "aaa")[:size] if size > len(asked) else asked[:size]
    if is_taken:
        assert Capabilities.parse(asked).words == ()
    else:
        with pytest.raises(ValueError, match="characters"):
            Capabilities.parse(asked)


@pytest.mark.parametrize("asked", ["", "video", ",".join(["media", *(f"video/{i}" for i in range(MAX_WORDS - 1))])])
def test_batches_are_kept_beside_what_else_it_takes(asked: str) -> None:
    """Also where the client named as many words as it may."""
    media = Capabilities.parse(asked)
    both = media.with_batches()

    assert (media.takes_batches, both.takes_batches) == (False, True)
    assert set(both.words) == {"batch", *media.words}
    assert Capabilities.read(str(both)) == both


def test_batches_are_no_media() -> None:
    """Who takes several messages in a frame gets no binary ones for that."""
    assert not Capabilities().with_batches().takes_media
    assert Capabilities.parse("audio/opus").with_batches().takes_media


@given(st.text(max_size=300))
def test_a_route_of_another_version_never_breaks_the_reader(stored: str) -> None:
    """Whatever is there, what is read fits what was written."""
    read = Capabilities.read(stored)

    assert Capabilities.read(str(read)) == read


@given(st.lists(st.sampled_from(["audio", "video", "media", "audio/opus", "video/vp8", "holo"]), max_size=MAX_WORDS))
def test_a_route_gives_back_what_was_asked_for(words: list[str]) -> None:
    """Through Redis, where it is a text."""
    capabilities = Capabilities.parse(",".join(words))

    assert Capabilities.read(str(capabilities)) == capabilities
