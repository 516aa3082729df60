#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Regions of measured programs: in the report of the run and in that of its recording,
whoever is killed."""

import array
import bisect
import contextlib
import os
import shutil
import signal
import sqlite3
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


@case("CPU time is the thread's own, not what its time has of a sample")
def _(folder):
    for suffix in (".sqlite", ".csv"):
        output, recording = folder / "r.json", folder / ("r" + suffix)
        done = wattmeter("run", "--json", "-o", output, "--overwrite", "--record", recording,
                         "--", PROGRAM, "clocks", 5)
        assert done.returncode == 0, done
        worked, r = float(done.stdout), tap.json.loads(output.read_text())
        assert report_of(recording)["regions"] == r["regions"]
        work, sleep = paths(r)["work",], paths(r)["sleep",]
        assert work["calls"] == work["clocked_calls"] == sleep["clocked_calls"] == 5, (work, sleep)
        assert worked <= work["exclusive"]["cpu_time"] < 1.01 * worked + 5 * 50e-6, (worked, work)
        assert sleep["exclusive"]["cpu_time"] < 0.02 * worked, sleep
        parts = [r["regions"]["rest"], *(row["exclusive"] for row in (work, sleep))]
        assert all(part["cpu_time"] >= 0 for part in parts), parts


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


@case("a byte in the inbox's pipe without a region costs no more than a look", tries=3)
def _(folder):
    done = wattmeter("run", "--json", "-i", "1s", "--", "sh", "-c", "printf x > $WATTMETER_REGIONS/wake; sleep 1.5")
    report = tap.json.loads(done.stdout)
    # One that waits in vain uses a second and more.
    assert report["tool"]["cpu_seconds"] < 0.3, report["tool"]


@case("an SQLite file of a program that has ended is one file")
def _(folder):
    for what in ("nested", "forks"):
        path = folder / (what + ".sqlite")
        subprocess.run([PROGRAM, what], check=True, env=tap.environment(WATTMETER_REGIONS=str(path)))
        assert [file.name for file in folder.glob(what + "*")] == [path.name], list(folder.iterdir())
        with contextlib.closing(sqlite3.connect(path)) as db:
            assert db.execute("SELECT count(*) FROM data").fetchone()[0] >= 10


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
    remove = 'until [ -e "$WATTMETER_REGIONS/0" ]; do sleep 0.01; done; sleep 1; rm -rf "$WATTMETER_REGIONS"'
    done = wattmeter("run", "--json", "-o", output, "-i", "100ms", "--", "sh", "-c",
                     f"({remove}) & exec {PROGRAM} repeats 1200 5")
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
            env=tap.environment(), capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            continue
        r = tap.json.loads(output.read_text())
        if not r.get("regions") or calls(r) != {("outer",): 400, ("outer", "inner"): 400}:
            assert "regions: " in remarks_of(r), (most, r["remarks"])
            assert "Too many open files" in remarks_of(r), (most, r["remarks"])


LOST_AT = 80  # in a ring: see struct wm_ring


def kill_tracker(folder, suffix, interval, life, pause):
    """The recording of a tracker that was killed `life` seconds after its program had begun,
    when that was, when each call had ended by the program's own account, and the inbox. The
    program goes on until the folder has `stop`."""
    stop = folder / "stop"
    stop.unlink(missing_ok=True)
    recording, said = folder / ("k" + suffix), folder / "said"
    with open(said, "wb") as out:
        tracker = subprocess.Popen(
            [tap.WATTMETER, "run", "-q", "-i", interval, "--overwrite", "--record", recording, "--",
             PROGRAM, "stamps", str(pause)], env=tap.environment(STOP=str(stop)),
            stdin=subprocess.DEVNULL, stdout=out)
    wait_for(lambda: said.read_bytes().endswith(b"\n"), "the program")
    time.sleep(life)
    tracker.kill()
    killed_ns = time.monotonic_ns()
    tracker.wait()
    stop.touch()
    wait_for(lambda: said.read_bytes().endswith(b"over"), "the program's end")
    inbox, stamps = said.read_bytes()[:-len(b"over")].split(b"\n", 1)
    return recording, killed_ns, array.array("q", stamps), inbox.decode()


def check_calls(recording, killed_ns, ends):
    """What ended a second before the kill is there, from the first call on without a gap."""
    r, path = report_of(recording), ("around", "step")
    found = calls(r).get(path, 0)
    least, most = (bisect.bisect_right(ends, ns) for ns in (killed_ns - 10**9, killed_ns))
    assert least <= found <= most, (least, found, most)
    assert calls(r) == {("around",): 0, path: found} and unfinished(r) == {}, (calls(r), unfinished(r))
    if recording.suffix == ".sqlite":
        with contextlib.closing(sqlite3.connect(recording)) as db:
            stops = [ns for ns, in db.execute("SELECT stop_ns FROM region ORDER BY stop_ns")]
        for i, ns in enumerate(stops):
            assert (ends[i - 1] if i else 0) <= ns <= ends[i], (i, ns, ends[i])
    return r


@case("kill -9 of the tracker: what ended a second before is recorded, however seldom it ticks")
def _(folder):
    for suffix in (".sqlite", ".csv"):
        for interval, life, pause in (("20ms", 1.7, 1), ("20ms", 2.1, 0), ("1min", 1.9, 0), ("1min", 2.6, 50)):
            recording, killed_ns, ends, inbox = kill_tracker(folder, suffix, interval, life, pause)
            try:
                r = check_calls(recording, killed_ns, ends)
                remarks = remarks_of(r)
                assert "wattmeter was killed" in remarks and "last second" in remarks, remarks
                copy = folder / ("copy" + suffix)
                done = wattmeter("export", recording, "--overwrite", "-o", copy)
                assert done.returncode == 0, done
                assert report_of(copy)["regions"] == r["regions"], report_of(copy)["regions"]
            finally:
                shutil.rmtree(inbox, ignore_errors=True)


@case("kill -9 of the tracker: its folder goes with the next one, and the program notices nothing")
def _(folder):
    *_, inbox = kill_tracker(folder, ".sqlite", "100ms", 0.3, 1)
    try:
        assert wattmeter("run", "-q", "--", "true").returncode == 0
        assert Path(inbox).exists(), "one that has just been left may be in the making"
        then = time.time() - 120
        os.utime(inbox, (then, then))
        assert wattmeter("run", "-q", "--", "true").returncode == 0
        assert not Path(inbox).exists(), inbox
    finally:
        shutil.rmtree(inbox, ignore_errors=True)


@case("kill -9 of the tracker: joules and the time that they are for reach to the last tick")
def _(folder):
    recording, *_, inbox = kill_tracker(folder, ".sqlite", "20ms", 1.5, 5)
    try:
        r = report_of(recording)
        length = r["compute_time"]["time"]
        called = [row for row in r["regions"]["by_name"] if row["calls"] > 0]
        for row in called:
            assert row["inclusive"]["time"] <= length + 1e-6, (row["inclusive"], length)
        for row in r["regions"]["by_name"]:
            assert row in called or row["inclusive"]["time"] is None, row
        own = sum(row["exclusive"]["time"] for row in called)
        near(own + r["regions"]["rest"]["time"], length, 1e-6)
        assert any("up to the last sample" in remark for remark in r["remarks"]), r["remarks"]
    finally:
        shutil.rmtree(inbox, ignore_errors=True)


@case("a recording of a version that looked for regions in the folder of its dead tracker")
def _(folder):
    run(folder, "nested")
    recording, inbox = folder / "r.sqlite", folder / "inbox"
    before = report_of(recording)["regions"]
    inbox.mkdir()
    for name in ("control", "journal-0", "journal-1", "0"):
        (inbox / name).write_bytes(b"wwmjrnl1" * 512)
    with contextlib.closing(sqlite3.connect(recording)) as db:
        db.execute("UPDATE run SET info = json_set(info, '$.regions_folder', ?, '$.regions_remark', ?)",
                   (str(inbox), "5 events (begins, ends) found no room and are missing"))
        db.execute("UPDATE run SET result = NULL")
        db.commit()
    for path in (recording, folder / "copy.csv"):
        r = report_of(path)
        assert "5 events" in remarks_of(r) and "wattmeter was killed" in remarks_of(r), r["remarks"]
        assert [row["calls"] for row in r["regions"]["by_path"]] == \
            [row["calls"] for row in before["by_path"]], r["regions"]
        if path == recording:
            done = wattmeter("export", recording, "-o", folder / "copy.csv")
            assert done.returncode == 0, done
    assert len(list(inbox.iterdir())) == 4


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


@case("where the kernel may not copy for the tracker it reads the rings itself, cut or not")
def _(folder):
    output = folder / "r.json"
    deny = tap.HELPERS / "deny", "process_vm"
    done = subprocess.run([*deny, tap.WATTMETER, "run", "-q", "-i", "20ms", "--", "sh", "-c",
                           f'{PROGRAM} nested; : >"$WATTMETER_REGIONS/control"; {PROGRAM} nested'],
                          env=tap.environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    done = subprocess.run([*deny, tap.WATTMETER, "run", "--json", "-o", output,
                           "--record", folder / "r.sqlite", "--", PROGRAM, "threads", "8", "500"],
                          env=tap.environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    r = tap.json.loads(output.read_text())
    assert calls(r) == {("outer",): 4000, ("outer", "inner"): 4000}, calls(r)
    assert report_of(folder / "r.sqlite")["regions"] == r["regions"]


@case("both killed, the program first: all its calls are recorded, and what was open in it is marked")
def _(folder):
    recording, said = folder / "b.sqlite", folder / "said"
    with open(said, "w") as out:
        tracker = subprocess.Popen(
            [tap.WATTMETER, "run", "-q", "-i", "1min", "--record", recording, "--", "sh", "-c",
             f"{PROGRAM} killed; echo $WATTMETER_REGIONS; exec sleep 30"], env=tap.environment(),
            stdin=subprocess.DEVNULL, stdout=out, start_new_session=True)
    inbox = wait_for(lambda: said.read_text().strip(), "the program")
    try:
        time.sleep(1.5)
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
        assert r["regions"]["lost"] == r["regions"]["dropped"] == r["regions"]["stray"] == 0, (r["regions"], r["remarks"])
        assert calls(r) == {("outer",): total, ("outer", "inner"): total}, (calls(r), r["remarks"])
        print(f"# {suffix}: {2 * total} calls in {r['compute_time']['time']:.1f} s, {most / 1e6:.1f} MB, "
              f"{r['tool']['cpu_seconds']:.1f} s of CPU time")
        # 7 to 8 MB, and what may wait for a disk; a record of each call would be 80 MB.
        assert most < 20e6 or tap.SANITIZED, most
        assert report_of(recording)["regions"] == r["regions"]


if __name__ == "__main__":
    tap.main()
