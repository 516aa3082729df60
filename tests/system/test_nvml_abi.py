#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fake NVML asked by NVIDIA's own client, pynvml (package nvidia-ml-py).

What that client understands is NVML's ABI, and so are src/source/gpu/nvml/source_nvml_abi.h and
the fake, which share their declarations. A new call is a row of a table, and its
value one of tests/fake/scenarios/everything.json, where no two are alike."""

import ctypes
import json
import os
import re
import subprocess
import sys
import time

import tap
from tap import case, near

try:
    import pynvml as nv
except ImportError:
    print("pynvml is not installed (python3 -m pip install nvidia-ml-py)")
    sys.exit(77)

LIBRARY = tap.BUILD / "tests" / "fake" / "libnvidia-ml.so.1"
if b"__asan_init" in LIBRARY.read_bytes():
    print("the fake driver is built with a sanitizer, which Python cannot load")
    sys.exit(77)

# The client asks the loader for that name, and the loader has it already.
ctypes.CDLL(str(LIBRARY))

MIB, GIB = 1 << 20, 1 << 30
EVERYTHING = tap.SOURCE / "tests" / "fake" / "scenarios" / "everything.json"


def start(folder, scenario, began_ns=None):
    """Starts NVML on a scenario, ten seconds after its beginning; its GPUs."""
    if isinstance(scenario, (str, os.PathLike)):
        scenario = json.loads(open(scenario, encoding="utf-8").read())
    began_ns = began_ns or time.monotonic_ns() - 10 * 10**9
    try:
        while True:  # a case that failed has left it started
            nv.nvmlShutdown()
    except nv.NVMLError:
        pass
    path = folder / "scenario.json"
    path.write_text(json.dumps({**scenario, "start_monotonic_ns": began_ns}))
    os.environ["FAKE_NVML_SCENARIO"] = str(path)
    nv.nvmlInit()
    return [nv.nvmlDeviceGetHandleByIndex(i) for i in range(nv.nvmlDeviceGetCount())]


def refused(code, function, *arguments):
    try:
        function(*arguments)
    except nv.NVMLError as error:
        assert error.value == code, f"error {error.value}, not {code}"
    else:
        raise AssertionError(f"{function.__name__} succeeded")


def raw(name, *arguments):
    """A call that the client has no function for."""
    status = getattr(ctypes.CDLL(str(LIBRARY)), name)(*arguments)
    if status != nv.NVML_SUCCESS:
        raise nv.NVMLError(status)


def pci_v2(gpu):
    info = nv.nvmlPciInfo_v2_t()
    raw("nvmlDeviceGetPciInfo_v2", gpu, ctypes.byref(info))
    return info.busId, info.domain, info.bus, info.device, info.pciDeviceId, info.pciSubSystemId


def pci_v3(gpu):
    info = nv.nvmlDeviceGetPciInfo_v3(gpu)
    return (info.busIdLegacy, info.busId, info.domain, info.bus, info.device,
            info.pciDeviceId, info.pciSubSystemId)


def memory(gpu, version=None):
    told = nv.nvmlDeviceGetMemoryInfo(gpu, version=version)
    return (told.total, told.used, told.free) + ((told.reserved,) if version else ())


def bar1(gpu):
    told = nv.nvmlDeviceGetBAR1MemoryInfo(gpu)
    return told.bar1Total, told.bar1Used, told.bar1Free


def use(gpu):
    told = nv.nvmlDeviceGetUtilizationRates(gpu)
    return told.gpu, told.memory


def field(gpu, number, scope=0):
    """Type and value of a field, or the error."""
    value = nv.nvmlDeviceGetFieldValues(gpu, [(number, scope)])[0]
    assert value.fieldId == number and value.scopeId == scope
    near(value.timestamp / 1e6, time.time(), 10, "time stamp")
    if value.nvmlReturn != nv.NVML_SUCCESS:
        return value.nvmlReturn
    kinds = {nv.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
             nv.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal"}
    return getattr(value.value, kinds[value.valueType])


def listed(ask):
    """As (pid, memory, GPU instance, compute instance)."""
    none = 2**32 - 1
    return lambda gpu: [
        (p.pid, p.usedGpuMemory,
         *(None if i == none else i for i in (p.gpuInstanceId, p.computeInstanceId)))
        for p in ask(gpu)]


def listed_v1(name):
    """The first version's entries are pid and memory."""
    class Entry(ctypes.Structure):
        _fields_ = [("pid", ctypes.c_uint), ("memory", ctypes.c_ulonglong)]

    def ask(gpu):
        count, entries = ctypes.c_uint(8), (Entry * 8)()
        raw(name, gpu, ctypes.byref(count), entries)
        return [(e.pid, None if e.memory == 2**64 - 1 else e.memory)
                for e in entries[:count.value]]
    return ask


