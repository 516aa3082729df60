#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trees, disks and words that are not as one would wish."""

import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import tap
from tap import case, near, report, wattmeter

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable

# So many children that live until their parent ends, and time to see them all.
CROWD = """
import os, time
until_end, end = os.pipe()
for i in range({}):
    if os.fork() == 0:
        os.close(end)
        os.read(until_end, 1); os._exit(0)
time.sleep(3)
"""


@case("5,000 sleeping children: all counted, little spent, nothing said")
def _(folder):
    recording = folder / "r.csv"
    program = """
import csv, os, signal, sys, time
children = []
for i in range(5000):
    pid = os.fork()
    if pid == 0:
        time.sleep(600); os._exit(0)
    children.append(pid)
def are_all_seen():
    with open(sys.argv[1], newline="") as file:
        head, *rows = list(csv.reader(file))[2:]
    return any(row[head.index("tree_processes"):][:1] == ["5001"] for row in rows)
while not are_all_seen(): time.sleep(0.1)
for pid in children: os.kill(pid, signal.SIGKILL)
for pid in children: os.waitpid(pid, 0)
"""
    output = folder / "r.json"
    done = wattmeter("run", "--json", "-o", output, "--record", recording, "--",
                     PYTHON, "-c", program, recording, timeout=300,
                     env=tap.environment(MALLOC_PERTURB_="0"))  # that touches what we do not
    assert done.stderr == "", done.stderr[:500]
    r = tap.json.loads(output.read_text())
    print(f"# {r['processes']['seen']} seen, tool {r['tool']}")
    assert r["processes"]["seen"] == 5001, r["processes"]["seen"]
    assert r["processes"]["max_at_once"] == 5001
    assert tap.SANITIZED or r["tool"]["max_rss"] < 8e6, r["tool"]


@case("more processes than we may hold open files for")
def _(folder):
    program = CROWD.format(300)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))

    output = folder / "r.json"
    done = wattmeter("run", "--json", "-o", output, "--", PYTHON, "-c", program,
                     preexec_fn=few_files)
    assert done.stderr == "", done.stderr
    r = tap.json.loads(output.read_text())
    assert r["processes"]["max_at_once"] == 301, r["processes"]
    ram = r["max_ram"]
    assert ram["combined"]["total_rss"] >= ram["main"]["total_rss"] > 1e6, ram


@case("too few open files to start at all: it says so, whatever it is that cannot be opened")
def _(folder):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    codes = []
    for most in range(4, 24):
        done = wattmeter("run", "-q", "--", "sh", "-c", "exit 5",
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard)))
        codes.append(done.returncode)
        assert done.returncode == 5 or "Too many open files" in done.stderr, (most, done)
    assert codes[0] == 1 and codes[-1] == 5, codes


@case("memory that is too dear to read after a fork: it is estimated, within an interval")
def _(folder):
    program = CROWD.format(600)
    output = folder / "r.json"
    done = wattmeter("run", "--json", "-o", output, "--", PYTHON, "-c", program)
    assert done.stderr == "", done.stderr
    r = tap.json.loads(output.read_text())
    assert not [x for x in r["remarks"] if x.startswith("memory of the tree")], r["remarks"]
    ram = r["max_ram"]
    whole = ram["combined"]
    assert whole["total_rss"] >= ram["main"]["total_rss"] > 1e6, ram
    assert whole["total_rss_low"] <= whole["total_rss"] <= whole["total_rss_high"], ram

    # All are copies of one, which nobody writes to but for a few pages.
    assert whole["total_rss"] < 600 * ram["main"]["total_rss"] / 2, ram


@case("a process that may not be examined costs its own number and nothing else")
def _(folder):
    if os.geteuid() != 0:
        raise tap.Skip("needs root, to become two other users")
    program = """
import os, time
if os.fork() == 0:
    os.setgid(65533); os.setuid(65533)
    x = bytearray(30_000_000)
    time.sleep(1); os._exit(0)
x = bytearray(50_000_000)
os.setgid(65534); os.setuid(65534)
os.wait()
"""
    folder.chmod(0o777)
    output = folder / "r.json"
    # As root everything may be read; so we are a third user, who may not.
    done = subprocess.run(
        ["setpriv", "--reuid", "65532", "--clear-groups", "--inh-caps=-all", tap.WATTMETER, "run",
         "--json", "-o", output, "--", "sh", "-c", "sleep 1.2"],
        capture_output=True, text=True, env=tap.environment())
    assert done.returncode == 0 and done.stderr == "", done.stderr
    target = subprocess.Popen([PYTHON, "-c", program])
    time.sleep(0.3)
    output2 = folder / "r2.json"
    done = subprocess.run(
        ["setpriv", "--reuid", "65532", "--clear-groups", "--inh-caps=-all", tap.WATTMETER,
         "attach", "--json", "-o", output2, str(target.pid)],
        capture_output=True, text=True, env=tap.environment())
    target.wait()
    assert done.returncode == 0, done.stderr
    r = tap.json.loads(output2.read_text())
    near(r["max_ram"]["main"]["total_rss"], 58e6, 10e6, "main")
    assert r["max_ram"]["combined"]["total_rss"] > 75e6, r["max_ram"]
    assert len(done.stderr.splitlines()) <= 1, done.stderr
    assert any("examined" in remark for remark in r["remarks"]), r["remarks"]


