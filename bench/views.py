#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What figures cost: an hour of 36,000 samples of 8 GPUs as SVG and PNG; and films: 20 seconds
at 30 pictures a second. Beside matplotlib's where it is there. Prints tables.

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
POINTS, GPUS, ROUNDS, FILM_ROUNDS = 36_000, 8, 7, 3

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

# As many of the film's pictures as tell how fast it makes them.
ANIMATION = """
import sqlite3, sys, time
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.animation import FuncAnimation
FRAMES = 40
rows = sqlite3.connect(sys.argv[1]).execute("SELECT * FROM sample ORDER BY time_ns").fetchall()
names = [row[1] for row in sqlite3.connect(sys.argv[1]).execute("PRAGMA table_info(sample)")]
times = [(row[1] - rows[0][1]) / 1e9 for row in rows]
values = [[row[names.index(f"gpu{gpu}_power_W")] for row in rows] for gpu in range(8)]
figure, axes = plt.subplots()
axes.set_xlabel("Time (s)")
axes.set_ylabel("GPU Power (W)")
lines = [axes.plot([], [], label=f"gpu{gpu}")[0] for gpu in range(8)]
axes.legend(loc="lower left")
def update(frame):
    until = max(2, len(times) * (frame + 1) // FRAMES)
    for line, column in zip(lines, values):
        line.set_data(times[:until], column[:until])
    seen = [value for column in values for value in column[:until]]
    margin = (max(seen) - min(seen)) / 10 + 0.1
    axes.set_xlim(times[0], times[until - 1] + 1)
    axes.set_ylim(min(seen) - margin, max(seen) + margin)
    return lines
animation = FuncAnimation(figure, update, frames=FRAMES)
begin = time.monotonic()
animation.save(sys.argv[2], fps=30, dpi=150, writer="ffmpeg")
print(FRAMES / (time.monotonic() - begin))
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


def lengthen(source, path, powers_alone, points=POINTS, step_ns=100_000_000):
    """A copy of an hour, or so many samples, with all channels or with the power of the GPUs
    alone."""
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
    for number in range(1, points + 1):
        row = [last[name] for name in names]
        for index, name in enumerate(names):
            if name.endswith("time_ns") and row[index] is not None:
                row[index] += number * step_ns
            elif name in powers:
                row[index] = 200 + 40 * powers.index(name) + chance.gauss(0, 12)
        rows.append(row)
    database.execute("DELETE FROM sample")
    database.executemany(f"INSERT INTO sample VALUES ({', '.join('?' * len(names))})", rows)
    database.commit()
    channels = database.execute("SELECT count(*) FROM channel").fetchone()[0]
    database.close()
    return channels


def cost(command, rounds=ROUNDS):
    """Seconds by the clock, and of the CPU."""
    walls, cpus = [], []
    for _ in range(rounds):
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


def film_rates(made, folder):
    """Pictures a second by what is filmed."""
    target, rates = folder / "film.mp4", {}
    for rate in 10, 100:
        path = folder / f"film{rate}.sqlite"
        lengthen(made, path, True, points=20 * rate + 1, step_ns=1_000_000_000 // rate)
        command = [BUILD / "wattmeter", "plot", path, "-o", target, "--overwrite"]
        found = cost(command, FILM_ROUNDS)
        if found:
            rates[f"mp4, {rate} samples a second"] = 601 / found[0], 601 / found[1]
    done = subprocess.run([sys.executable, "-c", ANIMATION, path, target], capture_output=True,
                          text=True, check=False)
    if done.returncode == 0:
        rates["mp4, matplotlib's FuncAnimation"] = float(done.stdout), None
    return rates


def print_films(made, folder):
    rates = film_rates(made, folder)
    last = list(rates.values())[-1][0] if len(rates) > 2 else None
    for what, (by_clock, by_cpu) in rates.items():
        print(f"  {what:32} {by_clock:6.1f} a second"
              + (f", {by_cpu:6.1f} in a second of the CPU" if by_cpu else "")
              + (f", {by_clock / last:5.1f} x" if last and by_cpu else ""), flush=True)
    if not rates:
        print("  there is no ffmpeg")


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
        print(f"\nA film of 20 s, 30 pictures a second, {GPUS} lines, 960 x 720, on "
              f"{len(os.sched_getaffinity(0))} CPUs, median of {FILM_ROUNDS}")
        print_films(made, folder)


main()
