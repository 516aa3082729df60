# SPDX-License-Identifier: Apache-2.0
"""check_cost.py - how long each call takes that wattmeter makes, by the clock of
the caller; and what a run costs that makes them."""

import ctypes
import os
import statistics
import time

import nvml
import tables
import tap
from check_sensor import start_load
from tap import Skip, case

REPEATS = 200
SLOW_REPEATS = 10  # of what takes 20 ms by design
SHORT_S = 3
LONG_S = int(os.environ.get("COST_SECONDS", "18"))  # their difference has neither start nor end
BUDGET = 0.007  # of a core, at ten samples a second


def number():
    return (ctypes.byref(ctypes.c_ulonglong()),)


def numbers():
    return (ctypes.byref(ctypes.c_ulonglong()), ctypes.byref(ctypes.c_ulonglong()))


def which(index):
    return lambda: (index, *number())


def text():
    return ctypes.create_string_buffer(96), 96


def room(size):
    return lambda: (ctypes.create_string_buffer(size),)


def versioned(size, version, *rest):
    """A structure that begins with its size and version."""
    def prepare():
        buffer = ctypes.create_string_buffer(size)
        ctypes.cast(buffer, ctypes.POINTER(ctypes.c_uint))[0] = size | version << 24
        return (buffer, *rest)
    return prepare


def fields(*ids):
    def prepare():
        values = (nvml.Field * len(ids))(*(nvml.Field(field) for field in ids))
        return len(ids), values
    return prepare


def entries(count):
    return lambda: (ctypes.byref(ctypes.c_uint(count)), ctypes.create_string_buffer(count * 32))


def samples():
    return (ctypes.create_string_buffer(256 * 32), ctypes.byref(ctypes.c_uint(256)),
            ctypes.c_ulonglong(0))


# The call, what its numbers are of, and its arguments after the GPU.
CALLS = [
    ("nvmlDeviceGetTotalEnergyConsumption", "", number),
    ("nvmlDeviceGetPowerUsage", "", number),
    ("nvmlDeviceGetFieldValues", "instant power", fields(186)),
    ("nvmlDeviceGetFieldValues", "instant and average power", fields(186, 185)),
    ("nvmlDeviceGetFieldValues", "memory temperature", fields(82)),
    ("nvmlDeviceGetFieldValues", "NVLink", fields(138, 139)),
    ("nvmlDeviceGetUtilizationRates", "", number),
    ("nvmlDeviceGetMemoryInfo", "", room(24)),
    ("nvmlDeviceGetMemoryInfo_v2", "", versioned(40, 2)),
    ("nvmlDeviceGetBAR1MemoryInfo", "", room(24)),
    ("nvmlDeviceGetTemperature", "", which(0)),
    ("nvmlDeviceGetTemperatureV", "", versioned(12, 1)),
    ("nvmlDeviceGetTemperatureThreshold", "", which(1)),
    ("nvmlDeviceGetComputeRunningProcesses_v3", "", entries(256)),
    ("nvmlDeviceGetGraphicsRunningProcesses_v3", "", entries(256)),
    ("nvmlDeviceGetMPSComputeRunningProcesses_v3", "", entries(256)),
    ("nvmlDeviceGetProcessUtilization", "", samples),
    ("nvmlDeviceGetEncoderUtilization", "", numbers),
    ("nvmlDeviceGetDecoderUtilization", "", numbers),
    ("nvmlDeviceGetFanSpeed_v2", "", which(0)),
    ("nvmlDeviceGetFanSpeedRPM", "", versioned(12, 1)),
    ("nvmlDeviceGetPerformanceState", "", number),
    ("nvmlDeviceGetClockInfo", "", which(1)),
    ("nvmlDeviceGetMaxClockInfo", "", which(1)),
    ("nvmlDeviceGetCurrentClocksEventReasons", "", number),
    ("nvmlDeviceGetPowerManagementLimit", "", number),
    ("nvmlDeviceGetEnforcedPowerLimit", "", number),
    ("nvmlDeviceGetPowerManagementLimitConstraints", "", numbers),
    ("nvmlDeviceGetCurrPcieLinkGeneration", "", number),
    ("nvmlDeviceGetCurrPcieLinkWidth", "", number),
    ("nvmlDeviceGetPcieReplayCounter", "", number),
    ("nvmlDeviceGetPcieThroughput", "sent", which(0)),
    ("nvmlDeviceGetEccMode", "", numbers),
    ("nvmlDeviceGetTotalEccErrors", "", lambda: (0, 0, *number())),
    ("nvmlDeviceGetNvLinkState", "link 0", which(0)),
    ("nvmlDeviceGetMigMode", "", numbers),
    ("nvmlDeviceGetName", "", text),
    ("nvmlDeviceGetUUID", "", text),
    ("nvmlDeviceGetSerial", "", text),
    ("nvmlDeviceGetVbiosVersion", "", text),
    ("nvmlDeviceGetPciInfo_v3", "", room(68)),
    ("nvmlDeviceGetAttributes_v2", "", room(40)),
    ("nvmlDeviceGetCudaComputeCapability", "", numbers),
    ("nvmlDeviceGetNumGpuCores", "", number),
]


