#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What figures cost: an hour of 36,000 samples of 8 GPUs as SVG and PNG, beside matplotlib's
where it is there. Prints a table.

    bench/views.py          with build/wattmeter
"""

import os
import pathlib
import random
import resource
import shutil
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


def make(folder):
    """A short recording of all that this machine and the driver have."""
    path = folder / "made.sqlite"
    environment = {**os.environ, "FAKE_NVML_SCENARIO": str(folder / "scenario.json"),
                   "WATTMETER_NVML": str(BUILD / "tests/fake/libnvidia-ml.so.1")}
    gpu = '{"power": 300, "utilization": 0.75, "temperature": 61, "memory_used": 8589934592}'
    (folder / "scenario.json").write_text('{"gpus": [' + ", ".join([gpu] * GPUS) + "]}")
    subprocess.run([BUILD / "wattmeter", "run", "-q", "--record", path, "--", "sleep", "0.3"],
                   env=environment, check=True)
    return path


def lengthen(source, path, powers_alone):
    """A copy of an hour, with all channels or with the power of the GPUs alone."""
    shutil.copy(source, path)
    database = sqlite3.connect(path)
    names = [row[1] for row in database.execute("PRAGMA table_info(sample)")]
    last = dict(zip(names, database.execute("SELECT * FROM sample ORDER BY time_ns").fetchall()[-1]))
    powers = [f"gpu{gpu}_power_W" for gpu in range(GPUS)]
    if powers_alone:
        database.execute("DELETE FROM channel WHERE column_name NOT IN "
                         f"({', '.join('?' * GPUS)})", powers)
        clocks = {row[0] for row in database.execute("SELECT clock_column FROM channel")}
        names = [name for name in names if name in ("run", "time_ns", *clocks, *powers)]
        database.execute("DROP TABLE sample")
        database.execute("CREATE TABLE sample (" + ", ".join(f'"{name}"' for name in names)
                         + ", PRIMARY KEY (run, time_ns))")
    chance = random.Random(1)
    rows = []
    for number in range(1, POINTS + 1):
        row = [last[name] for name in names]
        for index, name in enumerate(names):
            if name.endswith("time_ns") and row[index] is not None:
                row[index] += number * 100_000_000
            elif name in powers:
                row[index] = 200 + 40 * powers.index(name) + chance.gauss(0, 12)
        rows.append(row)
    database.execute("DELETE FROM sample")
    database.executemany(f"INSERT INTO sample VALUES ({', '.join('?' * len(names))})", rows)
    database.commit()
    channels = database.execute("SELECT count(*) FROM channel").fetchone()[0]
    database.close()
    return channels


def cost(command):
    """Seconds by the clock, and of the CPU."""
    walls, cpus = [], []
    for _ in range(ROUNDS):
        start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            return None
        walls.append(time.monotonic() - start)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(walls), statistics.median(cpus)


def row(what, command, target):
    found = cost(command)
    print(f"  {what:32} " + ("not there" if found is None else
          f"{found[0]:6.3f} s  {found[1]:6.3f} s  {target.stat().st_size / 1e6:6.3f} MB"),
          flush=True)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        made = make(folder)
        paths = {True: folder / "few.sqlite", False: folder / "all.sqlite"}
        counts = {few: lengthen(made, path, few) for few, path in paths.items()}
        print(f"{POINTS} samples, the power of {GPUS} GPUs, 960 x 720, median of {ROUNDS}\n"
              f"  {'':32} {'time':8}  {'CPU':8}  size")
        for form in "svg", "png", "pdf":
            target = folder / f"figure.{form}"
            for few in True, False:
                row(f"{form}, of {counts[few]} channels",
                    [BUILD / "wattmeter", "plot", paths[few], "--channels", "power", "-o", target,
                     "--overwrite"], target)
            row(f"{form}, matplotlib", [sys.executable, "-c", MATPLOTLIB, paths[True], target],
                target)


main()
