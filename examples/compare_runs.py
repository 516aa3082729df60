# SPDX-License-Identifier: Apache-2.0
"""Two runs are compared: what changed by more than noise."""

import pathlib
import tempfile

import wattmeter


def run(path, count):
    with wattmeter.track(path, interval=0.01):
        for _ in range(10):
            with wattmeter.region("sum"):
                sum(i * i for i in range(count))


folder = tempfile.TemporaryDirectory()
before = pathlib.Path(folder.name) / "before.sqlite"
after = pathlib.Path(folder.name) / "after.sqlite"
run(before, 50_000)
run(after, 200_000)

result = wattmeter.compare({"before": before, "after": after})
print(result)
print(f"worst: {result.worst:+.0%} {result.worst_figure or ''}")

# What a job of continuous integration would test: one figure, with a limit.
time = wattmeter.compare({"before": before, "after": after}, "total", watch=["time"])
if time.worst > 0.05:
    print("it became slower")
