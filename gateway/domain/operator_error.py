"""The one kind of error that a person at a terminal reads: what is wrong and what to do, in one line."""


class OperatorError(Exception):
    """Ends a command with exit code 2. The message holds no secret; further lines, if any, are one problem each."""

    def __init__(self, message: str, *, details: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def lines(self) -> list[str]:
        return [self.message, *(f"  {detail}" for detail in self.details)]
