#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings in PostgreSQL, with a real server that is stopped, killed and hung."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import time

import tap
from postgres_server import Server
from tap import Skip, case, wattmeter

FAKE = {"WATTMETER_NVML": str(tap.BUILD / "tests/fake/libnvidia-ml.so.1"),
        "FAKE_NVML_SCENARIO": str(tap.SOURCE / "tests/fake/scenarios/demo.json")}
WORK = ["bash", "-c", "for i in 1 2 3; do (for k in $(seq 30000); do :; done); sleep 0.1; done"]
PATIENCE = 10  # seconds; what the server is waited for at the end

_server = None


def server():
    """The one server of all cases; what a case did to it is undone."""
    global _server
    if _server is None:
        done = wattmeter("report", "postgresql:///x?host=/nonexistent")
        if "built without" in done.stderr:
            raise Skip("built without libpq")
        _server = Server()
    _server.go_on()
    if _server.process.poll() is not None:
        _server.start()
    return _server


_databases = 0


def database(options=""):
    global _databases
    _databases += 1
    return server().new_database(f"db{_databases}", options), f"db{_databases}"


def environment(folder, **extra):
    return tap.environment(XDG_STATE_HOME=str(folder / "state"), **{**FAKE, **extra})


def spools(folder):
    return sorted((folder / "state").glob("wattmeter/spool-*.sqlite"))


def record(folder, url, *command, options=(), **how):
    """Runs to the end; the result and the report."""
    output = folder / "report.json"
    output.unlink(missing_ok=True)
    done = wattmeter("run", "--json", "-i", "20ms", "-o", output, "--record", url, *options, "--",
                     *command, env=environment(folder), **how)
    return done, output.read_text() if output.exists() else None


def begin(folder, url, *command, interval="20ms"):
    (folder / "report.json").unlink(missing_ok=True)
    return subprocess.Popen(
        [tap.WATTMETER, "run", "--json", "-i", interval, "-o", folder / "report.json", "--record",
         url, "--", *command], env=environment(folder), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process, timeout=300):
    out, err = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def wait_for_rows(table, name, run):
    """Until the run's first rows are there: whatever is done to the server now is done to a run
    that has begun."""
    until = time.monotonic() + 300
    while (server().sql(f"SELECT to_regclass('wattmeter.{table}') IS NULL", name) == "t" or
           server().sql(f"SELECT count(*) FROM wattmeter.{table}", name) == "0"):
        assert run.poll() is None and time.monotonic() < until, run.poll()
        time.sleep(0.05)


def report_of(where):
    done = wattmeter("report", "--json", where)
    assert done.returncode == 0, done
    return done.stdout


def assert_whole(folder, url, name):
    """All ticks of the run are there, once, and its report is that of the run."""
    told = (folder / "report.json").read_text()
    assert report_of(url) == told, (told, report_of(url))
    rows, ticks = map(int, server().sql(
        "SELECT (SELECT count(*) FROM wattmeter.sample WHERE run = r.id), result->>'ticks'"
        " FROM wattmeter.run r ORDER BY id DESC LIMIT 1", name).split("|"))
    assert rows == ticks > 0, (rows, ticks)
    assert spools(folder) == []
    return rows


@case("the report of a run is the same from PostgreSQL, SQLite, CSV, and back")
def _(folder):
    url, name = database()
    done, told = record(folder, url, *WORK, options=["--note", "k=v"])
    assert done.returncode == 0 and done.stderr == "", done
    assert_whole(folder, url, name)
    second, _ = database()
    for source, target in ((url, folder / "a.sqlite"), (folder / "a.sqlite", folder / "b.csv"),
                           (folder / "b.csv", second), (second, folder / "c.sqlite"),
                           (folder / "c.sqlite", folder / "d.csv")):
        done = wattmeter("export", source, "-o", target)
        assert done.returncode == 0, done
        assert report_of(target) == told, target
    assert (folder / "b.csv").read_bytes() == (folder / "d.csv").read_bytes()
    assert wattmeter("report", url).stdout == wattmeter("report", folder / "a.sqlite").stdout

    # JSON is not read back by us; its numbers must be the very same.
    for source in (url, folder / "a.sqlite"):
        wattmeter("export", source, "--overwrite", "-o", folder / "e.json")
        document = json.loads((folder / "e.json").read_text())
        if source == url:
            first = document
        else:
            assert [first[k] for k in ("samples", "gaps", "result", "run")] == [
                document[k] for k in ("samples", "gaps", "result", "run")]


