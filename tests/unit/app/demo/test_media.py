"""The demo's call: frames that a gateway takes, and counts of what came."""

from gateway.app.demo.media import BARS, DemoMedia, MediaCounts, picture, tone
from gateway.domain.wire.media import MediaFlag, MediaFrame, MediaType, encode_media
from gateway.settings.media import MediaSettings


def test_pictures_move_and_tones_swell_within_a_byte() -> None:
    assert picture(1)[:BARS] != picture(2)[:BARS]
    assert tone(1) != tone(2)
    assert len(picture(1)) < MediaSettings().frame_bytes


def test_each_second_has_a_picture_that_stands_alone() -> None:
    media = DemoMedia("http://gateway", "s")

    frames = [frame for _ in range(25) for frame in media.next_frames()]

    pictures = [frame for frame in frames if frame.type is MediaType.VIDEO]
    assert (media.sent.audio, media.sent.video) == (25, 12)
    assert [frame.sequence for frame in pictures] == list(range(1, 13))
    assert [frame.sequence for frame in pictures if frame.flags & MediaFlag.KEY] == [12]


def test_what_came_and_what_was_left_out() -> None:
    counts = MediaCounts()

    for kind in (MediaType.AUDIO, MediaType.VIDEO, MediaType.AUDIO):
        counts.take(encode_media(MediaFrame(kind, "call", 1, 0, 0, b"x")))
    counts.dropped({"kind": "media_dropped", "count": 5, "audio": 1, "video": 4, "audio_only": True})
    counts.dropped({"kind": "media_dropped", "count": 1, "audio": 0, "video": 1, "audio_only": False})

    assert counts == MediaCounts(audio=2, video=1, dropped_audio=1, dropped_video=5, is_audio_only=False)
