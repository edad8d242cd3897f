"""Exceptions of Heddle."""

from __future__ import annotations


class Error(Exception):
    """An error of Heddle, with what is wrong, where, and what to do.

    `place` says where: a file, a node, a line; the outermost comes first. `message` is the rest.
    """

    def __init__(self, message: str, place: tuple[str, ...] = ()) -> None:
        super().__init__(": ".join((*place, message)))
        self.message = message
        self.place = place


class InvalidInputError(Error, ValueError):
    """A file, an argument or a model is wrong."""


class NotFoundError(Error, LookupError):
    """A file, a name or a key does not exist."""


class UnsupportedError(Error):
    """Valid, but not something that Heddle can do."""


class InfeasibleError(Error):
    """There is no solution."""


class VerificationError(Error):
    """A check or a comparison failed."""


class CancelledError(Error):
    """The work was stopped before there was a result."""


class FileError(Error, OSError):
    """A file cannot be read or written."""

    def __str__(self) -> str:
        return ": ".join((*self.place, self.message))


class InternalError(Error):
    """A mistake in Heddle itself; please report it."""
