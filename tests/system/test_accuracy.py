#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `wattmeter run` says of real commands, against what is true of them."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time

import tap
from tap import case, near, report, wattmeter

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable

BURN = """
import os, signal, sys, time
def burn(seconds):
    while time.process_time() < seconds: pass
"""

# Seconds that a tick may be ahead of the end: between two exact readings it goes by the
# processes' own clocks, and those are read a moment before the counter is.
AHEAD = 0.01

CHILDREN = """
for i in $(seq 60); do
    bash -c 'end=$((${EPOCHREALTIME/[.,]/} + 95000))
             while ((${EPOCHREALTIME/[.,]/} < end)); do :; done'
done
times
"""


@case("sleep 1.2 takes 1.200 s, and we return right after it")
def _(folder):
    output = folder / "r.json"
    begin = time.monotonic()
    wattmeter("run", "--json", "-o", output, "--", "sleep", "1.2")
    whole = time.monotonic() - begin
    told = tap.json.loads(output.read_text())["compute_time"]
    assert told["unit"] == "seconds"
    # What is left over is our own start and end, and the machine's mood.
    assert 1.2 <= told["time"] < whole < told["time"] + 5, (told, whole)


@case("true has true figures, none of them 0")
def _(folder):
    begun = time.monotonic()
    r = report("true")
    assert 0.0001 < r["compute_time"]["time"] < time.monotonic() - begun, r["compute_time"]
    assert 0.0001 < r["cpu_time"]["total"] < 0.1, r["cpu_time"]

    assert r["max_ram"]["main"]["total_rss"] >= 100e3, r["max_ram"]
    assert r["max_ram"]["combined"]["total_rss"] < 20e6, r["max_ram"]
    assert r["cpu_utilization"]["main"]["mean_sum_percent"] > 0
    assert r["exit"] == {"status": 0, "signal": None}, r["exit"]
    assert r["tool"]["ticks"] >= 2


def bash_times(text):
    """Seconds of user and system time, of the shell and of its children."""
    minutes = re.findall(r"(\d+)m([\d.]+)s", text.replace(",", "."))
    assert len(minutes) == 4, text
    return sum(60 * int(m) + float(s) for m, s in minutes)


@case("60 short children in a row: CPU time within 1 % of the shell's own")
def _(folder):
    output = folder / "r.json"
    done = wattmeter("run", "--json", "-o", output, "--", "bash", "-c", CHILDREN)
    truth = bash_times(done.stdout)
    r = tap.json.loads(output.read_text())
    print(f"# times {truth:.3f} s, wattmeter {r['cpu_time']['total']:.3f} s")
    near(r["cpu_time"]["total"], truth, 0.01 * truth, "CPU time")
    assert r["cpu_time"]["descendants"] > 0.9 * truth
    near(r["cpu_time"]["main"] + r["cpu_time"]["descendants"], r["cpu_time"]["total"], 1e-9)


def recorded_times(folder, *command):
    """CPU time at each tick: of the command itself, of its descendants, and of all."""
    recording = folder / "r.sqlite"
    done = wattmeter("run", "-q", "-i", "10ms", "--record", recording, "--", *command)
    assert done.returncode == 0, done
    with sqlite3.connect(recording) as database:
        return database.execute("SELECT main_cpu_time_s, descendants_cpu_time_s, "
                                "tree_cpu_time_s FROM sample ORDER BY rowid").fetchall()


@case("a command alone has used all of it, at each tick")
def _(folder):
    for main, descendants, whole in recorded_times(folder, PYTHON, "-c", BURN + "burn(0.5)"):
        assert descendants == 0 and main == whole, (main, descendants, whole)


@case("so it has in the report, on a busy machine, too")
def _(folder):
    others = [subprocess.Popen([PYTHON, "-c", "while True: pass"]) for i in range(4)]
    try:
        for i in range(12):
            r = report(PYTHON, "-c", BURN + "burn(0.2)")
            assert r["processes"]["seen"] == 1 and r["cpu_time"]["descendants"] == 0, r["cpu_time"]
    finally:
        for other in others:
            other.kill()
            other.wait()


