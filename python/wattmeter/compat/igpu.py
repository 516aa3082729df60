# SPDX-License-Identifier: Apache-2.0
"""igpu's names: properties and live values of the NVIDIA GPUs of this machine.

    import wattmeter.compat.igpu as igpu

    for gpu in igpu.devices():
        print(gpu.name, gpu.memory.used, gpu.memory.unit)

Functions, classes, units and printed forms are the same as in igpu 0.1.2. As there, a number
that is not known is NaN and a text "N/A"; GPUInfo.why has the reasons. Where igpu fails
or is wrong, this is right: each function and class says so. GPUs of other vendors are in
wattmeter.gpus().
"""

from __future__ import annotations

import math
import textwrap
import warnings
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Dict, List, Optional, Tuple

from wattmeter import _core
from wattmeter.compat import _nvidia

__all__ = [
    "GPUClockInfo",
    "GPUInfo",
    "GPUMemoryInfo",
    "GPUPCIInfo",
    "GPUPowerInfo",
    "GPUProcessInfo",
    "GPUProcessesInfo",
    "GPUUtilizationInfo",
    "count_devices",
    "count_visible_devices",
    "devices",
    "devices_index",
    "get_device",
    "nvidia_driver_version",
    "visible_devices",
    "visible_devices_index",
]

_GROUPS = ("general", "memory", "utilization", "pci", "clocks", "power", "processes")
_MEBI = 2**20


class _Teller:
    """What one GPU says, in igpu's units, and why the rest is missing."""

    def __init__(self, gpus: _core.Gpus, gpu: int) -> None:
        self._gpus, self._gpu = gpus, gpu
        self.why: Dict[str, str] = {}

    def _get(self, field: str) -> Any:
        value = self._gpus.get(self._gpu, field)
        if value.value is None:
            self.why[field] = value.why or ""
        return value.value

    def number(self, field: str, unit: float = 1) -> float:
        value = self._get(field)
        return math.nan if value is None else value / unit

    def percent(self, field: str) -> float:
        """In whole percent, as the driver tells it."""
        return round(self.number(field) * 100, 6)

    def text(self, field: str, unit: str = "") -> str:
        value = self._get(field)
        return "N/A" if value is None else f"{value}{unit}"

    def processes(self) -> Optional[List[Dict[str, _core.GpuValue]]]:
        """Those that compute; None where the driver does not tell."""
        rows, known = self._gpus.processes(self._gpu)
        if known.why:
            self.why["processes"] = known.why
        if known.why and not rows:
            return None
        return [row for row in rows if row["type"].value != "G"]


def _or(value: Any, instead: Any) -> Any:
    return instead if value is None else value


def _bar(percent: float) -> str:
    if math.isnan(percent):
        return "N/A"
    return f"[{'|' * int(percent / 4):25s}] {percent:.2f}%"


def _block(title: str, width: int, lines: Dict[str, str]) -> str:
    rows = [f"    {label:{width}s}: {value}" for label, value in lines.items()]
    return "\n".join([title, *rows])


@dataclass(frozen=True, eq=False)
class GPUMemoryInfo:
    """The memory on the board, in `unit`. What the driver keeps for itself is in `used`,
    so that used and free add up to the total."""

    total: float
    used: float
    free: float
    unit: str = field(default="MiB", init=False)

    @classmethod
    def _of(cls, tell: _Teller) -> GPUMemoryInfo:
        total = tell.number("memory.total", _MEBI)
        free = tell.number("memory.free", _MEBI)
        return cls(total, total - free, free)

    def _line(self, mebi: float) -> str:
        ratio = mebi / self.total if self.total else math.nan
        return f"{mebi:10.2f} {self.unit} ({ratio * 100:6.2f}%)"

    def __str__(self) -> str:
        lines = {
            "Total": f"{self.total:10.2f} {self.unit} (100.00%)",
            "Used": self._line(self.used),
            "Free": self._line(self.free),
        }
        return _block("GPU MEMORY:", 6, lines)