def samples(gpu):
    told = nv.nvmlDeviceGetProcessUtilization(gpu, 0)
    for sample in told:
        near(sample.timeStamp / 1e6, time.time(), 1, "time stamp")
    return [(s.pid, s.smUtil, s.memUtil, s.encUtil, s.decUtil) for s in told]


COMPUTE = [(4190001, 12 * GIB, None, None), (4190002, GIB, None, None),
           (4190005, None, None, None)]
DRAWING = [(4190002, GIB, None, None), (4190003, 512 * MIB, None, None)]
SERVED = [(4190004, 256 * MIB, None, None)]
SAMPLES = [(4190001, 55, 31, 5, 6), (4190002, 21, 12, 3, 4), (4190004, 2, 0, 0, 0)]

# How it is asked, and the answer. A name is the client's function of that name.
ANSWERS = [
    ("nvmlDeviceGetName", "SIMULATED everything"),
    ("nvmlDeviceGetUUID", "GPU-e0e0e0e0-1111-2222-3333-444444444444"),
    ("nvmlDeviceGetSerial", "1323023000001"),
    ("nvmlDeviceGetVbiosVersion", "96.00.74.00.02"),
    ("nvmlDeviceGetIndex", 0),
    ("nvmlDeviceGetMinorNumber", 0),
    ("nvmlDeviceGetArchitecture", nv.NVML_DEVICE_ARCH_HOPPER),
    ("nvmlDeviceGetCudaComputeCapability", (9, 0)),
    ("nvmlDeviceGetNumGpuCores", 16896),
    ("nvmlDeviceGetComputeMode", nv.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS),
    ("nvmlDeviceGetPersistenceMode", nv.NVML_FEATURE_ENABLED),
    ("nvmlDeviceGetDisplayActive", nv.NVML_FEATURE_ENABLED),
    ("nvmlDeviceGetMigMode", [0, 1]),
    ("multiprocessors", lambda gpu: nv.nvmlDeviceGetAttributes(gpu).multiprocessorCount, 132),
    ("memory", memory, (80 * GIB, 20 * GIB + 520 * MIB, 60 * GIB - 520 * MIB)),
    ("memory, version 2", lambda gpu: memory(gpu, nv.nvmlMemory_v2),
     (80 * GIB, 20 * GIB, 60 * GIB - 520 * MIB, 520 * MIB)),
    ("BAR1", bar1, (128 * GIB, 17 * MIB, 128 * GIB - 17 * MIB)),
    ("use", use, (87, 43)),
    ("nvmlDeviceGetEncoderUtilization", [11, 167000]),
    ("nvmlDeviceGetDecoderUtilization", [22, 167000]),
    ("nvmlDeviceGetNumFans", 1),
    ("nvmlDeviceGetFanSpeed", 36),
    ("fan 0", lambda gpu: nv.nvmlDeviceGetFanSpeed_v2(gpu, 0), 36),
    ("nvmlDeviceGetFanSpeedRPM", 2345),
    ("temperature", lambda gpu: nv.nvmlDeviceGetTemperature(gpu, nv.NVML_TEMPERATURE_GPU), 61),
    ("temperature, newer",
     lambda gpu: nv.nvmlDeviceGetTemperatureV(gpu, nv.NVML_TEMPERATURE_GPU), 61),
    ("slowdown", lambda gpu: nv.nvmlDeviceGetTemperatureThreshold(
        gpu, nv.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN), 89),
    ("shutdown", lambda gpu: nv.nvmlDeviceGetTemperatureThreshold(
        gpu, nv.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN), 94),
    ("nvmlDeviceGetPerformanceState", 2),
    ("PCI, version 2", pci_v2, ("0001:5E:0A.0", 1, 0x5E, 10, 0x233010DE, 0x16C110DF)),
    ("PCI, version 3", pci_v3,
     ("0001:5E:0A.0", "00000001:5E:0A.0", 1, 0x5E, 10, 0x233010DE, 0x16C110DF)),
    ("nvmlDeviceGetCurrPcieLinkGeneration", 4),
    ("nvmlDeviceGetMaxPcieLinkGeneration", 5),
    ("nvmlDeviceGetCurrPcieLinkWidth", 8),
    ("nvmlDeviceGetMaxPcieLinkWidth", 16),
    ("nvmlDeviceGetPcieReplayCounter", 7),
    ("sent", lambda gpu: nv.nvmlDeviceGetPcieThroughput(gpu, nv.NVML_PCIE_UTIL_TX_BYTES), 123456),
    ("received", lambda gpu: nv.nvmlDeviceGetPcieThroughput(gpu, nv.NVML_PCIE_UTIL_RX_BYTES),
     654321),
    *((f"clock {clock}", lambda gpu, c=clock: (nv.nvmlDeviceGetClockInfo(gpu, c),
                                               nv.nvmlDeviceGetMaxClockInfo(gpu, c)), mhz)
      for clock, mhz in ((nv.NVML_CLOCK_GRAPHICS, (1755, 1980)), (nv.NVML_CLOCK_SM, (1740, 1965)),
                         (nv.NVML_CLOCK_MEM, (2619, 2634)), (nv.NVML_CLOCK_VIDEO, (1395, 1545)))),
    ("nvmlDeviceGetCurrentClocksEventReasons",
     nv.nvmlClocksEventReasonSwPowerCap | nv.nvmlClocksEventReasonHwThermalSlowdown),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", 0x44),
    ("nvmlDeviceGetPowerManagementMode", nv.NVML_FEATURE_ENABLED),
    ("nvmlDeviceGetPowerUsage", 340000),
    ("nvmlDeviceGetPowerManagementLimit", 650000),
    ("nvmlDeviceGetPowerManagementDefaultLimit", 700000),
    ("nvmlDeviceGetEnforcedPowerLimit", 640000),
    ("nvmlDeviceGetPowerManagementLimitConstraints", [200000, 710000]),
    ("nvmlDeviceGetTotalEnergyConsumption", 987654321),
    ("instant power", lambda gpu: field(gpu, nv.NVML_FI_DEV_POWER_INSTANT), 340000),
    ("average power", lambda gpu: field(gpu, nv.NVML_FI_DEV_POWER_AVERAGE), 330000),
    ("instant power of the module", lambda gpu: field(
        gpu, nv.NVML_FI_DEV_POWER_INSTANT, nv.NVML_POWER_SCOPE_MODULE), 512500),
    ("power of the memory", lambda gpu: field(
        gpu, nv.NVML_FI_DEV_POWER_AVERAGE, nv.NVML_POWER_SCOPE_MEMORY),
     nv.NVML_ERROR_NOT_SUPPORTED),
    ("memory temperature", lambda gpu: field(gpu, nv.NVML_FI_DEV_MEMORY_TEMP), 73),
    ("energy by number", lambda gpu: field(gpu, nv.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION),
     987654321),
    ("NVLink sent", lambda gpu: field(
        gpu, nv.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 2**32 - 1), 6144000),
    ("NVLink received by link 5", lambda gpu: field(
        gpu, nv.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 5), 2048000),
    ("NVLink 6", lambda gpu: field(gpu, nv.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 6),
     nv.NVML_ERROR_INVALID_ARGUMENT),
    ("NVLinks that are up", lambda gpu: sum(
        nv.nvmlDeviceGetNvLinkState(gpu, i) for i in range(nv.NVML_NVLINK_MAX_LINKS)), 6),
    ("nvmlDeviceGetEccMode", [1, 0]),
    *((f"ECC {error} {counter}",
       lambda gpu, e=error, c=counter: nv.nvmlDeviceGetTotalEccErrors(gpu, e, c), count)
      for error, counter, count in (
          (nv.NVML_MEMORY_ERROR_TYPE_CORRECTED, nv.NVML_VOLATILE_ECC, 12),
          (nv.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nv.NVML_VOLATILE_ECC, 13),
          (nv.NVML_MEMORY_ERROR_TYPE_CORRECTED, nv.NVML_AGGREGATE_ECC, 14),
          (nv.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nv.NVML_AGGREGATE_ECC, 15))),
    *((f"{name}, version {version}", listed(getattr(nv, f"nvmlDeviceGet{name}_v{version}")),
       expected)
      for version in (2, 3)
      for name, expected in (("ComputeRunningProcesses", COMPUTE),
                             ("GraphicsRunningProcesses", DRAWING),
                             ("MPSComputeRunningProcesses", SERVED))),
    *((f"{name}, version 1", listed_v1(f"nvmlDeviceGet{name}"), [p[:2] for p in expected])
      for name, expected in (("ComputeRunningProcesses", COMPUTE),
                             ("GraphicsRunningProcesses", DRAWING),
                             ("MPSComputeRunningProcesses", SERVED))),
    ("samples", samples, SAMPLES),
    ("nvmlDeviceGetMaxMigDeviceCount", 7),
    ("is it a part", lambda gpu: nv.nvmlDeviceIsMigDeviceHandle(gpu).value, 0),
]


