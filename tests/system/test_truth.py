#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is true of every report, whatever the command does: of random trees of processes
that fork, execute, take and give back memory, compute, end early and leave orphans.
WM_TREES says how many, from WM_FIRST_TREE on; `make bench-truth` takes a thousand."""

import bisect
import concurrent.futures
import contextlib
import csv
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tap
from tap import case, wattmeter

TREES = int(os.environ.get("WM_TREES", "100"))
FIRST = int(os.environ.get("WM_FIRST_TREE", "0"))
PARTS = ("main", "descendants", "combined")
FORMATS = ("sqlite", "csv")
MODEL_WATTS = 5, 20
GPUS = {"WATTMETER_NVML": str(tap.BUILD / "tests" / "fake" / "libnvidia-ml.so.1"),
        "FAKE_NVML_SCENARIO": str(tap.SOURCE / "tests" / "fake" / "scenarios" / "demo.json")}
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}

# Of what runs, where cores are stolen.
STOLEN = 0.2

# Sums are taken in doubles.
ROUNDING = 1 + 1e-9

# The kernel counts pages by CPU, and adds that up now and then.
PAGES = 1_000_000


def no_more(what, less, more):
    """Where both are known."""
    assert less is None or more is None or less <= more * ROUNDING, f"{what}: {less} > {more}"


def check_memory(ram, why):
    for kind in ("total_rss", "private_rss", "shared_rss"):
        main, descendants, whole = (ram[part][kind] for part in PARTS)
        no_more(f"main in whole, {kind}", main, whole)
        no_more(f"descendants in whole, {kind}", descendants, whole)
        if None not in (main, descendants):
            no_more(f"whole of its parts, {kind}", whole, main + descendants)
        lacks = f"max_ram.descendants.{kind}" in why
        assert not lacks or f"max_ram.combined.{kind}" in why, (kind, ram, why)
    for part in PARTS:
        told = ram[part]
        no_more(f"{part} private", told["private_rss"], told["total_rss"])
        no_more(f"{part} shared", told["shared_rss"], told["total_rss"])
        no_more(f"{part} low", told.get("total_rss_low"), told["total_rss"])
        no_more(f"{part} high", told["total_rss"], told.get("total_rss_high"))


def check_processes(r):
    main = main_process(r)
    for process in r["processes"]["peaks"]:
        name = "combined" if main is None else "main" if process is main else "descendants"
        part = r["max_ram"][name]
        no_more("a process", process["max_memory"], part["total_rss"])
        no_more("a process's private memory", process["max_private_memory"], part["private_rss"])
    no_more("processes at once", r["processes"]["max_at_once"], r["processes"]["seen"])


def main_process(r):
    """The one whose parent is none of them; None where there are several, as of orphans."""
    peaks = r["processes"]["peaks"]
    pids = {process["pid"] for process in peaks}
    first = [process for process in peaks if process["parent"] not in pids]
    return first[0] if len(first) == 1 else None


def check_cpu(r):
    use, used = r["cpu_utilization"], r["cpu_time"]
    no_more("the listed processes", sum(process["cpu_seconds"] or 0
                                        for process in r["processes"]["peaks"]), used["total"])
    cores = use["system_core_count"]
    for part in ("system", *PARTS):
        no_more(f"{part} mean", use[part]["mean_sum_percent"], use[part]["max_sum_percent"])
        no_more(f"{part} of all cores", use[part]["max_sum_percent"], 100 * cores)
        no_more(f"{part} of each core", use[part]["max_hardware_percent"], 100)
    for part in PARTS[:2]:
        no_more(part, use[part]["mean_sum_percent"], use["combined"]["mean_sum_percent"])
        no_more(part, use[f"{part}_n_threads"], use["combined_n_threads"])
    tap.near(used["main"] + used["descendants"], used["total"], 1e-9, "CPU time")


def check_energy(r):
    energy = r["energy"]
    no_more("mean power", energy["power"]["mean"], energy["power"]["max"])
    for package in energy["cpu"]["packages"]:
        no_more("modelled mean", package["power"], MODEL_WATTS[1] * (1 + 1e-6))
    if not r["gpus"]:
        dram = sum(memory["power"] for memory in energy["cpu"]["dram"])
        no_more("modelled peak", energy["power"]["max"], (MODEL_WATTS[1] + dram) * (1 + 1e-6))
    for gpu, used in zip(r["gpus"], energy["gpus"]):
        for what in ("power", "utilization", "memory", "temperature"):
            no_more(f"GPU {what}", gpu[what]["mean"], gpu[what]["max"])
        if used["energy"] is not None:
            no_more("GPU power", gpu["power"]["mean"], gpu["power"]["max"])


def check_text(text, r):
    """Figures of main and of the descendants, as people read them."""
    amount = r"(?:at least )?(n/a|[\d.]+ \w*B)"
    found = re.search(f"main {amount}, descendants {amount}\n", text)
    watts = re.findall(r"([\d.]+) W on average, peak ([\d.]+) W", text)
    for mean, peak in watts:
        assert float(mean) <= float(peak), (mean, peak)
    if not found:
        assert (r["processes"]["max_at_once"] or 0) < 2, r["max_ram"]
        return
    for part, words in zip(PARTS, found.groups()):
        told = r["max_ram"][part]["total_rss"]
        assert (words == "n/a") == (told is None), (part, words, told)
        if told is not None:
            number, unit = words.split()
            tap.near(float(number) * UNITS[unit], told, told * 0.006, part)


def samples_of(recording):
    """Rows of a recording of any format, by column."""
    if recording.suffix == ".json":
        whole = tap.json.loads(recording.read_text())
        return [dict(zip(whole["columns"], row)) for row in whole["samples"]]
    if recording.suffix == ".csv":
        with open(recording, newline="", encoding="utf-8") as file:
            lines = list(csv.reader(file))[2:]
        rows = [dict(zip(lines[0], map(number, line))) for line in lines[1:]]
        return [row for row in rows if row.get("time_ns") is not None]
    with sqlite3.connect(recording) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM sample")]


def number(cell):
    try:
        return float(cell)
    except ValueError:
        return None


def check_samples(recording, r):
    rows = samples_of(recording)
    assert len(rows) == r["tool"]["ticks"], (len(rows), r["tool"])
    cores = r["cpu_utilization"]["system_core_count"]
    for row in rows:
        for part in ("system", *PARTS):
            no_more(f"{part} of all cores in a sample",
                    row.get(f"cpu_{part}_sum_utilization_percent"), 100 * cores)
        main, descendants, whole = (row[f"{part}_memory_total_B"] for part in
                                    ("main", "descendants", "tree"))
        if whole is None:
            continue
        no_more("low of a sample", row["tree_memory_total_low_B"], whole)
        no_more("high of a sample", whole, row["tree_memory_total_high_B"])
        no_more("main in a sample", main, whole)
        no_more("descendants in a sample", descendants, whole)
        if main is not None:
            no_more("sum in a sample", whole, main + descendants)
        for part, name in zip(PARTS, ("main", "descendants", "tree")):
            for kind in ("total", "private", "shared"):
                told = r["max_ram"][part][f"{kind}_rss"]
                assert told is not None or not row[f"{name}_memory_{kind}_B"], (part, kind, row)
                no_more(f"a sample's {kind}", row[f"{name}_memory_{kind}_B"], told)


def between(kind):
    """What stands between us and CPU time: what goes in front of the command, and variables."""
    if kind in ("denied", "left"):
        refused = "perf_event_open" + ",mkdir" * (kind == "denied")
        return [tap.HELPERS / "deny", refused], {}
    if kind == "stolen" and not tap.SANITIZED:
        return [], {"LD_PRELOAD": str(tap.HELPERS / "stolen.so"), "WM_STOLEN": str(STOLEN)}
    return [], {}


def try_tree(seed):
    with tempfile.TemporaryDirectory(prefix="wattmeter-test-") as name:
        folder = Path(name)
        form = FORMATS[seed // 2 % 2]
        recording, log = folder / f"r.{form}", folder / "log"
        interval = ("3ms", "10ms", "100ms")[seed % 3]
        before, env = between(("plain", "denied", "stolen", "plain", "plain")[seed % 5])
        if seed % 2:
            env.update(GPUS)
        words = [*before, tap.WATTMETER, "run", "--json", "-o", folder / "report.json",
                 "-i", interval, "--record", recording, "--cpu-watts",
                 "{}:{}".format(*MODEL_WATTS), "--", "sh", "-c", 'exec "$@" 3>"$0"',
                 log, tap.HELPERS / "random_tree", seed]
        done = subprocess.run(list(map(str, words)), env=tap.environment(**env), timeout=300,
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
        r = tap.json.loads((folder / "report.json").read_text())
        check_memory(r["max_ram"], r["why"])
        check_processes(r)
        check_cpu(r)
        check_energy(r)

        # What processes knew of themselves; those that outlive the command are no part of it.
        # A sanitizer's memory, which the command inherits up to its exec, hides its own peak.
        peaks = dict(map(int, line.split()) for line in log.read_text().splitlines())
        main = main_process(r)
        if main and main["pid"] in peaks and not tap.SANITIZED:
            whole = r["max_ram"]["combined"]
            no_more("VmHWM of main", peaks[main["pid"]] * 1024 - PAGES,
                    max(whole["total_rss"], whole.get("total_rss_high") or 0))

        again = wattmeter("report", "--json", recording)
        stored = tap.json.loads(again.stdout)
        for key in ("max_ram", "cpu_utilization", "cpu_time", "processes", "energy", "gpus"):
            assert stored[key] == r[key], (key, stored[key], r[key])
        check_text(wattmeter("report", "-v", recording).stdout, r)
        exported = wattmeter("export", recording, "-o", folder / "r.json")
        assert exported.returncode == 0, exported
        for kept in recording, folder / "r.json":
            check_samples(kept, r)


def try_safely(seed):
    try:
        try_tree(seed)
    except (AssertionError, subprocess.TimeoutExpired) as trouble:
        return f"tree {seed}: {trouble}"
    return None


@case(f"{TREES} random trees: parts and whole, means and peaks, everywhere")
def _(folder):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        wrong = list(filter(None, pool.map(try_safely, range(FIRST, FIRST + TREES))))
    assert not wrong, "\n".join([f"{len(wrong)} of {TREES}", *wrong[:20]])


# How a command treats its children.
HOWS = "waits", "ignores", "nocldwait", "orphans"
CHILDREN, CHILD_MS, OWN_MS = 12, 4, 300
TRIES = 10
LEAST = "cpu_time.total"

# Beyond what a process can read of itself: its making, its end.
ENDS = 0.001

# A command that goes to the root of the cgroups, where that may be written to.
LEAVE = """for procs in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/unified/cgroup.procs; do
    test -w $procs && echo $$ > $procs && break