@case("the parts add up to the whole at each tick, and none falls")
def _(folder):
    program = BURN + """
for i in range(6):
    if os.fork() == 0:
        burn(0.05); os._exit(0)
    burn(0.1 * (i + 1))
    os.wait()
"""
    last = (0, 0, 0)
    for times in recorded_times(folder, PYTHON, "-c", program):
        near(times[0] + times[1], times[2], 1e-9)
        assert all(now >= before for now, before in zip(times, last)), (last, times)
        last = times
    assert last[1] > 0.25, last


@case("children that nobody waits for are counted: SIGCHLD ignored, double fork")
def _(folder):
    program = BURN + """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
ours, theirs = os.pipe()
def leave():
    os.write(theirs, f"{time.process_time()}\\n".encode())
    os._exit(0)
for i in range(30):
    if os.fork() == 0:
        if i % 2 and os.fork(): leave()
        burn(0.095); leave()
    time.sleep(0.13)
os.close(theirs)
told = [float(line) for line in open(ours)]  # until the last of them has ended
assert len(told) == 45
time.sleep(0.2)
print(time.process_time() + sum(told))
"""
    output = folder / "r.json"
    done = wattmeter("run", "--json", "-o", output, "--", PYTHON, "-c", program)
    truth = float(done.stdout)
    r = tap.json.loads(output.read_text())
    print(f"# expected {truth:.3f} s, wattmeter {r['cpu_time']['total']:.3f} s")
    if "perf" not in r["cpu_time"]["method"] and "cgroup" not in r["cpu_time"]["method"]:
        raise tap.Skip("neither perf counters nor cgroups here: " + r["cpu_time"]["method"])

    # On top comes what the 45 forks themselves take.
    near(r["cpu_time"]["total"], truth, 0.03 * truth, "CPU time")


DUTY = BURN + """
begin = time.monotonic()
for second in range(6):
    while time.monotonic() < begin + second + 0.45: pass
    time.sleep(max(0, begin + second + 1 - time.monotonic()))
print(time.process_time() / (time.monotonic() - begin))
"""


def duty_cycle(interval):
    done = subprocess.Popen(
        [tap.WATTMETER, "run", "--json", "-i", interval, "--", PYTHON, "-c", DUTY],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=tap.environment())
    out, err = done.communicate(timeout=300)
    own, _, rest = out.partition("\n")
    main = tap.json.loads(rest)["cpu_utilization"]["main"]
    print(f"# at {interval}: itself {100 * float(own):.1f} %, wattmeter {main}")

    # A busy machine takes time away from it, which is then true as well.
    if abs(100 * float(own) - 45) < 1:
        near(main["mean_sum_percent"], 45, 2, "mean")
    near(main["mean_sum_percent"], 100 * float(own), 2, "mean against its own clock")
    assert main["max_sum_percent"] <= 105, main


@case("45 % busy reads 45 % at ticks of 100 ms")
def _(folder):
    duty_cycle("100ms")


@case("45 % busy reads 45 % at ticks of 1 s")
def _(folder):
    duty_cycle("1s")


@case("800 MB in 8 regions and a forked child: each 800 MB, both together 800 MB")
def _(folder):
    program = """
import mmap, os, time
regions = [mmap.mmap(-1, 100_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for i in range(8)]
block = b"x" * 1_000_000
for region in regions:
    for i in range(100): region.write(block)
time.sleep(0.3)
if os.fork() == 0:
    time.sleep(0.8); os._exit(0)
os.wait()
"""
    ram = report(PYTHON, "-c", program)["max_ram"]
    print(f"# {ram}")
    for who in ("main", "descendants", "combined"):
        near(ram[who]["total_rss"], 805e6, 15e6, who)


@case("a parent of 200 MB that forks all the time: its memory is known at each sample")
def _(folder):
    program = """
import os, time
mb = 1 << 20
block = bytearray(200 * mb)
for i in range(0, len(block), 4096): block[i] = 1
for i in range(20):
    if os.fork() == 0:
        own = bytearray(10 * mb)
        for i in range(0, len(own), 4096): own[i] = 1
        time.sleep(0.2); os._exit(0)
    time.sleep(0.07)
while True:
    try: os.wait()
    except ChildProcessError: break
"""
    recording = folder / "r.sqlite"
    done = wattmeter("run", "-q", "-i", "20ms", "--record", recording, "--", PYTHON, "-c", program)
    assert done.returncode == 0, done
    with sqlite3.connect(recording) as database:
        ticks = database.execute(
            "SELECT main_memory_total_B, tree_memory_total_low_B, tree_memory_total_B, "
            "tree_memory_total_high_B, tree_processes FROM sample WHERE tree_processes > 0"
        ).fetchall()
    assert max(tick[4] for tick in ticks) > 2, ticks
    for main, low, total, high, processes in ticks:
        assert main <= low <= total <= high, (main, low, total, high)

    # Each has 10 MB of its own at most, and what it took to wake up; one that ends while it
    # is looked at may count twice in what all share.
    far = [tick for tick in ticks if tick[2] > tick[0] + (tick[4] - 1) * 13e6]
    assert len(far) <= len(ticks) / 10, far


