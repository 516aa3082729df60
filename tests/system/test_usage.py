#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the kernel counts of a command: user and system time, context switches, page faults,
bytes. The truth is what the measured program says of itself."""

import json
import re
import shutil
import subprocess

import tap
from tap import case, near, report, wattmeter

# What a process does between its fork and the program that it executes, and at its end.
FAULTS = 1000 if tap.SANITIZED else 200
SWITCHES = 20

# Seconds and a part: what CPU time is certain to, and the end of a large process.
CPU_ERROR, CPU_SHARE = 0.02, 0.05

READ, WRITTEN, PAGES, SLEEPS = 3_000_000, 1_234_567, 4000, 150

WORK = f"""
import json, mmap, os, resource, signal, sys, time
def work(folder):
    end = time.process_time() + 0.1
    while time.process_time() < end: pass
    memory = mmap.mmap(-1, {PAGES} * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    for page in range({PAGES}): memory[page * mmap.PAGESIZE] = 1
    for i in range({SLEEPS}): time.sleep(0.0005)
    source = os.open("/dev/zero", os.O_RDONLY)
    for i in range(30): assert len(os.read(source, {READ} // 30)) == {READ} // 30
    target = os.open(f"{{folder}}/{{os.getpid()}}", os.O_WRONLY | os.O_CREAT)
    for size in (1_000_000, {WRITTEN} - 1_000_000): assert os.write(target, bytes(size)) == size
def await_end(pid):
    try:
        while True: os.kill(pid, 0); time.sleep(0.001)
    except ProcessLookupError: pass
def tell():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    said = {{name: sum(getattr(one, name) for one in used) for name in
            ("ru_utime", "ru_stime", "ru_minflt", "ru_majflt", "ru_nvcsw", "ru_nivcsw")}}
    text = os.read(os.open("/proc/self/io", os.O_RDONLY), 4096).decode()
    said["rchar"] = int(text.split()[1]) + len(text)
    os.write(1, json.dumps(said).encode())
    os._exit(0)
"""

WAITS = """
for i in range(3):
    pid = os.fork()
    if pid == 0:
        work(sys.argv[1])
        os._exit(0)
    os.waitpid(pid, 0)
tell()
"""

# The program ends once its grandchildren have, which nobody but the launcher may wait for.
ORPHANS = """
ours, theirs = os.pipe()
for i in range(3):
    pid = os.fork()
    if pid == 0:
        if os.fork() == 0:
            os.write(theirs, os.getpid().to_bytes(4, "little"))
            work(sys.argv[1])
        os._exit(0)
    os.waitpid(pid, 0)
for i in range(3): await_end(int.from_bytes(os.read(ours, 4), "little"))
tell()
"""

UNWAITED = """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    work(sys.argv[1])
    os._exit(0)
await_end(pid)
tell()
"""


def measure(folder, program, *options, arguments=()):
    """What is reported of the program, and what it says itself."""
    output = folder / "report.json"
    ran = wattmeter("run", "--json", "-o", output, *options, "--", tap.sys.executable, "-S", "-c",
                    WORK + program, folder, *arguments)
    assert ran.returncode == 0, ran.stderr
    return json.loads(output.read_text()), json.loads(ran.stdout), len(ran.stdout)


def check(r, said):
    time = r["cpu_time"]
    print("# reported", time, r["context_switches"], r["page_faults"], r["io"], "said", said)
    truth = said["ru_utime"] + said["ru_stime"]
    for told in (time["user"] + time["system"], time["total"]):
        near(told, truth, CPU_ERROR + CPU_SHARE * truth, "user and system time")
    near(r["page_faults"]["minor"], said["ru_minflt"], FAULTS, "minor faults")
    near(r["page_faults"]["major"], said["ru_majflt"], 5, "major faults")
    near(r["context_switches"]["voluntary"], said["ru_nvcsw"], SWITCHES, "voluntary switches")


@case("a program's own figures are those of the report, its bytes exactly")
def _(folder):
    r, said, printed = measure(folder, "work(sys.argv[1])\ntell()")
    check(r, said)
    assert r["io"]["read"] == said["rchar"] >= READ, r["io"]
    assert r["io"]["written"] == WRITTEN + printed, r["io"]
    assert r["page_faults"]["minor"] >= PAGES and r["context_switches"]["voluntary"] >= SLEEPS
    assert not any(key.startswith(("io.", "page_", "context_")) for key in r["why"]), r["why"]


@case("children that were waited for are included")
def _(folder):
    r, said, printed = measure(folder, WAITS)
    check(r, said)
    assert r["page_faults"]["minor"] >= 3 * PAGES
    assert r["io"]["read"] == said["rchar"] >= 3 * READ, r["io"]
    assert r["io"]["written"] == 3 * WRITTEN + printed, r["io"]


@case("orphans that end before the command are included")
def _(folder):
    r, said, printed = measure(folder, ORPHANS)
    assert r["page_faults"]["minor"] >= said["ru_minflt"] + 3 * PAGES - FAULTS, r["page_faults"]
    assert r["context_switches"]["voluntary"] >= 3 * SLEEPS
    assert r["io"]["written"] == 3 * WRITTEN + 3 * 4 + printed, r["io"]
    assert r["io"]["read"] >= said["rchar"] + 3 * READ, r["io"]


@case("what nobody waits for makes them lower bounds, and so does what still runs")
def _(folder):
    r, said, printed = measure(folder, UNWAITED)
    for key in "cpu_time.user", "page_faults.minor", "io.read", "io.storage_written":
        assert "no parent waited for" in r["why"][key], r["why"]
    assert r["io"]["written"] == printed < WRITTEN, r["io"]
    text = wattmeter("run", "-v", "--", "sh", "-c", "sleep 5 & exit 0").stderr
    assert re.search(r"^User time +\S+ \S+ +at least; system", text, re.M), text
    assert "of the command still run" in text, text


@case("with --wait-all what outlives the command is included")
def _(folder):
    leaves = "if os.fork() == 0:\n    os.read(os.pipe()[0], 0)\n    time.sleep(0.3)\n    work(sys.argv[1])\n    os._exit(0)\ntell()"
    r, said, printed = measure(folder, leaves, "--wait-all")
    assert r["io"]["written"] == WRITTEN + printed, r["io"]
    assert r["page_faults"]["minor"] >= said["ru_minflt"] + PAGES - FAULTS, r["page_faults"]
    assert "io.written" not in r["why"], r["why"]


RUNS_GNU_TIME = """
pid = os.fork()
if pid == 0: os.execv(sys.argv[2], sys.argv[2:])
os.waitpid(pid, 0)
tell()
"""


@case("GNU time's figures are within the report's, and all beyond them is known")
def _(folder):
    gnu = shutil.which("time")
    if not gnu:
        raise tap.Skip("GNU time is not installed")
    told = folder / "told"
    measured = tap.sys.executable, "-S", "-c", WORK + "work(sys.argv[1])", folder
    r, said, printed = measure(folder, RUNS_GNU_TIME, arguments=(gnu, "-v", "-o", told, *measured))
    check(r, said)
    gnu = {name: float(number) for name, number in re.findall(r"\t(.*): ([\d.]+)$", told.read_text(), re.M)}
    print("# GNU time:", gnu)
    for name, key in (("Minor (reclaiming a frame) page faults", "page_faults.minor"),
                      ("Major (requiring I/O) page faults", "page_faults.major"),
                      ("Voluntary context switches", "context_switches.voluntary"),
                      ("Involuntary context switches", "context_switches.involuntary")):
        group, kind = key.split(".")
        assert r[group][kind] >= gnu[name], (key, r[group], gnu[name])
    cut_off = 2 * 0.01
    whole = gnu["User time (seconds)"] + gnu["System time (seconds)"]
    assert r["cpu_time"]["user"] + r["cpu_time"]["system"] >= whole - cut_off, (r["cpu_time"], whole)


@case("repeated runs have them, each alone or in a batch")
def _(folder):
    command = "--", "head", "-c", 100_000, "/dev/zero"
    sensors = "--gpu", "none", "--cpu-watts", "1:2"
    single, batch = (
        json.loads(wattmeter("run", *sensors, "--json", "-r", 6, *options, *command).stdout)["results"][0]
        for options in (("--prepare", "true"), ("-w", 1)))
    assert single["runs_per_repeat"] == 1, single
    for one in single, batch:
        assert one["written_bytes_values"] == [100_000] * 6, one["written_bytes_values"]
        assert one["read_bytes_min"] >= 100_000
    near(batch["minor_faults_median"], single["minor_faults_median"], FAULTS, "minor faults")
    near(batch["voluntary_switches_median"], single["voluntary_switches_median"], SWITCHES, "switches")
    assert single["user"] + single["system"] > 0 and batch["user"] + batch["system"] > 0


@case("an event is counted, or one note says why it is not")
def _(folder):
    program = "os.sched_setaffinity(0, os.sched_getaffinity(0)); work(sys.argv[1])"
    ran = report(tap.sys.executable, "-S", "-c", WORK + program, folder,
                 options=("--events", "cycles,instructions,cpu-migrations"))
    counted = ran.get("events", {})
    notes = [note for note in ran["remarks"] if note.startswith("events: ")]
    print("#", counted, notes)
    for name in "cycles", "instructions", "cpu-migrations":
        assert name in counted or name in notes[0], (counted, notes)
    assert len(notes) <= 1, notes
    assert all(counted[name] > 1e6 for name in counted if name != "cpu-migrations"), counted
    ran = wattmeter("run", "--events", "cycles,nonsense", "--", "true")
    assert ran.returncode == 2 and ran.stderr.count("\n") == 1, ran
    assert "events: 'nonsense' is no event: cycles, " in ran.stderr, ran.stderr
    ran = json.loads(wattmeter("run", "--json", "-r", 2, "--prepare", "true", "--events",
                               "cycles,instructions,cpu-migrations", "--", "true").stdout)
    assert ("cycles_values" in ran["results"][0]) == ("cycles" in counted), ran
    assert len([note for note in ran["notes"] if note.startswith("events: ")]) == len(notes), ran


@case("what was not started has none, and says why")
def _(folder):
    sleeper = subprocess.Popen(["sleep", "300"])
    output = folder / "r.json"
    wattmeter("attach", "--json", "-o", output, "--duration", "0.3", sleeper.pid)
    sleeper.kill()
    sleeper.wait()
    r = json.loads(output.read_text())
    assert r["cpu_time"]["user"] is None and r["io"]["read"] is None
    assert r["why"]["io.read"] == "only a command that wattmeter started has it", r["why"]


if __name__ == "__main__":
    tap.main()