@dataclass(frozen=True, eq=False)
class GPUUtilizationInfo:
    """How busy the GPU, its memory and its fan are, in percent; degrees Celsius; and "P0"
    (highest performance) to "P15"."""

    gpu: float
    memory: float
    fan: float
    temperature: float
    performance: str

    @classmethod
    def _of(cls, tell: _Teller) -> GPUUtilizationInfo:
        return cls(
            tell.percent("utilization.gpu"),
            tell.percent("utilization.memory"),
            tell.percent("utilization.fan"),
            tell.number("utilization.temperature"),
            tell.text("utilization.performance"),
        )

    def __str__(self) -> str:
        lines = {
            "Performance": self.performance,
            "Temperature": f"{self.temperature:.2f}C",
            "Graphics": _bar(self.gpu),
            "Memory": _bar(self.memory),
            "Fan": _bar(self.fan),
        }
        return _block("GPU UTILIZATION:", 12, lines)


@dataclass(frozen=True, eq=False)
class GPUPCIInfo:
    """Where the GPU is plugged in, hexadecimal; generations of the link ("3") and lanes
    ("16x"), current and maximum."""

    bus: str
    bus_id: str
    device: str
    device_id: str
    sub_system_id: str
    current_link_gen: str
    max_link_gen: str
    current_link_width: str
    max_link_width: str

    @classmethod
    def _of(cls, tell: _Teller) -> GPUPCIInfo:
        return cls(
            tell.text("pci.bus"),
            tell.text("pci.bus_id"),
            tell.text("pci.device"),
            tell.text("pci.device_id"),
            tell.text("pci.sub_system_id"),
            tell.text("pci.current_link_gen"),
            tell.text("pci.max_link_gen"),
            tell.text("pci.current_link_width", "x"),
            tell.text("pci.max_link_width", "x"),
        )

    def __str__(self) -> str:
        lines = {
            "Bus": self.bus,
            "Bus ID": self.bus_id,
            "Device": self.device,
            "Device ID": self.device_id,
            "Sub-System ID": self.sub_system_id,
            "Generation": f"{self.current_link_gen} (Max: {self.max_link_gen})",
            "Link Width": f"{self.current_link_width} (Max: {self.max_link_width})",
        }
        return _block("PCI INFO:", 14, lines)


@dataclass(frozen=True, eq=False)
class GPUClockInfo:
    """The clocks of the shaders, the multiprocessors and the memory, current and
    maximum, in `unit`."""

    graphics: float
    sm: float
    memory: float
    max_graphics: float
    max_sm: float
    max_memory: float
    unit: str = field(default="MHz", init=False)

    @classmethod
    def _of(cls, tell: _Teller) -> GPUClockInfo:
        keys = ("graphics", "sm", "memory", "max_graphics", "max_sm", "max_memory")
        return cls(*(tell.number(f"clocks.{key}", 1e6) for key in keys))

    def _line(self, now: float, most: float) -> str:
        return f"{now:.1f} {self.unit} (Max: {most:.1f})"

    def __str__(self) -> str:
        lines = {
            "Graphics": self._line(self.graphics, self.max_graphics),
            "SM": self._line(self.sm, self.max_sm),
            "Memory": self._line(self.memory, self.max_memory),
        }
        return _block("GPU CLOCK:", 9, lines)


