#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What measuring costs: wattmeter beside the floors of this machine and beside
other tools, in one run; `make bench` calls it. Prints tables and writes
build/bench.json.

Whatever is compared is run in turns, so that a slow minute of the machine hits
all alike, and medians are shown with their quartiles. Budgets are ratios to a floor
or a peer of the same run where there is one, for a millisecond means another thing on
each machine. No GPU driver is opened but the fake one, for the cluster.
"""

import contextlib
import json
import os
import pathlib
import platform
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import sessions

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
WATTMETER = str(BUILD / "wattmeter")
SPAWN, TARGET, FLOOR, SNIPPET, REGION = (
    str(BUILD / "bench" / name) for name in ("spawn", "target", "floor", "snippet", "region"))
GPU_TRACKER = "gpu-tracker==5.0.1"
GNU_TIME = "GNU time"
ENVIRONMENT = {**os.environ, "WATTMETER_NVML": "/nonexistent"}
FAKE_NVML = BUILD / "tests" / "fake" / "libnvidia-ml.so.1"
CLUSTER = ROOT / "tests" / "fake" / "scenarios" / "cluster.json"


class Row:
    """One line of a table: what somebody's tool costs, by several samples."""

    def __init__(self, name, samples=(), why=None):
        self.name, self.samples, self.why = name, list(samples), why

    def quartiles(self):
        if len(self.samples) < 2:
            return self.samples * 3
        low, middle, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return [low, middle, high]


class Table:
    """The first row is ours; the others are shown as ratios to it. `budget` is for our
    median: a multiple of the median of the row called `floor`, or an amount where there
    is none."""

    def __init__(self, title, unit, scale, rows, budget=None, floor=None, note=""):
        self.title, self.unit, self.scale, self.rows = title, unit, scale, rows
        self.budget, self.floor, self.note = budget, floor, note

    def floor_median(self):
        """1 where the budget is an amount; None where the floor could not be measured."""
        if self.floor is None:
            return 1
        row = next((row for row in self.rows if row.name == self.floor), None)
        return row.quartiles()[1] if row and row.samples else None

    def verdict(self):
        if self.budget is None or not self.rows[0].samples:
            return ""
        if self.floor is None:
            limit = f"budget {self.text(self.budget)} {self.unit}: "
        else:
            limit = f"budget {self.budget:g} x {self.floor}: "
        floor = self.floor_median()
        if not floor or floor < 0:
            return limit + "not known here"
        low, middle, _ = (value / floor for value in self.rows[0].quartiles())
        if self.floor is not None:
            limit += f"{middle:.3g} x, "
        if middle <= self.budget:
            return limit + "ok"
        return limit + ("OVER" if low > self.budget else "over, but within the noise")

    def text(self, value):
        value *= self.scale
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"

    def print(self):
        print(f"\n{self.title}")
        ours = 0 if self.rows[0].why else self.rows[0].quartiles()[1]
        for row in self.rows:
            if row.why:
                print(f"  {row.name:<34} n/a: {row.why}")
                continue
            low, middle, high = row.quartiles()
            line = f"  {row.name:<34}{self.text(middle):>9} {self.unit:<3}"
            if len(row.samples) > 1:
                line += f" [{self.text(low)} .. {self.text(high)}]"
            if row is not self.rows[0] and middle > 0 and ours > 0:
                line = f"{line:<70}{middle / ours:.3g} times ours"
            print(line)
        for line in filter(None, (self.verdict(), self.note)):
            print(f"  {line}")

    def as_json(self):
        rows = []
        for row in self.rows:
            entry = {"name": row.name}
            if row.why:
                entry["why"] = row.why
            else:
                low, middle, high = row.quartiles()
                entry |= {"median": middle, "lower_quartile": low, "upper_quartile": high,
                          "samples": len(row.samples)}
            rows.append(entry)
        return {"title": self.title, "budget": self.budget, "floor": self.floor, "rows": rows,
                "note": self.note, "verdict": self.verdict()}


