# SPDX-License-Identifier: Apache-2.0
"""Samples of RAPL's counters, which `rapl_power.get_power()` takes two of."""

from __future__ import annotations

import re
import time
from typing import Dict, Optional

from wattmeter import _core

_LABELS = {
    "package": r"package\d+(_die\d+)?",
    "core": r"package.*_core|core\d+",
    "uncore": r"package.*_uncore",
    "dram": r"dram.*",
    "psys": r"psys.*",
}


class Difference:
    """What two samples differ by.

    joules: {counter: J}, as "package0", "package0_core", "package0_uncore", "dram0",
    "psys"; None of one that did not answer. duration: seconds between them.
    """

    def __init__(self, joules: Dict[str, Optional[float]], duration: float) -> None:
        self.joules = joules
        self.duration = duration

    def total(self, domain: str) -> Optional[float]:
        """The joules of "package", "core", "uncore", "dram" or "psys", of all packages
        together. None: there is no such counter, or one did not answer."""
        parts = [
            joules
            for label, joules in self.joules.items()
            if re.fullmatch(_LABELS[domain], label)
        ]
        return None if not parts or None in parts else sum(p for p in parts if p)


class Sample:
    """The counters at one time."""

    def __init__(self, counters: Dict[str, Optional[float]], when: float) -> None:
        self.counters = counters
        self.when = when

    def __sub__(self, before: Sample) -> Difference:
        joules = {
            label: None if value is None or earlier is None else value - earlier
            for label, value in self.counters.items()
            for earlier in [before.counters.get(label)]
        }
        return Difference(joules, self.when - before.when)


class RAPLSample:
    """Takes samples, as the original's class of that name.

        sampler = RAPLSample()
        before = sampler.take_sample()
        work()
        print(get_power(sampler.take_sample() - before))

    The counters go on where they run over, however often, as long as samples are taken
    between (a minute apart, say). wattmeter.Error: there is no RAPL ("ENODEV"), or it
    is not for this user ("EACCES").
    """

    def __init__(self) -> None:
        self._source = _core.Source("rapl")

    def take_sample(self) -> Sample:
        """Reads them."""
        when = time.monotonic()
        counters = {
            channel.label: reading.value
            for channel, reading in zip(self._source.channels, self._source.read())
            if channel.metric == "energy"
        }
        return Sample(counters, when)
