# SPDX-License-Identifier: Apache-2.0
"""The memory, the CPU time and the energy of processes and of the machine now.

What the kernel says of each process is read as it stands, without psutil.
"""

from __future__ import annotations

import importlib
import os
import time
import warnings
from typing import Any, Dict, Iterable, List, Optional, Tuple

from wattmeter import _core

from . import rapl

_KB = 1024


def is_rapl_compatible() -> Tuple[bool, str]:
    """Whether RAPL can be read, and which counters there are, or why not."""
    try:
        sample = rapl.RAPLSample().take_sample()
    except _core.Error as error:
        return False, str(error)
    return True, "RAPL has " + ", ".join(sample.counters)


class Process:
    """The number of a process, as an object. ProcessLookupError: it is gone."""

    def __init__(self, pid: int) -> None:
        if not os.path.exists(os.path.join(_proc(), str(pid))):
            raise ProcessLookupError(pid)
        self.pid = pid

    def __repr__(self) -> str:
        return f"Process(pid={self.pid})"


def get_processes(pid_list: Iterable[Any]) -> List[Any]:
    """The processes of these numbers, as objects that have a `pid`: psutil's where it is
    there. One that is gone is left out, with a warning."""
    make, gone = _process_type()
    processes = []
    for pid in _pids(pid_list):
        try:
            processes.append(make(pid))
        except gone:
            warnings.warn(f"process {pid} is gone, and is left out", stacklevel=2)
    return processes


def _process_type() -> Tuple[Any, Any]:
    """What makes an object of a process, and fails where it is gone."""
    try:
        psutil: Any = importlib.import_module("psutil")
    except ImportError:
        return Process, ProcessLookupError
    return psutil.Process, psutil.NoSuchProcess


def get_mem_uses(process_list: Iterable[Any]) -> Tuple[Dict[int, int], Dict[int, int]]:
    """The memory of each process: ({pid: PSS}, {pid: USS}), in bytes.

    process_list: objects that have a `pid`, as psutil's, or numbers. PSS is what a
    process has for itself and its part of what it shares, so that the sum over
    processes counts nothing twice; USS is the first of these, and part of it: the two
    are not to be added. Where PSS may not be read RSS stands for it, as in the
    original, and there is no USS. A process that is gone is left out.
    """
    pss, uss = {}, {}
    for pid in _pids(process_list):
        try:
            memory = _memory(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
        pss[pid] = memory[0]
        if memory[1] is not None:
            uss[pid] = memory[1]
    return pss, uss


def get_cpu_uses(
    process_list: Iterable[Any], period: float = 2.0
) -> Dict[int, Optional[float]]:
    """The share of each process in the time for which the machine's CPUs were busy, 0
    to 1, over `period` seconds, which this waits.

    process_list: as for `get_mem_uses()`. All busy time counts on both sides, and no
    share is above 1; the original leaves out part of the machine's, so its shares come
    to more. None: the machine was idle. A process that ends meanwhile is left out.
    """
    pids = list(_pids(process_list))
    busy, used = _busy_time(), _cpu_times(pids)
    time.sleep(period)
    used_after, busy_after = _cpu_times(pids), _busy_time()
    span = busy_after - busy
    return {
        pid: min((used_after[pid] - used[pid]) / span, 1.0) if span > 0 else None
        for pid in pids
        if pid in used and pid in used_after
    }


def get_power(diff: rapl.Difference) -> Dict[str, float]:
    """What two samples of `rapl.RAPLSample` differ by.

    In joules, by domain: "package", "core", "uncore", "ram" and "psys". In watts, which
    are these by the time between: "intel_power" (of the packages), "cpu_power" (their
    cores), "uncore_power", "dram_power" and "psys_power".

    All packages count together; cores and uncore are inside them, memory is beside
    them, and psys has all of it, so it is added to nothing. A domain that is not there
    has no key; the original has -1 for psys, and watts where its manual says joules.
    """
    power: Dict[str, float] = {}
    for domain, key, watts in (
        ("package", "package", "intel_power"),
        ("core", "core", "cpu_power"),
        ("uncore", "uncore", "uncore_power"),
        ("dram", "ram", "dram_power"),
        ("psys", "psys", "psys_power"),
    ):
        joules = diff.total(domain)
        if joules is not None and diff.duration > 0:
            power[key] = joules
            power[watts] = joules / diff.duration
    return power


def _pids(process_list: Iterable[Any]) -> Iterable[int]:
    return (int(getattr(process, "pid", process)) for process in process_list)


def _proc() -> str:
    return os.environ.get("WATTMETER_PROCFS", "/proc")


def _read(path: str) -> str:
    with open(os.path.join(_proc(), path), encoding="utf-8", errors="replace") as lines:
        return lines.read()


def _memory(pid: int) -> Tuple[int, Optional[int]]:
    """PSS and USS; where these may not be read, RSS."""
    try:
        rollup = _read(f"{pid}/smaps_rollup").splitlines()[1:]
    except PermissionError:
        pages = int(_read(f"{pid}/statm").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE"), None
    sizes = {key: int(rest.split()[0]) * _KB for key, _, rest in _pairs(rollup)}
    private = ("Private_Clean", "Private_Dirty", "Private_Hugetlb")
    return sizes["Pss"], sum(sizes.get(key, 0) for key in private)


def _pairs(lines: Iterable[str]) -> Iterable[Tuple[str, str, str]]:
    return (line.partition(":") for line in lines)


def _cpu_times(pids: Iterable[int]) -> Dict[int, int]:
    """Of those that are there, in ticks of the kernel: user and system."""
    times = {}
    for pid in pids:
        try:
            behind_name = _read(f"{pid}/stat").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        times[pid] = int(behind_name[11]) + int(behind_name[12])
    return times


def _busy_time() -> int:
    """Of all CPUs, in ticks: what is not idle or waiting for a disk. The time of guests is
    included in the time of users."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, _read("stat").split("\n", 1)[0].split()[1:9]
    )
    return user + nice + system + irq + softirq + steal
