# SPDX-License-Identifier: Apache-2.0
"""pynvml's names: what programs that measure ask of NVIDIA's driver.

    from wattmeter.compat import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    watts = pynvml.nvmlDeviceGetPowerUsage(handle) / 1000

Functions, units, types and exceptions are pynvml's (nvidia-ml-py); all of them may
raise an NVMLError. The GPUs are asked through wattmeter, so that a driver that hangs
costs five seconds and not the program. A call asks one GPU for all that belongs to the
same subject (all of its power, all of its clocks). Nothing here changes a setting.
"""

from __future__ import annotations

import operator
from typing import Any, Dict, List, NamedTuple, Optional, Type, Union

from wattmeter import _core
from wattmeter.compat import _nvidia

NVML_SUCCESS = 0
NVML_TEMPERATURE_GPU = 0
NVML_CLOCK_GRAPHICS = 0
NVML_CLOCK_SM = 1
NVML_CLOCK_MEM = 2
NVML_CLOCK_VIDEO = 3
NVML_FEATURE_DISABLED = 0
NVML_FEATURE_ENABLED = 1
nvmlMemory_v2 = 0x02000028

# Number and text of every error. Each has a constant, NVML_ERROR_NOT_SUPPORTED, and a
# class, NVMLError_NotSupported.
_ERRORS = {
    "UNINITIALIZED": (1, "Uninitialized"),
    "INVALID_ARGUMENT": (2, "Invalid Argument"),
    "NOT_SUPPORTED": (3, "Not Supported"),
    "NO_PERMISSION": (4, "Insufficient Permissions"),
    "ALREADY_INITIALIZED": (5, "Already Initialized"),
    "NOT_FOUND": (6, "Not Found"),
    "INSUFFICIENT_SIZE": (7, "Insufficient Size"),
    "INSUFFICIENT_POWER": (8, "Insufficient External Power"),
    "DRIVER_NOT_LOADED": (9, "Driver Not Loaded"),
    "TIMEOUT": (10, "Timeout"),
    "IRQ_ISSUE": (11, "Interrupt Request Issue"),
    "LIBRARY_NOT_FOUND": (12, "NVML Shared Library Not Found"),
    "FUNCTION_NOT_FOUND": (13, "Function Not Found"),
    "CORRUPTED_INFOROM": (14, "Corrupted infoROM"),
    "GPU_IS_LOST": (15, "GPU is lost"),
    "RESET_REQUIRED": (16, "GPU requires restart"),
    "OPERATING_SYSTEM": (17, "The operating system has blocked the request."),
    "LIB_RM_VERSION_MISMATCH": (18, "RM has detected an NVML/RM version mismatch."),
    "IN_USE": (19, "In use by another client"),
    "MEMORY": (20, "Insufficient Memory"),
    "NO_DATA": (21, "No data"),
    "GPU_NOT_FOUND": (28, "GPU Not Found"),
    "UNKNOWN": (999, "Unknown Error"),
}
_TEXTS = dict(_ERRORS.values())
_classes: Dict[int, Type[NVMLError]] = {}


class NVMLError(Exception):
    """An error of NVML.

    NVMLError(3) is an NVMLError_NotSupported. `value` is NVML's number, and `why` the
    reason in wattmeter's words, where it has more to say than str().
    """

    value: int = _ERRORS["UNKNOWN"][0]
    why: str = ""

    def __new__(cls, value: Optional[int] = None) -> NVMLError:
        if cls is NVMLError and value is not None:
            cls = _classes.get(value, cls)
        error = Exception.__new__(cls)
        if value is not None:
            error.value = value
        return error

    def __str__(self) -> str:
        return nvmlErrorString(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NVMLError) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def _add_errors() -> None:
    for name, (code, _) in _ERRORS.items():
        class_name = "NVMLError_" + name.title().replace("_", "")
        members = {"__module__": __name__, "value": code}
        _classes[code] = type(class_name, (NVMLError,), members)
        globals().update({"NVML_ERROR_" + name: code, class_name: _classes[code]})


