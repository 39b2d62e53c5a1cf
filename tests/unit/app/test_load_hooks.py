"""What the settings name as hooks is found, made and sorted; what cannot be is said."""

from typing import Any

import pytest

from gateway.app.load_hooks import BadHook, Hooks, load_hooks
from gateway.domain.measures import Measures
from gateway.settings import HookSettings


def load(target: str, **options: Any) -> Hooks:
    return load_hooks([HookSettings(name="h", target=target, options=options)], Measures(), lambda: 0.0)


def test_without_hooks_there_is_nothing_to_call() -> None:
    assert load_hooks([], Measures(), lambda: 0.0) == Hooks(None, None, None)


@pytest.mark.parametrize(
    ("target", "options", "place"),
    [
        ("examples.hooks:WordFilter", {"words": ["darn"]}, "text"),
        ("examples.hooks:DirectionTag", {}, "delivery"),
        ("examples.hooks:TitleOnResume", {"titles": {}}, "resume"),
    ],
)
def test_a_hook_goes_to_its_place_only(target: str, options: dict[str, Any], place: str) -> None:
    hooks = load(target, **options)

    assert [place] == [name for name, found in hooks._asdict().items() if found is not None]


@pytest.mark.parametrize(
    ("target", "options", "says"),
    [
        ("no.such.module:Hook", {}, "cannot be imported"),
        ("examples.hooks:Missing", {}, "cannot be imported"),
        ("not-installed", {}, "no entry point `not-installed` in the group relayrouter.hooks"),
        ("examples.hooks:WordFilter", {"words": []}, "ValueError while it was made"),
        ("examples.hooks:WordFilter", {}, "TypeError while it was made"),
        ("builtins:object", {}, "has none of the methods"),
    ],
)
def test_a_hook_that_cannot_be_used_is_said(target: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadHook, match=says):
        load(target, **options)
