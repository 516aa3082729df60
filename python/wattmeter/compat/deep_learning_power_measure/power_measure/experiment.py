# SPDX-License-Identifier: Apache-2.0
"""Experiments: `Experiment` records one, `ExpResults` says what it came to.

Both are given a driver of `parsers`. wattmeter records, in a thread of its library that
never needs the interpreter, and analyses; this module has AIPowerMeter's names for it.
"""

from __future__ import annotations

import bisect
import datetime
import functools
import importlib
import itertools
import json
import os
import queue
import sys
import threading
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

from wattmeter import _core

from . import _metrics, parsers
from ._metrics import Point, Segments, Time

STOP_MESSAGE = "Stop"

Number = Optional[float]
PerGpu = Dict[str, Number]
Curve = Union[List[Point], Segments]


def joules_to_wh(joules: Any) -> Any:
    """Watt-hours, of a number or of each of several. (The original multiplies by 3.6
    where one divides by 3600.)"""
    if hasattr(joules, "__iter__"):
        return [joules_to_wh(one) for one in joules]
    return joules / 3600


def joules_to_kwh(joules: Any) -> Any:
    """Kilowatt-hours, of a number or of each of several."""
    if hasattr(joules, "__iter__"):
        return [joules_to_kwh(one) for one in joules]
    return joules / 3.6e6


def humanize_bytes(num: float, suffix: str = "B") -> str:
    """A number of bytes as people read it: 1536 is "1.5KiB"."""
    prefixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"]
    while abs(num) >= 1024 and len(prefixes) > 1:
        num /= 1024
        del prefixes[0]
    return f"{num:.1f}{prefixes[0]}{suffix}"


def time_to_sec(t: datetime.datetime) -> float:
    """Seconds since 1970."""
    return t.timestamp()


def _segments(metric: Curve) -> Segments:
    """A curve in segments, whether it comes in them or is one list of points."""
    if metric and isinstance(metric[0], list):
        return metric
    return [metric]  # type: ignore[list-item]


def cumsum(metric: Curve) -> List[float]:
    """The sum of the values up to each point."""
    sums = [0.0]
    for segment in _segments(metric):
        for point in segment:
            sums.append(sums[-1] + point["value"])
    return sums[1:]


def integrate(metric: Curve) -> List[float]:
    """The area under the curve up to each point, by straight lines: of watts, joules.
    There is none between two segments. `ExpResults.total_()` knows more than that: it
    has what a counter of energy says."""
    areas: List[float] = []
    area = 0.0
    for segment in _segments(metric):
        for place, point in enumerate(segment):
            if place > 0:
                before = segment[place - 1]
                width = point["date"] - before["date"]
                area += width * (point["value"] + before["value"]) / 2
            areas.append(area)
    return areas


def interpolate(metric1: Curve, metric2: Curve) -> Tuple[List[Point], List[Point]]:
    """Both curves at the times of both, on straight lines between the points of a
    segment.

    Outside of its segments a curve is unknown, and NaN; the original goes on with its
    first and last value, and draws lines across pauses.
    """
    curves = _segments(metric1), _segments(metric2)
    dates = sorted({p["date"] for curve in curves for part in curve for p in part})
    one, other = (
        [
            {"date": date, "value": value}
            for date, value in zip(dates, _values_at(curve, dates))
        ]
        for curve in curves
    )
    return one, other


def _values_at(curve: Segments, dates: Sequence[float]) -> List[float]:
    values = [float("nan")] * len(dates)
    for segment in curve:
        known = [point["date"] for point in segment]
        for place, date in enumerate(dates):
            after = bisect.bisect_left(known, date)
            if after == len(known) or (after == 0 and known[0] != date):
                continue
            end = segment[after]
            start = segment[after - 1] if end["date"] != date else end
            width = end["date"] - start["date"]
            part = (date - start["date"]) / width if width else 0.0
            values[place] = start["value"] + part * (end["value"] - start["value"])
    return values


class _Session:
    """A recording that is being made, until it is stopped or the interpreter ends."""

    running: Set[_Session] = set()

    def __init__(self, tracker: _core.Tracker) -> None:
        self._tracker = tracker
        self._lock = threading.Lock()
        self.is_over = threading.Event()
        self.running.add(self)

    def stop(self) -> None:
        with self._lock:
            try:
                self._tracker.stop()
            finally:
                self.is_over.set()
                self.running.discard(self)