def run(argv):
    """Runs a command to its end; its standard output."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=ENVIRONMENT, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(argv)}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def wattmeter(interval, *options):
    return [WATTMETER, "run", "-q", "-i", interval, *options, "--"]


def find_peers():
    """Other tools as (name, prefix or None, why not). gpu_tracker gets an
    environment of its own, once."""
    peers = []
    if not shutil.which("perf"):
        peers.append(("perf stat", None, "perf is not installed"))
    elif subprocess.run(["perf", "stat", "-o", "/dev/null", "true"], check=False,
                        capture_output=True).returncode != 0:
        peers.append(("perf stat", None, "perf stat may not be used here"))
    else:
        peers.append(("perf stat", ["perf", "stat", "-o", "/dev/null", "--"], None))
    if os.access("/usr/bin/time", os.X_OK):
        peers.append((GNU_TIME, ["/usr/bin/time", "-o", "/dev/null"], None))
    else:
        peers.append((GNU_TIME, None, "it is not installed"))

    home, why = install("gpu_tracker", GPU_TRACKER)
    peers.append(("gpu_tracker", [str(home / "bin" / "gpu-tracker")] if home else None, why))
    return peers


def install(name, *requirements):
    """An environment of Python under build/bench, once; or None and why not."""
    home = BUILD / "bench" / name
    ready = home / "ready"
    if not ready.exists():
        print(f"installing {' '.join(requirements) or name} under build/bench, once", flush=True)
        shutil.rmtree(home, ignore_errors=True)
        pip = [str(home / "bin" / "python3"), "-m", "pip", "install", "-q", *requirements]
        for argv in ([sys.executable, "-m", "venv", str(home)], pip if requirements else ["true"]):
            result = subprocess.run(argv, check=False, capture_output=True, text=True)
            if result.returncode != 0:
                lines = (result.stderr or result.stdout).strip().split("\n")
                return None, lines[-1] or "no venv"
        ready.touch()
    return home, None


def with_gpu_tracker(prefix, argv):
    return [*prefix, "--st", "0.1", "--disable-logs", "-e", shlex.join(argv)]


def measure_delay(peers, scratch):
    """How much later a command begins and ends than when spawned bare."""
    stamp = str(scratch / "stamp")
    target = [TARGET, "stamp", stamp]
    commands = {"bare": target, "wattmeter run": [*wattmeter("100ms"), *target]}
    for name, prefix, _ in peers:
        if prefix:
            commands[name] = (with_gpu_tracker(prefix, target) if name == "gpu_tracker"
                              else [*prefix, *target])

    begins = {name: [] for name in commands}
    ends = {name: [] for name in commands}
    for number in range(201):
        for name in random.sample(list(commands), len(commands)):
            if name == "gpu_tracker" and number % 40:
                continue
            began, ended = map(float, run([SPAWN, stamp, *commands[name]]).split()[-2:])
            if number:  # the first round warms caches up
                begins[name].append(began)
                ends[name].append(ended)

    tables = []
    for title, times, budget in (("until the command begins", begins, 2),
                                 ("until the command's end is known", ends, None)):
        bare = statistics.median(times["bare"])
        rows = [Row("wattmeter run", (value - bare for value in times["wattmeter run"]))]
        rows += [Row(name, (value - bare for value in times[name])) if prefix
                 else Row(name, why=why) for name, prefix, why in peers]
        tables.append(Table(f"Delay added to a command, {title}", "ms", 1e3, rows, budget, GNU_TIME,
                            f"spawned bare it takes {bare * 1e3:.3g} ms"))
    return tables


def measure_first_delay(peers, scratch):
    """The same for a run that is the first for a while: in between, the kernel has
    switched off what counts for perf, and the caches have forgotten all."""
    stamp = str(scratch / "stamp")
    target = [TARGET, "stamp", stamp]
    begins = {"bare": [], "wattmeter run": [], "perf stat": []}
    prefixes = {name: prefix for name, prefix, _ in peers} | {"bare": [], "wattmeter run": wattmeter("100ms")}
    for _ in range(5):
        for name in random.sample(list(begins), len(begins)):
            if prefixes[name] is not None:
                time.sleep(2.2)
                begins[name].append(float(run([SPAWN, stamp, *prefixes[name], *target]).split()[-2]))

    bare = statistics.median(begins["bare"])
    rows = [Row(name, (value - bare for value in begins[name]), None if begins[name] else "not here")
            for name in ("wattmeter run", "perf stat")]
    return Table("Delay added to a command, until it begins, 2 s after the last one", "ms", 1e3, rows,
                 note=f"spawned bare it takes {bare * 1e3:.3g} ms; true where nobody else counts with perf")


def tool_processes(pid, target):
    """A process and its descendants, but for the target that they measure."""
    found = [pid]
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[0] != target.encode():
            found += tool_processes(int(child), target)
    return found


def cpu_seconds(pid):
    """CPU time of another process, to the nanosecond: the clock id that
    clock_getcpuclockid(3) makes of its pid."""
    return time.clock_gettime((~pid << 3) | 2)


def steady_cpu(command, target, settle, window, **environment):
    """CPU seconds that a tool uses per second of measuring, when it has long
    started. Processes that it starts and ends meanwhile are not in it."""
    process = subprocess.Popen(command, env={**ENVIRONMENT, **environment},
                               stdout=subprocess.DEVNULL)
    time.sleep(settle)
    pids = tool_processes(process.pid, target)
    before, began = sum(map(cpu_seconds, pids)), time.monotonic()
    time.sleep(window)
    after, ended = sum(map(cpu_seconds, pids)), time.monotonic()
    process.wait()
    return (after - before) / (ended - began)


def files_kept_open(pid):
    """The files of /proc and /sys that a process has open."""
    found = set()
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            path = os.readlink(entry.path)
        except FileNotFoundError:
            continue
        if path.startswith(("/proc/", "/sys/")) and os.path.isfile(path):
            found.add(path)
    return sorted(found)


def floor_of_timer(ticks):
    return float(run([FLOOR, "10", str(ticks)])) / ticks


def floor_of_files(target, ticks):
    """CPU seconds per tick of reading what wattmeter keeps open for this target,
    and nothing else; and how many files that are. smaps_rollup is left out: it
    is dear, and not read at each tick."""
    tracker = subprocess.Popen([*wattmeter("10s"), *target], env=ENVIRONMENT)
    time.sleep(0.5)
    files = [path for path in files_kept_open(tracker.pid) if "smaps" not in path]
    cost = float(run([FLOOR, "10", str(ticks), *files])) / ticks
    tracker.wait()
    return cost, len(files)


def measure_ticks(peers, what, target_for, budget):
    """CPU time per tick in the middle of a run. gpu_tracker works at its own
    default, ten times a second; its periods are longer than it is told, so that
    a tick of its costs at least what is shown."""
    window = 2.0
    ours, timer, reads = [], [], []
    for _ in range(3):
        target = target_for(window + 1.5)
        ours.append(steady_cpu([*wattmeter("10ms"), *target], target[0], 1.0, window) * 0.010)
        timer.append(floor_of_timer(int(window * 100)))
        cost, files = floor_of_files(target, int(window * 100))
        reads.append(cost)
    floor = f"floor: a timer and {files} files read"
    rows = [Row("wattmeter run -i 10ms", ours), Row("floor: a timer alone", timer), Row(floor, reads)]
    for name, prefix, why in peers:
        if name != "gpu_tracker":
            continue
        target = target_for(window + 3.0)
        rows.append(Row("gpu_tracker --st 0.1, at least", [
            steady_cpu(with_gpu_tracker(prefix, target), target[0], 2.0, window) * 0.1
            for _ in range(2)]) if prefix else Row(name, why=why))
    return Table(f"CPU time per tick, {what}", "us", 1e6, rows, budget, floor)


def measure_cluster():
    """The share of a core that a node full of GPUs costs. The fake driver's own
    part is in it, but the real one's is not."""
    title, name = "Share of one core, 64 GPUs with 200 processes each", "wattmeter run -i 100ms"
    if not FAKE_NVML.exists():
        return Table(title, "%", 100, [Row(name, why="the fake driver is not built")])
    window, rows = 3.0, []
    for label, scenario in ((name, CLUSTER), ("without a GPU", None)):
        gpus = {"WATTMETER_NVML": str(FAKE_NVML), "FAKE_NVML_SCENARIO": str(scenario)}
        target = ["sleep", str(window + 1.5)]
        rows.append(Row(label, [
            steady_cpu([*wattmeter("100ms"), *target], target[0], 1.0, window,
                       **(gpus if scenario else {})) for _ in range(3)]))
    return Table(title, "%", 100, rows, 0.015, note="at 10 Hz, with the fake driver's own time")


