#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fake NVML asked by NVIDIA's own client, pynvml (package nvidia-ml-py).

What that client understands is NVML's ABI, and so are src/source/nvml_abi.h and
the fake, which share their declarations."""

import ctypes
import json
import os
import re
import sys
import time

import tap
from tap import case

try:
    import pynvml
except ImportError:
    print("pynvml is not installed (python3 -m pip install nvidia-ml-py)")
    sys.exit(77)

LIBRARY = tap.BUILD / "tests" / "fake" / "libnvidia-ml.so.1"
if b"__asan_init" in LIBRARY.read_bytes():
    print("the fake driver is built with a sanitizer, which Python cannot load")
    sys.exit(77)

# The client asks the loader for that name, and the loader has it already.
ctypes.CDLL(str(LIBRARY))

GIB = 1 << 30
SCENARIO = {
    "driver_version": "999.1",
    "nvml_version": "13.999.1",
    "cuda_version": 13010,
    "gpus": [
        {
            "name": "SIMULATED A", "uuid": "GPU-aaaa",
            "memory_total": 80 * GIB, "memory_reserved": GIB, "memory_used": 7 * GIB,
            "utilization": 0.42, "temperature": 63, "power": 321.5, "power_limit": 450,
            "energy": {"start": 1000}, "processes": [{"pid": 11, "memory": 3 * GIB},
                                                     {"pid": 12, "memory": None}],
        },
        {
            "name": "SIMULATED B", "uuid": "GPU-bbbb",
            "energy": {"mode": "absent"}, "temperature": -3,
        },
    ],
    "faults": [{"call": "nvmlDeviceGetPowerUsage", "gpu": 1, "error": "NO_PERMISSION"}],
}


def start(folder):
    """Starts NVML on the scenario; its GPUs, and when it began."""
    began_ns = time.monotonic_ns() - 10 * 10**9
    path = folder / "scenario.json"
    path.write_text(json.dumps({**SCENARIO, "start_monotonic_ns": began_ns}))
    os.environ["FAKE_NVML_SCENARIO"] = str(path)
    pynvml.nvmlInit()
    return [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]


def refused(code, function, *arguments):
    try:
        function(*arguments)
    except pynvml.NVMLError as error:
        assert error.value == code, f"error {error.value}, not {code}"
    else:
        raise AssertionError(f"{function.__name__} succeeded")


@case("the versions, and who is there")
def _(folder):
    gpus = start(folder)
    assert pynvml.nvmlSystemGetDriverVersion() == "999.1"
    assert pynvml.nvmlSystemGetNVMLVersion() == "13.999.1"
    assert pynvml.nvmlSystemGetCudaDriverVersion_v2() == 13010
    assert [pynvml.nvmlDeviceGetName(gpu) for gpu in gpus] == ["SIMULATED A", "SIMULATED B"]
    assert [pynvml.nvmlDeviceGetUUID(gpu) for gpu in gpus] == ["GPU-aaaa", "GPU-bbbb"]
    assert [pynvml.nvmlDeviceGetIndex(gpu) for gpu in gpus] == [0, 1]
    pynvml.nvmlShutdown()


@case("a GPU by its UUID and by its place on the bus")
def _(folder):
    gpus = start(folder)
    by_uuid = pynvml.nvmlDeviceGetHandleByUUID(b"GPU-bbbb")
    assert pynvml.nvmlDeviceGetIndex(by_uuid) == 1
    place = pynvml.nvmlDeviceGetPciInfo(gpus[1])
    assert (place.domain, place.bus, place.device) == (0, 2, 0)
    assert place.busId == "00000000:02:00.0" and place.busIdLegacy == "0000:02:00.0"
    by_place = pynvml.nvmlDeviceGetHandleByPciBusId(place.busId.encode())
    assert pynvml.nvmlDeviceGetIndex(by_place) == 1
    refused(pynvml.NVML_ERROR_NOT_FOUND, pynvml.nvmlDeviceGetHandleByUUID, b"GPU-cccc")
    refused(pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.nvmlDeviceGetHandleByIndex, 2)
    pynvml.nvmlShutdown()


@case("what it measures")
def _(folder):
    gpu = start(folder)[0]
    assert pynvml.nvmlDeviceGetPowerUsage(gpu) == 321500
    assert pynvml.nvmlDeviceGetEnforcedPowerLimit(gpu) == 450000
    assert pynvml.nvmlDeviceGetPowerManagementLimit(gpu) == 450000
    assert pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu == 42
    assert pynvml.nvmlDeviceGetTemperature(gpu, pynvml.NVML_TEMPERATURE_GPU) == 63
    assert pynvml.nvmlDeviceGetTemperatureV(gpu, pynvml.NVML_TEMPERATURE_GPU) == 63
    began_ns = json.loads((folder / "scenario.json").read_text())["start_monotonic_ns"]
    before = time.monotonic_ns() - began_ns
    energy_mj = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
    after = time.monotonic_ns() - began_ns
    assert 321.5e-6 * before - 2 <= energy_mj - 1e6 <= 321.5e-6 * after + 2
    pynvml.nvmlShutdown()


@case("memory, with and without the driver's own")
def _(folder):
    gpu = start(folder)[0]
    old = pynvml.nvmlDeviceGetMemoryInfo(gpu)
    assert (old.total, old.used, old.free) == (80 * GIB, 8 * GIB, 72 * GIB)
    new = pynvml.nvmlDeviceGetMemoryInfo(gpu, version=pynvml.nvmlMemory_v2)
    assert (new.total, new.used, new.free, new.reserved) == (
        80 * GIB, 7 * GIB, 72 * GIB, GIB)
    pynvml.nvmlShutdown()


@case("processes")
def _(folder):
    gpus = start(folder)
    for ask in (pynvml.nvmlDeviceGetComputeRunningProcesses_v2,
                pynvml.nvmlDeviceGetComputeRunningProcesses_v3):
        found = [(process.pid, process.usedGpuMemory) for process in ask(gpus[0])]
        assert found == [(11, 3 * GIB), (12, None)], found
        assert ask(gpus[1]) == []
    assert pynvml.nvmlDeviceGetGraphicsRunningProcesses(gpus[0]) == []
    pynvml.nvmlShutdown()


@case("what it cannot say, and what it may not")
def _(folder):
    gpu = start(folder)[1]
    refused(pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.nvmlDeviceGetTotalEnergyConsumption, gpu)
    refused(pynvml.NVML_ERROR_NO_PERMISSION, pynvml.nvmlDeviceGetPowerUsage, gpu)
    refused(pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.nvmlDeviceGetFanSpeed, gpu)
    assert pynvml.nvmlDeviceGetTemperatureV(gpu, pynvml.NVML_TEMPERATURE_GPU) == -3
    pynvml.nvmlShutdown()
    refused(pynvml.NVML_ERROR_UNINITIALIZED, pynvml.nvmlDeviceGetCount)


@case("the codes and versions of our header are the client's")
def _(folder):
    header = (tap.SOURCE / "src" / "source" / "nvml_abi.h").read_text()
    codes = re.findall(r"(NVML_ERROR_\w+) = (\d+),", header)
    assert len(codes) > 10
    for name, code in codes:
        assert getattr(pynvml, name) == int(code), name
    for ours, theirs in (("NVML_MEMORY_V2", pynvml.nvmlMemory_v2),
                         ("NVML_TEMPERATURE_V1", pynvml.nvmlTemperature_v1)):
        value = re.search(rf"_Static_assert\({ours} == (0x[0-9A-Fa-f]+),", header)
        assert int(value[1], 16) == theirs, ours


tap.main()
