# SPDX-License-Identifier: Apache-2.0
"""Runs of two versions are compared: what changed by more than chance."""

import pathlib
import tempfile

import wattmeter


def run(path, count):
    mode = "append" if path.exists() else "new"
    with wattmeter.track(path, mode=mode, interval=0.01):
        for _ in range(10):
            with wattmeter.region("sum"):
                sum(i * i for i in range(count))


folder = tempfile.TemporaryDirectory()
before = pathlib.Path(folder.name) / "before.sqlite"
after = pathlib.Path(folder.name) / "after.sqlite"
for _ in range(8):  # Below 6 runs nothing is tested.
    run(before, 5_000)
    run(after, 20_000)

result = wattmeter.compare({"before": before, "after": after})
print(result)
print(f"worst: at least {result.worst:+.0%} {result.worst_figure or ''}")

# What a job of continuous integration would test: one figure, with a limit.
time = wattmeter.compare({"before": before, "after": after}, statistic="total", watch=["time"])
if time.worst > 0.05:
    print("it became slower")
