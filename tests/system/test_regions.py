#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Regions of measured programs: in the report of the run and in that of its recording,
whoever is killed."""

import contextlib
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import tap
from tap import case, near, wattmeter
from terminal import wait_for

PROGRAM = str(tap.HELPERS / "regions")


def paths(report):
    """The tree of calls, as the names from the outermost on -> what it says."""
    rows, found = report["regions"]["by_path"], {}
    for row in rows:
        path, at = (row["name"],), row["parent"]
        while at is not None:
            path, at = (rows[at]["name"], *path), rows[at]["parent"]
        assert len(path) == row["depth"] + 1 and path not in found, (path, row["depth"])
        found[path] = row
    return found


def calls(report):
    return {path: row["calls"] for path, row in paths(report).items()}


def unfinished(report):
    return {path: row["unfinished"] for path, row in paths(report).items() if row["unfinished"]}


def run(folder, *arguments, options=(), suffix=".sqlite", status=0, stdin="", env=None):
    """The report of a run, after it was seen to be that of its recording."""
    output, recording = folder / "r.json", folder / ("r" + suffix)
    done = wattmeter("run", "--json", "-o", output, "--overwrite", "--record", recording, *options,
                     "--", PROGRAM, *arguments, stdin=None, input=stdin, env=env)
    assert done.returncode == status, done
    live = tap.json.loads(output.read_text())
    stored = report_of(recording)
    assert stored["regions"] == live["regions"], (live["regions"], stored["regions"])
    return live


def remarks_of(report):
    return "\n".join(report["remarks"])


def report_of(recording):
    done = wattmeter("report", "--json", recording, timeout=250)
    assert done.returncode == 0, done.stderr
    return tap.json.loads(done.stdout)


@case("nested: by path and by name, in time, the same in every recording")
def _(folder):
    for suffix in (".sqlite", ".csv"):
        r = run(folder, "nested", suffix=suffix)
        assert calls(r) == {("outer",): 1, ("outer", "inner"): 3, ("inner",): 1}, calls(r)
        names = {row["name"]: row["calls"] for row in r["regions"]["by_name"]}
        assert names == {"outer": 1, "inner": 4}, names
        outer = paths(r)["outer",]["time"]["total"]
        inner = paths(r)["outer", "inner"]["time"]["total"]
        assert 0.03 <= inner <= outer <= r["compute_time"]["time"], (inner, outer)


@case("recursion: each depth is a path of its own")
def _(folder):
    r = run(folder, "recursive", 20)
    assert calls(r) == {("recursion",) * depth: 1 for depth in range(1, 21)}, calls(r)


@case("threads")
def _(folder):
    r = run(folder, "threads", 8, 500)
    assert calls(r) == {("outer",): 4000, ("outer", "inner"): 4000}, calls(r)


@case("fork and exec: a child begins with nothing open; what it had open broke off")
def _(folder):
    r = run(folder, "forks")
    assert calls(r) == {("parent",): 1, ("child",): 1, ("before exec",): 0, ("outer",): 1,
                        ("outer", "inner"): 3, ("inner",): 1}, calls(r)
    assert unfinished(r) == {("before exec",): 1}, unfinished(r)


@case("calls that were started by themselves overlap and end in another thread")
def _(folder):
    r = run(folder, "free")
    assert calls(r) == {("around",): 1, ("request",): 2, ("answer",): 1}, calls(r)
    assert unfinished(r) == {}, unfinished(r)


@case("names of all kinds come through as they are")
def _(folder):
    names = ["a, b; c\td", "it's \"quoted\"", "two\nlines\r\nhere", "", "Robert'); DROP TABLE run;--",
             "ünï → 漢字 🎉", "%s%n", "=1+1", "x" * 4096, "y" * 8191, "null", "\\", "path/with/slash"]
    for suffix in (".sqlite", ".csv"):
        r = run(folder, "names", suffix=suffix, stdin="\0".join(names) + "\0")
        assert calls(r) == {(name,): 1 for name in names}, [str(p)[:50] for p in calls(r)]


@case("ends that nothing had begun are counted, and change nothing else")
def _(folder):
    r = run(folder, "strays")
    assert calls(r) == {("sound",): 1}, calls(r)
    assert r["regions"]["stray"] == 3, r["regions"]


@case("what is open when the program ends is marked, also when it is killed")
def _(folder):
    r = run(folder, "open")
    assert calls(r) == {("open",): 0, ("open", "done"): 1, ("started",): 0}, calls(r)
    assert unfinished(r) == {("open",): 1, ("started",): 1}, unfinished(r)
    r = run(folder, "killed", status=128 + signal.SIGKILL)
    assert calls(r) == {("around",): 0, ("around", "done"): 1000, ("around", "never"): 0}, calls(r)
    assert unfinished(r) == {("around",): 1, ("around", "never"): 1}, unfinished(r)


@case("regions have no time after the end of the run, when its last tick came later or earlier")
def _(folder):
    run(folder, "open")
    for late_ns in (20_000_000, -20_000_000):
        with contextlib.closing(sqlite3.connect(folder / "r.sqlite")) as db:
            last_ns, = db.execute("SELECT max(time_ns) FROM sample").fetchone()
            db.execute("UPDATE run SET result = json_set(result, '$.end_ns', ?)", (last_ns - late_ns,))
            db.commit()
        r = report_of(folder / "r.sqlite")
        parts = [row["exclusive"]["time"] for row in r["regions"]["by_path"]] + [r["regions"]["rest"]["time"]]
        near(sum(parts), r["compute_time"]["time"], 1e-9, late_ns)


@case("a run without regions has none to tell of")
def _(folder):
    done = wattmeter("run", "--json", "-o", folder / "r.json", "--", "true")
    assert done.returncode == 0, done.stderr
    r = tap.json.loads((folder / "r.json").read_text())
    assert not r.get("regions"), r["regions"]


@case("the command's environment has the inbox in it and is its own otherwise; the inbox goes")
def _(folder):
    env = tap.environment(ONE="1", WATTMETER_REGIONS="/dev/shm/nothing-of-ours")
    done = wattmeter("run", "-q", "--", "sh", "-c", f"{PROGRAM} nested; ls $WATTMETER_REGIONS >&2; env -0",
                     env=env)
    got = dict(line.split("=", 1) for line in done.stdout.split("\0") if line)
    path = got.pop("WATTMETER_REGIONS")
    assert path.startswith("/") and path != env["WATTMETER_REGIONS"], path
    assert "control" in done.stderr, done.stderr
    for name in ("WATTMETER_REGIONS", "PWD", "SHLVL", "_", "OLDPWD"):
        env.pop(name, None)
        got.pop(name, None)
    assert got == env, set(got.items()) ^ set(env.items())
    assert not Path(path).exists(), path


@case("a file that WATTMETER_REGIONS names is written to instead, and the report says so")
def _(folder):
    file = folder / "sub.csv"
    env = tap.environment(WATTMETER_REGIONS=str(file))
    output = folder / "r.json"
    done = wattmeter("run", "--json", "-o", output, "--", PROGRAM, "nested", env=env)
    assert done.returncode == 0, done.stderr
    assert file.read_text().count("inner") == 8, file.read_text()
    r = tap.json.loads(output.read_text())
    assert f"the program writes them to {file}," in remarks_of(r), r["remarks"]
    for name in ("none/sub.csv", "folder.csv"):
        (folder / "folder.csv").mkdir(exist_ok=True)
        env["WATTMETER_REGIONS"] = str(folder / name)
        done = wattmeter("run", "--json", "-o", output, "--overwrite", "--", PROGRAM, "nested", env=env)
        assert done.returncode == 0, done.stderr
        remarks = remarks_of(tap.json.loads(output.read_text()))
        assert "there are none" in remarks and env["WATTMETER_REGIONS"] in remarks, remarks


@case("the inbox's files are removed: what has a ring goes on, and the report says so")
def _(folder):
    output = folder / "r.json"
    done = wattmeter("run", "--json", "-o", output, "-i", "100ms", "--", "sh", "-c",
                     f'(sleep 0.3; rm -rf "$WATTMETER_REGIONS") & exec {PROGRAM} repeats 1200 5')
    assert done.returncode == 0, done.stderr
    made, r = int(done.stdout.split()[-1]), tap.json.loads(output.read_text())
    assert calls(r)["around", "step"] == made, (calls(r), made)
    assert "removed" in remarks_of(r), r["remarks"]
    done = wattmeter("run", "--json", "-o", output, "--overwrite", "--", "sh", "-c",
                     f'rm -rf "$WATTMETER_REGIONS"; {PROGRAM} nested')
    assert done.returncode == 0, done.stderr
    r = tap.json.loads(output.read_text())
    assert "removed" in remarks_of(r), r["remarks"]


@case("no descriptors to spare: the calls are there, or the report says that they are not")
def _(folder):
    output = folder / "r.json"
    for most in range(16, 25, 2):
        done = subprocess.run(
            ["sh", "-c", f'ulimit -n {most}; exec "$@"', "sh", tap.WATTMETER, "run", "--json", "-o",
             output, "--overwrite", "--", PROGRAM, "threads", "4", "100"],
            env=tap.environment(), capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            continue
        r = tap.json.loads(output.read_text())
        if not r.get("regions") or calls(r) != {("outer",): 400, ("outer", "inner"): 400}:
            assert "regions: " in remarks_of(r), (most, r["remarks"])
            assert "Too many open files" in remarks_of(r), (most, r["remarks"])


LOST_AT = 80  # in a ring: see struct wm_ring
LATE = 'late, "new" name'


def kill_tracker(folder, suffix, life, length, pause, stay=300):
    """The recording of a tracker that was killed while the program ran for `length`
    milliseconds and then stayed, the number of calls that the program says it made, and the
    inbox."""
    recording, said = folder / ("k" + suffix), folder / "said"
    with open(said, "w") as out:
        tracker = subprocess.Popen(
            [tap.WATTMETER, "run", "-q", "-i", "20ms", "--overwrite", "--record", recording, "--",
             PROGRAM, "repeats", str(length), str(pause), str(stay)], env=tap.environment(),
            stdin=subprocess.DEVNULL, stdout=out)
    wait_for(lambda: said.read_text().endswith("\n"), "the program")
    time.sleep(life)
    tracker.kill()
    tracker.wait()
    inbox, count = wait_for(lambda: (said.read_text().split("\n") + [""])[:3][1] and
                            said.read_text().split("\n")[:2], "the program's count", 10)
    return recording, int(count), inbox


@case("kill -9 of the tracker: every call that ended is in the recording's report, what is open is marked")
def _(folder):
    for round_number in range(16):
        suffix = (".sqlite", ".csv")[round_number % 2]
        length, pause = ((1200, 1), (600, 0))[round_number // 2 % 2]
        life = length / 1000 * (round_number + 1) / 17
        recording, count, inbox = kill_tracker(folder, suffix, life, length, pause)
        try:
            r = report_of(recording)
            expected = {("around",): 0, ("around", "step"): count,
                        ("around", "step", "even"): (count + 1) // 2,
                        ("around", "step", "odd"): count // 2,
                        ("around", LATE): 1, ("around", "never"): 0}
            assert calls(r) == expected, (round_number, calls(r), expected)
            assert unfinished(r) == {("around",): 1, ("around", "never"): 1}, unfinished(r)
            assert not any("missing" in remark for remark in r["remarks"]), r["remarks"]
            copy = folder / ("copy" + suffix)
            done = wattmeter("export", recording, "--overwrite", "-o", copy)
            assert done.returncode == 0, done
            assert report_of(copy)["regions"] == r["regions"], report_of(copy)["regions"]
            time.sleep(0.3)  # The program is gone by now.
            assert report_of(recording)["regions"] == r["regions"]
            assert report_of(copy)["regions"] == r["regions"], report_of(copy)["regions"]
        finally:
            shutil.rmtree(inbox, ignore_errors=True)


@case("kill -9 of the tracker: what is open lasts as long as the recording does")
def _(folder):
    for suffix in (".sqlite", ".csv"):
        recording, count, inbox = kill_tracker(folder, suffix, 1.5, 0, 0, 2500)
        try:
            r = report_of(recording)
            assert count == 1 and calls(r)["around", "never"] == 0, (count, calls(r))
            for path in (("around",), ("around", "never")):
                seconds = paths(r)[path]["inclusive"]["time"]
                assert 0.8 < seconds <= r["compute_time"]["time"], (path, seconds, r["compute_time"])
            assert r["regions"]["rest"]["time"] < 0.5, r["regions"]["rest"]
        finally:
            shutil.rmtree(inbox, ignore_errors=True)


@case("kill -9 of the tracker: joules and the time that they are for reach to the last tick")
def _(folder):
    recording, count, inbox = kill_tracker(folder, ".sqlite", 0.5, 1500, 5)
    try:
        r = report_of(recording)
        length = r["compute_time"]["time"]
        for row in r["regions"]["by_name"]:
            assert row["inclusive"]["time"] <= length + 1e-6, (row["inclusive"], length)
        own = sum(row["exclusive"]["time"] for row in r["regions"]["by_name"])
        near(own + r["regions"]["rest"]["time"], length, 1e-6)
        assert any("up to the last tick" in remark for remark in r["remarks"]), r["remarks"]
    finally:
        shutil.rmtree(inbox, ignore_errors=True)


@case("own time and the rest are the time of the run")
def _(folder):
    r = run(folder, "nested")
    own = sum(row["exclusive"]["time"] for row in r["regions"]["by_name"])
    near(own + r["regions"]["rest"]["time"], r["compute_time"]["time"], 1e-6)
    assert r["regions"]["by_name"][0]["inclusive"]["energy"].get("origin") == r["energy"].get("origin"), r


@case("the clock of a time namespace: what it puts before the run counts from its start")
def _(folder):
    inside = ["unshare", "-T", "--monotonic", "-5000", "-f"]
    if not shutil.which("unshare") or subprocess.run([*inside, "true"], capture_output=True).returncode:
        raise tap.Skip("needs a time namespace")
    output = folder / "r.json"
    done = wattmeter("run", "--json", "-o", output, "--", *inside, PROGRAM, "nested")
    assert done.returncode == 0, done.stderr
    r = tap.json.loads(output.read_text())
    for row in r["regions"]["by_name"]:
        assert row["inclusive"]["time"] <= r["compute_time"]["time"], (row["inclusive"], r["compute_time"])
        assert row["time"]["total"] < 10, row["time"]
    assert any("time namespace" in remark for remark in r["remarks"]), r["remarks"]


@case("what of it cannot be read is remarked")
def _(folder):
    recording, _, inbox = kill_tracker(folder, ".sqlite", 0.3, 400, 1)
    try:
        for journal in Path(inbox).glob("journal-*"):
            with open(journal, "r+b") as file:
                file.write(b"no journal")
        with open(Path(inbox) / "0", "r+b") as file:
            file.seek(LOST_AT)
            file.write(struct.pack("=Q", 5))
        remarks = report_of(recording)["remarks"]
        assert any("the journal of regions is broken" in remark for remark in remarks), remarks
        for journal in Path(inbox).glob("journal-*"):
            journal.unlink()
        remarks = report_of(recording)["remarks"]
        assert any("5 events" in remark and "there was no room for the journal" in remark
                   for remark in remarks), remarks
    finally:
        shutil.rmtree(inbox, ignore_errors=True)


@case("an export has what a killed tracker left, and the remark on what is missing")
def _(folder):
    recording, _, inbox = kill_tracker(folder, ".sqlite", 0.3, 400, 1)
    try:
        with open(Path(inbox) / "0", "r+b") as file:
            file.seek(LOST_AT)
            file.write(struct.pack("=Q", 5))
        before, after = report_of(recording), {}
        for suffix in (".sqlite", ".csv"):
            whole = folder / ("whole" + suffix)
            done = wattmeter("export", recording, "-o", whole)
            assert done.returncode == 0, done.stderr
            after[suffix] = report_of(whole)
        shutil.rmtree(inbox)
        for suffix, r in after.items():
            assert r["regions"] == before["regions"], (suffix, before["regions"], r["regions"])
            later = report_of(folder / ("whole" + suffix))
            for r in (r, later):
                assert any("5 events" in remark for remark in r["remarks"]), (suffix, r["remarks"])
            assert later["regions"] == before["regions"], (suffix, later["regions"])
    finally:
        shutil.rmtree(inbox, ignore_errors=True)


@case("a program that cuts its ring short, or writes garbage over it, costs no more than its regions")
def _(folder):
    output = folder / "r.json"
    for damage in (': >"$WATTMETER_REGIONS/0"',
                   f'printf %s 0123456789 | dd of="$WATTMETER_REGIONS/0" bs=1 seek={LOST_AT} conv=notrunc 2>&-'):
        done = wattmeter("run", "--json", "-o", output, "--overwrite", "-i", "20ms", "--", "sh", "-c",
                         f'{PROGRAM} repeats 2000 5 >&2 & until test -s "$WATTMETER_REGIONS/0"; do '
                         f"sleep 0.05; done; sleep 0.2; {damage}; wait; {PROGRAM} nested")
        assert done.returncode == 0, (damage, done)
        r = tap.json.loads(output.read_text())
        made = calls(r)
        assert made["around", "step"] > 0 and made["outer", "inner"] == 3, (damage, made)
        assert "damaged (process " in remarks_of(r), (damage, r["remarks"])
        assert r["regions"]["dropped"] == 0, (damage, r["regions"])


@case("a program that cuts the control short costs no more than its regions")
def _(folder):
    output = folder / "r.json"
    done = wattmeter("run", "--json", "-o", output, "-i", "20ms", "--", "sh", "-c",
                     f'{PROGRAM} nested; : >"$WATTMETER_REGIONS/control"; {PROGRAM} nested')
    assert done.returncode == 0, done
    r = tap.json.loads(output.read_text())
    assert calls(r) == {("outer",): 1, ("outer", "inner"): 3, ("inner",): 1}, calls(r)
    assert "cut its files short" in remarks_of(r), r["remarks"]


@case("where the kernel may not copy for the tracker it reads the rings itself")
def _(folder):
    output = folder / "r.json"
    done = subprocess.run([tap.HELPERS / "deny", "process_vm", tap.WATTMETER, "run", "--json", "-o", output,
                           "--record", folder / "r.sqlite", "--", PROGRAM, "threads", "8", "500"],
                          env=tap.environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    r = tap.json.loads(output.read_text())
    assert calls(r) == {("outer",): 4000, ("outer", "inner"): 4000}, calls(r)
    assert report_of(folder / "r.sqlite")["regions"] == r["regions"]


@case("both killed: the same")
def _(folder):
    recording, said = folder / "b.sqlite", folder / "said"
    with open(said, "w") as out:
        tracker = subprocess.Popen(
            [tap.WATTMETER, "run", "-q", "-i", "1s", "--record", recording, "--", "sh", "-c",
             f"{PROGRAM} killed; echo $WATTMETER_REGIONS; exec sleep 30"], env=tap.environment(),
            stdin=subprocess.DEVNULL, stdout=out, start_new_session=True)
    inbox = wait_for(lambda: said.read_text().strip(), "the program")
    try:
        time.sleep(0.7)  # The first tick is recorded by then.
        os.killpg(tracker.pid, signal.SIGKILL)
        tracker.wait()
        r = report_of(recording)
        assert calls(r)["around", "done"] == 1000, calls(r)
        assert unfinished(r) == {("around",): 1, ("around", "never"): 1}, unfinished(r)
    finally:
        shutil.rmtree(inbox, ignore_errors=True)


def own_memory(pid):
    """What a process has of its own in bytes, the rings that it shares not counted."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


