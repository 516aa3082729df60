# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's GPUs now: their power and memory, and who uses them.

The original runs nvidia-smi twice and reads its output; here the driver is asked.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Iterable, List, Optional, Sequence, Set, Tuple, Union

from wattmeter import _core

# Between two queries, as nvidia-smi pmon has it.
_PAUSE = 1.0

_Values = Dict[Union[int, str], Optional[float]]


def is_nvidia_compatible() -> Tuple[bool, str]:
    """Whether there is an NVIDIA GPU that tells its power, and what was found."""
    gpus = _core.Gpus()
    numbers = _nvidia(gpus)
    for number in numbers:
        power = gpus.get(number, "power.draw")
        if power.value is None:
            return False, f"GPU {number} does not tell its power: {power.why}"
    if not numbers:
        looked = next((look for look in gpus.looked if look.source == "nvml"), None)
        return False, f"there is no NVIDIA GPU: {looked.detail if looked else None}"
    return True, f"{len(numbers)} NVIDIA GPU(s) tell their power"


def get_nvidia_gpu_power(
    pid_list: Optional[Iterable[Any]] = None, nsample: int = 1
) -> Dict[str, Any]:
    """The power and the use of each GPU, and what these processes have of it.

    pid_list: numbers of processes, or objects that have one as psutil's; None: all.
    nsample: how many times the driver is asked, a second apart, for the mean of the
    utilization of each process.

    The keys, where GPUs are known by their index and what is not known is None:

    - nvidia_draw_absolute: W of all of them together, None if one does not tell
    - per_gpu_power_draw: {gpu: W}
    - per_gpu_attributable_mem_use: {gpu: {pid: bytes}}, of these processes
    - per_gpu_per_pid_utilization_absolute: {gpu: {pid: share}}, of all processes, of
      the time of the GPU's multiprocessors, 0 to 1
    - per_gpu_absolute_percent_usage: {gpu: share}, of these processes together
    - per_gpu_estimated_attributable_utilization: {gpu: share}, their part of what all
      processes use; 0 where they use nothing

    Processes have their number in this container; what those in others use counts in
    what all use. A machine without such a GPU has empty dictionaries, and None for the
    total. (The original fails there, takes "-" for 0, and takes the mean over those
    queries that differ.)
    """
    wanted = None
    if pid_list is not None:
        wanted = {int(getattr(process, "pid", process)) for process in pid_list}
    gpus = _core.Gpus()
    numbers = _nvidia(gpus)
    samples: Dict[int, List[_Values]] = {number: [] for number in numbers}
    for sample in range(max(nsample, 1)):
        if sample > 0:
            time.sleep(_PAUSE)
            gpus.refresh(["power", "processes"])
        for number in numbers:
            samples[number].append(_of_each(gpus, number, "sm"))
    draws: Dict[Any, Any] = {}
    memory, shares, own, part = {}, {}, {}, {}
    for number in numbers:
        gpu = gpus.get(number, "index").value
        used = _mean(samples[number])
        draws[gpu] = gpus.get(number, "power.draw").value
        memory[gpu] = _known(_of_each(gpus, number, "gpu_memory"), wanted)
        shares[gpu] = _known(used, None)
        own[gpu] = _sum(v for pid, v in used.items() if _is_of(pid, wanted))
        part[gpu] = _ratio(own[gpu], _sum(used.values()))
    return {
        "nvidia_draw_absolute": _sum(draws.values()) if draws else None,
        "per_gpu_power_draw": draws,
        "per_gpu_attributable_mem_use": memory,
        "per_gpu_per_pid_utilization_absolute": shares,
        "per_gpu_absolute_percent_usage": own,
        "per_gpu_estimated_attributable_utilization": part,
    }


def _nvidia(gpus: _core.Gpus) -> List[int]:
    return [n for n in range(gpus.count) if gpus.get(n, "source").value == "nvml"]


def _of_each(gpus: _core.Gpus, number: int, key: str) -> _Values:
    """What the driver says of each process. One without a number here has the driver's
    number as text, and what is missing of the list is the process ""."""
    processes, listed = gpus.processes(number)
    values: _Values = {}
    for process in processes:
        pid: Any = process["pid"].value
        value: Any = process[key].value
        if pid is None:
            pid = str(process["driver_pid"].value)
        values[pid] = value
    if listed.value is None:
        values[""] = None
    return values


def _is_of(pid: Union[int, str], wanted: Optional[Set[int]]) -> bool:
    return wanted is None or pid in wanted or pid == ""


def _known(values: _Values, wanted: Optional[Set[int]]) -> Dict[int, Optional[float]]:
    return {
        pid: value
        for pid, value in values.items()
        if isinstance(pid, int) and _is_of(pid, wanted)
    }


def _mean(samples: Sequence[_Values]) -> _Values:
    """Of each process: it uses nothing while it is not there."""
    means: _Values = {}
    for pid in dict.fromkeys(pid for sample in samples for pid in sample):
        total = _sum(sample.get(pid, 0.0) for sample in samples)
        means[pid] = None if total is None else total / len(samples)
    return means


def _sum(values: Iterable[Optional[float]]) -> Optional[float]:
    """None where one is not known."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _ratio(part: Optional[float], whole: Optional[float]) -> Optional[float]:
    if part is None or whole is None:
        return None
    return part / whole if part > 0 else 0.0
