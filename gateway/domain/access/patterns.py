"""Session patterns of a token: `*` stands for any run of characters, also none; everything else is literal."""

MAX_PATTERNS = 64
MAX_PATTERN_BYTES = 256


class InvalidPattern(ValueError):
    """A pattern or a list of them that a token must not carry."""


def check_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return `patterns` when there are few and each is short; matching then costs a bounded time."""
    if len(patterns) > MAX_PATTERNS:
        raise InvalidPattern(f"at most {MAX_PATTERNS} session patterns")
    for pattern in patterns:
        if not 1 <= len(pattern.encode(errors="replace")) <= MAX_PATTERN_BYTES:
            raise InvalidPattern(f"a session pattern has 1 to {MAX_PATTERN_BYTES} bytes")
    return patterns


def matches(pattern: str, session: str) -> bool:
    """True when `pattern` covers the id. No backtracking: the first fit of each literal part is as good as any."""
    first, *others = pattern.split("*")
    if not others:
        return session == pattern
    last = others.pop()
    if len(session) < len(first) + len(last) or not session.startswith(first) or not session.endswith(last):
        return False
    position, end = len(first), len(session) - len(last)
    for part in others:
        found = session.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True


def matches_any(patterns: tuple[str, ...], session: str) -> bool:
    return any(matches(pattern, session) for pattern in patterns)


__all__ = ["InvalidPattern", "check_patterns", "matches", "matches_any"]