class Process:
    """What records, with the methods of a process. It is a thread of this one."""

    name = "wattmeter"
    daemon = True

    def __init__(self, session: _Session) -> None:
        self._session = session
        self.pid = os.getpid()

    def is_alive(self) -> bool:
        """Whether it still records."""
        return not self._session.is_over.is_set()

    @property
    def exitcode(self) -> Optional[int]:
        """0 once it is over, None before."""
        return None if self.is_alive() else 0

    def join(self, timeout: Optional[float] = None) -> None:
        """Waits until it has been stopped, and all is written."""
        self._session.is_over.wait(timeout)

    def terminate(self) -> None:
        """Stops it as STOP_MESSAGE does. Nothing is lost."""
        self._session.stop()

    kill = terminate


class Queue:
    """Where STOP_MESSAGE is put."""

    def __init__(self, session: _Session) -> None:
        self._session = session

    def get(self, block: bool = True, timeout: Optional[float] = None) -> str:
        """STOP_MESSAGE once the recording is over, which this waits for, as examples of
        the original do. queue.Empty: it is not over by then."""
        if not self._session.is_over.wait(timeout if block else 0):
            raise queue.Empty
        return STOP_MESSAGE

    def put(
        self, obj: object, block: bool = True, timeout: Optional[float] = None
    ) -> None:
        """Ends the recording. When this returns the last sample is taken, and all is
        written and closed, so that it can be read at once; the original says nothing,
        and goes on for up to a period.

        ValueError: `obj` is not STOP_MESSAGE. wattmeter.Error: the recording lacks
        something, as where the disk was full.
        """
        del block, timeout
        if obj != STOP_MESSAGE:
            raise ValueError(f"{obj!r}: the one message is {STOP_MESSAGE!r}")
        self._session.stop()

    put_nowait = put


class Experiment:
    """Measures this process, or others, and has `driver` keep what was measured.

    driver: of `parsers`. model and input_size: a PyTorch model, whose number of
    parameters is kept and, if the size of an input is given, the number of FLOPs of a
    forward pass (PyTorch 2.1) and of multiply-adds (torchinfo); or a dictionary with
    them, see docs/experiments.md. cont: adds to existing data; otherwise
    `driver.erase()` deletes it now, unless wattmeter did not make it (wattmeter.Error).
    passes: how many forward passes a run makes, for the joules of a FLOP.
    """

    def __init__(
        self,
        driver: parsers.Driver,
        model: Any = None,
        input_size: Optional[Sequence[int]] = None,
        cont: bool = False,
        passes: Optional[int] = None,
    ) -> None:
        self.db_driver = driver
        if not cont:
            driver.erase()
        self._keep_card(model, input_size, passes)

    def _keep_card(
        self,
        model: Any,
        input_size: Optional[Sequence[int]],
        passes: Optional[int] = None,
    ) -> None:
        if model is None:
            return
        card = _model_card(model, input_size)
        if passes is not None:
            card["passes"] = passes
        self.db_driver.save_model_card(card)

    def measure_yourself(
        self,
        period: float = 1,
        measurement_period: float = 2,
        model: Any = None,
        input_size: Optional[Sequence[int]] = None,
    ) -> Tuple[Process, Queue]:
        """Measures the calling process and all its descendants, from now until
        STOP_MESSAGE is put on the queue, or the interpreter ends.

        period: seconds between two samples, 0.001 to 3600. All of the time between
        start and stop is in a window between two samples; in the original the time of
        its work is in none. `measurement_period` has no effect, as in the original's
        latest version: each sample is kept. model, input_size: as for the experiment,
        where the original's first version has them.
        """
        del measurement_period
        self._keep_card(model, input_size)
        return self._start(period, lambda tracker: tracker.start_self())

    def measure_from_pid_list(
        self, pid_list: Sequence[int], period: float = 1, measurement_period: float = 2
    ) -> Tuple[Process, Queue]:
        """Measures these processes together, with their descendants, which the original
        leaves out, until STOP_MESSAGE is put or the last of them ends.

        pid_list: numbers, or objects that have one as psutil's. wattmeter.Error: one of
        them is not there. ValueError: the list is empty.
        """
        del measurement_period
        pids = [int(getattr(process, "pid", process)) for process in pid_list]
        return self._start(period, lambda tracker: tracker.start_pid(*pids))

    def _start(
        self, period: float, start: Callable[[_core.Tracker], None]
    ) -> Tuple[Process, Queue]:
        tracker = _core.Tracker(interval=period)
        tracker.add_all()
        self.db_driver.attach(tracker)
        start(tracker)
        tracker.run_thread()
        session = _Session(tracker)
        return Process(session), Queue(session)


