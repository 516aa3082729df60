# SPDX-License-Identifier: Apache-2.0
"""`Tracker` of gpu_tracker, and the data classes of what it measures.

Numbers are in the units that the tracker was given, as each `unit` says, and percent.
What is not known is None, in the text `n/a`, and a warning says why; only without any
GPU the numbers of GPUs are 0.
"""

from __future__ import annotations

import _thread
import contextlib
import enum
import json
import logging
import os
import pickle
import threading
import weakref
from dataclasses import asdict, dataclass, field
from typing import Any, Iterable, Mapping, NamedTuple, Optional

from wattmeter import _core

from . import _files


@dataclass
class RSSValues:
    """Memory of a process, or of several.

    :param total_rss: all of it; what processes share counts once
    :param private_rss: what no other process has
    :param shared_rss: what at least one other process has as well
    """

    total_rss: Optional[float] = None
    private_rss: Optional[float] = None
    shared_rss: Optional[float] = None


@dataclass
class MaxRAM:
    """The largest memory that was seen.

    :param unit: of all its numbers
    :param system_capacity: memory of the machine
    :param system: used by all that runs on the machine
    :param main: of the tracked process
    :param descendants: of its children, their children and so on
    :param combined: of both
    """

    unit: str
    system_capacity: Optional[float] = None
    system: Optional[float] = None
    main: RSSValues = field(default_factory=RSSValues)
    descendants: RSSValues = field(default_factory=RSSValues)
    combined: RSSValues = field(default_factory=RSSValues)


@dataclass
class MaxGPURAM:
    """The largest memory of GPUs that was seen.

    :param unit: of all its numbers; a gigabyte is 10^9 bytes, which the original,
        that calls a driver's MiB a megabyte, does not keep to
    :param system_capacity: memory of the GPUs
    :param system: used by all that runs on them
    :param main: of the tracked process
    :param descendants: of its children, their children and so on
    :param combined: of both
    """

    unit: str
    system_capacity: Optional[float] = None
    system: Optional[float] = None
    main: Optional[float] = None
    descendants: Optional[float] = None
    combined: Optional[float] = None


@dataclass
class ProcessingUnitPercentages:
    """How busy cores or GPUs were.

    :param max_sum_percent: the largest sum over the units between two samples
    :param max_hardware_percent: that sum over the number of units
    :param mean_sum_percent: the mean sum, weighted by time
    :param mean_hardware_percent: the mean sum over the number of units
    """

    max_sum_percent: Optional[float] = None
    max_hardware_percent: Optional[float] = None
    mean_sum_percent: Optional[float] = None
    mean_hardware_percent: Optional[float] = None


@dataclass
class CPUUtilization:
    """How busy the CPU cores were.

    :param system_core_count: cores of the machine
    :param n_expected_cores: what a hardware percentage of processes is of
    :param system: all that ran on the machine, of all its cores
    :param main: the tracked process
    :param descendants: its children, their children and so on, those included that
        had ended before a sample was taken
    :param combined: both
    :param main_n_threads: the most threads of the tracked process
    :param descendants_n_threads: the most threads of its descendants together
    :param combined_n_threads: the most threads of both together
    """

    system_core_count: Optional[int] = None
    n_expected_cores: Optional[int] = None
    system: ProcessingUnitPercentages = field(default_factory=ProcessingUnitPercentages)
    main: ProcessingUnitPercentages = field(default_factory=ProcessingUnitPercentages)
    descendants: ProcessingUnitPercentages = field(
        default_factory=ProcessingUnitPercentages
    )
    combined: ProcessingUnitPercentages = field(
        default_factory=ProcessingUnitPercentages
    )
    main_n_threads: Optional[int] = None
    descendants_n_threads: Optional[int] = None
    combined_n_threads: Optional[int] = None


@dataclass
class GPUUtilization:
    """How busy the GPUs were, whoever used them.

    :param system_gpu_count: GPUs of the machine
    :param n_expected_gpus: those that were tracked
    :param gpu_percentages: of these
    """

    system_gpu_count: Optional[int] = None
    n_expected_gpus: Optional[int] = None
    gpu_percentages: ProcessingUnitPercentages = field(
        default_factory=ProcessingUnitPercentages
    )


@dataclass
class ComputeTime:
    """How long it took.

    :param unit: of the time
    :param time: from the start to the stop, or to the end of the tracked process
    """

    unit: str
    time: Optional[float] = None


@dataclass
class ResourceUsage:
    """All that a `Tracker` measures.

    :param max_ram: memory
    :param max_gpu_ram: memory of GPUs
    :param cpu_utilization: use of CPU cores, and threads
    :param gpu_utilization: use of GPUs
    :param compute_time: time
    """

    max_ram: MaxRAM
    max_gpu_ram: MaxGPURAM
    cpu_utilization: CPUUtilization
    gpu_utilization: GPUUtilization
    compute_time: ComputeTime

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> ResourceUsage:
        """From what `Tracker.to_json()` gives."""
        usage = cls(
            MaxRAM(""), MaxGPURAM(""), CPUUtilization(), GPUUtilization(), ComputeTime("")
        )
        _fill(usage, tree)
        return usage