@case("SQL finds columns named with their units")
def _(folder):
    url, name = database()
    record(folder, url, *WORK)
    wattmeter("export", url, "-o", folder / "a.sqlite")
    lite = sqlite3.connect(folder / "a.sqlite")
    for sql in ('SELECT count(*), max("gpu0_power_W"), max("tree_memory_total_B"),'
                ' max("gpu0_energy_J") - min("gpu0_energy_J") FROM %ssample',
                'SELECT count(*), max(ordinal), min(kind) FROM %schannel'):
        ours = [float(x) if x[0].isdigit() else x
                for x in server().sql(sql % "wattmeter.", name).split("|")]
        theirs = list(lite.execute(sql % "").fetchone())
        assert ours == theirs, (sql, ours, theirs)
    started = server().sql("SELECT now() - started < '2 minutes' FROM wattmeter.run", name)
    assert started == "t", started


@case("several runs: each is added, --run chooses, --append is allowed and --overwrite refused")
def _(folder):
    url, name = database()
    for number, options in enumerate(([], ["--append"], [])):
        done, _ = record(folder, url, "true", options=["--note", f"n={number}", *options])
        assert done.returncode == 0, done
    for options, expected in ((["--run", "0"], "0"), (["--run", "1"], "1"), ([], "2")):
        assert json.loads(wattmeter("report", "--json", *options, url).stdout)["notes"]["n"] == expected
    assert wattmeter("report", "--run", "3", url).returncode == 2
    done = wattmeter("run", "--overwrite", "--record", url, "--", "touch", folder / "mark",
                     env=environment(folder))
    assert done.returncode == 2 and "overwrite is for files" in done.stderr, done
    assert len(done.stderr.splitlines()) == 1 and not (folder / "mark").exists()
    wattmeter("export", url, "-o", folder / "a.sqlite")
    for options, code in (([], 0), (["--append"], 0), (["--overwrite"], 2)):
        done = wattmeter("export", folder / "a.sqlite", *options, "-o", url)
        assert done.returncode == code, done
    assert server().sql("SELECT count(*) FROM wattmeter.run", name) == "3"


@case("a recording with pauses is exported, as the same figures")
def _(folder):
    url, name = database()
    (folder / "meter.csv").write_text("time,plug_W\n100,1\n101,1\n102,1\n200,1\n201,1\n")
    for source in (tap.SOURCE / "tests/data/aipm/generation1", folder / "meter.csv"):
        done = wattmeter("export", source, "-o", url)
        assert done.returncode == 0, done
        assert report_of(url) == report_of(source)
    assert server().sql("SELECT count(*) FROM wattmeter.sample WHERE run ="
                        " (SELECT max(id) FROM wattmeter.run)", name) == "6"


@case("an export that fails leaves no run behind that nothing was delivered of")
def _(folder):
    url, name = database()
    source = tap.SOURCE / "tests/data/aipm/generation1"
    assert wattmeter("export", source, "-o", url).returncode == 0
    server().sql("CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS"
                 " $$ BEGIN RAISE EXCEPTION 'not today'; END $$", name)
    server().sql("CREATE TRIGGER no BEFORE INSERT ON wattmeter.sample FOR EACH ROW"
                 " EXECUTE FUNCTION no()", name)
    for _ in range(2):
        done = wattmeter("export", source, "-o", url)
        assert done.returncode == 1 and "not today" in done.stderr, done
        assert server().sql("SELECT count(*) FROM wattmeter.run", name) == "1"
    assert report_of(url) == report_of(source)


@case("a command that cannot be started leaves neither run nor spool")
def _(folder):
    url, name = database()
    record(folder, url, "true")
    done, _ = record(folder, url, "/nonexistent/command")
    assert done.returncode == 127, done
    assert server().sql("SELECT count(*) FROM wattmeter.run", name) == "1"
    assert spools(folder) == []