def _model_card(model: Any, input_size: Optional[Sequence[int]]) -> Dict[str, Any]:
    """With the names that torchinfo has."""
    if isinstance(model, Mapping):
        return dict(model)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        from wattmeter._torch.flops import card_of

        card = card_of(model, input_size)
    else:
        card = {
            "name": type(model).__name__,
            "total_params": sum(one.numel() for one in model.parameters()),
        }
        if input_size is not None:
            card["input_size"] = list(input_size)
    if input_size is not None:
        try:
            torchinfo: Any = importlib.import_module("torchinfo")
        except ImportError:
            return card
        summary = torchinfo.summary(model, input_size=tuple(input_size), verbose=0)
        card["total_mult_adds"] = summary.total_mult_adds
    return card


def _channel(channel: _core.Channel) -> _metrics.Channel:
    is_record = channel.source == "aipowermeter" and channel.metric == "power"
    metric = _metrics.RECORDED_POWER if is_record else channel.metric
    return channel.device_kind, channel.label, metric


class ExpResults:
    """What an experiment came to.

    Names of metrics are AIPowerMeter's, of all its generations; `list_metrics()` has
    the names of this recording, and GPUs may be of any vendor. Any other name is one
    of wattmeter's ("energy", "host_cpu_time_s"). Values are in W, bytes,
    seconds, shares from 0 to 1, and 0 to 100 for `nvidia_use_rate`. `start` and `end`
    are seconds since 1970, as in a curve's "date"; where they fall between two samples
    a straight line joins these. Of a metric per GPU there is a dictionary, by the
    number of the GPU as text. What is not known is None, and never 0 or -1; of a sum of
    which a part is not known, all of it.

    wattmeter.Error: the driver has no recording.
    """

    def __init__(self, db_driver: parsers.Driver) -> None:
        self.db_driver = db_driver
        self._experiment = db_driver.load()
        self._channels = {
            _channel(channel): channel.origin
            for recording in db_driver.recordings()
            for channel in recording.channels
        }
        self._known: Dict[str, Optional[_core.Series]] = {}
        self.model_card = db_driver.get_model_card()

    @functools.cached_property
    def _shown(self) -> Dict[str, Any]:
        shown: Dict[str, Any] = json.loads(self._experiment.json())
        return shown

    @property
    def description(self) -> Optional[str]:
        """The driver's description of the experiment: this one, or the one that recorded it."""
        recorded: Optional[str] = self._shown["description"]
        return self.db_driver.description or recorded

    def list_metrics(self) -> Dict[str, List[str]]:
        """The names that were recorded, in the groups "CPU", "GPU" and "Experiment"."""
        runs = self._shown["runs"]
        return {
            "CPU": self._names(_metrics.CPU),
            "GPU": self._names(_metrics.GPU),
            "Experiment": list(
                dict.fromkeys(n for run in runs for n in run["metrics"])
            ),
        }

    def _names(self, group: Mapping[str, Any]) -> List[str]:
        return [name for name in group if _metrics.find(name, self._channels)[0]]

    def print_metrics(self) -> None:
        """Prints them."""
        print(_metrics_text(self.list_metrics()))

    def __str__(self) -> str:
        return "Available metrics:\n" + _metrics_text(self.list_metrics())

    def get_origin(self, name: str) -> Optional[str]:
        """How the metric came to be: "measured", "estimated" (from a model, where
        nothing measures it) or "simulated". None: there is no such metric."""
        kind, devices = _metrics.find(name, self._channels)
        origins = {
            origin
            for (device, label, _), origin in self._channels.items()
            if kind and device == kind.device and label in sum(devices.values(), [])
        }
        known = ("measured", "estimated", "simulated")
        return next((origin for origin in known if origin in origins), None)

    def _find(self, name: str) -> Optional[Dict[str, _metrics.Curve]]:
        """The curves of a metric by GPU, or under "" the curve of all; None: no curve."""
        kind, devices = _metrics.find(name, self._channels)
        if kind is None:
            series = self._series(name, [""])
            return {"": _metrics.Curve(series)} if series else None
        curves = {}
        for gpu, labels in devices.items():
            series = self._series(kind.series, labels)
            if series:
                points = self._series(kind.curve, labels) if kind.curve else None
                scale = kind.scale / (len(series) if kind.is_mean else 1)
                curves[gpu] = _metrics.Curve(series, points, scale)
        return curves or None

    def _series(self, pattern: str, labels: Sequence[str]) -> List[_core.Series]:
        """All of them, or none where one is not known: a part would pass for the
        whole."""
        names = dict.fromkeys(pattern.replace("{}", label) for label in labels)
        known = [self._one_series(name) for name in names]
        return [] if None in known else [one for one in known if one]

    def _one_series(self, name: str) -> Optional[_core.Series]:
        if name not in self._known:
            try:
                self._known[name] = self._experiment.series(name)
            except _core.Error as error:
                if error.status not in ("ENOENT", "ENODEV"):
                    raise
                self._known[name] = None
        return self._known[name]

    def _each(self, name: str, ask: Callable[[_metrics.Curve], Any]) -> Any:
        """What each curve of the metric answers: one answer, or one for each GPU."""
        curves = self._find(name)
        if curves is None:
            return None
        if "" in curves:
            return ask(curves[""])
        return {gpu: ask(curve) for gpu, curve in curves.items()}

    def get_curve(self, name: str) -> Any:
        """The metric as a list of segments, each a list of points: {"date": seconds
        since 1970, "value": ...}. Between two segments, as between two recordings,
        nothing is known. None: there is no such metric."""
        return self._each(name, lambda curve: curve.segments())

    def _figure(self, kind: str, name: str, start: Time, end: Time) -> Any:
        def ask(curve: _metrics.Curve) -> Number:
            figure = curve.figure(kind, start, end)
            return None if figure is None else figure[0]

        return self._each(name, ask)

    def total_(self, metric_name: str, start: Time = None, end: Time = None) -> Any:
        """The metric over time: of watts the joules, by the counter where the device
        has one; of `absolute_cpu_time_per_pid` the seconds of CPU time; of anything
        else the area under its curve. The windows at both ends are in it; the original
        lacks the first one."""
        return self._figure("total", metric_name, start, end)

    def average_(self, metric_name: str, start: Time = None, end: Time = None) -> Any:
        """Its mean over the time for which it is known; the original divides by the
        time of another metric, and has only the last GPU."""
        return self._figure("average", metric_name, start, end)

    def max_(self, metric_name: str, start: Time = None, end: Time = None) -> Any:
        """Its highest value; of watts that over no less time than the sensor needs."""
        return self._figure("max", metric_name, start, end)

    def get_duration_metric(
        self, metric_name: str, start: Time = None, end: Time = None
    ) -> Optional[Tuple[float, float, float]]:
        """For how many seconds the metric is known, pauses left out, and the times of
        its first and last value. None: it is not known."""
        curves = self._find(metric_name)
        for curve in (curves or {}).values():
            figure = curve.figure("total", start, end)
            if figure is None:
                return None
            segments = curve.segments()
            first, last = segments[0][0]["date"], segments[-1][-1]["date"]
            return (
                figure[1],
                first if start is None else max(start, first),
                last if end is None else min(end, last),
            )
        return None

    def get_exp_duration(
        self, start: Time = None, end: Time = None
    ) -> Optional[Tuple[float, float, float]]:
        """The duration of the first metric: how long was recorded, from when to when."""
        for names in self.list_metrics().values():
            for name in names:
                duration = self.get_duration_metric(name, start, end)
                if duration is not None:
                    return duration
        return None

    get_duration = get_exp_duration

    def total_power_draw(self, start: Time = None, end: Time = None) -> Number:
        """The joules of CPUs and GPUs together; where only the ones are there, theirs.
        None: neither is known. (The original's latest version always fails here.)"""
        parts = [
            self.total_(name, start, end)
            for name in ("intel_power", "nvidia_power")
            if self._find(name)
        ]
        return None if not parts or None in parts else sum(parts)

    def get_summary(self, start: Time = None, end: Time = None) -> Dict[str, Any]:
        """The figures that `print()` prints, as a dictionary: "duration" in seconds,
        "start" and "end" as local time, "cpu" and "gpu" where there is anything of
        them, "energy_per_flop" in joules where the model's FLOPs are known and all of
        the time is asked for. What is called a power there is its total, in joules."""
        summary: Dict[str, Any] = {}
        duration = self.get_exp_duration(start, end)
        if duration is not None:
            summary["duration"] = duration[0]
            summary["start"] = str(datetime.datetime.fromtimestamp(duration[1]))
            summary["end"] = str(datetime.datetime.fromtimestamp(duration[2]))
        per_flop = (self._shown["model"] or {}).get("energy_per_flop")
        if per_flop is not None and start is None and end is None:
            summary["energy_per_flop"] = per_flop
        listed = self.list_metrics()
        for group, figures in (("cpu", _CPU_SUMMARY), ("gpu", _GPU_SUMMARY)):
            if listed[group.upper()]:
                summary[group] = {
                    key: self._figure(kind, name, start, end)
                    for key, (kind, name) in figures.items()
                }
        return summary

    def print(self, start: Time = None, end: Time = None) -> None:
        """Prints what the experiment took."""
        print(_summary_text(self, self.get_summary(start, end)))

    def _draw(self, axes: Any, name: str, colours: Iterator[Any]) -> None:
        """The curves of a metric, a line for each GPU, broken at pauses."""
        curves = self._find(name)
        if curves is None:
            listed = ", ".join(sum(self.list_metrics().values(), []))
            raise ValueError(f"there is no metric {name!r} here; there are {listed}")
        origin = self.get_origin(name)
        marked = name if origin in ("measured", None) else f"{name} ({origin})"
        for gpu, curve in curves.items():
            label: Optional[str] = f"{marked}, GPU {gpu}" if gpu else marked
            colour = next(colours)
            for segment in curve.segments():
                times = [datetime.datetime.fromtimestamp(p["date"]) for p in segment]
                values = [p["value"] for p in segment]
                axes.plot(times, values, color=colour, label=label, marker=".")
                label = None

    def display_curves(
        self, metric_names: Union[str, Sequence[str]], saveto: Optional[str] = None
    ) -> None:
        """Draws these metrics over the time of day with matplotlib, in a window, or to
        the file `saveto`. A metric per GPU has a line for each; the original fails there.

        ValueError: there is no such metric. ImportError: matplotlib is missing."""
        names = [metric_names] if isinstance(metric_names, str) else metric_names
        figure, axes, colours = _new_figure()
        for name in names:
            self._draw(axes, name, colours)
        axes.legend()
        _finish(figure, axes, saveto)

    def display_2_curves(
        self, metric_name1: str, metric_name2: str, saveto: Optional[str] = None
    ) -> None:
        """Draws two metrics over the time of day, the first by the axis at the left, the
        second by the one at the right; otherwise as `display_curves()`."""
        figure, left, colours = _new_figure()
        for axes, name in ((left, metric_name1), (left.twinx(), metric_name2)):
            self._draw(axes, name, colours)
            axes.set_ylabel(name, color=axes.lines[0].get_color())
        _finish(figure, left, saveto)


