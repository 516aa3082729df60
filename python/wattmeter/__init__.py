# SPDX-License-Identifier: Apache-2.0
"""What a computation costs: time, CPU, memory, GPU, watts and joules.

    import wattmeter

    with wattmeter.track() as t:
        train()
    print(t.report)
"""

from wattmeter._core import (
    Error,
    Figure,
    Report,
    Tracker,
    region,
    region_begin,
    region_end,
    region_is_on,
    region_start,
    region_stop,
    version as __version__,
)

__all__ = [
    "Error",
    "Figure",
    "Report",
    "Tracker",
    "region",
    "region_begin",
    "region_end",
    "region_is_on",
    "region_start",
    "region_stop",
]
