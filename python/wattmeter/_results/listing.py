# SPDX-License-Identifier: Apache-2.0
"""Reprs that stay short, as a notebook shows them: 20 lines at most."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

MOST_LINES = 20


def head(text: str) -> str:
    """The first lines, and how many more print() shows."""
    lines = text.splitlines()
    if len(lines) <= MOST_LINES:
        return text
    kept = lines[: MOST_LINES - 1]
    return "\n".join([*kept, f"... and {len(lines) - len(kept)} lines more: print() it"])


def listed(items: Iterable[object], count: int, brackets: str = "[]") -> str:
    """A line each, and how many more there are."""
    from itertools import islice

    shown = count if count <= MOST_LINES else MOST_LINES - 1
    lines = [str(item) for item in islice(items, shown)]
    if shown < count:
        lines.append(f"... and {count - shown} more")
    return brackets[0] + ",\n ".join(lines) + brackets[1]


def some_of(names: list[str]) -> str:
    """Names in a message."""
    more = ", ..." if len(names) > MOST_LINES else ""
    return ", ".join(names[:MOST_LINES]) + more if names else "none"


class Named(dict):  # type: ignore[type-arg]
    """A dict with such a repr."""

    def __repr__(self) -> str:
        items: Any = (f"{name!r}: {value!r}" for name, value in self.items())
        return listed(items, len(self), "{}")
