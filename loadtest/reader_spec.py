"""What a driver asks of one reader of the oracle."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from loadtest.findings import Place


@dataclass(frozen=True, slots=True)
class ReaderSpec:
    """As the driver asks for it."""

    name: str
    session: str
    urls: tuple[str, ...]
    client: str = ""
    begins: str = "start"
    cursor: str | None = None
    last_received_seq: int | None = None
    is_acking: bool = False
    token: str | None = None
    bytes_per_second: int = 0
    """0: as fast as it comes."""
    receive_buffer_bytes: int = 0
    move_every_ms: int = 0
    replaces: str = ""
    """Connection id that its first socket replaces."""
    interrupted_runs: tuple[str, ...] = ()
    """Its client has interrupted them before: nothing of them may come."""
    is_staying_away: bool = False
    """Does not come back when its socket ends."""

    @property
    def first_place(self) -> Place | None:
        return None if self.cursor is None else Place.parse(self.cursor)

    def path(self, place: Place | None, replaces: str, retries: int) -> str:
        """Of the upgrade. `place`: where the client stands."""
        query: dict[str, Any] = {"client": self.client or self.name}
        if place is not None:
            query["cursor"] = str(place)
        elif self.last_received_seq is not None:
            query["last_received_seq"] = self.last_received_seq
        else:
            query["from"] = self.begins
        if self.is_acking:
            query["ack"] = 1
        if replaces:
            query["replaces"] = replaces
        if retries:
            query["retry"] = retries
        return f"/v1/sessions/{quote(self.session, safe='')}/ws?{urlencode(query)}"

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> "ReaderSpec":
        lists = {"urls": tuple(fields["urls"]), "interrupted_runs": tuple(fields.get("interrupted_runs", ()))}
        return cls(**{**fields, **lists})


__all__ = ["ReaderSpec"]