def measure(library, device, name, prepare):
    """The last status, and microseconds in ascending order."""
    call, costs, status = getattr(library, name, None), [], None
    repeats = SLOW_REPEATS if "Throughput" in name else REPEATS
    for _ in range(repeats if call else 0):
        arguments = prepare()
        begin = time.perf_counter_ns()
        status = call(device, *arguments)
        costs.append((time.perf_counter_ns() - begin) / 1e3)
    return status, sorted(costs)


@case("cost: microseconds of each call")
def _(folder):
    rows, answered = [], 0
    with nvml.Nvml() as driver:
        device = driver.device(0)
        for name, what, prepare in CALLS:
            status, costs = measure(driver.library, device, name, prepare)
            label = f"{name} ({what})" if what else name
            if status is None:
                rows.append((label, "no such call", "", ""))
                continue
            answered += status == 0
            rows.append((label, "ok" if status == 0 else f"error {status}",
                         f"{statistics.median(costs):.1f}",
                         f"{costs[len(costs) * 99 // 100]:.1f}"))
    tables.show("cost: each call on GPU 0, in microseconds",
                ("call", "answer", "median", "99 %"), rows,
                f"of {REPEATS} calls one after the other ({SLOW_REPEATS} of the throughput)")
    assert answered >= 3, rows


def cpu_of_run(seconds):
    """CPU seconds that wattmeter used for a run of that length."""
    told = tap.report("sleep", str(seconds), options=("-i", "100ms"), env=tap.environment(**tap.DRIVER),
                      timeout=seconds + 120)
    return told["tool"]["cpu_seconds"]


@case("cost: a run with ten samples a second, beside a process that uses GPU 0")
def _(folder):
    with nvml.Nvml() as driver:
        uuid, name = (driver.text(call, driver.device(0)) for call in ("nvmlDeviceGetUUID", "nvmlDeviceGetName"))
    try:
        load, beside = start_load(uuid), "a process on GPU 0"
    except Skip as skip:
        load, beside = None, f"no process on GPU 0 ({skip})"
    try:
        short, long = cpu_of_run(SHORT_S), cpu_of_run(LONG_S)
    finally:
        if load:
            load.stdin.close()
            load.wait()
    share = (long - short) / (LONG_S - SHORT_S)
    tables.show("cost: a run with ten samples a second, in % of a core",
                ("overhead", "budget", f"CPU time of a run of {LONG_S} s"),
                [(f"{100 * share:.3f}", f"{100 * BUDGET:g}", f"{1e3 * long:.0f} ms")], f"beside {beside}")
    # What a fake driver takes itself is no measure.
    assert share <= BUDGET or name.startswith("SIMULATED"), f"{100 * share:.3f} % of a core"