# What calls of NVML cost on H100s, in milliseconds.
H100_CALLS = {"nvmlDeviceGetTotalEnergyConsumption": 2.4, "nvmlDeviceGetProcessUtilization": 2.0}


def measure_costly_driver(scratch):
    """The share of a core that a 10 Hz run takes of a driver whose calls cost CPU time."""
    title, name = "Share of one core, a driver whose calls cost what an H100's do", "8 GPUs"
    if not FAKE_NVML.exists():
        return Table(title, "%", 100, [Row(name, why="the fake driver is not built")])
    window, rows = 10.0, []
    for label, count, calls in ((name, 8, H100_CALLS), ("one GPU", 1, H100_CALLS), ("8 GPUs, cheap calls", 8, {})):
        scenario = scratch / "costly.json"
        scenario.write_text(json.dumps({
            "gpus": [{"count": count, "processes": {"pid": 1}}],
            "faults": [{"call": call, "cpu_ms": ms} for call, ms in calls.items()]}))
        target = ["sleep", str(window + 3.5)]
        rows.append(Row(label, [
            steady_cpu([*wattmeter("100ms"), *target], target[0], 3.0, window, WATTMETER_NVML=str(FAKE_NVML),
                       FAKE_NVML_SCENARIO=str(scenario)) for _ in range(3)]))
    return Table(title, "%", 100, rows, 0.007, note="at 10 Hz, with the fake driver's own time")


