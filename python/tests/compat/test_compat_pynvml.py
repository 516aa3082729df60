# SPDX-License-Identifier: Apache-2.0
"""Programs of others with `from wattmeter.compat import pynvml` in place of pynvml."""

import ast

import pytest

from machine import Machine

IMPORT = "from wattmeter.compat import pynvml\n"
START = IMPORT + "pynvml.nvmlInit()\nhandle = pynvml.nvmlDeviceGetHandleByIndex(0)\n"

# A board whose every value differs.
BOARD = {
    "name": "SIMULATED board",
    "uuid": "GPU-7c1fa2d4",
    "serial": "123",
    "bios": "96.00",
    "memory_total": 1000 * 2**20,
    "memory_reserved": 50 * 2**20,
    "memory_used": 200 * 2**20,
    "utilization": 0.29,
    "memory_utilization": 0.07,
    "temperature": 57,
    "fan": 0.58,
    "performance": 2,
    "clock_graphics": 1001e6,
    "clock_sm": 1002e6,
    "clock_memory": 1003e6,
    "clock_video": 1004e6,
    "clock_graphics_max": 2001e6,
    "clock_sm_max": 2002e6,
    "clock_memory_max": 2003e6,
    "clock_video_max": 2004e6,
    "power": 122.231,
    "power_limit": 300,
    "power_limit_default": 350,
    "power_limit_enforced": 290,
    "power_limit_min": 100,
    "power_limit_max": 400,
    "energy": {"mode": "stuck", "start": 18250000.123},
    "processes": [
        {"pid": 4190001, "memory": 2**20},
        {"pid": 4190002, "memory": None, "type": "C+G"},
        {"pid": 4190003, "memory": 3 * 2**20, "type": "G"},
        {"pid": 4190004, "memory": 4 * 2**20, "type": "M"},
    ],
}

# As nvidia-ml-py answers on the same board.
ANSWERS = {
    "nvmlDeviceGetIndex(handle)": 0,
    "nvmlDeviceGetName(handle)": "SIMULATED board",
    "nvmlDeviceGetUUID(handle)": "GPU-7c1fa2d4",
    "nvmlDeviceGetSerial(handle)": "123",
    "nvmlDeviceGetVbiosVersion(handle)": "96.00",
    "nvmlDeviceGetMemoryInfo(handle).total": 1000 * 2**20,
    "nvmlDeviceGetMemoryInfo(handle).used": 250 * 2**20,
    "nvmlDeviceGetMemoryInfo(handle).free": 750 * 2**20,
    "nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2).used": 200 * 2**20,
    "nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2).reserved": 50 * 2**20,
    "nvmlDeviceGetUtilizationRates(handle).gpu": 29,
    "nvmlDeviceGetUtilizationRates(handle).memory": 7,
    "nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)": 57,
    "nvmlDeviceGetFanSpeed(handle)": 58,
    "nvmlDeviceGetPerformanceState(handle)": 2,
    "nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_GRAPHICS)": 1001,
    "nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)": 1002,
    "nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)": 1003,
    "nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_VIDEO)": 2004,
    "nvmlDeviceGetPowerUsage(handle)": 122231,
    "nvmlDeviceGetTotalEnergyConsumption(handle)": 18250000123,
    "nvmlDeviceGetPowerManagementLimit(handle)": 300000,
    "nvmlDeviceGetPowerManagementDefaultLimit(handle)": 350000,
    "nvmlDeviceGetEnforcedPowerLimit(handle)": 290000,
    "nvmlDeviceGetPowerManagementLimitConstraints(handle)": [100000, 400000],
    "nvmlDeviceGetCount()": 1,
    "nvmlSystemGetDriverVersion()": "550.54.15",
    "nvmlSystemGetNVMLVersion()": "12.550.54.15",
    "nvmlSystemGetCudaDriverVersion()": 12040,
    "nvmlErrorString(3)": "Not Supported",
    "nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByUUID('GPU-7c1fa2d4'))": 0,
    "nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByUUID(b'GPU-7c1fa2d4'))": 0,
}