ExpResult = ExpResults  # as the original's manual calls it


def _new_figure() -> Tuple[Any, Any, Iterator[Any]]:
    """A figure, its axes, and colours for one line after the other."""
    from matplotlib import pyplot, rcParams

    figure, axes = pyplot.subplots()
    axes.set_xlabel("time")
    return figure, axes, itertools.cycle(rcParams["axes.prop_cycle"].by_key()["color"])


def _finish(figure: Any, axes: Any, saveto: Optional[str]) -> None:
    from matplotlib import pyplot

    axes.tick_params(axis="x", rotation=45)
    if saveto is None:
        pyplot.show()
        return
    figure.savefig(saveto, bbox_inches="tight")
    pyplot.close(figure)


# Of each key of a summary: which figure, of which metric. In the original
# "nvidia_use_rate" and "nvidia_memory" have each other's values.
_CPU_SUMMARY = {
    "total_psys_power": ("total", "psys_power"),
    "total_intel_power": ("total", "intel_power"),
    "rel_intel_power": ("total", "rel_intel_power"),
    "total_dram_power": ("total", "total_dram_power"),
    "total_cpu_power": ("total", "total_cpu_power"),
    "rel_dram_power": ("total", "per_process_dram_power"),
    "rel_cpu_power": ("total", "per_process_cpu_power"),
    "mem_use_abs": ("average", "per_process_mem_use_abs"),
    "mem_use_uss": ("average", "per_process_mem_use_uss"),
    "max_total_mem_use": ("max", "total_mem_use"),
    "absolute_cpu_time_per_pid": ("total", "absolute_cpu_time_per_pid"),
    "relative_cpu_use": ("average", "per_process_cpu_uses"),
}
_GPU_SUMMARY = {
    "nvidia_power": ("total", "nvidia_power"),
    "nvidia_use_rate": ("average", "nvidia_use_rate"),
    "nvidia_memory": ("max", "nvidia_memory"),
    "per_gpu_nvidia_power": ("total", "per_gpu_nvidia_power"),
    "per_gpu_nvidia_use_rate": ("average", "per_gpu_nvidia_use_rate"),
    "per_gpu_nvidia_memory": ("max", "per_gpu_nvidia_memory"),
    "per_gpu_attributable_power": ("total", "per_gpu_attributable_power"),
}


