# SPDX-License-Identifier: Apache-2.0
"""A run is recorded, and its samples are read back as columns."""

import math
import pathlib
import tempfile

import wattmeter

folder = tempfile.TemporaryDirectory()
path = pathlib.Path(folder.name) / "run.sqlite"

with wattmeter.track(path, interval=0.01, notes={"batch": 32}):
    with wattmeter.region("work"):
        sum(i * i for i in range(2_000_000))

recording = wattmeter.read(path)
print(recording, recording.report.notes)
for name, column in recording.columns.items():
    known = [value for value in column if not math.isnan(value)]
    if known:
        print(f"{name}: {min(known):.4g} to {max(known):.4g} {column.unit}")
    else:
        print(f"{name}: {column.state(0)}")
print(recording.regions["work"])

try:
    frame = recording.to_pandas()
except ImportError as error:
    print(f"no data frame: {error}")
else:
    print(frame.describe())
    print(frame.attrs["units"])