def _fill(part: Any, tree: Mapping[str, Any]) -> None:
    for name, value in tree.items():
        if isinstance(value, dict):
            _fill(getattr(part, name), value)
        else:
            setattr(part, name, value)


class _Units(NamedTuple):
    ram: str
    gpu_ram: str
    time: str

    def printed(self, report: _core.Report, format: str) -> str:
        return report.print(
            format,
            ram_unit=self.ram,
            gpu_ram_unit=self.gpu_ram,
            time_unit=self.time,
        )

    def usage(self, report: _core.Report) -> ResourceUsage:
        return ResourceUsage.from_json(
            json.loads(self.printed(report, "gpu-tracker-json"))
        )

    def nothing(self) -> ResourceUsage:
        """Of a process that had ended before."""
        return ResourceUsage.from_json(
            {
                "max_ram": {"unit": self.ram},
                "max_gpu_ram": {"unit": self.gpu_ram},
                "compute_time": {"unit": self.time},
            }
        )


class _Backup:
    """Keeps what a running tracker knows so far in a file, once a second."""

    def __init__(
        self, core: _core.Tracker, path: str, units: _Units, period: float
    ) -> None:
        self._core, self._path, self._units, self._period = core, path, units, period
        self._owner = os.getpid()
        self._lock = threading.Lock()  # on the file
        # Held until the tracker ends, and until the thread does. To start and stop with a
        # threading.Event, which is made of Python, takes a tenth of a millisecond longer.
        self._runs, self._writes = threading.Lock(), threading.Lock()
        self._runs.acquire()
        self._writes.acquire()
        # Without waiting until it runs, as a threading.Thread does.
        _thread.start_new_thread(self._run, ())

    def _write(self) -> None:
        usage = self._units.usage(self._core.report())
        new = self._path + ".new"
        with open(new, "wb") as file:
            pickle.dump(usage, file)
        os.replace(new, self._path)

    def _run(self) -> None:
        try:
            while not self._runs.acquire(timeout=self._period):
                with self._lock:
                    if self._runs.locked():
                        self._write()
        except (OSError, ValueError, _core.Error) as error:
            logging.warning("%s is not kept up to date: %s", self._path, error)
        finally:
            self._writes.release()

    def _end(self) -> None:
        if self._runs.locked():
            self._runs.release()

    def remove(self) -> None:
        """The tracker has been stopped as it should."""
        if os.getpid() != self._owner:
            return  # a child that was forked has nothing to do with it
        self._end()
        with self._lock, contextlib.suppress(OSError):
            os.remove(self._path)

    def leave(self) -> None:
        """The program has ended, or forgotten the tracker, without stopping it."""
        if os.getpid() != self._owner:
            return
        self._end()
        self._writes.acquire()
        try:
            self._core.stop()
            self._write()
        except (OSError, ValueError, _core.Error) as error:
            logging.warning("%s was not written: %s", self._path, error)