def measure_snippets(scratch):
    """A start and a stop of a meter, with what it may have to read."""
    zone = scratch / "sys" / "class" / "powercap" / "intel-rapl:0"
    zone.mkdir(parents=True)
    for name, text in (("name", "package-0"), ("energy_uj", "5"), ("max_energy_range_uj", "262143328850")):
        (zone / name).write_text(text + "\n")
    package = {"WATTMETER_SYSFS": str(scratch / "sys")}
    gpu = {"WATTMETER_SYSFS": str(scratch), "WATTMETER_NVML": str(FAKE_NVML)}
    rows = []
    for name, extra in (("one package, as a file", package),
                        ("nothing to read", {"WATTMETER_SYSFS": str(scratch)}),
                        ("one GPU, of the fake driver", gpu)):
        if extra is gpu and not FAKE_NVML.exists():
            rows.append(Row(name, why="the fake driver is not built"))
            continue
        done = subprocess.run([SNIPPET, "3000"], env={**ENVIRONMENT, **extra}, check=True,
                              capture_output=True, text=True)
        rows.append(Row(name, [float(line) for line in done.stdout.split()]))
    return Table("A snippet's start and stop", "us", 1e6, rows)


def run_region(mode, rounds, prefix=(), **environment):
    """Seconds of one pair, several times."""
    done = subprocess.run([*prefix, REGION, mode, str(rounds)], env={**ENVIRONMENT, **environment},
                          check=True, capture_output=True, text=True)
    return [float(line) for line in done.stdout.split()]


TWO_CLOCKS = "floor: two readings of the clock"


def measure_regions(scratch):
    """A region's begin and end; each sample is the mean of many, one after the other."""
    rows = {"with a tracker": ("ring", 40), TWO_CLOCKS: ("clock", 40),
            "without a tracker": ("off", 40), "to a CSV file": ("file", 5), "to an SQLite file": ("file", 5)}
    files = {"to a CSV file": scratch / "regions.csv", "to an SQLite file": scratch / "regions.sqlite"}
    samples = {name: [] for name in rows}
    for _ in range(5):
        for name, (mode, rounds) in random.sample(list(rows.items()), len(rows)):
            extra = {"WATTMETER_REGIONS": str(files[name])} if name in files else {}
            samples[name] += run_region(mode, rounds, **extra)
    return Table("Region begin + end", "ns", 1e9, [Row(*row) for row in samples.items()], 1.2, TWO_CLOCKS)


def compare_many_regions(rounds):
    """Ten million pairs without a pause, and as many of readings of the clock."""
    ours, clock = [], []
    for _ in range(rounds):
        ours += run_region("many", 1, wattmeter("100ms"))
        clock += run_region("clocks", 1)
    return [Row("wattmeter run", ours), Row(TWO_CLOCKS, clock)]


def measure_many_regions():
    return Table("Region begin + end, ten million back to back under run", "ns", 1e9,
                 compare_many_regions(5), 1.7, TWO_CLOCKS)


