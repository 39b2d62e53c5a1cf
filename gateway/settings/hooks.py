"""What an application plugs in, and what happens when it fails."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from gateway.settings.topic import Topic


class HookSettings(Topic):
    """One hook."""

    name: str = Field(min_length=1, max_length=64, pattern=r"^[a-z0-9][a-z0-9_.-]*$")
    """In logs and metrics."""
    target: str = Field(min_length=1, max_length=256)
    """`package.module:name`, or the name of an entry point in the group `relayrouter.hooks`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments for it."""
    on_error: Literal["skip", "fail"] = "skip"
    """`skip`: go on without it. `fail`: the run ends `failed`; a delivery or resume hook closes the connection."""
    deadline_ms: int = Field(50, ge=1, le=10_000)
    """A call that takes longer failed. One that never waits is measured afterwards, since nothing can interrupt it."""
    break_after: int = Field(5, ge=1, le=1_000)
    """After so many failures in a row it is left out for a while."""
    retry_after_seconds: float = Field(30, ge=0.1)
    """Then one call tries again."""


class HooksSettings(Topic):
    """What the application plugs in (docs/hooks.md)."""

    use: tuple[HookSettings, ...] = ()
    """In this order. None: the stream pays nothing for them."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [hook.name for hook in self.use]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two hooks are called {', '.join(twice)}: a name is given once")
        return self


__all__ = ["HookSettings", "HooksSettings"]