@case("processes that come and go all the time")
def _(folder):
    r = report("bash", "-c", "for i in $(seq 400); do /bin/true; done",
               options=("-i", "1ms"))
    assert r["cpu_time"]["descendants"] > 0.05, r["cpu_time"]
    assert r["exit"]["status"] == 0


@case("a target that dies before the first tick")
def _(folder):
    for i in range(20):
        r = report("sh", "-c", "exit 3", options=("-i", "1h"))
        assert r["exit"]["status"] == 3 and r["tool"]["ticks"] >= 2, r["exit"]
        assert 0 < r["compute_time"]["time"] < 60  # and not an hour


@case("attach to a process that is not there, or ends at once")
def _(folder):
    gone = subprocess.Popen(["true"])
    gone.wait()
    done = wattmeter("attach", str(gone.pid))
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
    assert str(gone.pid) in done.stderr
    for word in ("0", "-5", "banana", "99999999999999999999", ""):
        done = wattmeter("attach", "--", word)
        assert done.returncode == 2, (word, done)


REFUSALS = [
    # (what, arguments, status, a word that the line must name)
    ("no such command", ["run", "--", "no-such-command-here"], 127, "no-such-command-here: command not found"),
    ("no such path", ["run", "--", "/no/such/path"], 127, "/no/such/path: No such file or directory"),
    ("a path below a file", ["run", "--", "/etc/passwd/x"], 127, "/etc/passwd/x: Not a directory"),
    ("a file that is no program", ["run", "--", "/etc/passwd"], 126, "/etc/passwd"),
    ("a folder", ["run", "--", "/tmp"], 126, "/tmp"),
    ("no command at all", ["run"], 2, "COMMAND"),
    ("no command after --", ["run", "--"], 2, "COMMAND"),
    ("an unknown option", ["run", "--intervall", "1s", "--", "touch", "{mark}"], 2, "--intervall"),
    ("an unknown unit", ["run", "--ram-unit", "furlongs", "--", "touch", "{mark}"], 2, "furlongs"),
    ("an unknown time unit", ["run", "--time-unit", "weeks", "--", "touch", "{mark}"], 2, "weeks"),
    ("an interval too short", ["run", "-i", "1us", "--", "touch", "{mark}"], 2, "1us"),
    ("an interval too long", ["run", "-i", "2h", "--", "touch", "{mark}"], 2, "2h"),
    ("an interval of 0", ["run", "-i", "0", "--", "touch", "{mark}"], 2, "0"),
    ("an interval of words", ["run", "-i", "soon", "--", "touch", "{mark}"], 2, "soon"),
    ("no number of cores", ["run", "--expected-cores", "-3", "--", "touch", "{mark}"], 2, "-3"),
    ("a note without a value", ["run", "--note", "lonely", "--", "touch", "{mark}"], 2, "lonely"),
    ("an unknown command", ["rum", "--", "touch", "{mark}"], 2, "rum"),
    ("a recording of no known kind", ["run", "--record", "{folder}/x.doc", "--", "touch", "{mark}"], 2, "x.doc"),
    ("a recording in no folder", ["run", "--record", "{folder}/no/x.csv", "--", "touch", "{mark}"], 1, "{folder}/no"),
    ("a recording that is there", ["run", "--record", "{there}", "--", "touch", "{mark}"], 1, "--overwrite replaces it"),
    ("a report in no folder", ["run", "-o", "{folder}/no/r", "--", "touch", "{mark}"], 1, "{folder}/no"),
    ("a report that is there", ["run", "-o", "{there}", "--", "touch", "{mark}"], 1, "--overwrite"),
    ("both ways with an old file", ["run", "--record", "{folder}/n.sqlite", "--overwrite", "--append", "--", "touch", "{mark}"], 2, "--append"),
]


