"""The runner itself: a client that does what it should passes, one that does not is caught."""

import sys
from pathlib import Path

import pytest

from sdk.conformance.drivers import DriverFailed, Program
from sdk.conformance.play import Result
from sdk.conformance.runner import chosen, explain, run
from sdk.conformance.scenario import Scenario, load, load_text

REFERENCE = Path(__file__).parent / "reference_driver.py"
PASSES = (
    "messages come in order, once, with their text",
    "a frame that was had already is ignored",
    "a merged frame is one item, and its overlap is cut off",
    "unknown kinds and unknown fields pass through",
    "the stream ends without a close frame",
    "a resume may begin before what we have",
    "a new fork goes on without loss",
    "a token that expires is renewed by a reconnect",
    "1011 comes back with its cursor",
    "superseded by a newer connection of the client is the end",
)
"""What the reference client can; all but one: it knows no tokens."""


def reference(*arguments: str) -> Program:
    return Program("reference", (sys.executable, str(REFERENCE), *arguments), {})


async def results_of(program: Program, scenarios: list[Scenario]) -> dict[str, Result]:
    results = await run(program, scenarios, 8, lambda _result, _driver: None)
    return {result.scenario.name: result for result in results}


async def test_the_reference_client_passes_what_it_can_and_fails_what_it_cannot() -> None:
    scenarios = [scenario for scenario in load() if scenario.name in PASSES]
    assert len(scenarios) == len(PASSES)

    results = await results_of(reference(), scenarios)

    failed = {name for name, result in results.items() if result.problem is not None}
    assert failed == {"a token that expires is renewed by a reconnect"}


async def test_a_client_that_forgets_is_caught_with_what_it_did() -> None:
    wanted = ("a frame that was had already is ignored", "a resume may begin before what we have")
    scenarios = [scenario for scenario in load() if scenario.name in wanted]

    results = await results_of(reference("--broken"), scenarios)

    assert len(results) == 2
    assert "message 2 came after 3" in explain("x", results[wanted[0]])
    assert "goes on from None, not from 'e1.f1.4'" in explain("x", results[wanted[1]])


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ("[{do: connect}, {take: websocket, welcome: {}}, {do: dance}, {see: settled, within: 5}]", "cannot dance"),
        ("[{do: connect}, {see: ended, within: 0.3}]", "did not happen in time"),
        ("[{do: connect}, {take: websocket, as: w1, welcome: {}}, {close: w2}]", "no `take` is named 'w2'"),
        ("[{do: connect}, {take: websocket, as: w1, welcome: {}}, {gone: w1, code: 1000, within: 0.3}]", "in time"),
        ("[{do: connect}, {take: websocket, as: w1, query: {ack: '1'}, welcome: {}}]", "has ack=None, not '1'"),
        ("[{do: connect}, {take: websocket, welcome: {}}, {counted: websocket, at_most: 0}]", "1 websocket requests"),
    ],
)
async def test_what_does_not_happen_is_a_failure(steps: str, found: str) -> None:
    (scenario,) = load_text(f"[{{name: x, covers: [], steps: {steps}, expect: {{states: []}}}}]", "group")

    results = await results_of(reference(), [scenario])

    assert found in str(results["x"].problem)


async def test_a_driver_that_does_not_start_is_told() -> None:
    program = Program("none", (sys.executable, "-c", "raise SystemExit('no SDK here')"), {})

    with pytest.raises(DriverFailed, match="no SDK here"):
        await run(program, load()[:1], 1, lambda _result, _driver: None)


def test_scenarios_are_chosen_by_name_and_group() -> None:
    scenarios = load()

    assert {s.group for s in chosen(scenarios, "python", patterns=["ladder"])} == {"ladder"}
    assert len(chosen(scenarios, "python", patterns=["1011 *"])) == 1
    assert len(chosen(scenarios, "python", is_short=True)) < len(scenarios)