_add_errors()


class c_nvmlMemory_t(NamedTuple):
    """Bytes; `used` includes what the driver keeps for itself."""

    total: int
    free: int
    used: int


class c_nvmlMemory_v2_t(NamedTuple):
    """Bytes; `used` leaves out `reserved`, which the driver keeps for itself."""

    version: int
    total: int
    reserved: int
    free: int
    used: int


class c_nvmlUtilization_t(NamedTuple):
    """Percent of the time in which the GPU, or its memory, was busy."""

    gpu: int
    memory: int


class c_nvmlProcessInfo_t(NamedTuple):
    """A process, by the pid that the driver knows; None is memory that it does not."""

    pid: int
    usedGpuMemory: Optional[int]  # bytes
    gpuInstanceId: int
    computeInstanceId: int


class _Device:
    """What stands for a GPU: pynvml's handle."""

    def __init__(self, index: int) -> None:
        self.index = index


_NO_INSTANCE = 0xFFFFFFFF
_NO_ANSWER = -1
_users = 0  # calls of nvmlInit() without their nvmlShutdown()


def _error(name: str, why: str = "") -> NVMLError:
    error = NVMLError(_ERRORS[name][0])
    error.why = why
    return error


def _error_of(code: int, why: str, name: str = "UNKNOWN") -> NVMLError:
    """The error with the driver's number of a failure; else the one of `name`."""
    if code == _NO_ANSWER:
        name = "TIMEOUT"
    error = NVMLError(code if code in _TEXTS else _ERRORS[name][0])
    error.why = why
    return error


def nvmlInitWithFlags(flags: int = 0) -> None:
    """Starts NVML; `flags` is ignored. As many nvmlShutdown() end it.

    NVMLError_LibraryNotFound: there is no NVIDIA driver. NVMLError_DriverNotLoaded: its
    kernel module is not loaded.
    """
    global _users
    with _nvidia.asked() as gpus:
        driver = _nvidia.driver(gpus)
    if driver.code or driver.status not in ("OK", "ENODEV"):
        raise _error_of(driver.code, driver.detail)
    _users += 1


def nvmlInit() -> None:
    """nvmlInitWithFlags(0)"""
    nvmlInitWithFlags(0)


def nvmlShutdown() -> None:
    """Ends one nvmlInit(). NVMLError_Uninitialized: there is none."""
    global _users
    _check_running()
    _users -= 1


def _check_running() -> None:
    if _users == 0:
        raise _error("UNINITIALIZED")


def nvmlErrorString(result: int) -> str:
    """The text of NVML's error with that number."""
    return _TEXTS.get(result, _ERRORS["UNKNOWN"][1])


def nvmlExceptionClass(nvmlErrorCode: int) -> Type[NVMLError]:
    """The class of NVML's error with that number. ValueError: there is none."""
    if nvmlErrorCode not in _classes:
        raise ValueError(f"nvmlErrorCode {nvmlErrorCode} is not valid")
    return _classes[nvmlErrorCode]


def _check_handle(handle: _Device) -> None:
    _check_running()
    if not isinstance(handle, _Device):
        raise _error("INVALID_ARGUMENT", f"{handle!r} is no handle of a GPU")


def _check(value: _core.GpuValue) -> None:
    """Raises the error that a missing value stands for."""
    names = {
        "unsupported": "NOT_SUPPORTED",
        "denied": "NO_PERMISSION",
        "stale": "TIMEOUT",
    }
    if value.state != "ok":
        raise _error_of(value.code, value.why or "", names.get(value.state, "UNKNOWN"))


def _ask(handle: _Device, *fields: str) -> List[Any]:
    """The values of these fields, all of one group, now."""
    _check_handle(handle)
    group = fields[0].partition(".")[0] if "." in fields[0] else "general"
    try:
        with _nvidia.asked(group, index=handle.index) as gpus:
            values = [gpus.get(0, field) for field in fields]
    except ValueError as error:
        raise _error("GPU_IS_LOST", str(error)) from None
    for value in values:
        _check(value)
    return [value.value for value in values]


