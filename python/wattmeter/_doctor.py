# SPDX-License-Identifier: Apache-2.0
"""doctor(): what can be measured on this machine."""

from wattmeter import _core


class Findings:
    """What can be measured here, what not and why, and which command changes that; str()
    is for people."""

    def __init__(self, duration):
        self._core = _core.Doctor(duration)

    @property
    def can_measure(self):
        """Whether anything at all can be measured here."""
        return self._core.can_measure

    def to_dict(self):
        """The findings as docs/doctor.md has them."""
        import json

        return json.loads(self._core.print("json"))

    def __str__(self):
        return self._core.print("text")

    __repr__ = __str__

    def _repr_html_(self):
        from wattmeter._notebook import as_html

        return as_html(str(self))


def doctor(duration=3.0):
    """Looks at every source for `duration` seconds. It changes nothing."""
    return Findings(duration)
