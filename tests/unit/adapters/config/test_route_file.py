"""A table file: whatever it holds, what is wrong is told with its line: an exception would end every gateway."""

import pytest

from gateway.adapters.config.route_file import BadRoutes, parse_routes


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        pytest.param("9" * 400, "has an integer that is too large", id="no float"),
        pytest.param("0x" + "f" * 5_000, "has an integer that is too large", id="no text"),
        pytest.param('"\\UFFFFFFFF"', "not valid YAML: no such character", id="no character"),
        pytest.param('"\\U00110000"', "not valid YAML: no such character", id="beyond Unicode"),
        pytest.param("\x07", "not valid YAML: special characters are not allowed", id="bell"),
        pytest.param('!!int ""', "has a value that is not what its tag or form says", id="tag"),
    ],
)
@pytest.mark.parametrize("column", ["lane", "deadline_seconds"])
def test_what_nothing_can_be_made_of_is_told_with_its_line(column: str, cell: str, problem: str) -> None:
    text = f"version: one\nroutes:\n  post_processing:\n    '*':\n      {column}: {cell}\n"

    with pytest.raises(BadRoutes) as caught:
        parse_routes(text.encode(), "routes.yaml")

    assert (f"routes.yaml:5: {problem}",) == caught.value.details
