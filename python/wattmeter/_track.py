# SPDX-License-Identifier: Apache-2.0
"""track() and run(): what this process, another one, or a command costs."""

from __future__ import annotations

import os
import sys

from wattmeter import _core
from wattmeter._devices.gpus import words_of
from wattmeter._results.report import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator, Mapping, TypeVar

    from wattmeter._devices.gpus import Choice
    from wattmeter._results.report import Path

    Function = TypeVar("Function", bound=Callable[..., Any])

caps_held: list[str] = []  # a note for each block of cap() that is open


def _tracker(
    record: Path | None,
    mode: str,
    experiment: tuple[Path, str] | None,
    notes: Mapping[str, object] | None,
    metrics: Path | None,
    options: dict[str, Any],
) -> _core.Tracker:
    options = {**options, "gpus": words_of(options["gpus"])}
    for name in ("interval", "cores", "baseline"):
        if not hasattr(options.get(name, 0), "__float__"):
            raise TypeError(f"{name} must be a number, not {options[name]!r}")
    if notes is not None and not hasattr(notes, "items"):
        raise TypeError(f"notes must be a dict, not {type(notes).__name__}")
    tracker = _core.Tracker(**options)
    tracker.add_all()
    held = {"cap": ", ".join(caps_held)} if caps_held else {}
    for key, value in {**held, **(notes or {})}.items():
        tracker.note(str(key), str(value))
    if experiment is not None:
        if record is not None:
            raise ValueError("a run has a record or an experiment, not both")
        if isinstance(experiment, str) or len(experiment) != 2:
            raise ValueError("an experiment is a pair: its recording and its name")
        target, name = experiment
        tracker.experiment(target, name)
    elif record is not None:
        tracker.record(record, mode)
    if metrics is not None:
        tracker.metrics(metrics)
    return tracker