@case("each value of a GPU")
def _(folder):
    gpu = start(folder, EVERYTHING)[0]
    wrong = []
    for row in ANSWERS:
        name, ask, expected = row if len(row) == 3 else (row[0], getattr(nv, row[0]), row[1])
        try:
            told = ask(gpu)
        except nv.NVMLError as error:
            told = error
        if told != expected:
            wrong.append(f"{name}: {told!r} is not {expected!r}")
    nv.nvmlShutdown()
    assert not wrong, "\n".join(wrong)


@case("the driver, and who a process is")
def _(folder):
    start(folder, EVERYTHING)
    assert nv.nvmlSystemGetDriverVersion() == "550.54.15"
    assert nv.nvmlSystemGetNVMLVersion() == "12.550.54.15"
    assert nv.nvmlSystemGetCudaDriverVersion() == 12040
    assert nv.nvmlSystemGetCudaDriverVersion_v2() == 12040
    assert nv.nvmlSystemGetProcessName(4190001) == "/usr/bin/simulated-train"
    ours = nv.nvmlSystemGetProcessName(os.getpid())
    assert ours and open("/proc/self/cmdline", encoding="utf-8").read().startswith(ours), ours
    refused(nv.NVML_ERROR_NOT_FOUND, nv.nvmlSystemGetProcessName, 2**32 - 2)
    nv.nvmlShutdown()