@case("64 threads in each of 8 processes: none is lost, in bounded memory")
def _(folder):
    count = 100 if tap.SANITIZED else 2000
    total = 8 * 64 * count
    for suffix in (".sqlite", ".csv"):
        output, recording, most = folder / "r.json", folder / ("r" + suffix), 0
        tracker = subprocess.Popen(
            [tap.WATTMETER, "run", "--json", "-o", output, "--overwrite", "--record", recording,
             "--", PROGRAM, "processes", "8", "64", str(count)], env=tap.environment(),
            stdin=subprocess.DEVNULL)
        while tracker.poll() is None:
            most = max(most, own_memory(tracker.pid))
            time.sleep(0.01)
        assert tracker.returncode == 0, tracker.returncode
        r = tap.json.loads(output.read_text())
        assert calls(r) == {("outer",): total, ("outer", "inner"): total}, calls(r)
        assert r["regions"]["lost"] == r["regions"]["dropped"] == r["regions"]["stray"] == 0, r["regions"]
        print(f"# {suffix}: {2 * total} calls in {r['compute_time']['time']:.1f} s, {most / 1e6:.1f} MB, "
              f"{r['tool']['cpu_seconds']:.1f} s of CPU time")
        assert most < 8e6 or tap.SANITIZED, most
        assert report_of(recording)["regions"] == r["regions"]


if __name__ == "__main__":
    tap.main()
