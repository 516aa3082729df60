# SPDX-License-Identifier: Apache-2.0
"""repeat(): functions and commands again and again, in turns, and how they compare."""

from __future__ import annotations

import json
import math
import os
import random
import shlex
import subprocess
import tempfile
import time

from wattmeter import _core
from wattmeter._results.compare import compare
from wattmeter._results.figure import Figure
from wattmeter._track import measure_command, track

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence, Union

    from wattmeter._devices.gpus import Choice
    from wattmeter._results.compare import Comparison
    from wattmeter._results.report import Path, Report

    Work = Union[Callable[[], object], str, Sequence[Path]]

# A run of a function lasts ten periods of the slowest energy sensor, and so long that
# starting and stopping the measurement is next to nothing of it.
PERIODS = 10
LEAST_SECONDS = 0.25


def _is_one(work: Work | Sequence[Work]) -> bool:
    return callable(work) or isinstance(work, str)


def _name(work: Work) -> str:
    if callable(work):
        return str(getattr(work, "__name__", type(work).__name__))
    if isinstance(work, str):
        return work
    return shlex.join(os.fsdecode(word) for word in work)


def _names(works: list[Work], names: Sequence[str] | None) -> list[str]:
    chosen = list(names) if names is not None else [_name(work) for work in works]
    if len(chosen) != len(works):
        raise ValueError(f"{len(chosen)} names for {len(works)} functions or commands")
    if len(set(chosen)) < len(chosen):
        raise ValueError("two have one name; names=[...] tells them apart")
    return chosen


def _periods(tracking: track) -> float:
    """The longest period of an energy sensor, in seconds."""
    return max(
        (
            channel.period or 0.0
            for channel in tracking._tracker.channels
            if channel.metric in ("energy", "power")
        ),
        default=0.0,
    )


class _Runs:
    """What is common to all runs. Without a path they are not kept."""

    def __init__(self, path: Path | None, mode: str, options: dict[str, Any]) -> None:
        self.path, self.mode, self.options = path, mode, options

    def _next_mode(self) -> str:
        mode, self.mode = self.mode, "append"
        return mode

    def batch_of(self, work: Callable[[], object]) -> int:
        """How many calls a run needs, by one that is not kept."""
        with track(**self.options) as tracking:
            start = time.perf_counter()
            work()
            seconds = time.perf_counter() - start
        needed = max(PERIODS * _periods(tracking), LEAST_SECONDS)
        return max(1, math.ceil(needed / max(seconds, 1e-9)))

    def call(
        self, work: Callable[[], object], batch: int, notes: dict[str, object] | None
    ) -> Report:
        mode = self._next_mode()
        with track(self.path, mode=mode, notes=notes, **self.options) as tracking:
            for _ in range(batch):
                work()
        return tracking.report

    def command(self, words: list[Path], notes: dict[str, object] | None) -> None:
        report = measure_command(
            words,
            self.path if notes else None,
            self._next_mode() if notes else "new",
            notes,
            {**self.options, "silent": True, "wait_for_drivers": True},
        )
        if report.exit_code:
            raise subprocess.CalledProcessError(report.exit_code, words)


def repeat(
    work: Work,
    vs: Work | Sequence[Work] = (),
    *,
    n: int = 10,
    warmup: int = 1,
    names: Sequence[str] | None = None,
    seed: int | None = None,
    record: Path | None = None,
    mode: str = "new",
    interval: float = 0.1,
    gpus: Choice = None,
    cpu_watts: str | None = None,
) -> Comparison:
    """Runs a function or a command n times, others in turns with it, and compares them.

        result = wattmeter.repeat(old, vs=new, n=20)
        print(result)                                   # seconds, joules, bytes
        result.to_dict()["overall"]["energy"]["sessions"]["new"]["change"]

        wattmeter.repeat("sort numbers", vs=["sort -n numbers", "sort -g numbers"])

    work        a function without arguments, a command in one text, which is split as a
                shell would split it but no shell is started, or a list of words
    vs          another, or a list of others
    n           runs of each; below 6 nothing is tested
    warmup      runs of each before, which are not measured
    names       what each is called; None: the name of the function, the command
    seed        of the order (A B B A, or B A A B); None: by chance
    record      a file (.sqlite) that keeps all runs, for compare() and plot(); and its
                mode, as track() has it
    interval, gpus, cpu_watts   as track() has them

    The result is as from compare(): each figure is the median of the runs, in seconds,
    joules and bytes, and differences are tested pair by pair. A function is called several
    times in each run where it is shorter than 0.25 s or ten periods of the energy sensor;
    the figures are per call. The output of a command is not shown.

    Raises ValueError for wrong arguments, Error where a run cannot be measured,
    subprocess.CalledProcessError where a command fails, and what a function raises; the
    record then has the runs up to it.
    """
    others: Any = vs
    works = [work, *([others] if _is_one(others) else others)]
    chosen = _names(works, names)
    if n < 1 or warmup < 0:
        raise ValueError("n is 1 at least, and warmup 0")
    with tempfile.TemporaryDirectory() as folder:
        path = record if record is not None else os.path.join(folder, "runs.sqlite")
        options = {"interval": interval, "gpus": gpus, "cpu_watts": cpu_watts}
        seed = random.getrandbits(63) if seed is None else seed
        _run_all(works, chosen, n, warmup, seed, _Runs(path, mode, options))
        return compare({chosen[0]: path})


def _run_all(
    works: list[Any], names: list[str], n: int, warmup: int, seed: int, runs: _Runs
) -> None:
    batches = []
    for i, one in enumerate(works):
        if not callable(one):
            works[i] = one = shlex.split(one) if isinstance(one, str) else list(one)
        for _ in range(warmup):
            one() if callable(one) else runs.command(one, None)
        batches.append(runs.batch_of(one) if callable(one) else 1)
    for turn in range(n):
        for i in _core.repeat_order(seed, len(works), turn):
            notes: dict[str, object] = {
                "repeat.command": names[i],
                "repeat.place": i + 1,
                "repeat.round": turn + 1,
                "repeat.seed": seed,
                "repeat.batch": batches[i],
            }
            if callable(works[i]):
                runs.call(works[i], batches[i], notes)
            else:
                runs.command(works[i], notes)


def cost_of_call(work: Callable[[], object], n: int) -> dict[str, Figure]:
    """The "time" and "energy" of a call: the median of n runs after a first one, and its
    95 % interval, by the statistics of `wattmeter run --repeat`."""
    runs = _Runs(None, "new", {})
    batch = runs.batch_of(work)
    reports = [runs.call(work, batch, None)._core for _ in range(n)]
    (sums,) = json.loads(_core.repeat_json(_name(work), reports))["results"]

    def figure(key: str, unit: str) -> Figure:
        median, low, high = (
            None if (value := sums.get(name)) is None else value / batch
            for name in (
                "median" if key == "time" else f"{key}_median",
                f"{key}_low",
                f"{key}_high",
            )
        )
        return Figure(
            key,
            median,
            unit,
            low,
            high,
            state="missing" if median is None else "known",
            origin=sums.get(f"{key}_origin") or "measured",
            why=sums.get(f"{key}_why"),
        )

    return {"time": figure("time", "s"), "energy": figure("energy", "J")}
