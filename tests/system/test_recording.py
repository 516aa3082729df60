#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings as a user meets them: the report of one is the report of the run,
whatever the format; exports say the same."""

import contextlib
import csv
import os
import re
import resource
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import tap
from tap import case, near, wattmeter

FAKE = {"WATTMETER_NVML": str(tap.BUILD / "tests/fake/libnvidia-ml.so.1")}


def fake(scenario):
    return tap.environment(**FAKE, FAKE_NVML_SCENARIO=str(
        tap.SOURCE / "tests/fake/scenarios" / (scenario + ".json")))


WORK = ["bash", "-c", "for i in 1 2 3; do (for k in $(seq 30000); do :; done); sleep 0.1; done"]



def bytes_read(*words):
    """What the command reads, by its own account, which lives until it is reaped."""
    process = subprocess.Popen([tap.WATTMETER, *map(str, words)], env=tap.environment(),
                               stdout=subprocess.DEVNULL)
    with open(f"/proc/{process.pid}/io") as io:  # a dead process's is root's to open
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        account = io.read()
    assert process.wait() == 0
    return int(re.search(r"^rchar: (\d+)", account, re.M)[1])


@case("a list of many runs reads each run once, not all of them for each")
def _(folder):
    path = folder / "r.sqlite"
    assert wattmeter("run", "-q", "--record", path, "--", "true").returncode == 0
    database = sqlite3.connect(path)

    def add(first, last):
        for table, key in ("run", "id"), ("channel", "run"), ("sample", "run"), ("gap", "run"):
            names = [column[1] for column in database.execute(f"PRAGMA table_info({table})")]
            for row in database.execute(f"SELECT * FROM {table} WHERE {key} = 1").fetchall():
                values = dict(zip(names, row))
                marks = ", ".join("?" * len(names))
                database.executemany(f"INSERT INTO {table} VALUES ({marks})",
                                     ([*{**values, key: n}.values()] for n in range(first, last)))
        database.commit()

    add(2, 101)
    few = bytes_read("list", path)
    add(101, 401)
    many = bytes_read("list", path)
    assert wattmeter("list", path).stdout.count("\n") == 401
    assert many < 6 * few, (few, many)

@case("`report` prints the very report that `run` printed, in text and JSON, of each format")
def _(folder):
    for name in ("r.sqlite", "r.csv", "r.db"):
        for options in ([], ["--ram-unit", "megabytes", "--gpu-ram-unit", "gigabytes", "--time-unit", "minutes"]):
            for form in ([], ["--json"]):
                path, output = folder / name, folder / "report"
                done = wattmeter("run", "-i", "20ms", "--overwrite", *form, *options, "--note", "k=v",
                                 "--record", path, "-o", output, "--", *WORK, env=fake("demo"))
                assert done.returncode == 0, done
                again = wattmeter("report", *form, *options, path)
                assert again.stdout == output.read_text(), (name, form, output.read_text(), again.stdout)


@case("-o - is standard output where a report goes, and no file of that name where a recording does")
def _(folder):
    wattmeter("run", "-q", "--record", "r.sqlite", "--", "true", cwd=folder)
    names = sorted(os.listdir(folder))
    for command in (["report", "r.sqlite"], ["report", "--json", "r.sqlite"], ["analyze", "r.sqlite"],
                    ["compare", "a=r.sqlite", "b=r.sqlite"]):
        plain = wattmeter(*command, cwd=folder)
        done = wattmeter(*command, "-o", "-", cwd=folder)
        assert done.returncode == 0 and done.stdout == plain.stdout != "", (command, done)
    for options in ([], ["--json"]):
        done = wattmeter("run", *options, "-o", "-", "--", "echo", "hello", cwd=folder)
        assert done.returncode == 0 and done.stdout.startswith("hello\n"), done
        assert "echo" in done.stdout[6:] and not done.stderr, done
    for command in (["info"], ["gpu-tracker", "-e", "true"]):
        assert len(wattmeter(*command, "-o", "-", cwd=folder).stdout) > 50, command
    for command in (["export", "r.sqlite", "-o", "-"], ["export", "r.sqlite", "--sub-tracking", "-"],
                    ["export", "r.sqlite", "--codecarbon", "-"], ["combine", "r.sqlite", "-o", "-"],
                    ["run", "--record", "-", "--", "true"],
                    ["gpu-tracker", "sub-track", "combine", "--stf=-", "-p", "r.sqlite"]):
        done = wattmeter(*command, cwd=folder)
        assert done.returncode != 0 and not done.stdout and "-" in done.stderr, (command, done)
    assert sorted(os.listdir(folder)) == names


@case("the report of a recording that is still being written says so, and not that it was killed")
def _(folder):
    for name in ("r.sqlite", "r.csv"):
        path, pid = folder / name, folder / "pid"
        running = subprocess.Popen([tap.WATTMETER, "run", "-q", "-i", "20ms", "--record", path, "--",
                                    "sh", "-c", f"echo $$ >{pid}; exec sleep 60"], env=tap.environment())
        until = time.monotonic() + 20
        while "Overhead" not in (text := " ".join(wattmeter("report", path).stdout.split())):
            assert time.monotonic() < until, text
            time.sleep(0.1)
        assert "it is still being written" in text and "killed" not in text, text
        both = wattmeter("compare", f"a={path}", f"b={path}").stderr
        assert "it is still being written" in both and "killed" not in both, both
        assert " running " in wattmeter("list", path).stdout
        running.kill()
        running.wait()
        assert " unfinished " in wattmeter("list", path).stdout
        remarks = tap.json.loads(wattmeter("report", "--json", path).stdout)["remarks"]
        assert "or wattmeter was killed" in " ".join(remarks), remarks
        os.kill(int(pid.read_text()), signal.SIGKILL)


@case("`list` has a line for each run, and for one that cannot be read")
def _(folder):
    path = folder / "r.sqlite"
    for command in (["sleep", "0.2"], ["sh", "-c", "exit 3"], ["sh", "-c", "kill -TERM $$"], ["echo", "a\nb"]):
        wattmeter("run", "-q", "--record", path, *(["--append"] if path.exists() else []), "--", *command)
    lines = wattmeter("list", path).stdout.splitlines()
    assert len(lines) == 5 and [line.split()[0] for line in lines] == ["Run", "0", "1", "2", "3"], lines
    assert "SIGTERM (15)" in lines[3] and lines[4].endswith("echo 'a\\nb'"), lines
    runs = tap.json.loads(wattmeter("list", "--json", path).stdout)["runs"]
    for number, run in enumerate(runs):
        report = tap.json.loads(wattmeter("report", "--json", "--run", str(number), path).stdout)
        assert run["run"] == number and run["command"] == report["command"], (run, report["command"])
        assert run["exit"] == report["exit"] and run["start"] == report["start"], run
        assert run["time"] == report["compute_time"]["time"], run
        assert run["cpu_time"] == report["cpu_time"]["total"], run
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE run SET info = 'no JSON' WHERE id = 2")
        database.commit()
    done = wattmeter("list", path)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 5, done
    assert "n/a (" in done.stdout.splitlines()[2] and "table run" in done.stdout.splitlines()[2], done
    runs = tap.json.loads(wattmeter("list", "--json", path).stdout)["runs"]
    assert [sorted(run) == ["run", "trouble"] for run in runs] == [False, True, False, False], runs


@case("`report --csv` has one header and a line for each run of all recordings, with the figures of JSON")
def _(folder):
    first, second, table = folder / "r.sqlite", folder / "s.csv", folder / "table.csv"
    for path, command in ((first, ["sleep", "0.2"]), (first, ["sh", "-c", 'echo "a,\nb"; exit 3']), (second, ["true"])):
        wattmeter("run", "-q", "--record", path, *(["--append"] if path.exists() else []), "--", *command)
    done = wattmeter("report", "--csv", "-o", table, first, second)
    assert done.returncode == 0 and not done.stdout + done.stderr, done
    assert len(table.read_text().splitlines()) == 4
    rows = list(csv.DictReader(table.open(newline="")))
    places = [(str(first), "0"), (str(first), "1"), (str(second), "0")]
    assert [(row["recording"], row["run"]) for row in rows] == places, rows
    for row, (path, run) in zip(rows, places):
        report = tap.json.loads(wattmeter("report", "--json", "--run", run, path).stdout)
        assert row["status"] == str(report["exit"]["status"]) and row["complete"] == "1", row
        for key, found in (("time", report["compute_time"]["time"]), ("cpu_time", report["cpu_time"]["total"]),
                           ("memory", report["max_ram"]["combined"]["total_rss"]), ("energy", report["energy"]["total"]),
                           ("max_ram.system", report["max_ram"]["system"]), ("tool.ticks", report["tool"]["ticks"]),
                           ("energy_uncertainty_percent", report["energy"].get("uncertainty_percent"))):
            assert (row[key] == "") == (found is None), (key, row[key], found)
            if found is not None:
                near(float(row[key]), found, 1e-12 * max(1, found), key)
        origin = report["energy"].get("origin", "measured")
        for word in ("estimated", "simulated"):
            assert ("energy" in row[word].split()) == (row["energy"] != "" and word == origin), (word, row)
    alone = wattmeter("report", "--csv", "--run", "0", first, second).stdout.splitlines()
    assert alone[1:] == [table.read_text().splitlines()[i] for i in (1, 3)], alone
    done = wattmeter("report", "--csv", "--overwrite", "-o", folder / "half.csv", first, folder / "none")
    assert done.returncode == 1 and not (folder / "half.csv").exists(), done


@case("a URL in the place of a file, or of any other word, is refused without its password")
def _(folder):
    url = "postgresql://user:sesame@127.0.0.1:1/db"
    wattmeter("run", "-q", "--record", "r.sqlite", "--", "true", cwd=folder)
    for command in (["analyze", "--regions", url, "r.sqlite"], ["run", "-o", url, "--", "true"],
                    ["report", "-o", url, "r.sqlite"], ["info", "-o", url], ["run", "--", url],
                    ["report", "--ram-unit", url, "r.sqlite"], [url], ["attach", url],
                    ["run", "--interval", url, "--", "true"], ["doctor", url],
                    ["run", "--note", url, "--", "true"], ["analyze", "r.sqlite", "--format", url],
                    ["run", "--gpu", url.replace("sesame", "sesame" * 9), "--", "true"],
                    ["compare", "a=r.sqlite", "b=r.sqlite", "--regions", url],
                    ["compare", "a=r.sqlite", "b=r.sqlite", "--regions", f"a={url}"]):
        done = wattmeter(*command, cwd=folder)
        assert done.returncode != 0 and done.stderr, (command, done)
        assert "sesame" not in done.stdout + done.stderr, (command, done)


@case("an export of an export is the same report, and SQLite, CSV and JSON have the same numbers")
def _(folder):
    first = folder / "a.sqlite"
    wattmeter("run", "-q", "-i", "10ms", "--record", first, "--", *WORK, env=fake("demo"))
    truth = wattmeter("report", "--json", first).stdout
    chain = [first, folder / "b.csv", folder / "c.sqlite", folder / "d.csv"]
    for source, target in zip(chain, chain[1:]):
        done = wattmeter("export", source, "-o", target)
        assert done.returncode == 0, done
        assert wattmeter("report", "--json", target).stdout == truth, target
    assert chain[1].read_bytes() == chain[3].read_bytes()

    done = wattmeter("export", first, "-o", folder / "e.json")
    assert done.returncode == 0, done
    document = tap.json.loads((folder / "e.json").read_text())
    rows = sqlite3.connect(first).execute("SELECT count(*) FROM sample").fetchone()[0]
    assert len(document["samples"]) == rows


@case("an export that is killed leaves nothing under its name, and what it was to replace as it was")
def _(folder):
    source, place = folder / "r.sqlite", folder / "place"
    wattmeter("run", "-q", "--record", source, "--", tap.HELPERS / "regions", "unlike", "300000")
    place.mkdir()
    for option, name in (("-o", "x.csv"), ("-o", "x.sqlite"), ("-o", "x.json"),
                         ("--sub-tracking", "x.csv"), ("--sub-tracking", "x.sqlite")):
        for old in (None, "what was there"):
            target = place / name
            if old:
                target.write_text(old)
            before = set(place.iterdir())
            export = subprocess.Popen([tap.WATTMETER, "export", source, option, target, "--overwrite"])
            while export.poll() is None and set(place.iterdir()) == before:
                time.sleep(0.001)
            time.sleep(0.01)
            export.kill()
            assert export.wait() == -9, (option, name, export.returncode)
            assert old == (target.read_text(errors="replace") if target.exists() else None), (option, name)
            for file in place.iterdir():
                file.unlink()


@case("Ctrl-C, SIGTERM and SIGHUP leave nothing of an export or a combination behind")
def _(folder):
    source, place = folder / "r.sqlite", folder / "place"
    wattmeter("run", "-q", "--record", source, "--", tap.HELPERS / "regions", "unlike", "300000")
    wattmeter("export", source, "--sub-tracking", folder / "sub.csv")
    place.mkdir()
    (place / "there.sqlite").write_bytes(source.read_bytes())

    def content():
        return {file: file.read_bytes() for file in place.iterdir()}

    before, names = content(), sorted(os.listdir(place))
    for command, number in ((["export", source, "-o", "x.csv"], signal.SIGINT),
                            (["export", source, "-o", "x.sqlite"], signal.SIGTERM),
                            (["export", source, "-o", "there.sqlite", "--append"], signal.SIGTERM),
                            (["export", source, "-o", "there.sqlite", "--overwrite"], signal.SIGINT),
                            (["export", source, "--sub-tracking", "x.csv"], signal.SIGTERM),
                            (["export", source, "--sub-tracking", "x.sqlite"], signal.SIGHUP),
                            (["combine", folder / "sub.csv", "-o", "x.csv"], signal.SIGTERM),
                            (["gpu-tracker", "sub-track", "combine", "-p", folder / "sub.csv",
                              "--stf", "x.csv"], signal.SIGINT)):
        done = subprocess.Popen([tap.WATTMETER, *command], cwd=place, stderr=subprocess.PIPE, text=True)
        while done.poll() is None and sorted(os.listdir(place)) == names:
            pass
        done.send_signal(number)
        talk = done.communicate()[1]
        assert done.returncode == -number, (command, done.returncode, talk)
        assert "interrupted" in talk, (command, talk)
        assert content() == before, (command, list(place.iterdir()))


@case("what --append cannot add as a whole, or is killed at, is as it was")
def _(folder):
    source, place = folder / "r.sqlite", folder / "place"
    wattmeter("run", "-q", "-i", "2ms", "--record", source, "--",
              tap.HELPERS / "regions", "unlike", "80000")
    place.mkdir()

    def fill_up(size):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    for name, data in (("x.sqlite", "x.sqlite"), ("x.aipm", "x.aipm/power_metrics.json")):
        target, data = place / name, place / data
        wattmeter("export", source, "-o", target)
        for file in place.glob("*/metadata.json"):
            file.unlink()  # As in a folder that somebody else has made.
        before, files = data.read_bytes(), set(place.rglob("*"))
        for room in (10, len(before) // 2):
            done = wattmeter("export", source, "-o", target, "--append",
                             preexec_fn=lambda: fill_up(len(before) + room))
            assert done.returncode == 1, (name, room, done)
            assert "File too large" in done.stderr or "full" in done.stderr, done.stderr
            assert data.read_bytes() == before, (name, room)
            assert set(place.rglob("*")) == files, (name, room)
        done = wattmeter("export", source, "-o", target, "--append")
        assert done.returncode == 0 and len(data.read_bytes()) > 1.9 * len(before), done

    target, before = place / "x.sqlite", (place / "x.sqlite").read_bytes()
    export = subprocess.Popen([tap.WATTMETER, "export", source, "-o", target, "--append"])
    while export.poll() is None and target.read_bytes() == before:
        time.sleep(0.001)
    export.kill()
    assert export.wait() == -9, export.returncode
    assert wattmeter("report", target).returncode == 0
    assert target.read_bytes() == before
    assert sqlite3.connect(target).execute("SELECT count(*) FROM run").fetchone()[0] == 2


@case("what is recorded into a file meanwhile is not kept out of it by --append")
def _(folder):
    source, target = folder / "r.sqlite", folder / "live.sqlite"
    wattmeter("run", "-q", "--record", source, "--", tap.HELPERS / "regions", "unlike", "300000")
    live = subprocess.Popen([tap.WATTMETER, "run", "-q", "--record", target, "--", "sleep", "60"])

    def runs():
        with contextlib.closing(sqlite3.connect(f"file:{target}?mode=ro", uri=True)) as database:
            tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            return tables and database.execute(
                "SELECT id, result, (SELECT count(*) FROM region_call WHERE run = run.id)"
                " FROM run ORDER BY id").fetchall()

    while not (target.exists() and target.with_name("live.sqlite-wal").exists() and runs()):
        time.sleep(0.01)
    export = subprocess.Popen([tap.WATTMETER, "export", source, "-o", target, "--append"])
    parts = 0
    while export.poll() is None and not parts:
        parts = len(runs()) == 2 and runs()[1][2]
    assert export.wait() == 0, export.returncode
    live.terminate()
    assert live.wait() == -signal.SIGTERM, live.returncode
    (_, first, _), (_, second, calls) = runs()
    assert 0 < parts < calls == 300000, (parts, calls)
    assert first and second, "no result"


@case("old files are left alone; --overwrite replaces, --append adds")
def _(folder):
    path = folder / "r.sqlite"
    wattmeter("run", "-q", "--record", path, "--note", "n=1", "--", "true")
    done = wattmeter("run", "-q", "--record", path, "--append", "--note", "n=2", "--", "true")
    assert done.returncode == 0, done
    reports = [tap.json.loads(wattmeter("report", "--json", "--run", run, path).stdout) for run in ("0", "1")]
    assert [r["notes"]["n"] for r in reports] == ["1", "2"], [r["notes"] for r in reports]
    assert tap.json.loads(wattmeter("report", "--json", path).stdout)["notes"]["n"] == "2"
    done = wattmeter("run", "-q", "--record", path, "--overwrite", "--note", "n=3", "--", "true")
    assert done.returncode == 0, done
    assert wattmeter("report", "--run", "1", path).returncode == 2
    assert wattmeter("export", path, "-o", path).returncode != 0
    done = wattmeter("run", "-q", "--record", folder / "x.csv", "--append", "--", "true")
    assert done.returncode == 0, done


@case("without SQLite a command and a CSV recording are as ever, and what needs it says so first")
def _(folder):
    path, started = folder / "r.sqlite", folder / "started"
    wattmeter("run", "-q", "--record", path, "--", "true")
    before = path.read_bytes()
    # What the loader finds in place of it is no library.
    hidden = folder / "hidden"
    hidden.mkdir()
    (hidden / "libsqlite3.so.0").touch()
    env = tap.environment(LD_LIBRARY_PATH=str(hidden))

    for command in (["--version"], ["run", "-q", "--", "true"],
                    ["run", "-q", "--record", folder / "r.csv", "--", "true"], ["report", folder / "r.csv"]):
        done = wattmeter(*command, env=env)
        assert done.returncode == 0, done
    for command in (["run", "--record", folder / "new.sqlite", "--", "touch", started],
                    ["run", "--record", path, "--overwrite", "--", "touch", started],
                    ["run", "--experiment", path, "--name", "x", "--", "touch", started],
                    ["experiment", "list", path], ["report", path],
                    ["export", path, "-o", folder / "out.csv"],
                    ["export", folder / "r.csv", "-o", folder / "out.sqlite"]):
        done = wattmeter(*command, env=env)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
        assert "no SQLite (Debian: libsqlite3-0)" in done.stderr, done
    assert path.read_bytes() == before
    assert sorted(p.name for p in folder.iterdir()) == ["hidden", "r.csv", "r.sqlite"]


@case("what is no recording is refused in one line")
def _(folder):
    cases = {"empty.sqlite": b"", "text.sqlite": b"hello\n" * 1000, "page.sqlite": b"SQLite format 3\0" + b"\0" * 5000,
             "text.csv": b"a,b,c\n1,2,3\n", "bin.csv": os.urandom(5000), "huge.csv": b"x" * 3_000_000}
    for name, content in cases.items():
        (folder / name).write_bytes(content)
        for command in (["report", folder / name], ["export", folder / name, "-o", folder / "out.csv"]):
            done = wattmeter(*command)
            assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, (name, done)
            assert name in done.stderr and not (folder / "out.csv").exists(), done.stderr
    assert wattmeter("report", folder / "missing.csv").returncode == 1
    other = sqlite3.connect(folder / "other.sqlite")
    other.execute("CREATE TABLE run (x)")
    other.commit()
    assert wattmeter("report", folder / "other.sqlite").returncode == 1


@case("GPU energy is that of the driver's power curve: counter, and integral where there is none")
def _(folder):
    for scenario, method in (("constant", "counter"), ("no_energy", "integral"), ("stuck_energy", "integral")):
        path = folder / (scenario + ".sqlite")
        output = folder / (scenario + ".json")
        wattmeter("run", "--json", "-o", output, "-i", "20ms", "--record", path, "--", "sleep", "2",
                  env=fake(scenario))
        r = tap.json.loads(output.read_text())
        gpu = r["energy"]["gpus"][0]
        watts = r["gpus"][0]["power"]["mean"]
        near(gpu["energy"], watts * r["compute_time"]["time"], 0.03 * gpu["energy"], scenario)
        assert method in gpu["method"], (scenario, gpu)
        energy = r["energy"]
        parts = sum(g["energy"] for g in energy["gpus"])
        parts += energy["cpu"]["total"] if "cpu" in energy["covers"] else 0
        parts += sum(d["energy"] for d in energy["cpu"]["dram"]) if "dram" in energy["covers"] else 0
        assert energy["unit"] == "joules" and "gpus" in energy["covers"], energy
        near(energy["total"], parts, 1e-6)
        near(energy["total"], sum(energy["attributed"].values()), 1e-6 * energy["total"])


@case("simulated stands wherever a simulated driver's numbers show")
def _(folder):
    for options in ([], ["-v"]):
        done = wattmeter("run", *options, "--", "sleep", "0.4", env=fake("demo"))
        assert done.returncode == 0
        figures = [line for line in done.stderr.splitlines()
                   if re.search(r"\d [km]?[WJ]\b", line) and not line.startswith(("note:", " " * 6))]
        assert len(figures) >= 4, done.stderr
        for line in figures:
            assert re.search("simulated" if "gpu" in line.lower() else "simulated|estimated", line, re.I), done.stderr


@case("memory on the GPU is given to the tree that uses it")
def _(folder):
    output = folder / "r.json"
    wattmeter("run", "--json", "-o", output, "-i", "50ms", "--", "bash", "-c", "sleep 1; true", env=fake("demo"))
    r = tap.json.loads(output.read_text())
    ram = r["max_gpu_ram"]
    assert ram["combined"] > 1e9 and ram["combined"] <= ram["system"] * 1.001, ram
    assert ram["main"] > 0 and ram["system_capacity"] > 1e11, ram
    assert r["gpu_utilization"]["system_gpu_count"] == 2


@case("a choice of GPUs: by index, by UUID, all, none; a wrong one is refused with the list")
def _(folder):
    every = tap.json.loads(wattmeter("run", "--json", "--", "true", env=fake("demo")).stdout)["gpus"]
    assert len(every) == 2
    for choice, indices in (("1", [1]), ("0,1", [0, 1]), (every[1]["uuid"], [1]), ("all", [0, 1]), ("none", [])):
        r = tap.json.loads(wattmeter("run", "--json", "--gpu", choice, "--", "true", env=fake("demo")).stdout)
        assert [g["index"] for g in r["gpus"]] == indices, (choice, r["gpus"])
    for choice in ("2", "GPU-nope", "0,,1", "-1", "x"):
        done = wattmeter("run", "--gpu", choice, "--", "touch", folder / "mark", env=fake("demo"))
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, (choice, done)
        assert not (folder / "mark").exists()


@case("a GPU lost in the middle, a driver that errs: the rest goes on")
def _(folder):
    for scenario in ("lost", "errors"):
        output = folder / (scenario + ".json")
        done = wattmeter("run", "--json", "-o", output, "-i", "50ms", "--", "sleep", "2.5", env=fake(scenario))
        assert done.returncode == 0, done
        r = tap.json.loads(output.read_text())
        assert 2.5 <= r["compute_time"]["time"] < 60, r["compute_time"]
        assert r["gpus"], r["sources"]


if __name__ == "__main__":
    tap.main()
