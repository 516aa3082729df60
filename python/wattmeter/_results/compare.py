# SPDX-License-Identifier: Apache-2.0
"""compare(): what differs between runs."""

from __future__ import annotations

import os
from collections.abc import Mapping

from wattmeter import _core
from wattmeter._results.figure import Figure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

    from wattmeter._results.report import JSON, Path


class Comparison:
    """What differs between sessions; str() is for people.

    worst          the increase that is the largest for certain, a Figure: the lower end of
                   its 95 % interval, as a ratio; 0: nothing increased. It is missing, and
                   raises ValueError when compared, while `untested` names a session
    worst_figure   which figure that is: "after: train: time"; None
    untested       the first session of which nothing could be tested, as that takes 6 runs
                   of both; None: there is none
    remarks        what a reader has to know
    """

    def __init__(self, core: _core.Comparison) -> None:
        self._core = core
        self.worst_figure = core.worst_figure
        self.untested = core.untested
        self.worst = _worst_of(core)
        self.remarks = core.remarks

    def to_dict(self) -> dict[str, JSON]:
        """The comparison as docs/analysis.md has it."""
        import json

        whole: dict[str, JSON] = json.loads(self._core.json)
        return whole

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas.DataFrame with a row for each figure of each session, as a whole (region
        None) and by region. ImportError without pandas.

        value       the median of the runs
        change, low, high   the change of the geometric means of the runs, a ratio, and its
                    95 % interval; the medians may have changed by more or less
        verdict     "more", "less"; "not_shown": no difference was shown, or one below the
                    threshold; "not_tested"
        family      figures whose intervals hold together: "headlines" (time, CPU time, energy
                    and memory of whole runs), "others" and "details". The more tests a family
                    has, the wider are its intervals, so equal figures may have different ones
        """
        from wattmeter._results.frames import frame_of_comparison

        return frame_of_comparison(self.to_dict())

    def __str__(self) -> str:
        return self._core.text

    def __repr__(self) -> str:
        what = self.worst.why or self.worst_figure or "no figure increased"
        return f"<Comparison: worst {self.worst:+.1%} ({what})>"

    def _repr_html_(self) -> str:
        from wattmeter._notebook import as_html

        return as_html(self._core.text)


def _worst_of(core: _core.Comparison) -> Figure:
    """Missing if a session is untested: a limit would pass without a comparison."""
    if core.untested is None:
        return Figure("worst", core.worst, "ratio")
    why = f"{core.untested} could not be tested: both sessions need 6 runs or more"
    return Figure("worst", None, "ratio", state="missing", why=why)


def _refuse_reports(runs: Iterable[object]) -> None:
    from wattmeter._results.report import Report

    if any(isinstance(one, Report) for one in runs):
        raise TypeError("recordings are compared, not reports: give the recordings' files")


def _refuse_saved(paths: Iterable[Path]) -> None:
    from wattmeter._results.saved import is_saved

    for path in paths:
        try:
            is_report = is_saved(path)
        except (OSError, _core.Error):
            continue  # the error of the comparison says more
        if is_report:
            name = os.fspath(path)
            message = f"{name}: a saved report; compare() takes recordings: give its recording"
            raise ValueError(message) from None


def compare(
    runs: Mapping[str, Path] | Path,
    *others: Path,
    statistic: str = "mean",
    watch: Iterable[str] = (),
    threshold: float = 0.01,
) -> Comparison:
    """Compares sessions with the first of them, as a whole and region by region.

        wattmeter.compare("a.sqlite", "b.sqlite")
        wattmeter.compare({"before": "a.sqlite", "after": "b.sqlite"})

    runs, others    recordings (what read() gives, too), tracking files, or analyses in JSON;
                or a dict of them by the names that they are to have. All runs of a recording
                are its repeats; one that repeat() or `run --repeat` made of several commands
                is a session of each
    statistic   of what is within a run: "min", "max", "mean", "std" or "total"
    watch       search for `worst` in these metrics alone: ["cpu_time"]. More of them must be
                worse: times, energy and the memory of the program
    threshold   a smaller difference counts as none; a ratio

    A difference is tested where both sessions have 6 runs or more, against what the runs of
    each differ by.

    Raises ValueError for a metric, a statistic or a threshold that is none, Error where a
    file cannot be read.
    """
    if isinstance(watch, str):
        raise TypeError("metrics to watch must be a list, not one text")
    _refuse_reports(runs.values() if isinstance(runs, Mapping) else (runs, *others))
    if isinstance(runs, Mapping):
        if others:
            raise TypeError("either a dict of names and recordings, or recordings")
        named = dict(runs)
    else:
        named = {os.fspath(path): path for path in (runs, *others)}
        if len(named) <= len(others):
            raise ValueError("a recording is there twice: give names, in a dict")
    try:
        core = _core.compare(
            list(named), list(named.values()), statistic, "text", threshold, list(watch)
        )
    except _core.Error as error:
        if error.status == "EFORMAT":
            _refuse_saved(named.values())
        raise
    return Comparison(core)