@case("the server is away for ten seconds: nothing is lost, nothing twice")
def _(folder):
    url, name = database()
    run = begin(folder, url, "sleep", "14")
    wait_for_rows("sample", name, run)
    time.sleep(2)
    server_ = server()
    server_.end()
    time.sleep(10)
    assert len(spools(folder)) == 1
    server_.start()
    done = end(run)
    assert done.returncode == 0 and done.stderr == "", done
    assert assert_whole(folder, url, name) > 600
    assert server().sql("SELECT count(*) FROM (SELECT time_ns - lag(time_ns) OVER (ORDER BY"
                        " time_ns) AS step FROM wattmeter.sample) s WHERE step > 1000000000", name) == "0"


@case("the server is killed with -9 and comes back")
def _(folder):
    url, name = database()
    run = begin(folder, url, "sleep", "5")
    wait_for_rows("sample", name, run)
    time.sleep(2)
    server_ = server()
    server_.end(signal.SIGKILL)
    time.sleep(0.5)
    server_.start()
    done = end(run)
    assert done.returncode == 0 and done.stderr == "", done
    assert_whole(folder, url, name)


@case("connections cut again and again: every tick is there once")
def _(folder):
    url, name = database()
    run = begin(folder, url, "sleep", "6", interval="5ms")
    wait_for_rows("sample", name, run)
    until = time.monotonic() + 4
    while time.monotonic() < until:
        server().sql(f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                     f" WHERE datname = '{name}' AND application_name = 'wattmeter'")
        time.sleep(0.13)
    done = end(run)
    assert done.returncode == 0, done
    assert_whole(folder, url, name)


REGIONS = ("SELECT count(*), count(DISTINCT start_ns), sum(stop_ns), sum(depth), count(name),"
           " sum(tid) FROM %sregion")
SAMPLE = tap.SOURCE / "tests" / "data" / "recordings" / "v1-regions.sqlite"


def regions_of_file(path):
    database = sqlite3.connect(path)
    rows = list(database.execute("SELECT path, thread, start_ns, stop_ns, is_open"
                                 " FROM region_call ORDER BY 1, 2, 3, 4"))
    paths = list(database.execute("SELECT id, parent, name, depth, is_free FROM region_path"))
    threads = list(database.execute("SELECT id, pid, tid, process FROM region_thread"))
    database.close()
    return rows, paths, threads


@case("regions go there and back; the same run once more adds nothing")
def _(folder):
    url, name = database()
    for _ in range(2):
        done = wattmeter("export", SAMPLE, "-o", url)
        assert done.returncode == 0, done
        assert server().sql("SELECT count(*) FROM wattmeter.region", name) == "7"
    assert wattmeter("export", url, "-o", folder / "back.sqlite").returncode == 0
    assert regions_of_file(folder / "back.sqlite") == regions_of_file(SAMPLE)
    open_ones = server().sql("SELECT count(*) FROM wattmeter.region WHERE open", name)
    assert open_ones == "3", open_ones