done 2> /dev/null
exec "$@" """


def used_by(kind, how, children, within, folder):
    """What a command knows that it and its children used, and the report on it."""
    words = [tap.HELPERS / "cpu_truth", *["within"] * within, how, children, CHILD_MS, OWN_MS]
    before, env = between(kind)
    if kind == "left":
        words = ["sh", "-c", LEAVE, "sh", *words]
    output = folder / f"{kind}-{how}-{children}-{within}.json"
    recording = output.with_suffix(".csv")
    done = subprocess.run(
        [str(word) for word in (*before, tap.WATTMETER, "run", "--json", "-o", output,
                                "-i", "3ms", "--record", recording, "--", *words)],
        env=tap.environment(**env), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done
    return *map(float, done.stdout.split()), tap.json.loads(output.read_text()), recording


def check_account(what, blind, how, own, others, r):
    """`blind`: no counter helps; then nothing shows children nobody waited for but a look at
    the right time. What is no more than the truth is returned."""
    used, true = r["cpu_time"], own + others
    what = f"{what}: {used}, in truth {own} + {others}"
    print("#", what, r["why"].get(LEAST, ""))
    check_cpu(r)
    most = true + ENDS * (2 + 2 * CHILDREN) + 0.02 * true
    no_more(what, used["total"], most)
    if LEAST not in r["why"] and not (blind and how == "nocldwait"):
        # On a busy machine perf's clock has up to a millisecond less of a child than the
        # child's own, which shows where nobody waits for it.
        unwaited = CHILDREN if how in ("ignores", "nocldwait") else 0
        no_more(what, true, used["total"] + ENDS + 0.02 * true + 0.001 * unwaited)
    if blind and how == "ignores":
        assert LEAST in r["why"], what
    return most


def try_account(kind, how, children, within, folder):
    """Whether the whole is known, not the least of it alone."""
    own, others, r, recording = used_by(kind, how, children, within, folder)
    blind = kind == "denied" or "left its cgroup" in r["cpu_time"]["method"]
    what = f"{kind}, {how}, {children} children{', within' * within}"
    most = check_account(what, blind, how, own, others, r)
    for row in samples_of(recording):
        no_more(f"at a sample: {what}", row["tree_cpu_time_s"], most)
    if not within:
        tap.near(r["cpu_time"]["main"], own, 2 * ENDS + 0.01 * own, what)
    if children == 0 and not within:
        assert r["cpu_time"]["descendants"] == 0, what
    return LEAST not in r["why"]


def try_known(kind, how, children, within, folder):
    """Where all children are waited for the whole is known, but for a run of which interrupts
    or the hypervisor took time, which the kernel tells of late and in long steps."""
    waited = how in ("waits", "orphans")
    assert any(try_account(kind, how, children, within, folder) or not waited
               for _ in range(TRIES)), f"{kind}, {how}, {children} children: never known"


@case("CPU time of commands that know it: with perf, without, and while cores are stolen")
def _(folder):
    if tap.SANITIZED:
        raise tap.Skip("a sanitizer takes no library that is preloaded")
    for kind in "plain", "denied", "stolen", "left":
        for within in False, True:
            try_known(kind, "waits", 0, within, folder)
            for how in HOWS:
                try_known(kind, how, CHILDREN, within, folder)


def try_attached(kind, how, folder):
    before, env = between(kind)
    output = folder / f"attached-{kind}-{how}.json"
    recording = output.with_suffix(".csv")
    words = ["sh", "-c", 'read go; exec "$@"', "sh", tap.HELPERS / "cpu_truth", "within", how,
             CHILDREN, CHILD_MS, OWN_MS]
    with subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as target:
        words = [*before, tap.WATTMETER, "attach", "--json", "-o", output, "-i", "3ms",
                 "--record", recording, target.pid]
        with subprocess.Popen(list(map(str, words)), env=tap.environment(**env)) as watcher:
            tap.await_sample(recording)
            own, others = map(float, target.communicate("go\n", timeout=300)[0].split())
            assert watcher.wait(300) == 0
    check_account(f"attached, {kind}, {how}", kind == "denied", how, own, others,
                  tap.json.loads(output.read_text()))


@case("attached to such commands: no more than they used, and all that is listed")
def _(folder):
    for kind in "plain", "denied", "stolen":
        for how in HOWS:
            try_attached(kind, how, folder)


# Has a hundred and twenty idle children, computes until its input ends, and then tells the
# nanoseconds of CPU time that it had used by each moment.
WORKER = """
import os, select, sys, time
idle = [os.posix_spawn("/bin/sleep", ["sleep", "600"], os.environ) for _ in range(120)]
print("ready", flush=True)
log = []
while not select.select([sys.stdin], [], [], 0)[0]:
    log.append((time.monotonic_ns(), time.process_time_ns()))
    for _ in range(2000):
        pass
