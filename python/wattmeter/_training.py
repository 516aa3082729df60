# SPDX-License-Identifier: Apache-2.0
"""What the callbacks of training frameworks have in common."""

from __future__ import annotations

import os

from wattmeter._core import region_begin, region_end
from wattmeter._track import track

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wattmeter._results.report import Path, Report

ENERGY = "energy_J"


def of_rank(path: Path | None, rank: int) -> Path | None:
    """A file of the rank's own, "run-rank1.sqlite"; a database is for all of them."""
    if path is None or "://" in os.fspath(path):
        return path
    stem, suffix = os.path.splitext(os.fspath(path))
    return f"{stem}-rank{rank}{suffix}"


class Training:
    """A run of a training, its epochs, steps and validations as regions.

    record, options   as wattmeter.track() has them
    report            the wattmeter.Report; while it runs, of what has been sampled so far
    """

    def __init__(self, record: Path | None = None, **options: Any) -> None:
        self._record = record
        self._options = options
        self._tracking: track | None = None
        self._open: list[str] = []

    @property
    def report(self) -> Report:
        if self._tracking is None:
            raise ValueError("the training has not begun")
        return self._tracking.report

    def begin(self, rank: int = 0, ranks: int = 1) -> None:
        """As one of several ranks. A second training is a separate run, which needs
        mode="append" for a record."""
        self.end()
        record, options = self._record, self._options
        if ranks > 1:
            record = of_rank(record, rank)
            options = {**options, "notes": {"rank": rank, **(options.get("notes") or {})}}
        self._tracking = track(record, **options).start()

    def end(self) -> None:
        """Once more it does nothing."""
        self._leave(0)
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
        """What to log: the joules so far. Nothing where they are not known."""
        joules = self.report.energy.value if self._tracking is not None else None
        return {} if joules is None else {ENERGY: joules}
