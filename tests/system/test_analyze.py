#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`wattmeter analyze` and `wattmeter combine` on files as gpu_tracker writes them.

What they should come to is computed here once more, from the definitions and without
any cleverness, and printed by gpu_tracker's rules.
"""

import csv
import json
import math
import random
import shutil
import sqlite3
import statistics
import time

import tap
from tap import case, wattmeter

MEASUREMENTS = (
    "main_ram descendants_ram combined_ram system_ram main_gpu_ram descendants_gpu_ram"
    " combined_gpu_ram system_gpu_ram gpu_sum_utilization_percent"
    " gpu_hardware_utilization_percent main_n_threads descendants_n_threads"
    " combined_n_threads cpu_system_sum_utilization_percent"
    " cpu_system_hardware_utilization_percent cpu_main_sum_utilization_percent"
    " cpu_main_hardware_utilization_percent cpu_descendants_sum_utilization_percent"
    " cpu_descendants_hardware_utilization_percent cpu_combined_sum_utilization_percent"
    " cpu_combined_hardware_utilization_percent").split()
STATIC = {"ram_unit": "gigabytes", "gpu_ram_unit": "gigabytes", "time_unit": "hours",
          "ram_system_capacity": 67.254166528, "gpu_ram_system_capacity": 16.376,
          "system_core_count": 12, "n_expected_cores": 12, "system_gpu_count": 1,
          "n_expected_gpus": 1}
START = 1795247379.25


# Files, as gpu_tracker writes them.

def sql_type(value):
    return {str: "VARCHAR", int: "INTEGER", float: "FLOAT"}[type(value)]


def write_table(path, table, names, rows):
    database = sqlite3.connect(path)
    columns = ", ".join(f"{name} {sql_type(value)}" for name, value in zip(names, rows[0]))
    database.execute(f"CREATE TABLE {table} ({columns})")
    marks = ", ".join("?" * len(names))
    database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    database.commit()
    database.close()


def write_tracking(path, timepoints):
    """Timepoints are (timestamp, values)."""
    names = [*MEASUREMENTS, "timestamp"]
    rows = [[*values, stamp] for stamp, values in timepoints]
    if path.suffix == ".sqlite":
        write_table(path, "static_data", list(STATIC), [list(STATIC.values())])
        write_table(path, "data", names, rows)
        return path
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(STATIC)
        writer.writerow(STATIC.values())
        writer.writerow(names)
        writer.writerows(rows)
    return path


def write_marks(path, marks):
    """Marks are (pid, name, position, timestamp)."""
    names = ("process_id", "code_block_name", "position", "timestamp")
    if path.suffix == ".sqlite":
        write_table(path, "data", names, marks)
        return path
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(marks)
    return path


def made_timepoints(count, seed=1):
    made = random.Random(seed)
    stamp, timepoints = START, []
    for _ in range(count):
        values = [round(made.uniform(0, 120), 6) for _ in MEASUREMENTS]
        for index, name in enumerate(MEASUREMENTS):
            if name.endswith("_threads"):
                values[index] = made.randrange(1, 16)
            if name.startswith("descendants") or "gpu_" in name and made.random() < 0.5:
                values[index] = 0 if name.endswith("_threads") else 0.0
        timepoints.append((stamp, values))
        stamp += made.uniform(0.1, 0.2)
    return timepoints


def made_calls(blocks, length, seed=2):
    """Calls of one process that follow each other, per block; both ends are sometimes
    the time of a timepoint."""
    made = random.Random(seed)
    calls = {}
    for name, pids in blocks.items():
        for pid in pids:
            stamp = START + made.uniform(-0.5, 0.5)
            while stamp < START + length:
                stop = stamp + made.choice((0.01, 0.3, 1.25))
                calls.setdefault(name, []).append((pid, stamp, stop))
                stamp = stop + made.choice((0.001, 0.125, 0.5))
    return calls


def marks_of(calls):
    marks = [(pid, name, position, stamp) for name, pairs in calls.items()
             for pid, start, stop in pairs for position, stamp in ((0, start), (1, stop))]
    return sorted(marks, key=lambda mark: mark[3])


# What it should come to.

def figures(values):
    if not values:
        return dict.fromkeys(("min", "max", "mean", "std"))
    return {"min": min(values), "max": max(values), "mean": statistics.fmean(values),
            "std": statistics.stdev(values) if len(values) > 1 else None}


def usage(timepoints):
    return {name: figures([values[index] for _, values in timepoints])
            for index, name in enumerate(MEASUREMENTS)}


def expected(timepoints, calls):
    blocks = []
    for name in sorted(calls):
        pairs = calls[name]
        inside = [point for point in timepoints
                  if any(start <= point[0] <= stop for _, start, stop in pairs)]
        times = [stop - start for _, start, stop in pairs]
        blocks.append({
            "name": name, "num_timepoints": len(inside), "num_calls": len(pairs),
            "num_non_empty_calls": sum(
                any(start <= stamp <= stop for stamp, _ in timepoints)
                for _, start, stop in pairs),
            "compute_time": figures(times) | {"total": math.fsum(times)},
            "resource_usage": usage(inside)})
    return {"overall": usage(timepoints), "static_data": STATIC, "code_block_results": blocks}


# gpu_tracker's layout.

def cell(value):
    return "NaN" if value is None else f"{value: .6f}"


def column(header, values):
    cells = [cell(value) for value in values]
    while all(text == "NaN" or text.endswith("0") and not text.endswith(".0")
              for text in cells) and any(text != "NaN" for text in cells):
        cells = [text if text == "NaN" else text[:-1] for text in cells]
    width = max(len(header) + 1, *map(len, cells))
    return [" " + text.rjust(width) for text in (header, *cells)]


def table(indent, rows, index=None):
    """Rows are dictionaries with the same keys."""
    names = ["", *(index or [""])]
    width = max(map(len, names))
    columns = [column(header, [row[header] for row in rows]) for header in rows[0]]
    return [" " * indent + name.ljust(width) + "".join(cells)
            for name, *cells in zip(names, *columns)]


def static_table(data):
    lines = ["    ", "    "]
    for key, value in data.items():
        text = cell(value).rstrip("0") if isinstance(value, float) else f" {value}"
        width = max(len(key), len(text))
        lines = [lines[0] + " " + key.rjust(width), lines[1] + " " + text.rjust(width)]
    return lines


def text_of(results):
    lines = ["Overall:", *table(4, list(results["overall"].values()), MEASUREMENTS),
             "Static Data:", *static_table(results["static_data"]), "Code Block Results:"]
    for block in results["code_block_results"]:
        lines += [f"    Name:                {block['name']}",
                  f"    Num Timepoints:      {block['num_timepoints']}",
                  f"    Num Calls:           {block['num_calls']}",
                  f"    Num Non Empty Calls: {block['num_non_empty_calls']}",
                  "    Compute Time:", *table(12, [block["compute_time"]]),
                  "    Resource Usage:",
                  *table(12, list(block["resource_usage"].values()), MEASUREMENTS), ""]
    return "\n".join(lines) + "\n"


def same(value, wanted, path=""):
    """Numbers up to the last bits, everything else exactly."""
    if isinstance(wanted, dict):
        for key in wanted:
            same(value[key], wanted[key], f"{path}.{key}")
    elif isinstance(wanted, list):
        assert len(value) == len(wanted), f"{path}: {len(value)}, not {len(wanted)}"
        for index, item in enumerate(wanted):
            same(value[index], item, f"{path}.{index}")
    elif isinstance(wanted, float):
        assert value is not None and math.isclose(value, wanted, rel_tol=1e-9, abs_tol=1e-9), (
            f"{path}: {value}, not {wanted}")
    else:
        assert value == wanted, f"{path}: {value!r}, not {wanted!r}"


def analyze(*arguments):
    done = wattmeter("analyze", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", done.stderr
    return done.stdout


def blocks_of(ours):
    return ours.get("regions", {}).get("by_name", [])


def same_of_ours(ours, wanted):
    """What gpu_tracker's structure has, in ours: without what is not known."""
    def known(usage):
        return {name: figures for name, figures in usage.items() if figures["mean"] is not None}

    same(ours["usage"], known(wanted["overall"]))
    same(ours["static_data"], wanted["static_data"])
    same(blocks_of(ours), [
        {"name": block["name"], "timepoints": block["num_timepoints"],
         "calls": block["num_calls"], "calls_with_timepoints": block["num_non_empty_calls"],
         "time": block["compute_time"], "usage": known(block["resource_usage"])}
        for block in wanted["code_block_results"]])