@case("what is wrong is refused before the command starts: one line, the right status")
def _(folder):
    mark, there = folder / "mark", folder / "there.csv"
    there.write_text("mine\n")
    for what, arguments, status, word in REFUSALS:
        filled = [a.format(folder=folder, mark=mark, there=there) for a in arguments]
        done = wattmeter(*filled)
        assert done.returncode == status, (what, done)
        assert len(done.stderr.splitlines()) == 1, (what, done.stderr)
        assert word.format(folder=folder) in done.stderr, (what, done.stderr)
        assert not mark.exists(), what
        assert there.read_text() == "mine\n", what


@case("a folder that may not be written to")
def _(folder):
    closed, mark = folder / "closed", folder / "mark"
    closed.mkdir(mode=0o555)
    folder.chmod(0o777)
    prefix = ["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps=-all"] if os.geteuid() == 0 else []
    for option, name in (("--record", "r.sqlite"), ("--record", "r.csv"), ("-o", "r.json")):
        done = subprocess.run([*prefix, tap.WATTMETER, "run", option, closed / name, "--", "touch", mark],
                              capture_output=True, text=True, env=tap.environment())
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
        assert "/closed" in done.stderr and not mark.exists(), done.stderr


def small_disk(folder, size):
    disk = folder / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True).returncode != 0:
        raise tap.Skip("needs to mount a small tmpfs")
    return disk


@case("a disk that fills up during the run: the report comes and says so")
def _(folder):
    disk = small_disk(folder, "256k")
    try:
        for name in ("r.csv", "r.sqlite"):
            output = folder / (name + ".json")
            done = wattmeter("run", "-q", "-i", "1ms", "--json", "-o", output, "--record", disk / name, "--",
                             "sleep", "3")
            assert done.returncode == 1 and name in done.stderr, done
            r = tap.json.loads(output.read_text())
            assert 3 <= r["compute_time"]["time"] < 60, r["compute_time"]
            assert "recording" in r and r["recording"]["trouble"], r.get("recording")
            assert len(done.stderr.splitlines()) <= 2, done.stderr
            text = wattmeter("report", disk / name)
            assert text.returncode == 0, text.stderr
            stored = tap.json.loads(wattmeter("report", "--json", disk / name).stdout)
            assert stored["recording"]["lost_ticks"] == r["recording"]["lost_ticks"] > 0, (stored, r)
            (disk / name).unlink()
            for rest in disk.iterdir():
                rest.unlink()
    finally:
        subprocess.run(["umount", disk])


@case("a disk that is full from the start: refused, the command does not run")
def _(folder):
    disk = small_disk(folder, "64k")
    try:
        subprocess.run(["dd", "if=/dev/zero", f"of={disk}/filler"], capture_output=True)
        mark = folder / "mark"
        for name in ("r.csv", "r.sqlite"):
            done = wattmeter("run", "--record", disk / name, "--", "touch", mark)
            assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
            assert not mark.exists()
    finally:
        subprocess.run(["umount", disk])


@case("the report's own file cannot be written any more: it comes on stderr, and that is a failure")
def _(folder):
    disk = small_disk(folder, "64k")
    try:
        command = f"head -c 100000 /dev/zero > {disk}/filler; exit 0"
        done = wattmeter("run", "--json", "-o", disk / "r.json", "--", "sh", "-c", command)
        assert done.returncode == 1, done
        assert '"compute_time"' in done.stderr, done.stderr[:500]
    finally:
        subprocess.run(["umount", disk])


@case("a report on standard error that cannot be written does not change the command's status")
def _(folder):
    if not os.path.exists("/dev/full"):
        raise tap.Skip("there is no /dev/full")
    for words, status in ((["run", "--", "true"], 0), (["run", "--", "sh", "-c", "exit 3"], 3),
                          (["run", "--json", "--", "true"], 1), (["run", "-o", "/dev/full", "--", "true"], 1),
                          (["attach", "-d", "10ms", str(os.getpid())], 1)):
        with open("/dev/full", "w") as full:
            done = subprocess.run([tap.WATTMETER, *words], stdin=subprocess.DEVNULL, stdout=full, stderr=full,
                                  env=tap.environment(), timeout=300)
        assert done.returncode == status, (words, done)


@case("a recording that is deleted or replaced during the run")
def _(folder):
    for name in ("r.csv", "r.sqlite"):
        path, output = folder / name, folder / (name + ".json")
        done = wattmeter("run", "-i", "10ms", "--json", "-o", output, "--record", path, "--", "sh", "-c",
                         f"sleep 0.3; rm {path}; echo precious > {path}; sleep 0.3")
        assert done.returncode == 1, done
        assert path.read_text() == "precious\n"
        r = tap.json.loads(output.read_text())
        assert r["recording"]["trouble"], r