@dataclass(frozen=True, eq=False)
class GPUPowerInfo:
    """The power of the board and its limits, in `unit`; `management` is "Supported" or
    "N/A"."""

    management: str
    draw: float
    limit: float
    min_limit: float
    max_limit: float
    unit: str = field(default="W", init=False)

    @classmethod
    def _of(cls, tell: _Teller) -> GPUPowerInfo:
        keys = ("draw", "limit", "min_limit", "max_limit")
        watts = (tell.number(f"power.{key}") for key in keys)
        return cls(tell.text("power.management"), *watts)

    def __str__(self) -> str:
        lines = {
            "Management": self.management,
            "Draw": f"{self.draw:.2f} {self.unit}",
            "Limit": f"{self.limit:.2f} {self.unit}",
            "Min Limit": f"{self.min_limit:.2f} {self.unit}",
            "Max Limit": f"{self.max_limit:.2f} {self.unit}",
        }
        return _block("POWER INFO:", 11, lines)


@dataclass(frozen=True, eq=False)
class GPUProcessInfo:
    """A process that computes on the GPU.

    `create_time` is local time as text, `gpu_memory` whole MiB. Memory that the driver
    does not tell is NaN, not 0. A process that is in no /proc, for it has just ended or
    belongs to another container, has the driver's pid and is "N/A" or NaN else; igpu
    fails then.
    """

    pid: int
    name: str
    user: str
    parent_pid: float
    parent_name: str
    create_time: str
    gpu_memory: float

    @classmethod
    def _of(cls, row: Dict[str, _core.GpuValue]) -> GPUProcessInfo:
        told: Dict[str, Any] = {key: value.value for key, value in row.items()}
        born, memory = told["create_time"], told["gpu_memory"]
        return cls(
            _or(told["pid"], told["driver_pid"]),
            _or(told["name"], "N/A"),
            _or(told["user"], "N/A"),
            _or(told["parent_pid"], math.nan),
            _or(told["parent_name"], "N/A"),
            "N/A" if born is None else str(datetime.fromtimestamp(int(born))),
            math.nan if memory is None else memory // _MEBI,
        )

    def __str__(self) -> str:
        cells = [
            f"{self.pid:<6d}",
            f"{textwrap.shorten(self.name, width=20):20s}",
            f"{textwrap.shorten(self.user, width=20):20s}",
            f"{self.parent_pid:<8}",
            f"{self.create_time:20s}",
            f"{self.gpu_memory:<6}",
        ]
        return " | ".join(cells)


class GPUProcessesInfo(List[GPUProcessInfo]):
    """The processes that compute on a GPU."""

    @classmethod
    def _of(cls, tell: _Teller) -> Optional[GPUProcessesInfo]:
        rows = tell.processes()
        return None if rows is None else cls(map(GPUProcessInfo._of, rows))

    def __str__(self) -> str:
        titles = {"PID": 6, "NAME": 20, "USER": 20, "PARENT": 8, "CREATION TIME": 20}
        header = [f"{title:{width}s}" for title, width in titles.items()]
        rows = [" | ".join([*header, "GPU MEM"]), *map(str, self)]
        return "".join(["PROCESSES\n", *(f"    {row}\n" for row in rows)])