class Tracker:
    """Measures a process and its descendants from `start()` to `stop()`, or in a
    `with` block: time, CPU, memory, use of GPUs and their memory.

    `resource_usage` has the results, once it is stopped. No process is started for
    it, and nothing is lost of what happens between two samples but the exact height
    of a peak.

    :ivar resource_usage: a `ResourceUsage`; None before the stop
    :ivar state: of `Tracker.State`
    """

    class State(enum.Enum):
        """What has been done with a tracker."""

        NEW = 0
        STARTED = 1
        STOPPED = 2

    def __init__(
        self,
        sleep_time: float = 1.0,
        ram_unit: str = "gigabytes",
        gpu_ram_unit: str = "gigabytes",
        time_unit: str = "hours",
        n_expected_cores: Optional[int] = None,
        gpu_uuids: Optional[Iterable[str]] = None,
        disable_logs: bool = False,
        process_id: Optional[int] = None,
        resource_usage_file: Optional[str] = None,
        n_join_attempts: int = 5,
        join_timeout: float = 10.0,
        gpu_brand: Optional[str] = None,
        tracking_file: Optional[_files.Path] = None,
        overwrite: bool = False,
    ) -> None:
        """
        :param sleep_time: the sampling interval in seconds, 0.1 to 3600. There is a
            sample at the start and one at the end whatever it is. (The original adds
            what a sample takes.)
        :param ram_unit: bytes, kilobytes, megabytes, gigabytes or terabytes
        :param gpu_ram_unit: the same, of GPUs' memory
        :param time_unit: seconds, minutes, hours or days
        :param n_expected_cores: what the hardware percentages of processes are of;
            None is all cores. 0, which the original divides by, is refused.
        :param gpu_uuids: the GPUs to track; None is all. Indices and the beginnings
            of UUIDs do as well. All numbers of GPUs but their count are of these (in
            the original only the utilization is).
        :param disable_logs: no warnings
        :param process_id: the process to track; None is this one
        :param resource_usage_file: where what is known so far is kept, as a pickle of
            `resource_usage` that is brought up to date every second, in case the
            program ends without `stop()`; None is `.gpu-tracker_....pkl` in the
            working directory. `stop()` deletes it.
        :param n_join_attempts: accepted, without use, as no process is to be joined
        :param join_timeout: likewise
        :param gpu_brand: "nvidia" or "amd"; None is NVIDIA where there are such GPUs,
            else AMD, else what the kernel knows
        :param tracking_file: keeps every sample in this file, .csv or .sqlite. It is
            there from the start on, not from the constructor on.
        :param overwrite: whether a tracking file that exists may be replaced
        :raises ValueError: an argument is wrong; the text lists the valid ones
        :raises FileNotFoundError: there is no GPU of that brand
        :raises FileExistsError: the tracking file exists
        """
        self._period = max(sleep_time, 1.0)
        if n_expected_cores is not None and not n_expected_cores >= 1:
            raise ValueError(
                f"Number of expected cores of {n_expected_cores} is invalid. Must be at "
                "least 1."
            )
        if gpu_uuids is not None and not isinstance(gpu_uuids, str):
            gpu_uuids = ",".join(sorted(gpu_uuids))
        self._disable_logs = disable_logs
        self._units = _Units(ram_unit, gpu_ram_unit, time_unit)
        with _files.errors():
            self._core, warnings = _core.Tracker.as_gpu_tracker(
                repr(float(sleep_time)),
                float(n_expected_cores or 0),
                gpu_uuids,
                gpu_brand,
                *self._units,
                tracking_file,
                overwrite,
            )
        for line in warnings.splitlines():
            self._warn(line)
        self._process_id = os.getpid() if process_id is None else process_id
        if resource_usage_file is None:
            resource_usage_file = f".gpu-tracker_{os.urandom(16).hex()}.pkl"
        self._resource_usage_file = os.path.abspath(resource_usage_file)
        self._backup: Optional[_Backup] = None
        self._text = ""  # of one that has no report
        self._report: Optional[_core.Report] = None
        self.resource_usage: Optional[ResourceUsage] = None
        self.n_join_attempts = n_join_attempts
        self.join_timeout = join_timeout
        self.state = Tracker.State.NEW

    def _warn(self, text: str) -> None:
        if not self._disable_logs:
            logging.warning(text)

    def __repr__(self) -> str:
        return f"State: {self.state.name}"

    def __enter__(self) -> Tracker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins to measure.

        :raises RuntimeError: it has been started before
        """
        if self.state != Tracker.State.NEW:
            raise RuntimeError(
                "Cannot start tracking when tracking has already "
                f"{self.state.name.lower()}."
            )
        try:
            if self._process_id == os.getpid():
                self._core.start_self()
            else:
                self._core.start_pid(self._process_id)
            self._core.run_thread()
        except _core.Error as error:
            if error.status != "ENOENT":
                raise
            if self._process_id == os.getpid():  # The tracking file cannot be there.
                raise FileNotFoundError(str(error)) from None
            self._text = (
                f"The target process of ID {self._process_id} ended before tracking "
                "could begin."
            )
            self._warn(self._text)
        else:
            self._backup = _Backup(
                self._core, self._resource_usage_file, self._units, self._period
            )
            self._finalizer = weakref.finalize(self, self._backup.leave)
        self.state = Tracker.State.STARTED

    def stop(self) -> None:
        """Ends the measurement and sets `resource_usage`.

        :raises RuntimeError: it has not been started, or has been stopped before
        """
        if self.state == Tracker.State.NEW:
            raise RuntimeError(
                "Cannot stop tracking when tracking has not started yet."
            )
        if self.state == Tracker.State.STOPPED:
            raise RuntimeError(
                "Cannot stop tracking when tracking has already stopped."
            )
        if self._backup is None:
            self.resource_usage = self._units.nothing()
        else:
            self._finish(self._backup)
        self.state = Tracker.State.STOPPED

    def _finish(self, backup: _Backup) -> None:
        self._finalizer.detach()
        backup.remove()
        try:
            self._core.stop()
        except _core.Error as error:
            logging.error(str(error))  # the tracking file lacks something
        report = self._core.report()
        self.resource_usage = self._units.usage(report)
        self._report = report
        warnings = report.print(
            "gpu-tracker-warnings", verbosity=0 if self._disable_logs else 1
        )
        for line in warnings.splitlines():
            logging.warning(line)

    def to_json(self) -> dict[str, Any]:
        """`resource_usage` as dictionaries.

        :raises RuntimeError: it has not been stopped
        """
        return asdict(self._usage())

    def __str__(self) -> str:
        self._usage()
        if self._report is None:
            return self._text
        return self._units.printed(self._report, "gpu-tracker-api")

    def _usage(self) -> ResourceUsage:
        if self.resource_usage is None:
            raise RuntimeError(
                "Cannot display the tracker in string or JSON format before tracking "
                "completes. Exit the content manager or call the stop() method before "
                "calling to_json() or str()"
            )
        return self.resource_usage