def answers(machine: Machine, calls: list, start: str = START) -> list:
    """What each call returns, or the name and the text of what it raises."""
    program = f"""
for call in {calls}:
    try:
        print(repr(eval("pynvml." + call)))
    except Exception as error:
        print(repr([type(error).__name__, str(error), getattr(error, "value", None)]))
"""
    return [
        ast.literal_eval(line) for line in machine.run(start + program).splitlines()
    ]


def test_every_call(machine: Machine) -> None:
    machine.add_gpus({"gpus": [BOARD]})
    told = answers(machine, list(ANSWERS))
    assert dict(zip(ANSWERS, told)) == ANSWERS
    assert repr(told) == repr(list(ANSWERS.values())), "the types"


def test_processes(machine: Machine) -> None:
    machine.add_gpus({"gpus": [BOARD]})
    compute, graphics, no_instance = answers(
        machine,
        [
            "nvmlDeviceGetComputeRunningProcesses(handle)",
            "nvmlDeviceGetGraphicsRunningProcesses(handle)",
            "nvmlDeviceGetGraphicsRunningProcesses(handle)[0].gpuInstanceId",
        ],
        START + "pynvml.c_nvmlProcessInfo_t.__repr__ = lambda p: repr(p[:2])\n",
    )
    assert compute == [(4190001, 2**20), (4190002, None)]
    assert graphics == [(4190002, None), (4190003, 3 * 2**20)]
    assert no_instance == 0xFFFFFFFF


def test_the_blog(machine: Machine) -> None:
    """Its measuring half, which ends here; the other one draws."""
    machine.add_gpus("igpu")
    program = """
import asyncio
import time

pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
measurement_interval = 0.01
mW_to_W = 1e3
m = []

async def measure():
    while True:
        measure = pynvml.nvmlDeviceGetPowerUsage(handle) / mW_to_W
        dt = time.time() - ts
        m.append((dt, measure))
        await asyncio.sleep(measurement_interval)

async def main():
    await asyncio.wait_for(loop.create_task(measure()), 0.2)

if __name__ == "__main__":
    ts = time.time()
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(main())
    except asyncio.TimeoutError:
        pass
    print(len(m) > 5, {watts for _, watts in m})
"""
    assert machine.run(IMPORT + program) == "True {122.23}\n"


def test_the_blog_as_it_stands(machine: Machine) -> None:
    """With numpy and matplotlib, two seconds of it."""
    pytest.importorskip("numpy")
    pytest.importorskip("matplotlib")
    machine.add_gpus("igpu")
    program = """
import matplotlib.pyplot as plt
import time
import numpy as np
import asyncio

pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
measurement_interval = 0.1  # in seconds
plotting_interval = 0.2  # in seconds
time_span = 20  # time span on the plot x-axis in seconds
m = t = np.array([np.nan]*int(time_span / measurement_interval))
mW_to_W = 1e3

plt.ion()
plt.rcParams.update({'font.size': 18})
figure, ax = plt.subplots(figsize=(8,6))
line1, = ax.plot(t, m, linewidth=3)
ax.set_xlabel("Time (s)")
ax.set_ylabel("GPU Power (W)")

async def measure():
    while True:
        measure = pynvml.nvmlDeviceGetPowerUsage(handle) / mW_to_W
        dt = time.time() - ts
        m[:-1] = m[1:]
        m[-1] = measure
        t[:-1] = t[1:]
        t[-1] = dt
        await asyncio.sleep(measurement_interval)

async def plot():
    while True:
        line1.set_data(t, m)
        tmin, tmax = np.nanmin(t), np.nanmax(t)
        mmin, mmax = np.nanmin(m), np.nanmax(m)
        margin = (np.abs(mmax - mmin) / 10) + 0.1
        ax.set_xlim((tmin, tmax + 1))
        ax.set_ylim((mmin - margin, mmax + margin))
        figure.canvas.flush_events()
        await asyncio.sleep(plotting_interval)

async def main():
    t1 = loop.create_task(measure())
    t2 = loop.create_task(plot())
    await t2, t1

if __name__ == "__main__":
    ts = time.time()
    loop = asyncio.new_event_loop()
    loop.call_later(2, loop.stop)
    try:
        loop.run_until_complete(main())
    except RuntimeError:
        print(122.23 in m)
"""
    assert machine.run(IMPORT + program, MPLBACKEND="agg") == "True\n"