for pid in idle:
    os.kill(pid, 9)
print("\\n".join(f"{when} {used}" for when, used in log))
"""


def used_at(log, when):
    later = bisect.bisect([moment for moment, _ in log], when)
    (from_, least), (to, most) = log[later - 1], log[later]
    return least + (most - least) * (when - from_) / (to - from_)


@case("CPU time of a tree that runs already is of the session, to the moment", tries=5)
def _(folder):
    before, env = between("denied")
    recording, output = folder / "attached.sqlite", folder / "attached.json"
    with subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as worker:
        assert worker.stdout.readline() == "ready\n"
        done = subprocess.run(
            [*before, tap.WATTMETER, "attach", "-d", "1", "--json", "-o", output, "--record", recording,
             "--overwrite", str(worker.pid)], env=tap.environment(**env), stderr=subprocess.PIPE, check=False)
        told, _ = worker.communicate("")
    assert done.returncode == 0, done
    r = tap.json.loads(output.read_text())
    assert r["cpu_time"]["method"].startswith("sampling"), r["cpu_time"]
    log = [tuple(map(int, line.split())) for line in told.splitlines()]
    with contextlib.closing(sqlite3.connect(recording)) as db:
        ends = db.execute("SELECT min(time_ns), max(time_ns) FROM sample").fetchone()
    assert abs((ends[1] - ends[0]) / 1e9 - r["compute_time"]["time"]) < 1e-8, (ends, r["compute_time"])
    true = (used_at(log, ends[1]) - used_at(log, ends[0])) / 1e9
    tap.near(r["cpu_time"]["main"], true, 0.01 * true, "CPU time")


tap.main()
