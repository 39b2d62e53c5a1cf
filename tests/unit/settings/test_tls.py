"""TLS settings that do not go together are refused at the start."""

from typing import Any

import pytest
from pydantic import ValidationError

from gateway.settings import TlsSettings

FILES: dict[str, Any] = {"certificate_file": "/tls.crt", "key_file": "/tls.key"}


def test_without_files_it_is_off() -> None:
    assert not TlsSettings().is_on


def test_with_both_files_it_is_on() -> None:
    assert TlsSettings(**FILES).is_on


@pytest.mark.parametrize("name", FILES)
def test_one_file_alone_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="go together"):
        TlsSettings(**{name: FILES[name]})


def test_the_admin_listener_has_no_certificate_of_its_own() -> None:
    with pytest.raises(ValidationError, match="set certificate_file and key_file"):
        TlsSettings(admin=True)


def test_versions_that_are_broken_cannot_be_asked_for() -> None:
    with pytest.raises(ValidationError, match="minimum_version"):
        TlsSettings.model_validate({**FILES, "minimum_version": "1.1"})