def _text(handle: _Device, field: str) -> str:
    return str(_ask(handle, field)[0])


def _whole(handle: _Device, field: str, times: float = 1) -> int:
    number: float = _ask(handle, field)[0]
    return round(number * times)


def nvmlSystemGetDriverVersion() -> str:
    """The version of the driver: "550.54.15"."""
    return _text(_Device(0), "driver_version")


def nvmlSystemGetNVMLVersion() -> str:
    """The version of NVML: "12.550.54.15"."""
    return _text(_Device(0), "nvml_version")


def nvmlSystemGetCudaDriverVersion() -> int:
    """The newest CUDA that the driver serves: 12040 is 12.4."""
    major, minor = _text(_Device(0), "cuda_version").split(".")
    return int(major) * 1000 + int(minor) * 10


def nvmlDeviceGetCount() -> int:
    """How many NVIDIA GPUs there are."""
    _check_running()
    with _nvidia.asked() as gpus:
        return _nvidia.driver(gpus).present


def nvmlDeviceGetHandleByIndex(index: int) -> _Device:
    """A handle of the GPU with that number. NVMLError_InvalidArgument: there is none."""
    if not 0 <= operator.index(index) < nvmlDeviceGetCount():
        raise _error("INVALID_ARGUMENT", f"there is no GPU {index}")
    return _Device(index)


def nvmlDeviceGetHandleByUUID(uuid: Union[str, bytes]) -> _Device:
    """A handle of the GPU with that UUID. NVMLError_NotFound: there is none."""
    wanted = uuid.decode() if isinstance(uuid, bytes) else uuid
    _check_running()
    with _nvidia.asked() as gpus:
        for index in range(_nvidia.driver(gpus).present):
            if gpus.get(index, "uuid").value == wanted:
                return _Device(index)
    raise _error("NOT_FOUND", f"no GPU has the UUID {wanted!r}")


def nvmlDeviceGetIndex(handle: _Device) -> int:
    """The number of the GPU."""
    return _whole(handle, "index")


def nvmlDeviceGetName(handle: _Device) -> str:
    """The name of the product."""
    return _text(handle, "name")


def nvmlDeviceGetUUID(handle: _Device) -> str:
    """The identity of the GPU: "GPU-7c1f..."."""
    return _text(handle, "uuid")


def nvmlDeviceGetSerial(handle: _Device) -> str:
    """The serial number of the board."""
    return _text(handle, "serial")


def nvmlDeviceGetVbiosVersion(handle: _Device) -> str:
    """The version of the board's BIOS."""
    return _text(handle, "bios")


def nvmlDeviceGetMemoryInfo(
    handle: _Device, version: Optional[int] = None
) -> Union[c_nvmlMemory_t, c_nvmlMemory_v2_t]:
    """The memory of the GPU, in bytes; with `version` nvmlMemory_v2 in more detail."""
    if version is None:
        total, free = map(int, _ask(handle, "memory.total", "memory.free"))
        return c_nvmlMemory_t(total, free, total - free)
    fields = ("memory.total", "memory.reserved", "memory.free", "memory.used")
    return c_nvmlMemory_v2_t(version, *map(int, _ask(handle, *fields)))


def nvmlDeviceGetUtilizationRates(handle: _Device) -> c_nvmlUtilization_t:
    """How busy the GPU and its memory are, in percent."""
    gpu, memory = _ask(handle, "utilization.gpu", "utilization.memory")
    return c_nvmlUtilization_t(round(gpu * 100), round(memory * 100))


def nvmlDeviceGetTemperature(handle: _Device, sensor: int) -> int:
    """Degrees Celsius, of NVML_TEMPERATURE_GPU, the only sensor."""
    if sensor != NVML_TEMPERATURE_GPU:
        raise _error("INVALID_ARGUMENT", f"there is no sensor {sensor}")
    return _whole(handle, "utilization.temperature")


