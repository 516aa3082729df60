#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_tracker itself opens our recordings and finds in them what we wrote.

Skipped (77) where it cannot be imported; `pip install gpu-tracker` in a virtual
environment is all it takes.
"""

import csv
import math
import sqlite3
import sys

import tap
from tap import case, near

try:
    from gpu_tracker import SubTrackingAnalyzer
except ImportError as error:
    print(f"gpu_tracker cannot be imported: {error}")
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
        rows = [{name: float(cell) if cell else None for name, cell in zip(header, row)}
                for row in reader]
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


@case("gpu_tracker reads an SQLite recording")
def _(folder):
    path = SAMPLES / "v1.sqlite"
    check(path, rows_of_sqlite(path), folder)


if __name__ == "__main__":
    tap.main()