class GPUInfo:
    """A GPU as it was when it was asked last: `index` (as nvidia-smi has it), `name`,
    `serial`, `uuid`, `bios`, and what else belongs together.

    `processes` is empty without processes, and None if the driver does not list them;
    igpu has None for both. `why` has the reason for each value that is missing:
    {"power.draw": "Not Supported"}.
    """

    index: int
    name: str
    serial: str
    uuid: str
    bios: str
    memory: GPUMemoryInfo
    utilization: GPUUtilizationInfo
    pci: GPUPCIInfo
    clocks: GPUClockInfo
    power: GPUPowerInfo
    processes: Optional[GPUProcessesInfo]
    why: Dict[str, str]

    def __init__(self, gpus: _core.Gpus, gpu: int) -> None:
        self._fill(gpus, gpu)

    def _fill(self, gpus: _core.Gpus, gpu: int) -> None:
        tell = _Teller(gpus, gpu)
        self.index = int(tell.number("index"))
        self.name = tell.text("name")
        self.serial = tell.text("serial")
        self.uuid = tell.text("uuid")
        self.bios = tell.text("bios")
        self.memory = GPUMemoryInfo._of(tell)
        self.utilization = GPUUtilizationInfo._of(tell)
        self.pci = GPUPCIInfo._of(tell)
        self.clocks = GPUClockInfo._of(tell)
        self.power = GPUPowerInfo._of(tell)
        self.processes = GPUProcessesInfo._of(tell)
        self.why = tell.why

    def update(self) -> None:
        """Asks the GPU again. ValueError: it is gone."""
        try:
            with _nvidia.asked(*_GROUPS, index=self.index) as gpus:
                self._fill(gpus, 0)
        except ValueError:
            raise ValueError(f"Invalid device index: {self.index}.") from None

    def __str__(self) -> str:
        head = {
            "INDEX": self.index,
            "BOARD NAME": self.name,
            "SERIAL": self.serial,
            "UUID": self.uuid,
            "BIOS VERSION": self.bios,
        }
        blocks = [
            "\n".join(f"{label:13s}: {value}" for label, value in head.items()),
            self.memory,
            self.utilization,
            self.pci,
            self.clocks,
            self.power,
            self.processes or None,
        ]
        return "\n\n".join(map(str, blocks)) + "\n"


def count_devices() -> int:
    """How many NVIDIA GPUs there are; 0 without a driver, where igpu fails."""
    with _nvidia.asked() as gpus:
        return _nvidia.driver(gpus).present


def devices_index() -> List[int]:
    """Their numbers: 0, 1 and so on, in the order of nvidia-smi."""
    return list(range(count_devices()))


def get_device(device_index: int) -> GPUInfo:
    """That GPU. ValueError: there is none, or no such one."""
    with _nvidia.asked() as gpus:
        driver = _nvidia.driver(gpus)
    if driver.present == 0:
        raise ValueError(f"There are no devices available: {driver.detail}")
    valid = list(range(driver.present))
    if device_index not in valid:
        raise ValueError(f"Invalid device index: {device_index}. Valid: {valid}")
    with _nvidia.asked(*_GROUPS, index=int(device_index)) as gpus:
        return GPUInfo(gpus, 0)


def devices() -> List[GPUInfo]:
    """All GPUs."""
    with _nvidia.asked(*_GROUPS) as gpus:
        return [GPUInfo(gpus, gpu) for gpu in range(_nvidia.driver(gpus).present)]


def count_visible_devices() -> int:
    """How many visible_devices_index() has."""
    return len(visible_devices_index())


def visible_devices_index() -> List[int]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves to a CUDA program, as CUDA counts them.

    CUDA's rules hold: all GPUs where the variable is not set, none where it is empty;
    the list ends at the first word that means no GPU; UUIDs, their beginnings and MIG
    devices are understood. igpu takes numbers only, has no GPU where the variable is not
    set, and fails where it is empty.
    """
    with _nvidia.asked() as gpus:
        nvidia = range(_nvidia.driver(gpus).present)
        visible, remark = gpus.select("visible")
    if remark:
        warnings.warn(remark, stacklevel=2)
    return [index for index in visible if index in nvidia]


def visible_devices() -> List[GPUInfo]:
    """The GPUs of visible_devices_index(), in its order."""
    visible = visible_devices_index()
    with _nvidia.asked(*_GROUPS) as gpus:
        return [GPUInfo(gpus, index) for index in visible]


def nvidia_driver_version() -> Tuple[Optional[int], Optional[int]]:
    """The first two numbers of the driver's version: (535, 104) of 535.104.05.

    The second is None where there is one number only, and both without a GPU; igpu fails
    then.
    """
    with _nvidia.asked() as gpus:
        present = _nvidia.driver(gpus).present
        version: Any = gpus.get(0, "driver_version").value if present else None
    numbers: List[Optional[int]] = [
        int(part) for part in (version or "").split(".") if part
    ]
    major, minor, *_ = [*numbers, None, None]
    return major, minor