def test_energy_of_a_loop(machine: Machine) -> None:
    """What AIPowerMeter does: counters of all GPUs at two moments."""
    energies = [{"energy": {"start": 100}, "power": watts} for watts in (100, 300)]
    machine.add_gpus({"gpus": energies})
    program = """
import time
pynvml.nvmlInit()
def read():
    values = {}
    for i in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(i)
        values[i] = (time.monotonic(), pynvml.nvmlDeviceGetTotalEnergyConsumption(handle),
                     time.monotonic(), pynvml.nvmlDeviceGetUtilizationRates(handle).gpu,
                     pynvml.nvmlDeviceGetMemoryInfo(handle).used)
    return values
before = read()
time.sleep(0.5)
after = read()
for i, (asked, energy, answered, use, memory) in after.items():
    print((energy - before[i][1]) / 1000, asked - before[i][2], answered - before[i][0], use, memory)
"""
    lines = machine.run(IMPORT + program).splitlines()
    assert len(lines) == 2, lines
    for watts, line in zip((100, 300), lines):
        joules, shortest, longest, use, memory = map(float, line.split())
        assert watts * (shortest - 0.025) <= joules <= watts * (longest + 0.025), line
        assert (use, memory) == (50, 2560 * 2**20)


ERRORS = {
    "nvmlDeviceGetHandleByIndex(5)": [
        "NVMLError_InvalidArgument",
        "Invalid Argument",
        2,
    ],
    "nvmlDeviceGetHandleByIndex(-1)": [
        "NVMLError_InvalidArgument",
        "Invalid Argument",
        2,
    ],
    "nvmlDeviceGetPowerUsage(7)": ["NVMLError_InvalidArgument", "Invalid Argument", 2],
    "nvmlDeviceGetClockInfo(handle, 4)": [
        "NVMLError_InvalidArgument",
        "Invalid Argument",
        2,
    ],
    "nvmlDeviceGetHandleByUUID('GPU')": ["NVMLError_NotFound", "Not Found", 6],
    "nvmlDeviceGetPowerUsage(handle)": [
        "NVMLError_NoPermission",
        "Insufficient Permissions",
        4,
    ],
    "nvmlDeviceGetTotalEnergyConsumption(handle)": [
        "NVMLError_NotSupported",
        "Not Supported",
        3,
    ],
    "nvmlDeviceGetUtilizationRates(handle)": [
        "NVMLError_Timeout",
        "Timeout",
        10,
    ],
    "nvmlDeviceGetFanSpeed(handle)": ["NVMLError_Unknown", "Unknown Error", 999],
    "nvmlDeviceGetName(handle)": "SIMULATED H100",
    "nvmlExceptionClass(777)": ["ValueError", "nvmlErrorCode 777 is not valid", None],
    "nvmlDeviceSetPowerManagementLimit(handle, 1)": [
        "AttributeError",
        "wattmeter.compat.pynvml has no 'nvmlDeviceSetPowerManagementLimit';"
        " pynvml itself (nvidia-ml-py) may",
        None,
    ],
}