def regions(*files):
    return [word for file in files for word in ("--regions", file)]


BLOCKS = {"my-code-block": [100], "my-function": [100, 101, 102], "train.py:7": [101]}


def session(folder, tracking=".csv", marks=".csv", count=300):
    """The two files, and what they come to."""
    timepoints = made_timepoints(count)
    calls = made_calls(BLOCKS, timepoints[-1][0] - START)
    # One call begins and ends where timepoints are, one has none, one has a single one.
    calls["my-code-block"] += [(7, timepoints[3][0], timepoints[9][0])]
    calls["nothing"] = [(7, START - 20, START - 10)]
    calls["one"] = [(7, timepoints[5][0], timepoints[5][0])]
    return (write_tracking(folder / f"tracking{tracking}", timepoints),
            write_marks(folder / f"sub-tracking{marks}", marks_of(calls)),
            expected(timepoints, calls))


@case("gpu_tracker's text, byte by byte, of CSV and SQLite files in any mixture")
def gpu_tracker_text(folder):
    for tracking in (".csv", ".sqlite"):
        for marks in (".csv", ".sqlite"):
            inner = folder / (tracking + marks)
            inner.mkdir()
            timepoints, blocks, wanted = session(inner, tracking, marks)
            printed = analyze(timepoints, "--regions", blocks, "--format", "gpu-tracker")
            assert printed == text_of(wanted) + "\n", f"{tracking} {marks}:\n{printed}"