@case("a GPU by its UUID and by its place on the bus")
def _(folder):
    gpus = start(folder, EVERYTHING)
    by_uuid = nv.nvmlDeviceGetHandleByUUID(b"GPU-e1e1e1e1-1111-2222-3333-444444444444")
    assert nv.nvmlDeviceGetIndex(by_uuid) == 1
    for place in (b"00000001:5E:0A.0", b"0001:5e:0a.0"):
        assert nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByPciBusId(place)) == 0
    assert nv.nvmlDeviceGetPciInfo(gpus[1]).busId == "00000000:02:00.0"
    refused(nv.NVML_ERROR_NOT_FOUND, nv.nvmlDeviceGetHandleByUUID, b"GPU-cccc")
    refused(nv.NVML_ERROR_NOT_FOUND, nv.nvmlDeviceGetHandleByPciBusId, b"0007:5e:0a.0")
    refused(nv.NVML_ERROR_INVALID_ARGUMENT, nv.nvmlDeviceGetHandleByIndex, 2)
    nv.nvmlShutdown()


@case("the parts of a partitioned GPU")
def _(folder):
    whole = start(folder, EVERYTHING)[1]
    assert nv.nvmlDeviceGetMigMode(whole) == [1, 1]
    first, last = (nv.nvmlDeviceGetMigDeviceHandleByIndex(whole, i) for i in (0, 2))
    refused(nv.NVML_ERROR_NOT_FOUND, nv.nvmlDeviceGetMigDeviceHandleByIndex, whole, 1)
    refused(nv.NVML_ERROR_INVALID_ARGUMENT, nv.nvmlDeviceGetMigDeviceHandleByIndex, whole, 7)

    told = [(nv.nvmlDeviceIsMigDeviceHandle(part).value, nv.nvmlDeviceGetName(part),
             nv.nvmlDeviceGetUUID(part), nv.nvmlDeviceGetGpuInstanceId(part),
             nv.nvmlDeviceGetComputeInstanceId(part),
             nv.nvmlDeviceGetAttributes_v2(part).multiprocessorCount,
             nv.nvmlDeviceGetAttributes_v2(part).memorySizeMB, memory(part),
             listed(nv.nvmlDeviceGetComputeRunningProcesses)(part))
            for part in (first, last)]
    assert told == [
        (1, "SIMULATED MIG 3g.40gb", "MIG-a0a0a0a0-1111-2222-3333-444444444444", 2, 1, 60,
         40960, (40 * GIB, 3 * GIB, 37 * GIB), [(4190011, 2 * GIB, 2, 1)]),
        (1, "SIMULATED MIG 1g.10gb", "MIG-a2a2a2a2-1111-2222-3333-444444444444", 9, 0, 16,
         10240, (10 * GIB, 100 * MIB, 10 * GIB - 100 * MIB), [(4190012, 70 * MIB, 9, 0)]),
    ], told
    assert listed(nv.nvmlDeviceGetComputeRunningProcesses)(whole) == [
        (4190011, 2 * GIB, 2, 1), (4190012, 70 * MIB, 9, 0)]

    by_uuid = nv.nvmlDeviceGetHandleByUUID(b"MIG-a2a2a2a2-1111-2222-3333-444444444444")
    parent = nv.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(by_uuid)
    assert nv.nvmlDeviceGetIndex(parent) == 1
    refused(nv.NVML_ERROR_NOT_SUPPORTED, nv.nvmlDeviceGetPowerUsage, first)
    refused(nv.NVML_ERROR_NOT_SUPPORTED, nv.nvmlDeviceGetGpuInstanceId, whole)
    refused(nv.NVML_ERROR_NOT_SUPPORTED, nv.nvmlDeviceGetProcessUtilization, whole, 0)
    nv.nvmlShutdown()


