#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `wattmeter watch` costs in terminals of three sizes at 10 Hz: bytes to the terminal, CPU
time and memory, beside htop's where it is there; and whether drawing makes samples late.
Prints tables.

    bench/watch.py [SECONDS]        with build/wattmeter
"""

import fcntl
import json
import os
import pathlib
import pty
import random
import select
import shutil
import signal
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("WM_BUILD_ROOT", ROOT / "build"))
WATTMETER = str(BUILD / "wattmeter")
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 10
WARM = 22  # The chart is full, and moves.
ROUNDS = 7
SIZES = (80, 24), (120, 40), (200, 50)


def cpu_seconds(pid):
    """Of all its threads."""
    tasks = pathlib.Path(f"/proc/{pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


def start(command, size=SIZES[-1], **variables):
    """A process on a terminal of its own, and our end of it."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        os.environ.update(TERM="xterm-256color", **variables)
        os.execvp(command[0], command)
    return pid, terminal


def read_for(terminal, seconds):
    """How many bytes come in that time."""
    end, total = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            total += len(os.read(terminal, 65536))
    return total


def stop(pid, terminal, keys):
    os.write(terminal, keys)
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass
    os.waitpid(pid, 0)
    os.close(terminal)


def row(what, command, keys, size, **variables):
    pid, terminal = start(command, size, **variables)
    read_for(terminal, WARM)
    before, begin = cpu_seconds(pid), time.monotonic()
    total = read_for(terminal, SECONDS)
    took = time.monotonic() - begin
    cpu = cpu_seconds(pid) - before
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    memory = int(status.split("VmRSS:")[1].split()[0]) * 1024
    stop(pid, terminal, keys)
    print(f"  {what:40} {total / took / 1e3:6.2f} kB/s  {100 * cpu / took:5.2f} % CPU  "
          f"{memory / 1e6:5.2f} MB", flush=True)


def gpus(folder, count):
    """The fake driver with so many that change all the time."""
    chance = random.Random(1)
    path = folder / f"{count}.json"
    path.write_text(json.dumps({"gpus": [
        {"power": {"shape": "square", "low": 100 + 10 * gpu, "high": 300 + 10 * gpu,
                   "period": chance.uniform(1, 4)},
         "power_period_ms": 20, "utilization": 0.5, "temperature": 50 + gpu,
         "memory_used": (8 + gpu) * 1e9} for gpu in range(count)]}))
    return {"FAKE_NVML_SCENARIO": str(path),
            "WATTMETER_NVML": str(BUILD / "tests/fake/libnvidia-ml.so.1")}


def lateness(path):
    """The 99th percentile of how late samples were, in seconds."""
    times = [when for when, in sqlite3.connect(path).execute(
        "SELECT time_ns FROM sample ORDER BY time_ns")]
    late = [(when - times[0]) % 10_000_000 / 1e9 for when in times[1:-1]]
    return statistics.quantiles(late, n=100)[-1]


def start_film(folder):
    """One of a minute, which takes longer than the command beside it."""
    path = folder / "filmed.sqlite"
    if not path.exists():
        subprocess.run([WATTMETER, "run", "-q", "--interval", "10ms", "--record", path, "--",
                        "sleep", "6"], check=True)
    return subprocess.Popen([WATTMETER, "plot", path, "-o", folder / "film.mp4", "--overwrite",
                             "--speed", "0.1"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def measure_lateness(folder):
    """In pairs: the same command at 100 samples a second with the view, without it, and
    without it beside a film that is made."""
    found = {"run": [], "watch": []}
    if shutil.which("ffmpeg") and (BUILD / "wattmeter-plot.so").exists():
        found["run beside a film"] = []
    for number in range(ROUNDS):
        for name in sorted(found, reverse=number % 2 == 0):
            path = folder / f"{name}{number}.sqlite"
            command = [WATTMETER, name.split()[0], "-q", "--interval", "10ms", "--record",
                       str(path), "--", "sleep", "4"]
            if name == "run":
                subprocess.run(command, check=True)
            elif name == "run beside a film":
                film = start_film(folder)
                subprocess.run(command, check=True)
                film.send_signal(signal.SIGTERM)
                film.wait()
            else:
                pid, terminal = start(command)
                try:
                    while os.read(terminal, 65536):
                        pass
                except OSError:
                    pass
                os.waitpid(pid, 0)
            found[name].append(lateness(path))
    for name, values in found.items():
        print(f"  {name:40} {statistics.median(values) * 1e6:6.0f} us  "
              f"[{min(values) * 1e6:.0f} .. {max(values) * 1e6:.0f}]")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        sleep = ["--", "sleep", str(WARM + SECONDS + 2)]
        for size in SIZES:
            print(f"On a terminal of {size[0]} x {size[1]} at 10 Hz, {SECONDS:g} s")
            row("watch, all processes", [WATTMETER, "watch"], b"q", size)
            for count in 0, 1, 8:
                row(f"watch, a command, {count} GPUs", [WATTMETER, "watch", *sleep], b"", size,
                    **gpus(folder, count))
            if shutil.which("htop"):
                row("htop", ["htop", "-d", "1"], b"q", size)
        print("\nHow late samples are at 100 a second, 99th percentile, median of "
              f"{ROUNDS} in pairs")
        measure_lateness(folder)


main()