@case("beyond 16,384 names of blocks the further ones are taken together")
def many_names(folder):
    tracking = write_tracking(folder / "t.csv", made_timepoints(10))
    calls = {f"step-{index}": [(1, START + index, START + index + 0.5)] for index in range(16389)}
    found = json.loads(analyze(tracking, "--regions", write_marks(folder / "m.csv", marks_of(calls)), "--json"))
    blocks = {block["name"]: block["calls"] for block in blocks_of(found)}
    assert len(blocks) == 16385 and blocks["(further regions)"] == 5 and sum(blocks.values()) == 16389


@case("JSON: ours, and gpu_tracker's")
def as_json(folder):
    timepoints, blocks, wanted = session(folder)
    ours = json.loads(analyze(timepoints, "--regions", blocks, "--json"))
    same_of_ours(ours, wanted)
    assert ours["timepoints"] == 300 and ours["stray"] == 0
    nothing = next(block for block in blocks_of(ours) if block["name"] == "nothing")
    index = blocks_of(ours).index(nothing)
    assert nothing["usage"] == {} and nothing["timepoints"] == 0
    assert "times" in ours["why"][f"regions.by_name.{index}.inclusive.energy.total"]
    for block in blocks_of(ours):
        counted = sum(bucket["calls"] for bucket in block["histogram"])
        assert counted == block["calls"]
        assert block["unfinished"] == 0
    assert json.loads(analyze(timepoints, "--regions", blocks, "--format", "json")) == ours

    text = analyze(timepoints, "--regions", blocks, "--format", "gpu-tracker-json")
    theirs = json.loads(text)
    same(theirs, wanted)
    assert list(theirs) == ["overall", "static_data", "code_block_results"]
    assert text == json.dumps(theirs, indent=1) + "\n"

    # It is read again, and printed in any other form.
    (folder / "results.json").write_text(text)
    again = analyze(folder / "results.json", "--format", "gpu-tracker")
    assert again == text_of(wanted) + "\n"


@case("the time in which a block was open counts what overlaps once")
def open_time(folder):
    tracking = write_tracking(folder / "t.csv", made_timepoints(50))
    marks = write_marks(folder / "m.csv", [
        (1, "a", 0, START), (2, "a", 0, START + 1), (1, "a", 1, START + 2),
        (2, "a", 1, START + 4), (1, "a", 0, START + 5), (1, "a", 1, START + 5.5)])
    [block] = blocks_of(json.loads(analyze(tracking, "--regions", marks, "--json")))
    assert block["calls"] == 3
    same(block["inclusive"]["time"], 4.5)
    same(block["time"]["total"], 5.5)