@case("a CSV recording that is moved is whole where it is; one that is cut off gets no zeros, and it is said")
def _(folder):
    path, moved = folder / "r.csv", folder / "r.csv.1"
    for what, text in ((f"mv {path} {moved}", "moved by another program"),
                       (f": > {path}", "cut off by another program")):
        done = wattmeter("run", "-q", "-i", "10ms", "--record", path, "--", "sh", "-c",
                         f"while [ $(wc -l <{path}) -lt 9 ]; do sleep 0.1; done; {what}; sleep 0.1; exit 3",
                         timeout=300)
        assert done.returncode == 3 and text in done.stderr, done
        assert done.stderr.count("\n") == 1, done.stderr
    assert path.read_bytes() == b"", path.read_bytes()[:100]
    r = tap.json.loads(wattmeter("report", "--json", moved).stdout)
    assert r["exit"]["status"] == 3 and r["recording"]["lost_ticks"] == 0, r.get("recording")
    path = folder / "r.sqlite"
    done = wattmeter("run", "-q", "--record", path, "--", "sh", "-c", f": > {path}; exit 3")
    assert done.returncode == 3 and "cut off by another program" in done.stderr, done
    done = wattmeter("run", "-q", "--record", folder / "s.csv", "--", "mv", folder / "s.csv", folder / "t.csv")
    assert done.returncode == 0, done


@case("a recording that is being written is not replaced; a run may be added to it")
def _(folder):
    for name, added in ("r.sqlite", 0), ("r.csv", 1), ("r.aipm", 1):
        path, gate = folder / name, folder / (name + ".gate")
        os.mkfifo(gate)
        first = subprocess.Popen([tap.WATTMETER, "run", "-q", "--record", path, "--", "sh", "-c",
                                  f"echo > {gate}; read word < {gate}"], env=tap.environment())
        gate.read_text()  # The command runs.
        for words in (["run", "-q", "--record", path, "--overwrite", "--", "true"],
                      ["run", "-q", "--record", path, "--overwrite", "--", "no-such-command"]):
            done = wattmeter(*words)
            assert done.returncode == 1 and "another wattmeter is recording to it" in done.stderr, done
        assert wattmeter("run", "-q", "--record", path, "--append", "--", "true").returncode == added
        gate.write_text("on\n")
        assert first.wait(300) == 0
        assert tap.json.loads(wattmeter("report", "--run", "0", "--json", path).stdout)["compute_time"]
        assert wattmeter("run", "-q", "--record", path, "--overwrite", "--", "true").returncode == 0


@case("a command that cannot be executed after all leaves no recording in the way")
def _(folder):
    script = folder / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    path = folder / "r.sqlite"
    done = wattmeter("run", "--record", path, "--", script)
    assert done.returncode == 127 and "interpreter" in done.stderr, done
    assert not list(folder.glob("r.sqlite*")), list(folder.iterdir())

    wattmeter("run", "-q", "--record", path, "--note", "n=old", "--", "true")
    done = wattmeter("run", "--record", path, "--overwrite", "--", script)
    assert done.returncode == 127, done
    assert tap.json.loads(wattmeter("report", "--json", path).stdout)["notes"]["n"] == "old"


@case("names of all kinds in the command, in notes, in the environment")
def _(folder):
    odd = "a 'b' \"c\", d\ne\tf ü 漢 " + "x" * 4096
    for name in ("r.csv", "r.sqlite"):
        path = folder / name
        done = wattmeter("run", "-q", "--record", path, "--note", f"odd={odd}", "--", "sh", "-c", "exit 0",
                         odd, env=tap.environment(SLURM_JOB_NAME=odd, SLURM_JWT="secret"))
        assert done.returncode == 0, done
        r = tap.json.loads(wattmeter("report", "--json", path).stdout)
        assert r["command"][-1] == odd and r["notes"]["odd"] == odd
        assert r["environment"]["SLURM_JOB_NAME"] == odd and "SLURM_JWT" not in r["environment"]


@case("bytes that are no text in the command")
def _(folder):
    path = folder / "r.sqlite"
    done = subprocess.run([tap.WATTMETER, "run", "-q", "--record", path, "--", "sh", "-c", "exit 0",
                           b"bad \xff\xfe"], capture_output=True, env=tap.environment())
    assert done.returncode == 0, done
    assert "\ufffd" in tap.json.loads(wattmeter("report", "--json", path).stdout)["command"][-1]


if __name__ == "__main__":
    tap.main()
