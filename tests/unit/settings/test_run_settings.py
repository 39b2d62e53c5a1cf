"""Limits of runs that belong together."""

import pytest
from pydantic import ValidationError

from gateway.settings import RunSettings


@pytest.mark.parametrize(("text_bytes", "is_good"), [(2_047, True), (2_048, True), (2_049, False)])
def test_a_text_fits_into_what_a_session_keeps(text_bytes: int, is_good: bool) -> None:
    if is_good:
        assert RunSettings(text_bytes=text_bytes, session_text_bytes=2_048).text_bytes == text_bytes
    else:
        with pytest.raises(ValidationError, match="no text could get so long"):
            RunSettings(text_bytes=text_bytes, session_text_bytes=2_048)
