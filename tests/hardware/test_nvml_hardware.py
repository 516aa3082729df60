#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real NVIDIA GPUs: what wattmeter says beside what nvidia-smi says, and what
each NVML call costs that our source makes. Plausibility only, and no setting is
changed. Run by hand, with the GPUs at rest:

    python3 tests/hardware/test_nvml_hardware.py"""

import ctypes
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "system"))
import tap
from tap import case, near

CALLS = {  # function: bytes that it writes
    "nvmlDeviceGetTotalEnergyConsumption": 8,
    "nvmlDeviceGetPowerUsage": 4,
    "nvmlDeviceGetUtilizationRates": 8,
    "nvmlDeviceGetMemoryInfo_v2": 40,
    "nvmlDeviceGetTemperature": 4,
    "nvmlDeviceGetComputeRunningProcesses_v3": 256 * 32,
}
REPEATS = 200


def ask_smi():
    """What nvidia-smi shows, by UUID; None for what it does not know."""
    columns = ("uuid", "index", "name", "memory.total", "power.draw", "temperature.gpu")
    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=" + ",".join(columns), "--format=csv,noheader,nounits"],
        capture_output=True, text=True, timeout=60, check=True)
    gpus = {}
    for line in done.stdout.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        gpus[cells[0]] = dict(zip(columns, (None if "[" in cell else cell for cell in cells)))
    return gpus


try:
    before = ask_smi()
except (OSError, subprocess.SubprocessError) as error:
    print(f"nvidia-smi does not work here: {error}")
    sys.exit(77)
if not before:
    print("nvidia-smi sees no GPU")
    sys.exit(77)

told = tap.report("sleep", "2", env=tap.environment(), timeout=120)
after = ask_smi()
measured = {gpu["uuid"]: gpu for gpu in told["gpus"]}
energies = {gpu["uuid"]: gpu for gpu in told["energy"]["gpus"]}


@case("the same GPUs, by UUID, index, name and memory")
def _(folder):
    assert set(measured) == set(before), (set(measured), set(before))
    for uuid, smi in before.items():
        gpu = measured[uuid]
        assert gpu["index"] == int(smi["index"]) and gpu["name"] == smi["name"], (gpu, smi)
        if smi["memory.total"]:
            near(gpu["memory"]["capacity"] / 2**20, float(smi["memory.total"]), 1, "MiB")


@case("power and temperature as nvidia-smi saw them before and after")
def _(folder):
    for uuid, gpu in measured.items():
        for metric, column, slack in (("power", "power.draw", 20),
                                      ("temperature", "temperature.gpu", 5)):
            seen = [float(smi[uuid][column]) for smi in (before, after) if smi[uuid][column]]
            value = gpu[metric]["mean"]
            print(f"# gpu{gpu['index']} {metric}: {value}, nvidia-smi {seen}")
            assert (value is None) == (not seen)
            if seen:
                slack = max(slack, 0.3 * max(seen))
                assert min(seen) - slack <= value <= max(seen) + slack, (value, seen)


@case("energy is about power times time")
def _(folder):
    for uuid, gpu in measured.items():
        joules, watts = energies[uuid]["energy"], gpu["power"]["mean"]
        print(f"# gpu{gpu['index']}: {joules} J by {energies[uuid]['method']}, mean {watts} W")
        if joules is not None and watts is not None:
            near(joules, watts * told["compute_time"]["time"], 0.5 * joules, "energy")


def prepare(name, buffer, count):
    """The arguments of a call, after the GPU."""
    if name.endswith("MemoryInfo_v2"):
        ctypes.memmove(buffer, (0x02000028).to_bytes(4, sys.byteorder), 4)
    if name.endswith("Temperature"):
        return 0, buffer
    if "Processes" in name:
        count.value = 256
        return ctypes.byref(count), buffer
    return (buffer,)


@case("what each call costs")
def _(folder):
    nvml = ctypes.CDLL(os.environ.get("WATTMETER_NVML", "libnvidia-ml.so.1"))
    device, count = ctypes.c_void_p(), ctypes.c_uint()
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    print(f"# {'call on GPU 0':42} {'median':>8} {'99 %':>8} {'most':>8}  microseconds")
    answered = 0
    for name, size in CALLS.items():
        call, buffer, costs = getattr(nvml, name, None), ctypes.create_string_buffer(size), []
        for _ in range(REPEATS if call else 0):
            arguments = prepare(name, buffer, count)
            begin = time.perf_counter_ns()
            status = call(device, *arguments)
            costs.append((time.perf_counter_ns() - begin) / 1e3)
        if not call or status != 0:
            print(f"# {name:42} " + (f"answers {status}" if call else "is not there"))
            continue
        answered += 1
        costs.sort()
        print(f"# {name:42} {statistics.median(costs):8.1f} {costs[REPEATS * 99 // 100]:8.1f}"
              f" {costs[-1]:8.1f}")
    nvml.nvmlShutdown()
    assert answered >= 3


tap.main()