@case("shorter than the interval: memory by part, private and shared; a child's spike is a child's")
def _(folder):
    program = """
import os, time
if os.fork() == 0:
    block = bytearray(60_000_000)
    for i in range(0, len(block), 4096): block[i] = 1
    del block
    time.sleep(2); os._exit(0)
os.wait()
"""
    r = report(PYTHON, "-c", program, options=("-i", "30s"))
    ram = r["max_ram"]
    print(f"# {ram}")
    assert r["tool"]["ticks"] == 2, r["tool"]
    assert 4e6 < ram["main"]["total_rss"] < 30e6, ram
    assert 60e6 < ram["descendants"]["total_rss"] < 90e6, ram
    for part in ram["main"], ram["descendants"], ram["combined"]:
        assert 0 < part["private_rss"] <= part["total_rss"], ram
        assert 0 < part["shared_rss"] <= part["total_rss"], ram
    child = next(p for p in r["processes"]["peaks"] if p["max_memory"] > 60e6)
    assert child["parent"] in [p["pid"] for p in r["processes"]["peaks"]], r["processes"]


@case("threads, processes and memory of what is alive together")
def _(folder):
    program = """
import threading, time, os
for i in range(7): threading.Thread(target=time.sleep, args=(0.6,)).start()
if os.fork() == 0:
    time.sleep(0.5); os._exit(0)
time.sleep(0.6)
"""
    r = report(PYTHON, "-c", program)
    assert r["cpu_utilization"]["main_n_threads"] == 8, r["cpu_utilization"]
    assert r["cpu_utilization"]["descendants_n_threads"] == 1, r["cpu_utilization"]
    assert r["processes"]["seen"] == 2 and r["processes"]["max_at_once"] == 2, r["processes"]


def without(calls, folder):
    """CPU time of the children, told under a refusal of system calls."""
    output = folder / "r.json"
    done = subprocess.run(
        [tap.HELPERS / "deny", calls, tap.WATTMETER, "run", "--json", "--overwrite", "-o", output,
         "--", "bash", "-c", CHILDREN],
        capture_output=True, text=True, timeout=300, env=tap.environment())
    assert done.returncode == 0 and done.stderr == "", done
    truth = bash_times(done.stdout)
    r = tap.json.loads(output.read_text())
    print(f"# without {calls}: times {truth:.3f} s, wattmeter {r['cpu_time']}")
    assert r["exit"]["status"] == 0, r["exit"]
    near(r["cpu_time"]["total"], truth, 0.01 * truth, calls)
    return r["cpu_time"]["method"]


@case("the table of processes: one CPU time of main, and none is 0 of what was never read")
def _(folder):
    r = report("sh", "-c", "sleep 0.02; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done")
    peaks = r["processes"]["peaks"]
    main = min(peaks, key=lambda process: process["pid"])
    assert main["name"] == "sh" and main["cpu_seconds"] == r["cpu_time"]["main"], r["processes"]
    for seen in peaks:
        assert seen["cpu_seconds"] is None or seen["cpu_seconds"] > 0, peaks
    for i in range(10):
        done = wattmeter("run", "--", "sh", "-c", "sleep 0.1 & :")
        assert not re.search(r" 0 (B|ns) ", done.stderr), done.stderr


@case("without perf, as in most containers, CPU time is exact by another way")
def _(folder):
    assert "perf" not in without("perf_event_open", folder)


@case("without perf and cgroups children that are waited for are exact")
def _(folder):
    assert "wait4" in without("perf_event_open,mkdir", folder)


