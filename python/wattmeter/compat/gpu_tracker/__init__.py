# SPDX-License-Identifier: Apache-2.0
"""gpu_tracker's Python interface, of its version 5: a program that uses it goes on with
nothing but the import changed.

    import wattmeter.compat.gpu_tracker as gput

    with gput.Tracker(sleep_time=0.5, tracking_file="tracking.csv") as tracker:
        with gput.SubTracker("load", sub_tracking_file="sub-tracking.csv"):
            load()
    print(tracker)
    print(gput.SubTrackingAnalyzer("tracking.csv", "sub-tracking.csv").sub_tracking_results())

Names, arguments, defaults, units and printed forms are gpu_tracker's; what is better, and
what differs, stands beside each of them and in docs/gpu-tracker.md.
"""

from wattmeter import __version__ as __version__

from .sub_tracker import SubTracker, SubTrackingAnalyzer, TrackingComparison, sub_track
from .tracker import Tracker

__all__ = [
    "SubTracker",
    "SubTrackingAnalyzer",
    "Tracker",
    "TrackingComparison",
    "sub_track",
]