@case("connections cut again and again: every region is there once")
def _(folder):
    url, name = database()
    count = 200000
    run = subprocess.Popen([tap.BUILD / "tests/system/record_regions", url, str(count)],
                           env=environment(folder))
    wait_for_rows("region", name, run)
    until = time.monotonic() + 4
    while time.monotonic() < until and run.poll() is None:
        time.sleep(0.4)
        server().sql(f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                     f" WHERE datname = '{name}' AND application_name = 'wattmeter'")
    assert run.wait(60) == 0
    assert not spools(folder)
    stops = sum(1000000000 + n // 700 * 700 for n in range(count))
    expected = [count, count, stops, (count + 1) // 3, count, count // 2 * 3]
    found = [int(x) for x in server().sql(REGIONS % "wattmeter.", name).split("|")]
    assert found == expected, (found, expected)
    assert wattmeter("export", url, "-o", folder / "a.sqlite").returncode == 0
    lite = sqlite3.connect(folder / "a.sqlite")
    assert list(lite.execute(REGIONS % "").fetchone()) == expected
    lite.close()


@case("a server that hangs holds up the end for a bounded time; the spool is told and loads")
def _(folder):
    url, name = database()
    run = begin(folder, url, "sleep", "3")
    wait_for_rows("sample", name, run)
    server_ = server()
    server_.hang()
    begun = time.monotonic()
    done = end(run)
    took = time.monotonic() - begun
    assert took < 3 + PATIENCE + 3, took
    kept, = spools(folder)
    told = json.loads((folder / "report.json").read_text())
    for text in (done.stderr, told["recording"]["trouble"]):
        assert str(kept) in text, text
    server_.go_on()

    whole = report_of(kept)
    first = int(server().sql("SELECT count(*) FROM wattmeter.sample", name))
    assert first > 0
    for _ in range(2):  # the second time there is nothing to add
        done = wattmeter("export", kept, "-o", url)
        assert done.returncode == 0, done
        assert report_of(url) == whole
    ours = sqlite3.connect(kept).execute("SELECT count(*) FROM sample").fetchone()[0]
    assert int(server().sql("SELECT count(*) FROM wattmeter.sample", name)) == ours > first
    assert server().sql("SELECT count(*) FROM wattmeter.run", name) == "1"
    same = json.loads(whole)
    for part in (told, same):  # but for what is said of the recording itself
        for key in ("recording", "remarks"):
            part.pop(key, None)
    assert told == same, (told, same)


@case("a server that hangs for longer than it is waited for, and goes on")
def _(folder):
    url, name = database()
    run = begin(folder, url, "sleep", "16")
    wait_for_rows("sample", name, run)
    time.sleep(1.5)
    server_ = server()
    server_.hang()
    time.sleep(PATIENCE + 2)
    server_.go_on()
    done = end(run)
    assert done.returncode == 0 and done.stderr == "", done
    assert_whole(folder, url, name)


@case("a server that is not there: refused in one line before the command is started")
def _(folder):
    server()
    for url in (f"postgresql:///db?host={folder}", "postgres://user@127.0.0.1:1/db",
                server().url("nosuch"), server().url(user="nobody-there")):
        for command in (["run", "--record", url, "--", "touch", folder / "mark"],
                        ["report", url], ["export", url, "-o", folder / "x.csv"]):
            done = wattmeter(*command, env=environment(folder))
            assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
            assert "postgresql://" in done.stderr, done
    assert not (folder / "mark").exists() and not (folder / "x.csv").exists()
    assert spools(folder) == []


@case("wattmeter killed with -9 while the server is away: the spool has it all")
def _(folder):
    url, name = database()
    run = begin(folder, url, "sh", "-c", f"echo $$ > {folder}/pid; exec sleep 30")
    wait_for_rows("sample", name, run)
    time.sleep(2)
    server_ = server()
    server_.end()
    time.sleep(2)
    run.kill()
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    run.communicate()
    server_.start()
    kept, = spools(folder)
    ours = sqlite3.connect(kept).execute("SELECT max(time_ns) - min(time_ns) FROM sample").fetchone()[0]
    assert ours > 3e9, ours  # of four seconds
    whole = report_of(kept)
    first = int(server().sql("SELECT count(*) FROM wattmeter.sample", name))
    done = wattmeter("export", kept, "-o", url)
    assert done.returncode == 0, done
    assert report_of(url) == whole
    assert int(server().sql("SELECT count(*) FROM wattmeter.sample", name)) > first > 0


@case("wattmeter killed with -9 while the server is there: all but the last second is, ticks and regions")
def _(folder):
    for interval, tables in (("20ms", ("sample.time_ns", "region_call.stop_ns")),
                             ("60s", ("region_call.stop_ns",))):
        url, name = database()
        run = begin(folder, url, tap.HELPERS / "regions", "repeats", "5000", "1", interval=interval)
        time.sleep(3)
        killed = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        run.kill()
        run.communicate()  # until the program ends, which goes on
        for table, column in (entry.split(".") for entry in tables):
            last = int(server().sql(f"SELECT max({column}) FROM wattmeter.{table}", name))
            assert killed - last < 1.1e9, (interval, table, (killed - last) / 1e9)


@case("the disk of the spool is full: what is lost is told, and the rest is there")
def _(folder):
    url, name = database()
    (folder / "state").mkdir()
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", folder / "state"],
        capture_output=True).returncode == 0
    if not mounted:
        raise Skip("a small disk cannot be mounted here")
    try:
        # What the server has already makes room again: nothing is lost.
        done = end(begin(folder, url, "sleep", "6", interval="2ms"))
        assert done.returncode == 0, done
        assert_whole(folder, url, name)

        run = begin(folder, url, "sleep", "12", interval="1ms")
        while server().sql("SELECT count(DISTINCT run) FROM wattmeter.sample", name) == "1":
            time.sleep(0.05)
        time.sleep(1)
        server_ = server()
        server_.end()
        time.sleep(9)
        server_.start()
        done = end(run)
        told = json.loads((folder / "report.json").read_text())["recording"]
        assert told["lost_ticks"] > 0 and told["trouble"], told
        rows = int(server().sql("SELECT count(*) FROM wattmeter.sample WHERE run ="
                                " (SELECT max(id) FROM wattmeter.run)", name))
        ticks = json.loads(server().sql("SELECT result FROM wattmeter.run ORDER BY id DESC LIMIT 1",
                                        name))["ticks"]
        assert rows + told["lost_ticks"] == ticks, (rows, told, ticks)
        assert spools(folder) == []
    finally:
        subprocess.run(["umount", folder / "state"], check=False)


@case("there is no folder for the spool: refused in one line")
def _(folder):
    url, name = database()
    (folder / "file").write_text("")
    done = wattmeter("run", "--record", url, "--", "touch", folder / "mark",
                     env=tap.environment(XDG_STATE_HOME=str(folder / "file"), TMPDIR=str(folder / "file")))
    assert done.returncode == 1 and "spool" in done.stderr and len(done.stderr.splitlines()) == 1, done
    assert not (folder / "mark").exists()
    assert server().sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'wattmeter'", name) == "0"


@case("no password shows, right or wrong, wherever the URL is at fault")
def _(folder):
    secret = "S3cr/et@x"
    url, name = database()
    server().sql(f"CREATE ROLE locked LOGIN SUPERUSER PASSWORD '{secret}'")
    right = server().url(name, "locked", secret)
    done, told = record(folder, right, "sleep", "0.2")
    assert done.returncode == 0, done
    shown = [done.stderr, told, server().sql("SELECT info, result FROM wattmeter.run", name)]
    wattmeter("export", right, "-o", folder / "a.csv")
    shown.append((folder / "a.csv").read_text())
    calls = folder / "calls.csv"
    calls.write_text("process_id,code_block_name,position,timestamp\n1,a,0,1\n1,a,1,2\n")
    for command in (["compare", right, folder / "a.csv"], ["compare", right, right],
                    ["compare", right, folder / "a.csv", "--json"],
                    ["analyze", right, "--regions", calls],
                    ["combine", "-o", folder / "all.csv", right]):
        done = wattmeter(*command, env=environment(folder))
        assert "postgresql://" in done.stderr + done.stdout, done
        shown += [done.stderr, done.stdout]
    for bad in (server().url(name, "locked", "S3cr/et@y"), f"postgresql://locked:{secret}@/{name}",
                f"postgresql://u:{secret}@127.0.0.1:1/db", "postgresql://u:S3cr%zz@h/db",
                "postgresql://u:S3cr@[::1/db", "postgresql://u:S3cr@h/db?nosuch=S3cr",
                "postgresql://h/db?password=S3cr&port=x", "postgres://u:S3cr@h:port/db"):
        for command in (["run", "--record", bad, "--", "touch", folder / "mark"],
                        ["run", "--overwrite", "--record", bad, "--", "true"],
                        ["report", bad], ["export", folder / "a.csv", "-o", bad],
                        ["export", bad, "-o", folder / "b.csv"]):
            done = wattmeter(*command, env=environment(folder))
            assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1, done
            shown += [done.stderr, done.stdout]
    assert not any("S3cr" in text or "et@" in text for text in shown), [
        t for t in shown if "S3cr" in t or "et@" in t]
    assert not (folder / "mark").exists()


@case("hostile names: quotes, SQL, line feeds, bytes that are no UTF-8, 4 KB")
def _(folder):
    url, name = database()
    names = ["a'b\"c\\d", "'); DROP TABLE wattmeter.run; --", "x\ny\tz", "naïve ☃ 日本", "%s%n", "{}",
             "l" * 4096]
    done = wattmeter("run", "-q", "-i", "20ms", "--record", url, "--note", "k'\"=" + names[1], "--",
                     "true", *names, os.fsdecode(b"\xff\xfe"), env=environment(folder))
    assert done.returncode == 0, done
    run = json.loads(server().sql("SELECT info FROM wattmeter.run", name))
    assert run["command"][1:8] == names and run["command"][8] == "\ufffd\ufffd", run
    assert run["notes"]["k'\""] == names[1]
    wattmeter("export", url, "-o", folder / "a.sqlite")
    assert report_of(url) == report_of(folder / "a.sqlite")


@contextlib.contextmanager
def edited(path):
    lite = sqlite3.connect(path)
    yield lite
    lite.commit()
    lite.close()


def make_wide(folder, name, count):
    """A recording with that many channels more, each of a device of its own."""
    path = folder / name
    wattmeter("run", "-q", "-i", "20ms", "--record", path, "--", "sleep", "0.2")
    with edited(path) as lite:
        first = lite.execute("SELECT count(*) FROM channel").fetchone()[0]
        for n in range(count):
            label = f"sensor_with_a_rather_long_label_that_goes_on_and_on_{n}"
            value, clock = f"{label}_power_W", f"{label}_time_ns"
            lite.execute("INSERT INTO channel SELECT 1, ?, ?, 'x', ?, ?, NULL, 'power', 'W', 'other', 'gauge',"
                         " 'measured', 0, ?, '{}'", (first + n, value, label, label, clock))
            lite.execute(f'ALTER TABLE sample ADD COLUMN "{value}" REAL')
            lite.execute(f'ALTER TABLE sample ADD COLUMN "{clock}" INTEGER')
        sets = ", ".join(f'"sensor_with_a_rather_long_label_that_goes_on_and_on_{n}_power_W" = {n}.5,'
                         f' "sensor_with_a_rather_long_label_that_goes_on_and_on_{n}_time_ns" = time_ns'
                         for n in range(count))
        lite.execute("UPDATE sample SET " + sets)
    return path


@case("as many channels as a row holds, with long names; more are refused in one line")
def _(folder):
    url, name = database()
    wide = make_wide(folder, "wide.sqlite", 450)
    done = wattmeter("export", wide, "-o", url)
    assert done.returncode == 0, done
    assert report_of(url) == report_of(wide)
    assert server().sql("SELECT max(length(column_name)), count(DISTINCT column_name) = count(*)"
                        " FROM wattmeter.channel", name) == "63|t"
    done = wattmeter("export", make_wide(folder, "wider.sqlite", 520), "-o", url)
    assert done.returncode == 2 and "columns" in done.stderr and len(done.stderr.splitlines()) == 1, done
    assert server().sql("SELECT count(*) FROM wattmeter.run", name) == "1"


@case("several begin at once in an empty database, and all are there")
def _(folder):
    url, name = database()
    runs = []
    for number in range(6):
        own = folder / str(number)
        own.mkdir()
        runs.append(begin(own, url, "sleep", "1"))
    for run in runs:
        done = end(run)
        assert done.returncode == 0 and done.stderr == "", done
    for number in range(6):
        reports = [json.loads(wattmeter("report", "--json", "--run", n, url).stdout) for n in range(6)]
        assert json.loads((folder / str(number) / "report.json").read_text()) in reports


@case("a database that is something else is left alone; a newer format and a draft are refused")
def _(folder):
    url, name = database()
    server().sql("CREATE SCHEMA wattmeter; CREATE TABLE wattmeter.run (x int)", name)
    newer, newer_name = database()
    record(folder, newer, "true")
    server().sql("UPDATE wattmeter.recording_format SET version = 99", newer_name)
    draft, draft_name = database()
    record(folder, draft, "true")
    server().sql("ALTER TABLE wattmeter.channel DROP COLUMN sensor", draft_name)
    empty, _ = database()
    latin, _ = database("ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    for bad, text in ((url, "something else"), (newer, "newer"), (draft, "before version 0.1.0"),
                      (latin, "UTF8")):
        for command in (["run", "--record", bad, "--", "touch", folder / "mark"], ["report", bad]):
            done = wattmeter(*command, env=environment(folder))
            assert done.returncode == 1 and text in done.stderr and len(done.stderr.splitlines()) == 1, done
    assert "holds no recording" in wattmeter("report", empty).stderr
    assert not (folder / "mark").exists() and spools(folder) == []


@case("rights: one who may not write is refused, one who may read gets reports")
def _(folder):
    url, name = database()
    _, told = record(folder, url, "true")
    server().sql("DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA wattmeter TO"
                 " reader; GRANT SELECT ON ALL TABLES IN SCHEMA wattmeter TO reader", name)
    mine = server().url(name, "reader")
    assert report_of(mine) == told
    done = wattmeter("run", "--record", mine, "--", "touch", folder / "mark", env=environment(folder))
    assert len(done.stderr.splitlines()) == 1 and "permission denied" in done.stderr, done
    assert not (folder / "mark").exists() and spools(folder) == []


@case("rights: people write in a common role, as the documentation has it")
def _(folder):
    url, name = database()
    server().sql(f"CREATE ROLE lab_writers; CREATE SCHEMA wattmeter AUTHORIZATION lab_writers;"
                 f" CREATE ROLE ann LOGIN; CREATE ROLE bob LOGIN; GRANT lab_writers TO ann, bob;"
                 f" ALTER ROLE ann IN DATABASE {name} SET role = lab_writers;"
                 f" ALTER ROLE bob IN DATABASE {name} SET role = lab_writers", name)
    done, _ = record(folder, server().url(name, "ann"), "true", options=["--gpu", "none"])
    assert done.returncode == 0, done
    done, told = record(folder, server().url(name, "bob"), "true")  # has columns to add
    assert done.returncode == 0, done
    assert report_of(server().url(name, "ann")) == told


@case("what others have put into the tables is refused with the place, not believed")
def _(folder):
    for change, text in (
            ("UPDATE wattmeter.sample SET \"tree_memory_total_B\" = 'NaN'", "not a number"),
            ("UPDATE wattmeter.sample SET \"tree_memory_total_B\" = 'Infinity'", "not a number"),
            ("UPDATE wattmeter.sample SET time_ns = time_ns - 9000000000000000000", "not a time"),
            ("ALTER TABLE wattmeter.sample ALTER time_ns TYPE numeric", "not a time"),
            ("ALTER TABLE wattmeter.sample DROP \"tree_memory_total_B\"", "tree_memory_total_B"),
            ("UPDATE wattmeter.channel SET kind = 'rubbish'", "no known kind"),
            ("UPDATE wattmeter.channel SET column_name = 'same'", "table channel"),
            ("UPDATE wattmeter.run SET info = '[]'", "table run"),
            ("DELETE FROM wattmeter.run", "no run")):
        url, name = database()
        record(folder, url, "sleep", "0.1")
        server().sql(change, name)
        done = wattmeter("report", url)
        assert done.returncode == 1 and text in done.stderr, (change, done)
        assert len(done.stderr.splitlines()) == 1, done


@case("a long recording is read and exported in bounded memory")
def _(folder):
    url, name = database()
    record(folder, url, "sleep", "0.1")
    server().sql("INSERT INTO wattmeter.sample (run, time_ns, \"host_memory_used_B\") SELECT max(run),"
                 " max(time_ns) + n * 1000000::bigint, 1e9 FROM wattmeter.sample, generate_series(1, 200000) n"
                 " GROUP BY n", name)
    for command in (["report", url], ["export", url, "-o", folder / "a.sqlite"],
                    ["export", folder / "a.sqlite", "-o", database()[0]]):
        process = subprocess.Popen([tap.WATTMETER, *command], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command
        assert tap.SANITIZED or usage.ru_maxrss < 40000, (command, usage.ru_maxrss)


@case("a driver that is slow to start is waited for before the command starts")
def _(folder):
    url, _ = database()
    scenario = folder / "slow.json"
    scenario.write_text('{"gpus": [{}], "faults": [{"call": "nvmlInit*", "delay_ms": 2000}]}')
    done = wattmeter("run", "--record", url, "--", *WORK,
                     env=environment(folder, FAKE_NVML_SCENARIO=str(scenario)))
    report = json.loads(report_of(url))
    assert done.returncode == 0 and len(report["gpus"]) == 1, (done, report)
    assert not any("starting" in remark for remark in report["remarks"]), report["remarks"]


if __name__ == "__main__":
    try:
        tap.main()
    finally:
        if _server:
            _server.remove()