@case("several files are read as one, and combine makes one of them")
def several_files(folder):
    timepoints = made_timepoints(200)
    tracking = write_tracking(folder / "tracking.csv", timepoints)
    calls = made_calls(BLOCKS, timepoints[-1][0] - START)
    by_pid = {pid: [mark for mark in marks_of(calls) if mark[0] == pid] for pid in (100, 101, 102)}
    wanted = text_of(expected(timepoints, calls)) + "\n"
    for suffix in (".csv", ".sqlite"):
        inner = folder / suffix[1:]
        inner.mkdir()
        files = [write_marks(inner / f"{pid}{suffix}", marks) for pid, marks in by_pid.items()]
        assert analyze(tracking, *regions(*files), "--format", "gpu-tracker") == wanted
        for name, paths in (("all", files), ("n" * (255 - len(suffix)), [inner])):
            target = folder / f"{name}{suffix}"
            done = wattmeter("combine", "-o", target, *paths)
            assert done.returncode == 0 and done.stdout == "" and done.stderr == "", done
            assert analyze(tracking, *regions(target), "--format", "gpu-tracker") == wanted
            done = wattmeter("combine", "-o", target, *paths)
            assert done.returncode == 1, "an existing target was taken"
            assert target.name[-100:] in done.stderr
    mixed = [folder / "csv" / "100.csv", folder / "sqlite" / "101.sqlite",
             folder / "csv" / "102.csv"]
    assert analyze(tracking, *regions(*mixed), "--format", "gpu-tracker") == wanted


@case("names with commas, quotes, line ends, SQL, four kilobytes")
def hostile_names(folder):
    names = ["a,b", 'a "quoted" name', "two\nlines", "x'; DROP TABLE data; --", "ä µ \U0001f980",
             "n" * 4096, " ", "a:1", "%s%n", "NaN", "-1"]
    timepoints = made_timepoints(60)
    calls = {name: [(1, START + index, START + index + 2.5)] for index, name in enumerate(names)}
    wanted = expected(timepoints, calls)
    for suffix in (".csv", ".sqlite"):
        tracking = write_tracking(folder / f"t{suffix}", timepoints)
        marks = write_marks(folder / f"m{suffix}", marks_of(calls))
        same_of_ours(json.loads(analyze(tracking, "--regions", marks, "--json")), wanted)
        text = analyze(tracking, "--regions", marks, "--format", "gpu-tracker")
        assert text == text_of(wanted) + "\n"
        assert "\x1b" not in analyze(tracking, "--regions", marks)


@case("a call that never ended, a stop without a start, two starts")
def broken_calls(folder):
    timepoints = made_timepoints(100)
    tracking = write_tracking(folder / "t.csv", timepoints)
    whole = {"a": [(1, START + 1, START + 3)], "b": [(2, START + 2, START + 4)]}
    wanted = expected(timepoints, whole)
    marks = marks_of(whole)
    unfinished = [*marks, (1, "a", 0, START + 5)]
    stray = [(3, "b", 1, START + 0.5), *marks]
    only = [*marks, (9, "lonely", 0, START + 1)]
    for rows, unfinished_a, strays in ((unfinished, 1, 0), (stray, 0, 1), (only, 0, 0)):
        for suffix in (".csv", ".sqlite"):
            path = write_marks(folder / f"m{len(rows)}{unfinished_a}{strays}{suffix}", rows)
            got = json.loads(analyze(tracking, "--regions", path, "--json"))
            first, second, *more = blocks_of(got)
            same_of_ours(got | {"regions": {"by_name": [first, second]}}, wanted)
            assert first["unfinished"] == unfinished_a
            assert got["stray"] == strays
            assert analyze(tracking, "--regions", path)
            assert analyze(tracking, "--regions", path, "--format", "gpu-tracker")
    [lonely] = more
    assert lonely["calls"] == 0 and lonely["unfinished"] == 1
    assert lonely["timepoints"] == 0 and lonely["time"]["mean"] is None

    # Calls of one name in one process nest: the inner one is the one that ends first.
    twice = write_marks(folder / "twice.csv", [
        (1, "a", 0, START), (1, "a", 0, START + 1), (1, "a", 1, START + 2),
        (1, "a", 1, START + 5)])
    [block] = blocks_of(json.loads(analyze(tracking, "--regions", twice, "--json")))
    assert block["calls"] == 2
    same(block["time"], {"min": 1.0, "max": 5.0, "total": 6.0})
    same(block["inclusive"]["time"], 5.0)