@case("what the seed's GTX 1080 Ti printed, and what it cannot say")
def _(folder):
    gpus = start(folder, EVERYTHING.parent / "igpu.json")
    assert len(gpus) == 4
    assert memory(gpus[0]) == (int(11178.5 * MIB), 10799 * MIB, int(379.5 * MIB))
    assert pci_v3(gpus[0])[5:] == (0x1B0610DE, 0x1210196E)
    assert [nv.nvmlDeviceGetPowerUsage(gpu) for gpu in gpus[:2]] == [122230, 55751]
    assert listed_v1("nvmlDeviceGetComputeRunningProcesses")(gpus[0]) == [
        (4276, 4284 * MIB), (5764, 6515 * MIB)]
    unsupported, unknown = nv.NVML_ERROR_NOT_SUPPORTED, nv.NVML_ERROR_FUNCTION_NOT_FOUND
    refused(unsupported, nv.nvmlDeviceGetSerial, gpus[0])
    refused(unsupported, nv.nvmlDeviceGetEccMode, gpus[0])
    refused(unsupported, nv.nvmlDeviceGetTotalEnergyConsumption, gpus[0])
    refused(unsupported, nv.nvmlDeviceGetNvLinkState, gpus[0], 0)
    refused(unknown, nv.nvmlDeviceGetMigMode, gpus[0])
    refused(unknown, memory, gpus[0], nv.nvmlMemory_v2)
    assert field(gpus[0], nv.NVML_FI_DEV_POWER_INSTANT) == unsupported
    assert field(gpus[0], nv.NVML_FI_DEV_MEMORY_TEMP) == unsupported
    nv.nvmlShutdown()


@case("power on a way up, its average and its energy")
def _(folder):
    curve = [[0, 100], [100, 300]]  # 2 W more each second
    began_ns = time.monotonic_ns() - 10 * 10**9
    gpus = start(folder, {"gpus": [
        {"power": curve, "power_usage": "average", "energy": {"start": 1000}},
        {"power": curve, "temperature": -3}]}, began_ns)

    def expect(ask, what, expected):
        before = (time.monotonic_ns() - began_ns) / 1e9
        told = ask()
        after = (time.monotonic_ns() - began_ns) / 1e9
        assert expected(before) - 0.001 <= told / 1e3 <= expected(after) + 0.001, (what, told)

    expect(lambda: field(gpus[0], nv.NVML_FI_DEV_POWER_INSTANT), "instant", lambda t: 100 + 2 * t)
    expect(lambda: field(gpus[0], nv.NVML_FI_DEV_POWER_AVERAGE), "average", lambda t: 99 + 2 * t)
    expect(lambda: nv.nvmlDeviceGetPowerUsage(gpus[0]), "as an average", lambda t: 99 + 2 * t)
    expect(lambda: nv.nvmlDeviceGetPowerUsage(gpus[1]), "as it is", lambda t: 100 + 2 * t)
    expect(lambda: nv.nvmlDeviceGetTotalEnergyConsumption(gpus[0]), "energy",
           lambda t: 1000 + 100 * t + t * t)
    assert nv.nvmlDeviceGetTemperatureV(gpus[1], nv.NVML_TEMPERATURE_GPU) == -3
    nv.nvmlShutdown()


