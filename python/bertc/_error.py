"""What the library and the program refuse, as an exception."""

from __future__ import annotations

from typing import Any

_statuses = {1: "internal", 2: "usage", 3: "data", 4: "state", 5: "resource", 6: "peer", 7: "numeric", 8: "locked"}


class Error(Exception):
    """What bertc refused, or could not do.

    `status` is "usage", "data", "state", "resource", or "numeric", and of a run also "peer" (a rank failed) or "locked" (another run
    has the folder); `hint` says what to do about it, where there is advice; `exit_code` is the number that the program `bertc` ends
    with, or minus the signal that ended it."""

    def __init__(self, status: str, message: str, hint: str = "", exit_code: int | None = None) -> None:
        super().__init__(message, hint)
        self.status = status
        self.message = message
        self.hint = hint
        self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return Error, (self.status, self.message, self.hint, self.exit_code)


def error_of(exit_code: int, message: str, hint: str = "") -> Error:
    return Error(_statuses.get(exit_code, str(exit_code)), message, hint, exit_code)