@case("a last line without its end is taken, or left out, and never without a word")
def _(folder):
    tracking = write_tracking(folder / "t.csv", [(START + i, [i] * 21) for i in range(5)])
    marks = write_marks(folder / "s.csv", [(1, "a", 0, START + 1), (1, "a", 1, START + 3.5)])

    def analyzed(*regions):
        done = wattmeter("analyze", tracking, *regions, "--json")
        assert done.returncode == 0, done
        results = json.loads(done.stdout)
        return results, results["remarks"]

    results, remarks = analyzed("--regions", marks)
    assert remarks == [] and blocks_of(results)[0]["calls"] == 1, results
    whole = tracking.read_bytes(), marks.read_bytes()
    tracking.write_bytes(whole[0][:-2])
    marks.write_bytes(whole[1][:-2])
    results, remarks = analyzed("--regions", marks)
    assert results["timepoints"] == 4, results
    assert blocks_of(results)[0]["unfinished"] == 1, results
    assert remarks == [f"{tracking}:8: the last line was cut off, and is left out",
                       f"{marks}:3: the last line was cut off, and is left out"], remarks

    tracking.write_bytes(whole[0].replace(b"\r", b"")[:-1])
    marks.write_bytes(whole[1].replace(b"\r", b"")[:-1])
    results, remarks = analyzed("--regions", marks)
    assert results["timepoints"] == 5, results
    assert blocks_of(results)[0]["time"]["total"] == 2.5, results
    assert [remark.split(":")[1:3] for remark in remarks] == [
        ["8", " the last line has no end"], ["3", " the last line has no end"]], remarks
    done = wattmeter("analyze", tracking, "--regions", marks)
    assert done.stdout.count("\nNote         ") == 2 and done.stderr == "", done
    for form in ("gpu-tracker", "gpu-tracker-json"):
        done = wattmeter("analyze", tracking, "--regions", marks, "--format", form)
        assert done.stderr.count("has no end: it is taken") == 2 and "Note" not in done.stdout, done
    (folder / "r.json").write_text(done.stdout)
    done = wattmeter("compare", f"A={tracking}", f"B={folder}/r.json", "--regions",
                     f"A={marks}", "--json")
    assert json.loads(done.stdout)["remarks"][-2:] == remarks, done


@case("calls of another session are noticed")
def _(folder):
    tracking = write_tracking(folder / "t.csv", [(START + i, [i] * 21) for i in range(5)])
    for first, last, others in ((-9, -1.1, True), (5.1, 9, True), (-9, 9, False), (4, 5, False),
                                (1.2, 1.4, False), (-0.9, -0.1, False), (4.5, 5, False)):
        marks = write_marks(folder / "s.csv", [(1, "a", 0, START + first),
                                               (1, "a", 1, START + last)])
        done = wattmeter("analyze", tracking, "--regions", marks)
        assert done.returncode == 0, done
        assert ("seem to be those of another session" in done.stdout) == others, done
    alone = write_tracking(folder / "one.csv", [(START, [0] * 21)])
    assert "Note" not in analyze(alone, "--regions", marks)


@case("timepoints that a clock set back has put out of order")
def clock_set_back(folder):
    timepoints = made_timepoints(200)
    calls = made_calls(BLOCKS, timepoints[-1][0] - START)
    wanted = text_of(expected(timepoints, calls)) + "\n"
    marks = write_marks(folder / "m.csv", marks_of(calls))
    for number, rows in enumerate((timepoints[120:] + timepoints[:120], timepoints[::-1])):
        for suffix in (".csv", ".sqlite"):
            tracking = write_tracking(folder / f"t{number}{suffix}", rows)
            printed = analyze(tracking, "--regions", marks, "--format", "gpu-tracker")
            assert printed == wanted, f"{number} {suffix}"