def _metrics_text(metrics: Mapping[str, Sequence[str]]) -> str:
    return "\n".join(
        f"{group}\n  {', '.join(names) or 'NOT AVAILABLE'}"
        for group, names in metrics.items()
    )


def _joules(value: Number) -> str:
    return "n/a" if value is None else f"{value:.6g} joules"


def _bytes(value: Number) -> str:
    return "n/a" if value is None else humanize_bytes(value)


def _percent(value: Number) -> str:
    return "n/a" if value is None else f"{value:.4g} %"


def _by_gpu(values: Optional[PerGpu], text: Callable[[Number], str]) -> str:
    return ", ".join(f"GPU {gpu}: {text(v)}" for gpu, v in (values or {}).items())


def _mark(results: ExpResults, name: str) -> str:
    """Behind what was not measured."""
    origin = results.get_origin(name)
    return f" ({origin})" if origin not in ("measured", None) else ""


def _cpu_lines(results: ExpResults, cpu: Mapping[str, Any]) -> List[str]:
    return [
        f"RAM: {_joules(cpu['total_dram_power'])}"
        f"{_mark(results, 'total_dram_power')}; the experiment: "
        f"{_joules(cpu['rel_dram_power'])}, with {_bytes(cpu['mem_use_abs'])} (PSS) on "
        f"average, {_bytes(cpu['mem_use_uss'])} of it its own (USS)",
        f"CPU cores: {_joules(cpu['total_cpu_power'])}; the experiment: "
        f"{_joules(cpu['rel_cpu_power'])}",
        f"intel power: {_joules(cpu['total_intel_power'])}"
        f"{_mark(results, 'intel_power')}; the experiment: "
        f"{_joules(cpu['rel_intel_power'])}",
        f"psys power: {_joules(cpu['total_psys_power'])}",
    ]