def test_errors(machine: Machine) -> None:
    faults = {
        "PowerUsage": "NO_PERMISSION",
        "UtilizationRates": "TIMEOUT",
        "FanSpeed*": "UNKNOWN",
    }
    machine.add_gpus(
        {
            "gpus": [{"energy": {"mode": "absent"}}],
            "faults": [
                {"call": f"nvmlDeviceGet{call}", "error": error}
                for call, error in faults.items()
            ],
        }
    )
    assert dict(zip(ERRORS, answers(machine, list(ERRORS)))) == ERRORS


def test_lost(machine: Machine) -> None:
    machine.add_gpus({"gpus": [{"lost_at": 0.3}]})
    program = "import time\ntime.sleep(0.4)\n"
    calls = [
        "nvmlDeviceGetPowerUsage(handle)",
        "nvmlDeviceGetComputeRunningProcesses(handle)",
    ]
    told = answers(machine, calls, START + program)
    assert told == [["NVMLError_GpuIsLost", "GPU is lost", 15]] * 2


def test_hang(machine: Machine) -> None:
    """It costs five seconds and the call, not the program."""
    fault = {"call": "nvmlDeviceGetPowerUsage", "delay_ms": 20000, "from": 0.3}
    machine.add_gpus({"gpus": [{}], "faults": [fault]})
    program = "import time\ntime.sleep(0.4)\n"
    calls = ["nvmlDeviceGetPowerUsage(handle)", "nvmlDeviceGetCount()"]
    told = answers(machine, calls, START + program)
    assert told == [["NVMLError_Timeout", "Timeout", 10], 1]


def test_classes(machine: Machine) -> None:
    program = """
error = pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
assert isinstance(error, pynvml.NVMLError_NotSupported), type(error)
assert error.value == 3 and error.args == (3,) and str(error) == "Not Supported"
assert pynvml.NVMLError_GpuIsLost().value == pynvml.NVML_ERROR_GPU_IS_LOST == 15
assert pynvml.nvmlExceptionClass(12) is pynvml.NVMLError_LibraryNotFound
assert pynvml.NVMLError(3) == pynvml.NVMLError_NotSupported()
assert type(pynvml.NVMLError(777)) is pynvml.NVMLError
assert str(pynvml.NVMLError(777)) == "Unknown Error"
"""
    machine.run(IMPORT + program)


def test_start_and_end(machine: Machine) -> None:
    machine.add_gpus({"gpus": [{}]})
    calls = [
        "nvmlDeviceGetCount()",
        "nvmlShutdown()",
        "nvmlInit()",
        "nvmlInitWithFlags(0)",
        "nvmlShutdown()",
        "nvmlDeviceGetCount()",
        "nvmlShutdown()",
        "nvmlDeviceGetCount()",
    ]
    uninitialized = ["NVMLError_Uninitialized", "Uninitialized", 1]
    assert answers(machine, calls, IMPORT) == [
        uninitialized,
        uninitialized,
        None,
        None,
        None,
        1,
        None,
        uninitialized,
    ]


@pytest.mark.parametrize(
    "scenario, error",
    [
        (None, ["NVMLError_LibraryNotFound", "NVML Shared Library Not Found", 12]),
        (
            {"gpus": [{}], "unloaded": [0, 100]},
            ["NVMLError_DriverNotLoaded", "Driver Not Loaded", 9],
        ),
    ],
)
def test_no_driver(machine: Machine, scenario: dict, error: list) -> None:
    if scenario:
        machine.add_gpus(scenario)
    assert answers(machine, ["nvmlInit()"], IMPORT) == [error]


def test_fork(machine: Machine) -> None:
    machine.add_gpus("igpu")
    program = """
import os
assert pynvml.nvmlDeviceGetPowerUsage(handle) == 122230
if os.fork() == 0:
    assert pynvml.nvmlDeviceGetPowerUsage(handle) == 122230
    os._exit(7)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
assert pynvml.nvmlDeviceGetPowerUsage(handle) == 122230
"""
    machine.run(START + program)