def check_not_forgotten(helper, argument, seconds, folder):
    """Two children that nobody waits for are over after 0.2 s or so."""
    recording, output = folder / "r.sqlite", folder / "r.json"
    program = BURN + """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for i in range(2):
    if os.fork() == 0:
        burn(0.1); os._exit(0)
time.sleep(float(sys.argv[1]))
"""
    done = subprocess.run(
        [tap.HELPERS / helper, argument, tap.WATTMETER, "run", "--json", "-o", output, "-i", "5ms",
         "--record", recording, "--", PYTHON, "-c", program, str(seconds)],
        capture_output=True, text=True, timeout=300, env=tap.environment())
    if done.returncode == 77:
        raise tap.Skip(done.stderr.strip())
    assert done.returncode == 0 and done.stderr == "", done
    told = tap.json.loads(output.read_text())["cpu_time"]
    with sqlite3.connect(recording) as database:
        (seen,), = database.execute("SELECT max(tree_cpu_time_s) FROM sample")
    print(f"# {helper}: {seen:.3f} s at the ticks, {told}")
    assert 0.04 < seen <= told["total"] + AHEAD, (seen, told)


@case("what was seen of children that nobody waited for stays in the report")
def _(folder):
    check_not_forgotten("deny", "perf_event_open,mkdir", 0.5, folder)


@case("and stays when a perf counter comes after them")
def _(folder):
    check_not_forgotten("slow_perf", "1000", 1.5, folder)


@case("what a setuid program starts is seen, though perf may not count it for its user", tries=3)
def _(folder):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise tap.Skip("needs root, and setpriv(1)")
    env = shutil.copy(shutil.which("env"), folder / "setuid-env")
    os.chown(env, 2, 2)
    os.chmod(env, 0o4755)
    os.chmod(folder, 0o777)
    program = BURN + """
for i in range(3):
    if os.fork() == 0:
        burn(0.3); os._exit(0)
    time.sleep(0.05)
while True:
    try: os.wait()
    except ChildProcessError: break
"""
    recording, output = folder / "r.sqlite", folder / "r.json"
    for ignored in ("", "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"):
        done = subprocess.run(
            ["setpriv", "--reuid", "1", "--regid", "1", "--clear-groups", tap.WATTMETER, "run", "--json", "--overwrite",
             "-i", "10ms", "-o", output, "--record", recording, "--", "sh", "-c", '"$@"; exit 3', "sh",
             env, PYTHON, "-c", program.replace("for i", ignored + "for i", 1)],
            capture_output=True, text=True, timeout=300, env=tap.environment())
        assert done.returncode == 3 and done.stderr == "", done
        told = tap.json.loads(output.read_text())["cpu_time"]
        with sqlite3.connect(recording) as database:
            (seen,), = database.execute("SELECT max(tree_cpu_time_s) FROM sample")
        print(f"# {seen:.3f} s at the ticks, {told}")
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            raise tap.Skip("setuid programs have no effect here")
        assert 0.4 < seen <= told["total"] + AHEAD < 1.1, (seen, told)


@case("an older kernel, without pidfd_open and close_range")
def _(folder):
    method = without("pidfd_open,close_range", folder)
    assert "perf" in method or "perf" not in without("nothing", folder), method


def with_slow_perf(program, folder):
    """What the program printed, and the report: perf counts from when it makes the file
    COUNT on. `await_counter()` waits until it does."""
    output, count = folder / "r.json", folder / "count"
    if "perf" not in report("sleep", "0.1")["cpu_time"]["method"]:
        raise tap.Skip("perf counters are not to be had here")
    done = subprocess.run(
        [tap.HELPERS / "slow_perf", count, tap.WATTMETER, "run", "--json", "-i", "200ms", "-o", output,
         "--", PYTHON, "-c", f"COUNT = {str(count)!r}\n" + AWAIT_COUNTER + BURN + program],
        capture_output=True, text=True, timeout=300, env=tap.environment())
    if done.returncode == 77:
        raise tap.Skip(done.stderr.strip())
    assert done.returncode == 3 and done.stderr == "", done
    r = tap.json.loads(output.read_text())
    print(f"# {r['cpu_time']}")
    return list(map(float, done.stdout.split())), r