@case("samples of processes, each but once")
def _(folder):
    gpu = start(folder, {"gpus": [{
        "utilization": 0.6, "sample_period_ms": 100,
        "processes": [{"pid": 7, "count": 2}, {"pid": 11, "sm": None}]}]})[0]
    told = nv.nvmlDeviceGetProcessUtilization(gpu, 0)
    assert [(s.pid, s.smUtil) for s in told] == [(7, 30), (8, 30)]
    seen = told[-1].timeStamp
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            newer = nv.nvmlDeviceGetProcessUtilization(gpu, seen)
            break
        except nv.NVMLError as error:
            assert error.value == nv.NVML_ERROR_NOT_FOUND, error
            time.sleep(0.01)
    assert all(s.timeStamp > seen and s.timeStamp % 100000 == 0 for s in newer)
    nv.nvmlShutdown()


@case("the throughput of PCIe takes its time")
def _(folder):
    gpu = start(folder, EVERYTHING)[0]
    began = time.monotonic()
    nv.nvmlDeviceGetPcieThroughput(gpu, nv.NVML_PCIE_UTIL_TX_BYTES)
    assert time.monotonic() - began >= 0.02
    nv.nvmlShutdown()


@case("faults: denied, slow, without the call, a field alone, one GPU alone")
def _(folder):
    gpus = start(folder, {"gpus": [{"count": 2}], "faults": [
        {"call": "nvmlDeviceGetPowerUsage", "gpu": 1, "error": "NO_PERMISSION"},
        {"call": "nvmlDeviceGetMigMode", "error": "FUNCTION_NOT_FOUND"},
        {"call": "nvmlDeviceGetFieldValues:186", "error": "NOT_SUPPORTED"},
        {"call": "nvmlDeviceGetSerial", "delay_ms": 30}]})
    assert nv.nvmlDeviceGetPowerUsage(gpus[0]) == 250000
    refused(nv.NVML_ERROR_NO_PERMISSION, nv.nvmlDeviceGetPowerUsage, gpus[1])
    refused(nv.NVML_ERROR_FUNCTION_NOT_FOUND, nv.nvmlDeviceGetMigMode, gpus[0])
    assert field(gpus[0], nv.NVML_FI_DEV_POWER_INSTANT) == nv.NVML_ERROR_NOT_SUPPORTED
    assert field(gpus[0], nv.NVML_FI_DEV_POWER_AVERAGE) == 250000
    began = time.monotonic()
    nv.nvmlDeviceGetSerial(gpus[0])
    assert time.monotonic() - began >= 0.03
    nv.nvmlShutdown()
    refused(nv.NVML_ERROR_UNINITIALIZED, nv.nvmlDeviceGetCount)
    refused(nv.NVML_ERROR_UNINITIALIZED, nv.nvmlDeviceGetName, gpus[0])


@case("a GPU that appears, one that is lost, a driver that is unloaded for a while")
def _(folder):
    began_ns = time.monotonic_ns() - 10 * 10**9

    def wait_until(second):
        time.sleep(max(0, second - (time.monotonic_ns() - began_ns) / 1e9))

    gpus = start(folder, {
        "unloaded": [10.6, 10.9],
        "gpus": [{"lost_at": 10.3}, {"appears_at": 10.3}]}, began_ns)
    assert len(gpus) == 1
    refused(nv.NVML_ERROR_INVALID_ARGUMENT, nv.nvmlDeviceGetHandleByIndex, 1)
    nv.nvmlDeviceGetName(gpus[0])
    wait_until(10.31)
    assert nv.nvmlDeviceGetCount() == 2
    assert nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByIndex(1)) == 1
    refused(nv.NVML_ERROR_GPU_IS_LOST, nv.nvmlDeviceGetName, gpus[0])
    wait_until(10.61)
    refused(nv.NVML_ERROR_UNINITIALIZED, nv.nvmlDeviceGetCount)
    refused(nv.NVML_ERROR_DRIVER_NOT_LOADED, nv.nvmlInit)
    wait_until(10.91)
    refused(nv.NVML_ERROR_UNINITIALIZED, nv.nvmlDeviceGetName, gpus[0])
    nv.nvmlInit()
    assert nv.nvmlDeviceGetCount() == 2
    nv.nvmlShutdown()
    nv.nvmlShutdown()


