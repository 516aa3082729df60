# SPDX-License-Identifier: Apache-2.0
from typing import Any

from wattmeter._devices.cap import (
    cap as cap,
    reset_power_cap as reset_power_cap,
    set_power_cap as set_power_cap,
)
from wattmeter._devices.cap_profile import power_cap_profiler as power_cap_profiler
from wattmeter._results.compare import Comparison as Comparison, compare as compare
from wattmeter._core import (
    AccessError as AccessError,
    Error as Error,
    ExistsError as ExistsError,
    NotFoundError as NotFoundError,
    region as region,
)
from wattmeter._doctor import doctor as doctor
from wattmeter._devices.gpus import Gpu as Gpu, gpus as gpus
from wattmeter._measure import measure as measure
from wattmeter._plot import plot as plot
from wattmeter._results.recording import Recording as Recording, read as read
from wattmeter._repeat import repeat as repeat
from wattmeter._results.figure import Figure as Figure
from wattmeter._results.report import Region as Region, Report as Report
from wattmeter._timeout import TimeoutExpired as TimeoutExpired
from wattmeter._track import run as run, track as track

__version__: str
__all__ = [
    "AccessError",
    "Comparison",
    "Error",
    "ExistsError",
    "Figure",
    "Gpu",
    "NotFoundError",
    "Recording",
    "Region",
    "Report",
    "TimeoutExpired",
    "cap",
    "compare",
    "doctor",
    "gpus",
    "measure",
    "plot",
    "power_cap_profiler",
    "read",
    "region",
    "repeat",
    "reset_power_cap",
    "run",
    "set_power_cap",
    "track",
]

def load_ipython_extension(shell: Any) -> None: ...
