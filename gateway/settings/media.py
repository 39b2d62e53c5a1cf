"""Audio and video beside the text: how large, how much, how old (docs/media.md)."""

from pydantic import Field

from gateway.settings.topic import ByteCount, Topic

_KIB = 1024
_MIB = 1024**2


class MediaSettings(Topic):
    """Media is ephemeral: at each of these bounds frames are dropped and counted, and text never waits."""

    frame_bytes: ByteCount = Field(64 * _KIB, ge=1_024, le=_MIB)
    """One frame with its header. Text waits behind one at most: larger pictures are sent in slices.
    On a socket `limits.client_message_bytes` holds as well."""
    bytes_per_second: ByteCount = Field(_MIB, ge=1_024)
    """Taken for one session by one gateway, on average; 8 Mbit/s, far above a call with video."""
    burst_bytes: ByteCount = Field(2 * _MIB, ge=64 * _KIB)
    """At once: a few key frames."""
    queue_bytes: ByteCount = Field(256 * _KIB, ge=16 * _KIB)
    """Waiting for one connection; beyond it frames are thinned by their flags. Two seconds of 1 Mbit/s."""
    window_bytes: ByteCount = Field(64 * _KIB, ge=4 * _KIB)
    """On the way to one client, proxies included, as its answers to pings tell: what text can wait behind."""
    max_age_seconds: float = Field(2, gt=0, le=60)
    """A frame that waited longer is dropped: nobody wants to hear late what was said."""
    memory_bytes: ByteCount = Field(64 * _MIB, ge=_MIB)
    """Waiting in all queues of this gateway together."""


__all__ = ["MediaSettings"]