@case("children that nobody waits for are counted after many context switches, too")
def _(folder):
    output = folder / "r.json"
    done = wattmeter("run", "--json", "-o", output, "--", PYTHON, "-c", BURN + """
there, back = os.pipe(), os.pipe()
if os.fork() == 0:
    for i in range(50_000):
        os.read(there[0], 1); os.write(back[1], b"x")
    print(time.process_time(), flush=True)
    os._exit(0)
for i in range(50_000):
    os.write(there[1], b"x"); os.read(back[0], 1)
os.wait()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for i in range(20):
    if os.fork() == 0:
        burn(0.02); os._exit(0)
    try: os.wait()
    except ChildProcessError: pass
print(time.process_time())
""")
    truth = sum(map(float, done.stdout.split())) + 20 * 0.02
    used = tap.json.loads(output.read_text())["cpu_time"]
    print(f"# {truth:.3f} s, {used}")
    if "perf" in used["method"]:
        assert used["total"] > 0.85 * truth, (truth, used)  # perf may lack 3 ms of each


# Two of its parent's parent: of the tree, and of the command alone.
AWAIT_COUNTER = """
import os, time
stat = open(f"/proc/{os.getppid()}/stat").read()
fds = f"/proc/{stat.rsplit(')', 1)[1].split()[1]}/fd"
def await_counter():
    while sum(map(is_counter, os.listdir(fds))) < 2:
        time.sleep(0.01)
def is_counter(fd):
    try: return "perf_event" in os.readlink(f"{fds}/{fd}")
    except FileNotFoundError: return False
"""


@case("a perf counter that takes its time: the command does not wait for it, and it counts what is there by then")
def _(folder):
    (own,), r = with_slow_perf("""
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    burn(1.5); open(COUNT, "w"); await_counter(); burn(2); os._exit(0)
await_counter()
for i in range(5):
    if os.fork() == 0:
        burn(0.1); os._exit(0)
    time.sleep(0.2)
try: os.wait()
except ChildProcessError: print(time.process_time())
sys.exit(3)
""", folder)
    near(r["cpu_time"]["total"], own + 2.5, 0.03 * (own + 2.5), "CPU time")
    assert "perf task clock" in r["cpu_time"]["method"], r["cpu_time"]


@case("a command that ends before its counter is there: what it waited for is exact, and the method says so")
def _(folder):
    (used,), r = with_slow_perf("""
for i in range(4):
    if os.fork() == 0:
        burn(0.1); os._exit(0)
    os.wait()
print(sum(os.times()[:4]))
sys.exit(3)
""", folder)
    near(r["cpu_time"]["total"], used, 0.04, "CPU time")
    assert r["cpu_time"]["method"].startswith("wait4 and sampling"), r["cpu_time"]


@case("attach: a process and its children from now on, not from before")
def _(folder):
    target = subprocess.Popen(
        [PYTHON, "-c", BURN + """
burn(0.8)
print("ready", flush=True)
sys.stdin.readline()
burn(1.3)
if os.fork() == 0:
    burn(0.5); os._exit(0)
os.wait()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    target.stdout.readline()
    output, recording = folder / "r.json", folder / "r.csv"
    watcher = subprocess.Popen([tap.WATTMETER, "attach", "--json", "-o", output, "--record", recording,
                                str(target.pid)], env=tap.environment())
    tap.await_sample(recording)
    target.stdin.write("\n")
    target.stdin.flush()
    target.wait()
    assert watcher.wait(timeout=300) == 0
    r = tap.json.loads(output.read_text())
    near(r["cpu_time"]["main"], 0.5, 0.06, "main")
    near(r["cpu_time"]["total"], 1.0, 0.08, "total")
    assert r["exit"]["status"] is None


@case("attach for a moment, with a recording: one busy thread is one core, not more", tries=3)
def _(folder):
    target = subprocess.Popen([PYTHON, "-c", "while True: pass"])
    try:
        time.sleep(0.3)
        rates = []
        for i in range(5):
            output = folder / "r.json"
            done = wattmeter("attach", "--json", "--overwrite", "-o", output, "--record", folder / "r.sqlite",
                             "--duration", "20ms", str(target.pid))
            assert done.returncode == 0, done
            r = tap.json.loads(output.read_text())
            assert r["compute_time"]["time"] >= 0.019, r["compute_time"]

            rates.append(r["cpu_utilization"]["main"]["max_sum_percent"])

        # Two clocks are read a moment apart, and one time in five somebody may have come
        # in between.
        assert sorted(rates)[3] <= 110, rates
    finally:
        target.kill()
        target.wait()


if __name__ == "__main__":
    tap.main()
