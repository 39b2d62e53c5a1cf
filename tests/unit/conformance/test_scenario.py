"""The loader of scenarios: what is wrong is named by file, scenario, step and field."""

import pytest

from sdk.conformance.scenario import load, load_text
from sdk.conformance.script_log import BadScenario

GOOD = """
- name: hello
  covers: [C5]
  log: [{kind: delta, run: r1, text: a}, {kind: delta, run: r1, text: b}]
  steps:
    - {do: connect, options: {from: start}}
    - {take: websocket, as: w1, welcome: {}, frames: [{merged: 1-2}]}
"""


def test_the_files_of_this_project_are_right_and_their_names_unique() -> None:
    scenarios = load()

    assert len(scenarios) > 100
    assert any(scenario.is_short for scenario in scenarios)


def test_a_good_scenario_has_its_steps() -> None:
    (scenario,) = load_text(GOOD, "group")

    assert ("hello", "group", ("C5",), 2) == (scenario.name, scenario.group, scenario.covers, len(scenario.steps))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("covers: [C5]", "cover: [C5]", "group.yaml, 'hello': unknown field 'cover'"),
        ("covers: [C5]", "covers: C5", "group.yaml, 'hello': field 'covers' has a value of the wrong type"),
        ("name: hello\n  covers: [C5]", "name: hello", "group.yaml, 'hello': field 'covers' is missing"),
        ("take: websocket", "tack: websocket", "group.yaml, 'hello', step 2: unknown verb 'tack'"),
        ("take: websocket", "take: carrier_pigeon", "step 2: take one of websocket"),
        ("as: w1", "az: w1", "step 2 (take): unknown field 'az'"),
        ("as: w1", "within: true", "field 'within' has a value of the wrong type: True"),
        ("welcome: {}", "reply: {status: 200}", "step 2: one answer only"),
        ("merged: 1-2", "merged: 1-3", "step 2: the log has no message 3"),
        ("merged: 1-2", "log: 2-1", "step 2: '2-1' is no span"),
        ("- {do: connect, options: {from: start}}", "- [do]", "step 1 must be a mapping"),
        ("- {do: connect, options: {from: start}}", "- {hear: w1}", "step 1 (hear): field 'frame' is missing"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, named: str) -> None:
    assert old in GOOD

    with pytest.raises(BadScenario) as caught:
        load_text(GOOD.replace(old, new), "group")

    assert named in str(caught.value)


def test_a_file_that_is_no_yaml_is_named() -> None:
    with pytest.raises(BadScenario, match=r"group\.yaml"):
        load_text("- {", "group")


def test_long_texts_are_written_short() -> None:
    (scenario,) = load_text(GOOD.replace("text: a}", 'text: "${ü*300}"}'), "group")

    assert scenario.log[0]["text"] == "ü" * 300
