#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_tracker itself opens our CSV recordings, and the tracking files that `export` writes, and
finds in them what we wrote.

Skipped (77) where it cannot be imported; `pip install gpu-tracker` in a virtual
environment is all it takes.
"""

import csv
import math
import shutil
import sqlite3
import sys
from itertools import zip_longest

import tap
from tap import case, near, wattmeter

try:
    from gpu_tracker import SubTrackingAnalyzer
except ImportError as error:
    print(f"{error} (python3 -m pip install gpu-tracker)")
    sys.exit(77)

SAMPLES = tap.SOURCE / "tests" / "data" / "recordings"
MEASUREMENTS = 21
STATIC = {
    "ram_unit": "bytes",
    "gpu_ram_unit": "bytes",
    "time_unit": "seconds",
    "ram_system_capacity": 13e9,
    "gpu_ram_system_capacity": 17e9,
    "system_core_count": 8,
    "n_expected_cores": 4,
    "system_gpu_count": 2,
    "n_expected_gpus": 2,
}


def rows_of_csv(path):
    """The rows with a time stamp, as dictionaries of numbers; an empty cell is None."""
    with open(path, newline="") as file:
        reader = csv.reader(file)
        next(reader), next(reader)
        header = next(reader)
        rows = [{name: float(cell) if cell else None
                 for name, cell in zip_longest(header, row, fillvalue="")} for row in reader]
    return [row for row in rows if row["timestamp"] is not None]


def rows_of_sqlite(path):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    rows = [dict(row) for row in database.execute("SELECT * FROM data")]
    database.close()
    return rows


def write_blocks(path, marks):
    """A sub-tracking file of gpu_tracker's."""
    if path.suffix == ".csv":
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("process_id", "code_block_name", "position", "timestamp"))
            writer.writerows(marks)
        return
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE data (process_id INTEGER, code_block_name VARCHAR,"
                     " position INTEGER, timestamp FLOAT)")
    database.executemany("INSERT INTO data VALUES (?, ?, ?, ?)", marks)
    database.commit()
    database.close()


def statistics(rows, name):
    values = [row[name] for row in rows if row[name] is not None]
    if not values:
        return {}
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / len(values)
    return {"min": min(values), "max": max(values), "mean": mean, "std": math.sqrt(variance)}


def check_statistics(found, rows):
    for name in found.index:
        expected = statistics(rows, name)
        for statistic in ("min", "max", "mean", "std"):
            value, what = found.loc[name, statistic], f"{name} {statistic}"
            if expected:
                near(value, expected[statistic], 1e-9 * abs(expected["max"]) + 1e-9, what)
            else:
                assert value is None or math.isnan(value), f"{what}: {value}"


def check(path, rows, folder):
    assert len(rows) == 19
    overall = SubTrackingAnalyzer(str(path), str(path)).overall_timepoint_results()
    assert len(overall) == MEASUREMENTS
    check_statistics(overall, rows)

    # A code block over the fourth to the eighth time point.
    blocks = folder / f"blocks{path.suffix}"
    write_blocks(blocks, [(1, "block", 0, rows[3]["timestamp"]),
                          (1, "block", 1, rows[7]["timestamp"])])
    results = SubTrackingAnalyzer(str(path), str(blocks)).sub_tracking_results()
    for name, value in STATIC.items():
        assert results.static_data[name] == value, (name, results.static_data[name])
    block = results.code_block_results[0]
    assert block.num_timepoints == 5, block.num_timepoints
    check_statistics(block.resource_usage, rows[3:8])
    assert "Num Timepoints" in str(results)


@case("gpu_tracker reads a CSV recording")
def _(folder):
    path = SAMPLES / "v1.csv"
    check(path, rows_of_csv(path), folder)


@case("gpu_tracker reads what export --gpu-tracker makes of an SQLite recording")
def _(folder):
    for name, rows_of in (("t.sqlite", rows_of_sqlite), ("t.csv", rows_of_csv)):
        path = folder / name
        done = wattmeter("export", SAMPLES / "v1.sqlite", "--gpu-tracker", path)
        assert done.returncode == 0, done
        check(path, rows_of(path), folder)


MS = 1000000
ANCHOR = 1000 * MS  # the first tick, by the clock of the recording

# A whole, in which a function calls itself; two threads at once in one block; a process of
# its own; a region that was never left. (path, thread, start, stop) in ms; the last three
# never ended, one of which began when the call before it ended.
PATHS = [(0, None, "whole"), (1, 0, "recursion"), (2, 1, "recursion"), (3, None, "threads"),
         (4, None, "never")]
THREADS = [(0, 4711, 4711), (1, 4711, 4720), (2, 5000, 5000)]
CALLS = [(2, 0, 250, 450), (1, 0, 150, 650), (3, 1, 320, 720), (3, 0, 300, 900),
         (0, 0, 50, 1050), (3, 2, 100, 1200), (3, 2, 1300, 1300), (3, 1, 750, 1400),
         (4, 0, 600, 1500), (0, 0, 1050, 1500), (0, 0, 1250, 1500)]
