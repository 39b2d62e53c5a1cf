"""Output dialects: the same log as streams that the client libraries of others read (docs/dialects.md). Pure.

One module per dialect; `run_view.py` makes moments of one run out of frames, `place.py` carries a reader's state in the
event id, `translator.py` puts them together.
"""

from gateway.domain.streams.output.dialect import OutputFormat
from gateway.domain.streams.output.place import Resume
from gateway.domain.streams.output.translator import Translator, open_translator, response_headers

__all__ = ["OutputFormat", "Resume", "Translator", "open_translator", "response_headers"]
