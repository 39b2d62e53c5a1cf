"""What Prometheus says of the rules in force."""

from typing import Any

from loadtest.e2e.step_monitoring import Rules


def answer(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"data": {"groups": [{"rules": list(rules)}]}}


def test_a_rule_that_was_not_evaluated_well_is_faulty() -> None:
    """`unknown` is one that nobody has evaluated yet."""
    told = [
        {"name": "A", "health": "ok", "state": "firing"},
        {"name": "B", "health": "err", "state": "inactive"},
        {"name": "C", "health": "unknown"},
    ]

    assert Rules(3, ("B", "C"), ("A",)) == Rules.read(answer(*told))


def test_no_rules_are_no_rules() -> None:
    assert Rules(0, (), ()) == Rules.read({"data": {"groups": []}})
