# SPDX-License-Identifier: Apache-2.0
"""What the callbacks of training frameworks have in common."""

from __future__ import annotations

import math
import os
from contextlib import suppress

from wattmeter._core import ExistsError, region_begin, region_end
from wattmeter._track import track

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wattmeter._results.figure import Figure
    from wattmeter._results.report import Path, Report

ENERGY = "energy_J"
IS_ESTIMATED = "energy_is_estimated"


def of_rank(path: Path | None, rank: int) -> Path | None:
    """A file of the rank's own, "run-rank1.sqlite"; a database is for all of them."""
    if path is None or "://" in os.fspath(path):
        return path
    stem, suffix = os.path.splitext(os.fspath(path))
    return f"{stem}-rank{rank}{suffix}"


def _rounded(figure: Figure) -> float:
    """Down, so that no report has less, to two digits of the uncertainty; to four digits where
    that is unknown."""
    value = float(figure)
    if value <= 0:
        return value
    scale = math.log10(figure.uncertainty) - 1 if figure.uncertainty else math.log10(value) - 3
    digits = -math.floor(scale)
    return round(math.floor(value * 10.0**digits) / 10.0**digits, digits)


class Training:
    """A run of a training, its epochs, steps and validations as regions.

    record, options   as wattmeter.track() has them
    report            the wattmeter.Report; while it runs, of what has been sampled so far
    """

    def __init__(self, record: Path | None = None, **options: Any) -> None:
        self._record = record
        self._options = options
        self._tracking: track | None = None
        self._is_running = False
        self._open: list[str] = []

    @property
    def report(self) -> Report:
        if self._tracking is None:
            raise ValueError("the training has not begun")
        return self._tracking.report

    def begin(self, rank: int = 0, ranks: int = 1) -> None:
        """As one of several ranks."""
        self.end()
        record, options = self._record, self._options
        if ranks > 1:
            record = of_rank(record, rank)
            options = {**options, "notes": {"rank": rank, **(options.get("notes") or {})}}
        self._tracking = self._start(record, options)
        self._is_running = True

    def _start(self, record: Path | None, options: dict[str, Any]) -> track:
        """A second training is one more run of the record, where that can have several."""
        if self._tracking is not None:
            with suppress(ExistsError):
                return track(record, **{**options, "mode": "append"}).start()
        return track(record, **options).start()

    def end(self) -> None:
        """Once more it does nothing."""
        self._leave(0)
        self._is_running = False
        if self._tracking is not None:
            self._tracking.stop()

    def enter(self, name: str) -> None:
        if self._tracking is not None:
            region_begin(name)
            self._open.append(name)

    def leave(self, name: str) -> None:
        """With what is open in it still."""
        if name in self._open:
            self._leave(self._open.index(name))

    def _leave(self, depth: int) -> None:
        while len(self._open) > depth:
            region_end()
            self._open.pop()

    def figures(self) -> dict[str, float]:
        """What to log: the joules so far, and whether they are an estimate. Nothing where they
        are not known, and outside of a training."""
        joules = self.report.energy if self._is_running else None
        if not joules:
            return {}
        figures = {ENERGY: _rounded(joules)}
        return {**figures, IS_ESTIMATED: True} if joules.origin == "estimated" else figures