def _gpu_lines(results: ExpResults, gpu: Mapping[str, Any]) -> List[str]:
    return [
        f"nvidia: {_joules(gpu['nvidia_power'])}{_mark(results, 'nvidia_power')}",
        f"energy: {_by_gpu(gpu['per_gpu_nvidia_power'], _joules) or 'n/a'}",
        f"highest memory: {_by_gpu(gpu['per_gpu_nvidia_memory'], _bytes) or 'n/a'}",
        f"average use: {_by_gpu(gpu['per_gpu_nvidia_use_rate'], _percent) or 'n/a'}",
    ]


def _model_line(card: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    parameters = card.get("total_params", card.get("parameters", "n/a"))
    flops = card.get("flops")
    macs = card.get("total_mult_adds", card.get("macs", flops and flops // 2)) or "n/a"
    line = (
        f"MODEL SUMMARY: {parameters} parameters and {macs} mac operations during "
        "the forward pass"
    )
    joules = summary.get("energy_per_flop")
    if joules is not None:
        line += f"; {joules:.4g} joules per FLOP of {card.get('passes', 1)} passes a run"
    elif flops is None and "flops_why" in card:
        line += f" ({card['flops_why']})"
    return line


def _summary_text(results: ExpResults, summary: Mapping[str, Any]) -> str:
    lines = [" EXPERIMENT SUMMARY ".center(88, "=")]
    if results.description:
        lines.append(f"Description: {results.description}")
    if "duration" in summary:
        lines.append(
            f"Duration: {summary['duration']:.6g} seconds, from {summary['start']} to "
            f"{summary['end']}"
        )
    if results.model_card:
        lines.append(_model_line(results.model_card, summary))
    lines += ["", "ENERGY CONSUMPTION", "", "on the cpu"]
    lines += (
        _cpu_lines(results, summary["cpu"]) if "cpu" in summary else ["NOT AVAILABLE"]
    )
    lines += ["", "on the gpu"]
    lines += (
        _gpu_lines(results, summary["gpu"]) if "gpu" in summary else ["NOT AVAILABLE"]
    )
    return "\n".join(lines)
