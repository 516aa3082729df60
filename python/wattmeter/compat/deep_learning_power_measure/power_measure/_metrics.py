# SPDX-License-Identifier: Apache-2.0
"""AIPowerMeter's names of metrics, and what they are in a recording.

A metric is a series of wattmeter's, or several that are added up, or one for each GPU.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from wattmeter import _core

Time = Optional[float]  # seconds since 1970
Point = Dict[str, float]
Segments = List[List[Point]]
Channel = Tuple[str, str, str]  # kind of device, label, metric


class Kind(NamedTuple):
    """What a name stands for: of all channels of this kind of device whose label and
    metric match these patterns, the series; `{}` is the label."""

    device: str
    label: str
    metric: str
    series: str
    curve: str = ""  # where its points are those of another series
    per_gpu: bool = False
    scale: float = 1.0  # of our unit to AIPowerMeter's
    is_mean: bool = False  # over the devices; else their sum


# The power in a record of AIPowerMeter's, which is that of its window.
RECORDED_POWER = "recorded power"


def _watts(device: str, label: str, name: str = "{}") -> List[Kind]:
    return [
        Kind(device, label, RECORDED_POWER, "{}_power_W"),
        Kind(device, label, "power|energy", f"{name}_energy", f"{name}_power"),
    ]


def _tree(metric: str, unit: str) -> List[Kind]:
    return [Kind("tree", "tree", metric, f"tree_{metric}_{unit}")]


def _gpus(metric: str, unit: str, scale: float = 1.0) -> Kind:
    return Kind("gpu", ".*", metric, f"{{}}_{metric}_{unit}", scale=scale)


def _each(*kinds: Kind) -> List[Kind]:
    return [kind._replace(per_gpu=True) for kind in kinds]


_CPU_SHARE = _tree("cpu_share", "ratio")
_MEMORY_SHARE = _tree("memory_share", "ratio")
_PSS = _tree("memory_total", "B")
_USS = _tree("memory_private", "B")

# In the order in which they are listed; of several kinds the first that is there
# counts. The names of all generations are here.
CPU: Dict[str, List[Kind]] = {
    "intel_power": _watts("cpu", ".*", "cpu"),
    "psys_power": _watts("platform", "psys.*"),
    "total_cpu_power": _watts("cpu_part", r"(package.*_)?core\d*"),
    "uncore_power": _watts("cpu_part", "(package.*_)?uncore"),
    "total_dram_power": _watts("dram", ".*", "dram"),
    "rel_intel_power": _tree("package_power", "W"),
    "per_process_cpu_power": _tree("core_power", "W"),
    "per_process_dram_power": _tree("dram_power", "W"),
    "per_process_cpu_uses": _CPU_SHARE,
    "cpu_uses": _CPU_SHARE,
    "absolute_cpu_time_per_pid": _tree("cpu_time", "s"),
    "per_process_mem_use_abs": _PSS,
    "mem_use_abs": _PSS,
    "per_process_mem_use_percent": _MEMORY_SHARE,
    "mem_use_percent": _MEMORY_SHARE,
    "per_process_mem_use_uss": _USS,
    "mem_use_uss": _USS,
    "total_mem_use": [Kind("host", "host", "memory_used", "host_memory_used_B")],
}

_ALL_GPUS = [Kind("other", "gpus", "power_sum", "gpus_power_sum_W")]
_ALL_GPUS += _watts("gpu", ".*", "gpu")
_EACH_GPU = _each(*_watts("gpu", ".*"))
_USE = _gpus("utilization", "ratio", scale=100)
_MEMORY = _gpus("memory_used", "B")
_OWN_WATTS = _gpus("tree_power", "W")
_OWN_MEMORY = _gpus("tree_memory_used", "B")
_OWN_USE = _gpus("tree_utilization", "ratio")

GPU: Dict[str, List[Kind]] = {
    "nvidia_power": _ALL_GPUS,
    "nvidia_draw_absolute": _ALL_GPUS,
    "nvidia_use_rate": [_USE._replace(is_mean=True)],
    "nvidia_memory": [_MEMORY],
    "nvidia_attributable_power": [_OWN_WATTS],
    "nvidia_estimated_attributable_power_draw": _tree("gpu_power", "W"),
    "nvidia_mem_use": _each(_OWN_MEMORY),
    "nvidia_sm_use": _each(_OWN_USE),
    "per_gpu_nvidia_power": _EACH_GPU,
    "per_gpu_power_draw": _EACH_GPU,
    "per_gpu_nvidia_use_rate": _each(_USE),
    "per_gpu_nvidia_memory": _each(_MEMORY),
    "per_gpu_attributable_power": _each(_OWN_WATTS),
    "per_gpu_attributable_mem_use": _each(_OWN_MEMORY),
    "per_gpu_per_pid_utilization_absolute": _each(_gpus("utilization", "ratio")),
    "per_gpu_absolute_percent_usage": _each(_OWN_USE),
    "per_gpu_estimated_attributable_utilization": _each(_gpus("tree_share", "ratio")),
}


def find(
    name: str, channels: Iterable[Channel]
) -> Tuple[Optional[Kind], Dict[str, List[str]]]:
    """What the metric is in a recording with these channels, and the labels of its
    devices by GPU, which is "" where they count together. None: there is no such."""
    for kind in CPU.get(name, []) + GPU.get(name, []):
        labels: Dict[str, List[str]] = {}
        for device, label, metric in channels:
            if (
                device == kind.device
                and re.fullmatch(kind.label, label)
                and re.fullmatch(kind.metric, metric)
            ):
                gpu = re.sub(r"^gpu(?=\d)", "", label) if kind.per_gpu else ""
                labels.setdefault(gpu, []).append(label)
        if labels:
            return kind, labels
    return None, {}


class Curve:
    """A series, or several that are added up. `points` is where the curve is drawn
    from, if that is another one."""

    def __init__(
        self,
        series: List[_core.Series],
        points: Optional[List[_core.Series]] = None,
        scale: float = 1.0,
    ) -> None:
        self._series = series
        self._drawn = points or series
        self._scale = scale

    def figure(
        self, kind: str, start: Time, end: Time
    ) -> Optional[Tuple[float, float]]:
        """The value, and the seconds for which it is known; None: it is not known."""
        if kind == "max" and len(self._series) > 1:
            values = [p["value"] for p in self._sums() if _is_in(p, start, end)]
            return (max(values), 0.0) if values else None
        try:
            figures = [one.figure(kind, _ns(start), _ns(end)) for one in self._series]
        except _core.Error as error:
            if error.status != "ENODEV":
                raise
            return None
        value = sum(figure.value for figure in figures) * self._scale
        return value, min(figure.seconds for figure in figures)

    def segments(self) -> Segments:
        """The points, a list for each time without a pause; of several series those at
        which all are known, in one list."""
        if len(self._drawn) > 1:
            return [self._sums()]
        return [
            [self._point(time, value) for time, value in segment]
            for segment in _segments(self._drawn[0])
        ]

    def _sums(self) -> List[Point]:
        curves = [dict(sum(_segments(one), [])) for one in self._drawn]
        shared = set(curves[0]).intersection(*curves[1:])
        return [
            self._point(time, sum(curve[time] for curve in curves))
            for time in sorted(shared)
        ]

    def _point(self, time: int, value: float) -> Point:
        return {"date": time / 1e9, "value": value * self._scale}


def _segments(series: _core.Series) -> List[List[Tuple[int, float]]]:
    """Times and values. A mean is that since the time before, so the first one holds
    where its window begins, too."""
    return [
        list(zip(times, [values[known]] * known + list(values[known:])))
        for times, values, known in series.segments()
        if len(values) > known
    ]


def _ns(time: Time) -> int:
    return 0 if time is None else int(time * 1e9)


def _is_in(point: Point, start: Time, end: Time) -> bool:
    after = start is None or start <= point["date"]
    return after and (end is None or point["date"] <= end)