@case("without blocks there is what all timepoints come to")
def no_blocks(folder):
    timepoints = made_timepoints(40)
    tracking = write_tracking(folder / "t.csv", timepoints)
    wanted = expected(timepoints, {})
    empty = write_marks(folder / "m.csv", [])
    for options in ((), ("--regions", empty)):
        assert analyze(tracking, *options, "--format", "gpu-tracker") == text_of(wanted) + "\n"
    assert "Timepoints   40\nBlocks       0\n" in analyze(tracking)


@case("recordings of ours: their ticks, with the blocks of a sub-tracking file")
def our_recordings(folder):
    for name in ("v1.csv", "v1.sqlite"):
        recording = tap.SOURCE / "tests" / "data" / "recordings" / name
        got = json.loads(analyze(recording, "--json"))
        assert got["timepoints"] > 0, name
        assert got["static_data"]["ram_unit"] == "bytes"
        assert analyze(recording).startswith("Timepoints")
    for suffix in (".sqlite", ".csv"):
        recording = folder / f"regions{suffix}"
        done = wattmeter("run", "-q", "-i", "5ms", "--record", recording, "--",
                         tap.HELPERS / "regions", "nested")
        assert done.returncode == 0, done
        got = json.loads(analyze(recording, "--json"))
        assert {block["name"]: block["calls"] for block in blocks_of(got)} == {
            "inner": 4, "outer": 1}, suffix
        assert got["timepoints"] > 3, suffix
        report = json.loads(wattmeter("report", recording, "--json").stdout)["regions"]
        assert got["regions"]["by_path"] == report["by_path"], suffix
        assert blocks_of(got) == sorted(report["by_name"], key=lambda block: block["name"]), suffix


@case("regions that were never left are exported beside calls that ended, else left out")
def _(folder):
    run = folder / "run.sqlite"
    shutil.copy(tap.SOURCE / "tests/data/recordings/v1-regions.sqlite", run)
    second = 1000000000
    for ended, marks in ((True, [("9", 0, 1), ("9", 1, 2), ("10000009", 0, 2)]), (False, [])):
        database = sqlite3.connect(run)
        for table in ("path", "thread", "call"):
            database.execute(f"DELETE FROM region_{table}")
        database.execute("INSERT INTO region_path (run, id, parent, name, is_free)"
                         " VALUES (1, 0, NULL, 'a', 0)")
        database.execute("INSERT INTO region_thread (run, id, pid, tid, process)"
                         " VALUES (1, 0, 9, 9, 0)")
        database.executemany(
            "INSERT INTO region_call (run, path, thread, start_ns, stop_ns, is_open)"
            " VALUES (1, 0, 0, ?, ?, ?)",
            [(1 * second, 2 * second, 0)][not ended:] + [(2 * second, 3 * second, 1)])
        database.commit()
        database.close()
        done = wattmeter("export", run, "--sub-tracking", folder / "s.csv", "--overwrite")
        assert done.returncode == 0, done
        assert ("left out: 1 calls that never ended" in done.stderr) != ended, done
        with open(folder / "s.csv", newline="") as file:
            rows = list(csv.reader(file))[1:]
        start = float(rows[0][3]) - 1 if rows else 0
        assert [(pid, int(position), round(float(when) - start, 6))
                for pid, _, position, when in rows] == marks, rows


