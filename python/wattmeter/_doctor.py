# SPDX-License-Identifier: Apache-2.0
"""doctor(): what can be measured on this machine."""

from __future__ import annotations

from wattmeter import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Findings:
    """What can be measured here, what not and why, and which command changes that; str()
    is for people."""

    def __init__(self, duration: float) -> None:
        self._text, self._json, self._can_measure = _core.doctor(duration)

    @property
    def can_measure(self) -> bool:
        """Whether anything at all can be measured here."""
        return self._can_measure

    def to_dict(self) -> Any:
        """The findings as docs/doctor.md has them."""
        import json

        return json.loads(self._json)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        from wattmeter._results.listing import head

        return head(str(self))

    def _repr_html_(self) -> str:
        from wattmeter._notebook import as_html

        return as_html(str(self))


def doctor(duration: float = 3.0) -> Findings:
    """The Findings of all sources, which are watched for `duration` seconds, 0 to 3600:
    ValueError for others. It changes nothing, and what is not there is no error.
    """
    return Findings(duration)