class track:
    """Measures this process and its descendants, from start to stop.

        with wattmeter.track() as t:
            train()
        print(t.report)

        @wattmeter.track("runs.sqlite", mode="append")
        def train(): ...

    It is a decorator as well, each call being a session, and `async with` does as `with`.
    `report` is the report of the last call that has ended.

    record      a file (.sqlite, .csv) or postgresql://... that gets the samples
    mode        of a file that is there: "new" (Error "EEXIST"), "overwrite", "append"
    interval    seconds between two samples, 0.001 to 3600
    gpus        which GPUs, "visible", "0,GPU-7c1f", [0, 1] and so on; None: all
    channels    more to record of each GPU: "all", or "fan,clock_graphics" and so on
    pid         another process that runs already
    cores       how many cores are 100 % of the hardware's CPU use; None: all
    cpu_watts   "IDLE:MAX" of the CPUs, where nothing measures them
    notes       a dict that is kept with the run
    experiment  (target, name): the run is one more of that experiment
    metrics     a file of JSON lines that the program writes of itself

    Samples are taken in a thread that never needs the GIL. Regions of processes that are
    forked or started meanwhile are measured as well. After a fork it is the parent's: in
    the child start and stop do nothing. It is started once; at the end of
    the interpreter it is stopped. Wrong arguments are a ValueError, what cannot be done
    a wattmeter.Error, before anything is measured.
    """

    def __init__(
        self,
        record: Path | None = None,
        *,
        mode: str = "new",
        interval: float = 0.1,
        gpus: Choice = None,
        channels: str | None = None,
        pid: int | None = None,
        cores: float | None = None,
        cpu_watts: str | None = None,
        notes: Mapping[str, object] | None = None,
        experiment: tuple[Path, str] | None = None,
        metrics: Path | None = None,
    ) -> None:
        self._arguments = {
            "record": record,
            "mode": mode,
            "interval": interval,
            "gpus": gpus,
            "channels": channels,
            "pid": pid,
            "cores": cores,
            "cpu_watts": cpu_watts,
            "notes": notes,
            "experiment": experiment,
            "metrics": metrics,
        }
        options = {
            "interval": interval,
            "gpus": gpus,
            "channels": channels,
            "cores": cores or 0.0,
            "cpu_watts": cpu_watts,
            "visible_to": pid or 0,
        }
        self._tracker = _tracker(record, mode, experiment, notes, metrics, options)
        self._pid = pid
        self._owner = os.getpid()
        self._regions: _Environment | None = None

    def start(self) -> track:
        """Takes the first sample. The result is this object."""
        if self._owner != os.getpid():
            return self
        self.__dict__.pop("_last", None)
        if self._pid is None:
            self._tracker.start_self()
        else:
            self._tracker.start_pid(self._pid)
        self._regions = _Environment(self._tracker.regions)
        self._tracker.run_thread()
        _stop_with_worker(self)
        return self

    def stop(self) -> Report | None:
        """Takes the last sample and ends the recording; the result is the report. Once
        more it changes nothing.

        Raises Error with the status "EIO" when the recording lacks something; the report
        is there all the same.
        """
        if self._owner != os.getpid():
            return None
        if self._regions:
            self._regions.restore()
        self._tracker.stop()
        return self.report

    def log(self, values: Mapping[str, float] | None = None, /, **more: float) -> None:
        """Keeps numbers of the program with the recording, all at this moment:
        t.log(acc=0.9), or t.log({"val/acc": 0.9}). `metrics` of the recording has them.

        ValueError for what is no number, as nan, for more than 100,000 of a run, and where
        nothing is being measured.
        """
        if self._owner != os.getpid():
            return
        from time import monotonic_ns

        now = monotonic_ns()
        for name, value in {**(values or {}), **more}.items():
            try:
                self._tracker.log(name, float(value), now)
            except ValueError as error:
                raise ValueError(f"{name}={value!r}: {error}") from None

    @property
    def report(self) -> Report:
        """The Report; while it runs, of what has been sampled so far. Before the start it
        is a ValueError."""
        last: Report | None = self.__dict__.get("_last")
        if last is not None:
            return last
        if self._owner != os.getpid():
            raise ValueError("this tracker belongs to the process that made it")
        is_last = self._tracker.state == "stopped"
        report = Report(self._tracker.report())
        # Of several threads that make the last one, the first has it.
        return self.__dict__.setdefault("_last", report) if is_last else report

    def __enter__(self) -> track:
        return self.start()

    def __exit__(self, kind: object = None, *exception: object) -> None:
        try:
            self.stop()
        except _core.Error as error:
            if kind is None:
                raise
            # What ended the block is what the caller has to know.
            from warnings import warn

            warn(str(error), RuntimeWarning, stacklevel=2)

    async def __aenter__(self) -> track:
        return self.start()

    async def __aexit__(self, *exception: object) -> None:
        self.__exit__(*exception)

    def __call__(self, function: Function) -> Function:
        """The function, with a separate session around each call."""
        from contextlib import contextmanager

        from wattmeter._decorate import measured

        @contextmanager
        def session() -> Iterator[None]:
            tracking = _remake(self._arguments)
            try:
                with tracking:
                    yield
            finally:
                if tracking._tracker.state == "stopped":
                    self.__dict__["_last"] = tracking.report

        decorated: Function = measured(function, session, "track")
        return decorated

    def __reduce__(self) -> tuple[Any, ...]:
        """One with the same arguments, as a decorated function takes it to workers."""
        return _remake, (self._arguments,)

    def __repr__(self) -> str:
        return f"<wattmeter.track: {self._tracker.state}>"


def _remake(arguments: dict[str, Any]) -> track:
    return track(**arguments)


class _Environment:
    """Processes that are started anew find here where their regions go."""

    NAME = "WATTMETER_REGIONS"
    _set: list[_Environment] = []

    def __init__(self, value: str | None) -> None:
        self._before = os.environ.get(self.NAME)
        self._value = value
        if value is not None:
            os.environ[self.NAME] = value
            self._set.append(self)

    def restore(self) -> None:
        """Unless another tracker has set it since: a tracker that was started later restores the
        value from before this one."""
        if self not in self._set:
            return
        self._set.remove(self)
        for later in self._set:
            if later._before == self._value:
                later._before = self._before
                return
        if os.environ.get(self.NAME) != self._value:
            return
        if self._before is None:
            del os.environ[self.NAME]
        else:
            os.environ[self.NAME] = self._before


