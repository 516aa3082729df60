#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What figures cost: an hour of 36,000 samples of 8 GPUs as SVG and PNG, beside matplotlib's
where it is there. Prints a table.

    bench/views.py          with build/wattmeter
"""

import os
import pathlib
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("WM_BUILD_ROOT", ROOT / "build"))
POINTS, GPUS, ROUNDS = 36_000, 8, 7

MATPLOTLIB = """
import sqlite3, sys
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
rows = sqlite3.connect(sys.argv[1]).execute("SELECT * FROM sample ORDER BY time_ns").fetchall()
names = [row[1] for row in sqlite3.connect(sys.argv[1]).execute("PRAGMA table_info(sample)")]
figure, axes = plt.subplots(figsize=(9.6, 7.2), dpi=100)
for gpu in range(8):
    column = names.index(f"gpu{gpu}_power_W")
    axes.plot([(row[1] - rows[0][1]) / 1e9 for row in rows], [row[column] for row in rows])
figure.savefig(sys.argv[2])
"""


def record(folder):
    """A recording of that length: one that was made, with samples put into it."""
    path = folder / "hour.sqlite"
    environment = {**os.environ, "FAKE_NVML_SCENARIO": str(folder / "scenario.json"),
                   "WATTMETER_NVML": str(BUILD / "tests/fake/libnvidia-ml.so.1")}
    gpu = '{"power": 300, "utilization": 0.75, "temperature": 61, "memory_used": 8589934592}'
    (folder / "scenario.json").write_text('{"gpus": [' + ", ".join([gpu] * GPUS) + "]}")
    subprocess.run([BUILD / "wattmeter", "run", "-q", "--record", path, "--", "sleep", "0.3"],
                   env=environment, check=True)
    database = sqlite3.connect(path)
    names = [row[1] for row in database.execute("PRAGMA table_info(sample)")]
    last = list(database.execute("SELECT * FROM sample ORDER BY time_ns").fetchall()[-1])
    clocks = [i for i, name in enumerate(names) if name.endswith("time_ns")]
    powers = [names.index(f"gpu{gpu}_power_W") for gpu in range(GPUS)]
    chance = random.Random(1)
    rows = []
    for number in range(1, POINTS + 1):
        row = list(last)
        for index in clocks:
            if row[index] is not None:
                row[index] += number * 100_000_000
        for gpu, index in enumerate(powers):
            row[index] = 200 + 40 * gpu + chance.gauss(0, 12)
        rows.append(row)
    database.execute("DELETE FROM sample")
    database.executemany(f"INSERT INTO sample VALUES ({', '.join('?' * len(names))})", rows)
    database.commit()
    database.close()
    return path


def seconds(command):
    taken = []
    for _ in range(ROUNDS):
        start = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        taken.append(time.monotonic() - start)
        if done.returncode != 0:
            return None
    return statistics.median(taken)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        path = record(folder)
        print(f"{POINTS} samples of {GPUS} GPUs, 960 x 720, median of {ROUNDS}")
        for form in ("svg", "png", "pdf"):
            for tool in ("wattmeter", "matplotlib"):
                target = folder / f"{tool}.{form}"
                command = ([BUILD / "wattmeter", "plot", path, "--channels", "power", "-o",
                            target, "--overwrite"] if tool == "wattmeter" else
                           [sys.executable, "-c", MATPLOTLIB, path, target])
                taken = seconds(command)
                print(f"  {form}  {tool:10}  " + ("not there" if taken is None else
                      f"{taken:6.3f} s  {target.stat().st_size / 1e6:6.3f} MB"), flush=True)


main()