OPEN = 3


def add_regions(path):
    """Puts the regions above into a recording that has none."""
    database = sqlite3.connect(path)
    database.executescript("DELETE FROM region_path; DELETE FROM region_thread;"
                           " DELETE FROM region_call")
    database.executemany("INSERT INTO region_path (run, id, parent, name, is_free)"
                         " VALUES (1, ?, ?, ?, 0)", PATHS)
    database.executemany("INSERT INTO region_thread (run, id, pid, tid, process)"
                         " VALUES (1, ?, ?, ?, 0)", THREADS)
    database.executemany(
        "INSERT INTO region_call (run, path, thread, start_ns, stop_ns, is_open)"
        " VALUES (1, ?, ?, ?, ?, ?)",
        [(path, thread, ANCHOR + start * MS, ANCHOR + stop * MS, i + OPEN >= len(CALLS))
         for i, (path, thread, start, stop) in enumerate(CALLS)])
    database.commit()
    database.close()


def check_regions(recording, sub_tracking, rows, to_s):
    results = SubTrackingAnalyzer(str(recording), str(sub_tracking)).sub_tracking_results()
    check_statistics(results.overall, rows)
    names = {name for _, _, name in PATHS} - {"never"}
    assert {block.name for block in results.code_block_results} == names
    for block in results.code_block_results:
        calls = [(to_s(start), to_s(stop)) for path, _, start, stop in CALLS[:-OPEN]
                 if PATHS[path][2] == block.name]
        inside = [row for row in rows if any(start <= row["timestamp"] <= stop
                                             for start, stop in calls)]
        assert block.num_calls == len(calls), (block.name, block.num_calls)
        assert block.num_timepoints == len(inside), (block.name, block.num_timepoints)
        check_statistics(block.resource_usage, inside)
        times = [stop - start for start, stop in calls]
        for statistic, value in (("min", min(times)), ("max", max(times)),
                                 ("total", sum(times))):
            near(block.compute_time[statistic], value, 1e-5, f"{block.name} {statistic}")


@case("gpu_tracker reads our regions as a sub-tracking file")
def _(folder):
    first = folder / "run.sqlite"
    shutil.copy(SAMPLES / "v1-regions.sqlite", first)
    add_regions(first)
    tracking, second = folder / "tracking.sqlite", folder / "run.csv"
    assert wattmeter("export", first, "--gpu-tracker", tracking).returncode == 0
    assert wattmeter("export", first, "-o", second).returncode == 0
    for recording, rows in ((tracking, rows_of_sqlite(tracking)), (second, rows_of_csv(second))):
        anchor = rows[0]["timestamp"] - 0.1  # the first row is that of the second tick
        sub_tracking = folder / f"blocks{recording.suffix}"
        done = wattmeter("export", first, "--sub-tracking", sub_tracking)
        assert done.returncode == 0 and "left out: 1 calls that never ended" in done.stderr, done
        check_regions(recording, sub_tracking, rows, lambda ms: anchor + ms / 1e3)

    # Row by row the same, and of those that never ended the start, but of "never".
    with open(folder / "blocks.csv", newline="") as file:
        written = [(int(pid), name, int(position), float(when))
                   for pid, name, position, when in list(csv.reader(file))[1:]]
    database = sqlite3.connect(folder / "blocks.sqlite")
    assert written == list(database.execute("SELECT * FROM data"))
    database.close()
    assert len(written) == 2 * (len(CALLS) - OPEN) + OPEN - 1


@case("gpu_tracker reads the tracking file that gpu-tracker writes")
def _(folder):
    for name in ("t.csv", "t.sqlite"):
        path = folder / name
        done = wattmeter("gpu-tracker", "-e", "python3 -c 'print(sum(range(4 * 10**7)))'", "--st=0.1",
                         f"--tf={path}", "-o", folder / "report.txt", "--ru=megabytes")
        assert done.returncode == 0, done
        rows = rows_of_csv(path) if path.suffix == ".csv" else rows_of_sqlite(path)
        blocks = folder / ("blocks" + path.suffix)
        write_blocks(blocks, [(1, "all", 0, rows[0]["timestamp"] - 1),
                              (1, "all", 1, rows[-1]["timestamp"] + 1)])
        results = SubTrackingAnalyzer(str(path), str(blocks)).sub_tracking_results().to_json()
        assert results["static_data"]["ram_unit"] == "megabytes", results
        assert results["code_block_results"][0]["num_timepoints"] == len(rows), results
        for measurement, found in results["overall"].items():
            values = [row[measurement] for row in rows if row[measurement] is not None]
            near(found["min"], min(values), 1e-9 * max(values), measurement)
            near(found["max"], max(values), 1e-9 * max(values), measurement)
            near(found["mean"], sum(values) / len(values), 1e-9 * max(values), measurement)


if __name__ == "__main__":
    tap.main()