def _stop_with_worker(tracking: track) -> None:
    """A process of multiprocessing ends without the end of its interpreter."""
    from weakref import ref

    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is None or multiprocessing.parent_process() is None:
        return
    from multiprocessing.util import Finalize

    weak = ref(tracking)

    def stop() -> None:
        alive = weak()
        if alive is not None:
            alive.stop()

    Finalize(tracking, stop, exitpriority=0)


def run(
    command: Iterable[Path],
    record: Path | None = None,
    *,
    mode: str = "new",
    interval: float = 0.1,
    gpus: Choice = None,
    channels: str | None = None,
    cores: float | None = None,
    baseline: float = 0.0,
    baseline_anyway: bool = False,
    wait_all: bool = False,
    cpu_watts: str | None = None,
    notes: Mapping[str, object] | None = None,
    experiment: tuple[Path, str] | None = None,
    metrics: Path | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
) -> Report:
    """Runs a command, a list of words, and gives its Report, with `exit_code`.

    env, cwd    as subprocess.run() has them: the environment, in whose PATH the command is
                looked up, and the working directory; None: those of this process
    timeout     seconds after which it is ended: SIGTERM, and SIGKILL 5 s later

    baseline    seconds for which the idle machine is measured first, so that what it
                takes then is told apart
    baseline_anyway     it counts though the machine was busy for more than 5 % of it
    wait_all    it ends with the last of the processes that the command leaves behind, as
                daemons are, not with the command
    The rest is as track() has it. What the command reads and writes is its own.

    Raises Error with the status "ENOENT" where there is no such command, "EACCES" where
    it cannot be executed; TimeoutExpired, with the `report` of what was measured, where the
    timeout ended it. Where this is interrupted the command is ended as well.
    """
    options = {
        "interval": interval,
        "gpus": gpus,
        "channels": channels,
        "cores": cores or 0.0,
        "baseline": baseline,
        "baseline_anyway": baseline_anyway,
        "wait_all": wait_all,
        "cpu_watts": cpu_watts,
    }
    tracker = _tracker(record, mode, experiment, notes, metrics, options)
    return _run(command, tracker, env, cwd, timeout)


def measure_command(
    command: Iterable[Path],
    record: Path | None,
    mode: str,
    notes: Mapping[str, object] | None,
    options: dict[str, Any],
) -> Report:
    """run() with whatever options the tracker has."""
    return _run(command, _tracker(record, mode, None, notes, None, options))


def _environment(env: Mapping[str, str] | None) -> list[bytes] | None:
    if env is None:
        return None
    for name in env:
        if not name or "=" in name:
            raise ValueError(f"{name!r} is no name of a variable")
    return [os.fsencode(name) + b"=" + os.fsencode(env[name]) for name in env]


def _run(
    command: Iterable[Path],
    tracker: _core.Tracker,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
) -> Report:
    from time import monotonic

    words = command if isinstance(command, str) else list(command)
    is_ended = False
    tracker.start_command(words, cwd, _environment(env))
    end = None if timeout is None else monotonic() + timeout
    try:
        while tracker.poll(None if end is None else max(0.0, end - monotonic())):
            if end is not None and monotonic() >= end:
                is_ended = True
                _end(tracker)
                break
    except BaseException:
        _end(tracker)
        raise
    finally:
        tracker.stop()
    report = Report(tracker.report())
    if is_ended and timeout is not None:
        from wattmeter._timeout import TimeoutExpired

        raise TimeoutExpired(words, timeout, report)
    return report


def _end(tracker: _core.Tracker, patience: float = 5.0) -> None:
    """Asks the command to end, and does not let it go on after the patience."""
    import signal
    import time

    end = time.monotonic() + patience
    try:
        tracker.signal(signal.SIGTERM)
        while tracker.poll(max(0.0, end - time.monotonic())):
            if time.monotonic() >= end:
                tracker.signal(signal.SIGKILL)
                end += patience
    except _core.Error:
        pass  # it is gone already