@case("a wrong scenario is refused, with its file and place")
def _(folder):
    for what, scenario, complaint in (
        ("no GPUs", "{}", "top level"),
        ("no JSON", "{\"gpus\": [{,]}", "line 1, column 12"),
        ("a key that is not known", {"gpus": [{}, {"fan_sped": 1}]}, "gpus[1]: 1 object item"),
        ("a text for a number", {"gpus": [{"cores": "many"}]}, "gpus[0].cores: is a number"),
        ("a number for a text", {"gpus": [{"serial": 12}]}, "gpus[0].serial: is a text"),
        ("less than nothing", {"gpus": [{"power_limit_min": -1}]}, "power_limit_min: -1 is below 0"),
        ("a curve that goes back", {"gpus": [{"fan": [[1, 0], [0, 1]]}]}, "gpus[0].fan[1]: time goes back"),
        ("no address", {"gpus": [{"pci_bus_id": "0000:3b:00.7"}]}, "not like 0000:3b:00.0"),
        ("no hexadecimal", {"gpus": [{"pci_device_id": "1B06x"}]}, "hexadecimal"),
        ("power that is neither", {"gpus": [{"power_usage": "mean"}]}, "none of instant, average"),
        ("no scopes", {"gpus": [{"power_instant_scopes": [0, "gpu"]}]}, "scopes are 0 to 31"),
        ("too many parts", {"gpus": [{"migs": [{}] * 8}]}, "up to 7"),
        ("a part that is fuller than full", {"gpus": [{"migs": [{}, {"memory_total": 1}]}]}, "migs[1]"),
        ("a process of no type", {"gpus": [{"processes": [{"pid": 1, "type": "X"}]}]}, "processes[0]: type 'X'"),
        ("no process at all", {"gpus": [{"processes": {"pid": 1, "count": 0}}]}, "count is 1 to"),
        ("an order that is none", {"gpus": [{"appears_at": 2}, {}]}, "appears before"),
        ("unloaded backwards", {"unloaded": [2, 1], "gpus": [{}]}, "unloaded: ends before"),
        ("a fault without an effect", {"gpus": [{}], "faults": [{"call": "nvmlInit_v2"}]}, "faults[0]"),
        ("an error that is none", {"gpus": [{}], "faults": [{"call": "x", "error": "BAD"}]}, "called BAD"),
    ):
        path = folder / "wrong.json"
        path.write_text(scenario if isinstance(scenario, str) else json.dumps(scenario))
        done = subprocess.run(
            [sys.executable, "-c",
             f"import ctypes, sys; sys.exit(ctypes.CDLL({str(LIBRARY)!r}).nvmlInit_v2() != 999)"],
            env={**os.environ, "FAKE_NVML_SCENARIO": str(path)}, capture_output=True, text=True,
            timeout=300, check=False)
        assert done.returncode == 0, what
        assert str(path) in done.stderr and complaint in done.stderr, (what, done.stderr)


@case("the scenarios of the tree are right")
def _(folder):
    for path in sorted(EVERYTHING.parent.glob("*.json")):
        assert start(folder, path, time.monotonic_ns()), path
        nv.nvmlShutdown()


@case("the codes and versions of our header are the client's")
def _(folder):
    header = (tap.SOURCE / "src/source/gpu/nvml/source_nvml_abi.h").read_text()
    codes = re.findall(r"(NVML_ERROR_\w+) = (\d+),", header)
    assert len(codes) > 10
    for name, code in codes:
        assert getattr(nv, name) == int(code), name
    for ours, theirs in (("NVML_MEMORY_V2", nv.nvmlMemory_v2),
                         ("NVML_TEMPERATURE_V1", nv.nvmlTemperature_v1),
                         ("NVML_FAN_SPEED_V1", nv.nvmlFanSpeedInfo_v1)):
        value = re.search(rf"_Static_assert\({ours} == (0x[0-9A-Fa-f]+),", header)
        assert int(value[1], 16) == theirs, ours


tap.main()
