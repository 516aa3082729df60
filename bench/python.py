#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What measuring costs a program in Python: wattmeter's package beside other packages, and
the floors of this machine; `make bench` calls it after bench.py, whose tables these are.
Prints them and writes build/bench-python.json.

Each tool has an environment of its own under build/bench, where PyPI can be reached, and
runs python_costs.py there.
"""

import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

from bench import BUILD, ENVIRONMENT, Row, Table, cpu_seconds, install, tool_processes

COSTS = pathlib.Path(__file__).resolve().with_name("python_costs.py")
PACKAGE = BUILD / "python"
OURS = "wattmeter"
BARE = "floor: a bare interpreter"
LOCK = "floor: with a threading.Lock"
CALL = "floor: a function called"
CLOCK = "floor: two perf_counter()"
THREAD = "floor: a thread started, joined"
AWAIT = "floor: a coroutine awaited"
PEERS = {"gpu_tracker": "gpu-tracker==5.0.1", "codecarbon": "codecarbon==3.3.2",
         "zeus": "zeus==0.16.0", "nvitop": "nvitop==1.7.2", "tirex_tracker": "tirex-tracker==0.2.24"}
IMPORTS = {OURS: "import wattmeter", "with track": "from wattmeter import track",
           "gpu_tracker": "import gpu_tracker", "codecarbon": "import codecarbon",
           "zeus": "from zeus.monitor import ZeusMonitor", "nvitop": "import nvitop",
           "tirex_tracker": "import tirex_tracker"}
MEMORY = "; print(open('/proc/self/statm').read().split()[1])"


class Interpreters:
    """The interpreter of each tool, and why one is not there. Some tools leave files where
    they run: in `scratch`."""

    def __init__(self, scratch):
        self.scratch = scratch
        homes = {name: install(name, requirement) for name, requirement in PEERS.items()}
        home, why = install("python")
        if not any(PACKAGE.glob("wattmeter/_core*.so")):
            home, why = None, "the package is not built"
        self.homes = {OURS: (home, why), **homes}

        self.environment = {**ENVIRONMENT, "PYTHONPATH": str(PACKAGE)}
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def home(self, name):
        return self.homes.get(name, self.homes[OURS])

    def why(self, name):
        return self.home(name)[1]

    def command(self, name, *words):
        return [str(self.home(name)[0] / "bin" / "python3"), *map(str, words)]

    def run(self, name, *words):
        """What it prints, as numbers."""
        done = subprocess.run(self.command(name, *words), env=self.environment, check=False,
                              cwd=self.scratch, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {words}: status {done.returncode}\n{done.stderr}")
        return [float(word) for word in done.stdout.split()]

    def cost(self, name, what):
        return self.run(name, COSTS, name, what, self.scratch)


def in_turns(tools, names, measure, rounds=3):
    """A row for each name, whose tool is measured in turns with the others."""
    samples = {name: [] for name in names if not tools.why(names[name])}
    for _ in range(rounds):
        for name in random.sample(list(samples), len(samples)):
            samples[name] += measure(names[name])
    return [Row(name, samples.get(name, ()), tools.why(tool)) for name, tool in names.items()]


def measure_import(tools):
    """Seconds and bytes over an interpreter that imports nothing."""
    texts = {BARE: "pass" + MEMORY} | {name: text + MEMORY for name, text in IMPORTS.items()}
    seconds, memory = {name: [] for name in texts}, {name: [] for name in texts}
    for number in range(41):
        for name in random.sample(list(texts), len(texts)):
            if tools.why(name) or (name in PEERS and number % 10):
                continue
            began = time.perf_counter()
            pages, = tools.run(name, "-c", texts[name])
            if number:  # the first round warms caches up
                seconds[name].append(time.perf_counter() - began)
                memory[name].append(pages * os.sysconf("SC_PAGESIZE"))
    tables = []
    for title, unit, scale, samples, budget in (("Import", "ms", 1e3, seconds, 0.010),
                                                ("Memory after the import", "MB", 1e-6, memory, 3e6)):
        bare = statistics.median(samples[BARE] or [0])
        rows = [Row(IMPORTS[name], [value - bare for value in samples[name]], tools.why(name))
                for name in IMPORTS]
        tables.append(Table(f"{title}, over a bare interpreter", unit, scale, rows, budget,
                            note=f"the bare interpreter has {bare * scale:.3g} {unit}"))
    return tables


def measure_sessions(tools):
    """A session's start and stop: the first one of a process, and the later ones, with a
    pause of 10 ms before each and without."""
    names = {OURS: OURS, "wattmeter.compat.gpu_tracker": "wattmeter_compat", THREAD: "thread",
             **{name: name for name in PEERS}}
    first = in_turns(tools, names, lambda name: [tools.cost(name, "sessions")], 5)
    at_once = in_turns(tools, names, lambda name: [tools.cost(name, "sessions-at-once")], 5)
    tables = []
    for title, measured, chosen, budget in (
            ("the first in a process", first, slice(0, 1), None),
            ("later ones, after a pause of 10 ms", first, slice(1, None), 0.002),
            ("later ones, back to back", at_once, slice(1, None), 0.002)):
        rows = [Row(row.name, [value for values in row.samples for value in values[chosen]], row.why)
                for row in measured]
        tables.append(Table(f"Start + stop in Python, without a GPU, {title}", "ms", 1e3, rows, budget))
    return tables


def measure_blocks(tools):
    """Each sample is the mean of many."""
    def measure(what):
        return lambda name: tools.cost(name, what)

    floors = {LOCK: "lock", CLOCK: "clock"}
    peers = {name: name for name in PEERS}
    decorators = {name: name for name in PEERS if name not in ("zeus", "nvitop")}
    held = {"wattmeter, the object is kept": "wattmeter_held"}
    return [
        Table("A region recorded, as context manager", "us", 1e6,
              in_turns(tools, {OURS: OURS, **held, **floors, **peers}, measure("blocks")), 2.2, LOCK),
        Table("A region recorded, as decorator", "us", 1e6,
              in_turns(tools, {OURS: OURS, LOCK: "lock", CALL: "function", **decorators},
                       measure("calls")), 1.7, LOCK),
        Table("A region recorded in a task of asyncio, as context manager", "us", 1e6,
              in_turns(tools, {OURS: "wattmeter_task", "wattmeter, inside another one": "wattmeter_task_inside"},
                       measure("blocks")), 0.5e-6),
        Table("A region recorded in a task of asyncio, as decorator", "us", 1e6,
              in_turns(tools, {OURS: "wattmeter_task_call", "wattmeter, of a coroutine": "wattmeter_task_await",
                               AWAIT: "coroutine"}, measure("blocks")), 0.4e-6),
        Table("A region that nobody records, as context manager", "us", 1e6,
              in_turns(tools, {OURS: OURS, **held, **floors}, measure("idle-blocks"))),
        Table("A region that nobody records, as decorator", "us", 1e6,
              in_turns(tools, {OURS: OURS, CALL: "function"}, measure("idle-calls"))),
    ]


def measure_running(tools):
    """What works beside a program that sleeps, when it has long started."""
    names = {OURS: OURS, "floor: the program alone": "function", **{name: name for name in PEERS}}
    window, threads = 3.0, {}

    def measure(name):
        command = tools.command(name, COSTS, name, window + 4, tools.scratch)
        process = subprocess.Popen(command, env=tools.environment, cwd=tools.scratch,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(4)
        pids = tool_processes(process.pid, "")
        before, began = sum(map(cpu_seconds, pids)), time.monotonic()
        time.sleep(window)
        after, ended = sum(map(cpu_seconds, pids)), time.monotonic()
        threads[name] = sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids) - 1
        process.wait()
        return [(after - before) / (ended - began)]

    rows = in_turns(tools, names, measure, 2)
    counts = [Row(row.name, [threads[names[row.name]]] if row.samples else (), row.why) for row in rows]
    return [Table("Share of one core at 10 Hz, beside a program in Python that sleeps", "%", 100, rows,
                  0.005, note="zeus takes no samples without a GPU"),
            Table("Threads of the tool, in whatever process", "", 1, counts, 1)]


def measure_leaks(tools):
    title = "Memory that 1000 sessions with a region each leave behind"
    if tools.why(OURS):
        return [Table(title, "kB", 1e-3, [Row(OURS, why=tools.why(OURS))])]
    kept, threads, files = tools.cost(OURS, "stays")
    return [Table(title, "kB", 1e-3, [Row(OURS, [kept])], 2.5e5,
                  note=f"{threads:.0f} threads, {files:.0f} descriptors")]


def main():
    tables = []
    with tempfile.TemporaryDirectory() as scratch:
        tools = Interpreters(scratch)
        for measure in (measure_import, measure_sessions, measure_blocks, measure_running,
                        measure_leaks):
            for table in measure(tools):
                tables.append(table)
                table.print()
                sys.stdout.flush()
    result = json.dumps([table.as_json() for table in tables], indent=1)
    (BUILD / "bench-python.json").write_text(result + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