@case("many calls that never ended are exported in no time to speak of")
def _(folder):
    run, second, many = folder / "run.sqlite", 1000000000, 200000
    shutil.copy(tap.SOURCE / "tests/data/recordings/v1-regions.sqlite", run)
    database = sqlite3.connect(run)
    database.execute("DELETE FROM region_call")
    database.executemany(
        "INSERT INTO region_call (run, path, thread, start_ns, stop_ns, is_open)"
        " VALUES (1, 0, 0, ?, ?, ?)",
        [(second + i, 2 * second, i > 0) for i in range(many)])
    database.commit()
    database.close()
    begin = time.monotonic()
    done = wattmeter("export", run, "--sub-tracking", folder / "s.csv")
    assert done.returncode == 0, done
    assert time.monotonic() - begin < 100
    with open(folder / "s.csv", newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert len(rows) == many + 1 and len({pid for pid, *_ in rows}) == many


@case("a deep recursion is exported under numbers that no process has, and read again")
def _(folder):
    recording, marks, depth = folder / "r.csv", folder / "s.csv", 300
    done = wattmeter("run", "-q", "--record", recording, "--", tap.HELPERS / "regions",
                     "recursive", str(depth))
    assert done.returncode == 0, done
    for words in (("export", recording, "--sub-tracking", marks),
                  ("combine", "-o", folder / "all.csv", marks)):
        done = wattmeter(*words)
        assert done.returncode == 0, done
    got = json.loads(analyze(recording, "--regions", folder / "all.csv", "--json"))
    assert [(block["calls"], block["unfinished"]) for block in blocks_of(got)] == [
        (depth, 0)], got


@case("-o writes a file, and never over what is to be analyzed")
def output(folder):
    tracking, marks, wanted = session(folder)
    target = folder / "out.txt"
    words = (tracking, "--regions", marks, "--format", "gpu-tracker", "-o", target)
    assert analyze(*words) == ""
    assert target.read_text() == text_of(wanted), "the file has what str() is"
    done = wattmeter("analyze", *words)
    assert done.returncode == 1 and "exists" in done.stderr
    assert analyze(*words, "--overwrite") == ""
    for path in (tracking, marks):
        before = path.read_bytes()
        done = wattmeter("analyze", tracking, "--regions", marks, "--overwrite", "-o", path)
        assert done.returncode == 2, done
        assert path.read_bytes() == before
    done = wattmeter("analyze", tracking, "--regions", marks, "-o", folder / "no" / "x")
    assert done.returncode == 1


@case("what is wrong is said, in one line")
def refusals(folder):
    tracking, marks, _ = session(folder)
    text = folder / "notes.txt"
    text.write_text("no table\n")
    header = folder / "header.csv"
    header.write_text("pid,name\n1,a\n")
    parent = folder / "parent"
    (parent / "sub").mkdir(parents=True)
    wrong = (
        (1, ("analyze", folder / "nothing.csv")),
        (1, ("analyze", folder)),
        (1, ("analyze", tracking, "--regions", folder / "nothing.csv")),
        (1, ("analyze", tracking, "--regions", header)),
        (1, ("analyze", tracking, "--regions", text)),
        (1, ("analyze", text, "--regions", marks)),
        (1, ("analyze", marks)),
        (2, ("analyze", tracking, "--regions", marks, "--regions", f"{folder}/./{marks.name}")),
        (2, ("analyze",)),
        (2, ("analyze", tracking, marks)),
        (2, ("analyze", tracking, "--format", "xml")),
        (2, ("analyze", tracking, "--format", "json", "--json")),
        (2, ("combine", marks)),
        (2, ("combine", "-o", folder / "x.csv")),
        (2, ("combine", "-o", folder / "x.csv", marks, marks)),
        (None, ("combine", "-o", folder / "x.csv", parent / "sub")),
        (2, ("combine", "-o", folder / "x.csv", marks, marks)),
        (None, ("combine", "-o", folder / "x.csv", folder / "nothing.csv")),
        (None, ("combine", "-o", folder / "x.sqlite", marks)),
        (None, ("combine", "-o", folder / "x.txt", marks)),
    )
    for status, words in wrong:
        done = wattmeter(*words)
        assert done.returncode == status or status is None and done.returncode in (1, 2), (
            words, done)
        assert done.stdout == ""
        assert done.stderr.startswith("wattmeter") and done.stderr.count("\n") == 1, done.stderr
    done = wattmeter("combine", "-o", folder / "x.csv", parent)
    assert done.returncode == 2 and "/sub: is a folder\n" in done.stderr, done
    assert "there are no files to combine" in done.stderr, done
    assert "--regions" in wattmeter("analyze", marks).stderr
    assert not (folder / "x.csv").exists() and not (folder / "x.sqlite").exists()


if __name__ == "__main__":
    tap.main()
