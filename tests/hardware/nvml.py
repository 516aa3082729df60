# SPDX-License-Identifier: Apache-2.0
"""nvml.py - NVML as the checks call it themselves, beside wattmeter: real or fake,
whichever WATTMETER_NVML names or the loader finds."""

import ctypes
import os

NAME = os.environ.get("WATTMETER_NVML", "libnvidia-ml.so.1")
POWER_AVERAGE, POWER_INSTANT = 185, 186


class Field(ctypes.Structure):
    """nvmlFieldValue_t"""
    _fields_ = [("field", ctypes.c_uint), ("scope", ctypes.c_uint),
                ("timestamp_us", ctypes.c_longlong), ("latency_us", ctypes.c_longlong),
                ("type", ctypes.c_uint), ("status", ctypes.c_int),
                ("number", ctypes.c_ulonglong)]


class Failed(Exception):
    pass


class Nvml:
    """Started while it is used in a `with`. A method raises Failed where NVML
    does not answer."""

    def __enter__(self):
        try:
            self.library = ctypes.CDLL(NAME)
        except OSError as error:
            raise Failed(str(error)) from error
        self.call("nvmlInit_v2")
        return self

    def __exit__(self, *_):
        self.library.nvmlShutdown()

    def call(self, name, *arguments):
        function = getattr(self.library, name, None)
        if not function:
            raise Failed(f"there is no {name}")
        status = function(*arguments)
        if status != 0:
            raise Failed(f"{name} answers {status}")

    def count(self):
        count = ctypes.c_uint()
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return count.value

    def device(self, index):
        device = ctypes.c_void_p()
        self.call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(device))
        return device

    def text(self, name, device):
        buffer = ctypes.create_string_buffer(96)
        self.call(name, device, buffer, 96)
        return buffer.value.decode()

    def field(self, device, field):
        """As it comes, in milliwatts, of the first scope that answers."""
        for scope in (0, 1):
            value = Field(field, scope)
            self.call("nvmlDeviceGetFieldValues", device, 1, ctypes.byref(value))
            if value.status == 0:
                return value.number & 0xFFFFFFFF if value.type == 1 else value.number
        raise Failed(f"field {field} answers {value.status}")

    def power(self, device):
        milliwatts = ctypes.c_uint()
        self.call("nvmlDeviceGetPowerUsage", device, ctypes.byref(milliwatts))
        return milliwatts.value

    def energy(self, device):
        millijoules = ctypes.c_ulonglong()
        self.call("nvmlDeviceGetTotalEnergyConsumption", device, ctypes.byref(millijoules))
        return millijoules.value