def nvmlDeviceGetFanSpeed(handle: _Device) -> int:
    """Percent of the fan's highest speed."""
    return _whole(handle, "utilization.fan", 100)


def nvmlDeviceGetPerformanceState(handle: _Device) -> int:
    """0 (most) to 15."""
    return int(_text(handle, "utilization.performance")[1:])


def _clock(handle: _Device, type: int, of: str) -> int:
    clocks = ("graphics", "sm", "memory", "video")
    if type not in range(len(clocks)):
        raise _error("INVALID_ARGUMENT", f"there is no clock {type}")
    return _whole(handle, f"clocks.{of}{clocks[type]}", 1e-6)


def nvmlDeviceGetClockInfo(handle: _Device, type: int) -> int:
    """The clock NVML_CLOCK_GRAPHICS, _SM, _MEM or _VIDEO now, in MHz."""
    return _clock(handle, type, "")


def nvmlDeviceGetMaxClockInfo(handle: _Device, type: int) -> int:
    """The maximum of that clock, in MHz."""
    return _clock(handle, type, "max_")


def nvmlDeviceGetPowerUsage(handle: _Device) -> int:
    """The power of the board, in milliwatts."""
    return _whole(handle, "power.draw", 1000)


def nvmlDeviceGetTotalEnergyConsumption(handle: _Device) -> int:
    """The energy since the driver was loaded, in millijoules.

    NVMLError_NotSupported: the GPU has no such counter (it is older than Volta).
    """
    return _whole(handle, "power.energy", 1000)


def nvmlDeviceGetPowerManagementLimit(handle: _Device) -> int:
    """The power limit that was set, in milliwatts."""
    return _whole(handle, "power.limit", 1000)


def nvmlDeviceGetPowerManagementDefaultLimit(handle: _Device) -> int:
    """The power limit after a reset, in milliwatts."""
    return _whole(handle, "power.default_limit", 1000)


def nvmlDeviceGetEnforcedPowerLimit(handle: _Device) -> int:
    """The power limit that holds, in milliwatts."""
    return _whole(handle, "power.enforced_limit", 1000)


def nvmlDeviceGetPowerManagementLimitConstraints(handle: _Device) -> List[int]:
    """The lowest and the highest power limit that can be set, in milliwatts."""
    limits = _ask(handle, "power.min_limit", "power.max_limit")
    return [round(limit * 1000) for limit in limits]


def _processes(handle: _Device, letter: str) -> List[c_nvmlProcessInfo_t]:
    """Those whose type is "C", "G" or "C+G", and has the letter."""
    _check_handle(handle)
    with _nvidia.asked("processes", index=handle.index) as gpus:
        rows, known = gpus.processes(0)
    if not rows:
        _check(known)
    told: List[Dict[str, Any]] = [{key: row[key].value for key in row} for row in rows]
    return [
        c_nvmlProcessInfo_t(
            values["driver_pid"],
            values["gpu_memory"],
            _instance(row["gpu_instance"]),
            _instance(row["compute_instance"]),
        )
        for row, values in zip(rows, told)
        if letter in (values["type"] or "").split("+")
    ]


def _instance(part: _core.GpuValue) -> int:
    return _NO_INSTANCE if part.value is None else int(part.value)


def nvmlDeviceGetComputeRunningProcesses(handle: _Device) -> List[c_nvmlProcessInfo_t]:
    """The processes that compute on the GPU."""
    return _processes(handle, "C")


def nvmlDeviceGetGraphicsRunningProcesses(handle: _Device) -> List[c_nvmlProcessInfo_t]:
    """The processes that draw with the GPU."""
    return _processes(handle, "G")


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"wattmeter.compat.pynvml has no {name!r}; pynvml itself (nvidia-ml-py) may"
    )
