"""Finds and makes what the settings name as hooks, and sorts it by the place in the stream that it is for."""

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, NamedTuple

from gateway.core.hooks import DeliveryHooks, Guarded, ResumeHooks, TextHooks
from gateway.domain.measures import Measures
from gateway.domain.operator_error import OperatorError
from gateway.ports import Clock
from gateway.ports.hooks import DeliveryHook, ResumeHook, TextHook
from gateway.settings import HookSettings

GROUP = "relayrouter.hooks"


class BadHook(OperatorError):
    """A hook of the settings cannot be used; the text says which, why, and what to do."""


class Hooks(NamedTuple):
    """None where no hook is for that place: then the stream pays nothing."""

    text: TextHooks | None
    delivery: DeliveryHooks | None
    resume: ResumeHooks | None


def load_hooks(settings: Sequence[HookSettings], measures: Measures, clock: Clock) -> Hooks:
    """Raises BadHook."""
    text: list[Guarded[TextHook]] = []
    delivery: list[Guarded[DeliveryHook]] = []
    resume: list[Guarded[ResumeHook]] = []
    for hook_settings in settings:
        hook = _make(hook_settings)
        is_any = False
        if isinstance(hook, TextHook):
            text.append(Guarded(hook, hook_settings, measures, clock))
            is_any = True
        if isinstance(hook, DeliveryHook):
            delivery.append(Guarded(hook, hook_settings, measures, clock))
            is_any = True
        if isinstance(hook, ResumeHook):
            resume.append(Guarded(hook, hook_settings, measures, clock))
            is_any = True
        if not is_any:
            raise BadHook(
                f"hook `{hook_settings.name}` has none of the methods open_filter, fields and on_resume "
                "(gateway/ports/hooks.py)"
            )
    return Hooks(
        TextHooks(text) if text else None,
        DeliveryHooks(delivery) if delivery else None,
        ResumeHooks(resume) if resume else None,
    )


def _make(settings: HookSettings) -> Any:
    factory = _find(settings)
    try:
        return factory(**settings.options)
    except Exception as exc:
        raise BadHook(f"hook `{settings.name}`: {type(exc).__name__} while it was made: {exc}") from exc


def _find(settings: HookSettings) -> Any:
    module_name, colon, attribute = settings.target.partition(":")
    if not colon:
        for entry in entry_points(group=GROUP, name=settings.target):
            try:
                return entry.load()
            except Exception as exc:
                raise BadHook(f"hook `{settings.name}`: entry point {settings.target} does not load: {exc}") from exc
        raise BadHook(
            f"hook `{settings.name}`: no entry point `{settings.target}` in the group {GROUP}; "
            "install its package, or write `package.module:name`"
        )
    try:
        found: Any = import_module(module_name)
        for name in attribute.split("."):
            found = getattr(found, name)
    except Exception as exc:
        raise BadHook(f"hook `{settings.name}`: {settings.target} cannot be imported: {exc}") from exc
    return found


__all__ = ["BadHook", "Hooks", "load_hooks"]