@contextlib.contextmanager
def busy_loops():
    """As many as there are cores, as on a machine that computes."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
             for _ in range(len(os.sched_getaffinity(0)))]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def measure_many_regions_when_busy():
    with busy_loops():
        rows = compare_many_regions(9)
    return Table("Region begin + end, ten million pairs beside as many busy loops as cores", "ns", 1e9,
                 rows, 2.0, TWO_CLOCKS)


def measure_waits():
    """As a share of the time that such a loop takes, alone and recorded."""
    with tempfile.TemporaryDirectory() as folder:
        prefixes = {"wattmeter run": wattmeter("100ms"),
                    "with --record FILE.sqlite": wattmeter("100ms", "--overwrite", "--record",
                                                           str(pathlib.Path(folder) / "r.sqlite"))}
        rows = {name: [] for name in prefixes}
        for _ in range(5):
            for name, prefix in prefixes.items():
                rows[name] += run_region("waits", 1, prefix)
    return Table("Time that such a loop waits for the tracker", "%", 100,
                 [Row(*row) for row in rows.items()], 0.01)


def median_interval(samples):
    """About 95 % confidence for the median, from the order of the samples."""
    ordered = sorted(samples)
    reach = 0.98 * len(ordered) ** 0.5
    middle = (len(ordered) - 1) / 2
    return ordered[max(0, int(middle - reach))], ordered[min(len(ordered) - 1, int(middle + reach + 1))]


def measure_slowdown():
    """A program that keeps one core busy, alone and with a 1 kHz sampler."""
    rounds = 20_000_000
    rounds = int(rounds * 0.2 / float(run([TARGET, "burn", str(rounds)])))
    target = [TARGET, "burn", str(rounds)]
    slower = {"wattmeter run -i 1ms": [], "floor: a 1 kHz timer beside it": [], "nothing, again": []}
    for _ in range(40):
        seconds = {}
        for name in random.sample(["bare", *slower], len(slower) + 1):
            beside = None
            if name.startswith("floor"):
                beside = subprocess.Popen([FLOOR, "1", "1000000"], stdout=subprocess.DEVNULL)
            command = [*wattmeter("1ms"), *target] if name.startswith("wattmeter") else target
            seconds[name] = float(run(command))
            if beside:
                beside.kill()
                beside.wait()
        for name, samples in slower.items():
            samples.append(seconds[name] / seconds["bare"] - 1)
    intervals = {name: median_interval(samples) for name, samples in slower.items()}
    note = "95 % confidence for the medians: " + ", ".join(
        f"{low * 100:.2f} .. {high * 100:.2f} %" for low, high in intervals.values())
    return Table("Slowdown of a program that keeps one core busy, at 1 kHz", "%", 100,
                 [Row(name, samples) for name, samples in slower.items()], 0.0025, note=note)


def peak_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} has no VmHWM")


def measure_memory(peers, scratch):
    """The largest process of each tool, late in its run."""
    commands = {"wattmeter run -i 10ms": [*wattmeter("10ms"), "sleep", "2"],
                "with --record FILE.sqlite": [*wattmeter("10ms", "--record", str(scratch / "run.sqlite")),
                                              "sleep", "2"]}
    whys = {}
    for name, prefix, why in peers:
        if name == "gpu_tracker":
            commands[name] = with_gpu_tracker(prefix, ["sleep", "2"]) if prefix else None
            whys[name] = why
    rows = []
    for name, command in commands.items():
        if not command:
            rows.append(Row(name, why=whys[name]))
            continue
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
        time.sleep(1.8)
        rows.append(Row(name, [max(map(peak_bytes, tool_processes(process.pid, "sleep")))]))
        process.wait()
    return Table("Memory at its peak, the largest process of the tool", "MB", 1e-6, rows, 8e6)


def analyze_once(argv):
    """Seconds, and the bytes that it had at its peak."""
    began = time.monotonic()
    process = subprocess.Popen(argv, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{shlex.join(argv)}: status {process.returncode}")
    return time.monotonic() - began, usage.ru_maxrss * 1024


def measure_analysis(peers, scratch, suffix):
    """The whole command, from files as gpu_tracker writes them. Its own analysis of SQLite
    fails beyond some 1000 calls."""
    timepoints, marks = scratch / "tracking.sqlite", scratch / "calls.sqlite"
    if not marks.exists():
        sessions.write_tracking(timepoints, 36000)
        sessions.write_sub_tracking(marks, 36000, 10000)
    if suffix == ".csv":
        sessions.write_csv(timepoints.with_suffix(suffix), timepoints, with_static=True)
        sessions.write_csv(marks.with_suffix(suffix), marks, with_static=False)
    timepoints, marks = timepoints.with_suffix(suffix), marks.with_suffix(suffix)
    ours = [WATTMETER, "analyze", str(timepoints), "--regions", str(marks)]
    rows = [Row("wattmeter", [analyze_once(ours)[0] for _ in range(15)])]
    for name, prefix, why in peers:
        if name != "gpu_tracker" or suffix != ".csv":
            continue
        argv = prefix and [*prefix, "sub-track", "analyze", f"--tf={timepoints}", f"--stf={marks}"]
        rows.append(Row(name, [analyze_once(argv)[0]] if argv else [], why))
    # A hundredth of gpu_tracker's time, where it can do it at all.
    return Table(f"Analysis of 36,000 timepoints and 10,000 calls, {suffix}", "ms", 1e3, rows,
                 *((0.01, "gpu_tracker") if suffix == ".csv" else ()))


def measure_large_analysis():
    """Files of 1.8 GB, which are kept under build/bench."""
    title = "Analysis of 10 million timepoints and a million calls, .sqlite"
    folder = BUILD / "bench" / "large"
    timepoints, marks, ready = folder / "t.sqlite", folder / "calls.sqlite", folder / "ready"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if shutil.disk_usage(folder).free < 6e9:
            row = Row("wattmeter", why="there is no room for its files")
            return Table(title, "s", 1, [row])
        print("writing the files of a large session under build/bench, once", flush=True)
        sessions.write_tracking(timepoints, 10_000_000)
        sessions.write_sub_tracking(marks, 10_000_000, 1_000_000)
        ready.touch()
    argv = [WATTMETER, "analyze", str(timepoints), "--regions", str(marks)]
    scan = ["sqlite3", str(timepoints),
            "SELECT sum(main_ram), sum(combined_ram), sum(cpu_combined_sum_utilization_percent) FROM data"]
    floor = "floor: sqlite3 sums three columns"
    samples, scans = [], []
    for _ in range(3):
        samples.append(analyze_once(argv))
        if shutil.which("sqlite3"):
            scans.append(analyze_once(scan)[0])
    peak = max(one[1] for one in samples)
    return Table(title, "s", 1, [Row("wattmeter", [one[0] for one in samples]),
                                 Row(floor, scans, None if scans else "sqlite3 is not installed")],
                 1.25, floor, f"{peak / 1e6:.0f} MB at its peak, budget 100: "
                 f"{'ok' if peak <= 100e6 else 'OVER'}; from the page cache")


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as text:
        for line in text:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def main():
    began = time.monotonic()
    load = os.getloadavg()[0]
    machine = {"cpu": cpu_model(), "cores": os.cpu_count(), "kernel": platform.release(),
               "load1_before": load}
    print(f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}")
    if load > 0.5:
        print(f"The load average is {load:.2f}: something else is running, and will be seen below.")
    peers = find_peers()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        tables = measure_delay(peers, scratch)
        for table in tables:
            table.print()
        for measure in (
            lambda: measure_first_delay(peers, scratch),
            lambda: measure_ticks(peers, "one process",
                                  lambda seconds: ["sleep", str(seconds)], 1.3),
            lambda: measure_ticks(peers, "100 sleeping children",
                                  lambda seconds: [TARGET, "family", "100", str(seconds)], 0.4),
            measure_cluster,
            lambda: measure_costly_driver(scratch),
            measure_slowdown,
            lambda: measure_memory(peers, scratch),
            lambda: measure_snippets(scratch),
            lambda: measure_regions(scratch),
            measure_many_regions,
            measure_many_regions_when_busy,
            measure_waits,
            lambda: measure_analysis(peers, scratch, ".csv"),
            lambda: measure_analysis(peers, scratch, ".sqlite"),
            measure_large_analysis,
        ):
            tables.append(measure())
            tables[-1].print()
            sys.stdout.flush()
    result = {"machine": machine, "tables": [table.as_json() for table in tables]}
    (BUILD / "bench.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"\nbuild/bench.json has all of it ({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()
