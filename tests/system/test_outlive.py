#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What outlives the command: it is told of, and --wait-all waits for it."""

import json
import re
import signal
import subprocess
import time

import tap
from tap import WATTMETER, case, environment, report, wattmeter

# Its own session, and a parent that is gone: a daemon, which computes until the file is there,
# or its folder is gone with it, and it has used half a second of CPU time, however long that
# takes here.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    for fd in 0, 1, 2:  # as a daemon does, or who reads our output waits for it
        os.dup2(os.open('/dev/null', os.O_RDWR), fd)
    if os.fork() == 0:
        open(sys.argv[1], "w").write(str(os.getpid()))
        folder = os.path.dirname(sys.argv[2])
        while not os.path.exists(sys.argv[2]) and os.path.exists(folder) or time.process_time() < 0.5:
            pass
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.001)
"""


def daemon(folder):
    return ["python3", "-c", DAEMON, str(folder / "pid"), str(folder / "end")]


def note(remarks):
    found = [remark for remark in remarks if "still run" in remark]
    assert len(found) <= 1, found
    return found[0] if found else None


@case("a daemon that goes on is named, in JSON, in text and in a recording")
def _(folder):
    recording = folder / "run.sqlite"
    try:
        r = report(*daemon(folder), options=["--record", recording])
    finally:
        (folder / "end").touch()
    said = note(r["remarks"])
    assert said.startswith("1 process of the command still runs (python3; "), said
    assert said.endswith("--wait-all waits for it"), said
    text = " ".join(wattmeter("report", recording).stdout.split())
    assert said in text, text


@case("a daemon is found though the command ends before its parent does")
def _(folder):
    before = "    if os.fork() == 0:\n        open("
    assert before in DAEMON
    hasty = DAEMON.replace(before, "    time.sleep(0.01)\n" + before).replace("os.wait()", "os._exit(0)")
    end = folder / "end"
    try:
        for _ in range(5):
            r = report("python3", "-c", hasty, str(folder / "pid"), str(end))
            # Its parent, which may end later than the command, counts while it runs.
            said = note(r["remarks"])
            assert re.match(r"(1 process|2 processes) of the command still runs? \(python3; ", said), said
    finally:
        end.touch()


@case("several are counted, and each name is said once")
def _(folder):
    end = folder / "end"
    script = f"for i in 1 2 3; do (while [ -d {folder} ] && ! [ -e {end} ]; do sleep 0.05; done) >/dev/null 2>&1 & done"
    try:
        said = note(report("sh", "-c", script)["remarks"])
    finally:
        end.touch()
    count = int(said.split()[0])
    assert 3 <= count <= 6 and said.count("sh") == 1, said  # the shells, and their sleeps


@case("nothing is said of what ends with the command")
def _(folder):
    for script in ("true & true & exit 0", "sleep 0.05; true", "(true &) ; exit 1"):
        # Whatever it started may have to wait for a processor, and then it is still there.
        assert any(note(report("sh", "-c", script)["remarks"]) is None for _ in range(50)), script


@case("--wait-all: a daemon is measured to its end, and the status is the command's", tries=3)
def _(folder):
    output = folder / "report.json"
    command = ["sh", "-c", 'python3 -c "$@"; exit 7', "sh", DAEMON, folder / "pid", folder / "end"]
    run = subprocess.Popen([WATTMETER, "run", "--wait-all", "--json", "-o", output, "--", *command],
                           env=environment(), stdin=subprocess.DEVNULL)
    while not (folder / "pid").exists():
        time.sleep(0.01)
    time.sleep(1)
    assert run.poll() is None
    (folder / "end").touch()
    assert run.wait(timeout=300) == 7
    r = json.loads(output.read_text())
    assert note(r["remarks"]) is None and r["compute_time"]["time"] >= 1
    pid = int((folder / "pid").read_text())
    cost = next(p for p in r["processes"]["peaks"] if p["pid"] == pid)
    assert cost["cpu_seconds"] > 0.3, cost  # the last sample is one interval before the end
    # Whatever it is that counts, it has counted the daemon, too.
    assert r["cpu_time"]["descendants"] >= 0.95 * cost["cpu_seconds"], (r["cpu_time"], cost)


@case("--wait-all: without anything left it changes nothing")
def _(folder):
    r = report("true", options=["--wait-all"])
    assert r["max_ram"]["main"]["total_rss"] > 100e3 and r["processes"]["seen"] == 1
    assert note(r["remarks"]) is None
    assert wattmeter("run", "--wait-all", "-q", "--", "sh", "-c", "exit 5").returncode == 5
    assert wattmeter("run", "--wait-all", "-q", "--", "sh", "-c", "kill -9 $$").returncode == 137


@case("--wait-all: a signal ends the waiting, and says what is left")
def _(folder):
    output = folder / "report.json"
    for number in signal.SIGINT, signal.SIGTERM:
        for name in "pid", "end", "report.json":
            (folder / name).unlink(missing_ok=True)
        run = subprocess.Popen(
            [WATTMETER, "run", "--wait-all", "--json", "-o", output, "--", *daemon(folder)],
            env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            while not (folder / "pid").exists():
                time.sleep(0.01)
            # The command itself ends right after it.
            children = f"/proc/{run.pid}/task/{run.pid}/children"
            while True:
                launcher = open(children).read().split()
                below = [open(f"/proc/{pid}/task/{pid}/children").read().split() for pid in launcher]
                if below and (folder / "pid").read_text() in below[0] and len(below[0]) == 1:
                    break
                time.sleep(0.01)
            run.send_signal(number)
            status = run.wait(timeout=300)
        finally:
            (folder / "end").touch()
        assert status == 0, status  # the command's: it had ended well
        assert "1 process of the command still runs" in note(json.loads(output.read_text())["remarks"])


if __name__ == "__main__":
    tap.main()
