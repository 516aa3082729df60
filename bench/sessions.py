# SPDX-License-Identifier: Apache-2.0
"""sessions.py - files of a session as gpu_tracker writes them, of any size and always the
same, for bench.py.

A call every so often fills four fifths of its time; each hundred of them lie in a call of
another block.
"""

import csv
import sqlite3

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
START, STEP = 1795247379.2159243, 0.1026
CALLS_PER_OUTER_CALL = 100


def value(index, name):
    """An SQL expression of the row's number `i`: memory in bytes and percentages with the
    decimals that they have."""
    if name.endswith("_threads"):
        return f"i * {index} % 15 + 1"
    if name.endswith("_hardware_utilization_percent"):
        return f"(i * {7919 + index} % 2003) / 120.0"
    if name.endswith("_percent"):
        return f"(i * {7919 + index} % 2003) / 10.0"
    return f"(i * {104729 + index} % 200000003) * 4096e-12"


def numbers(count):
    return f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT {count})"


def new_database(path):
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    return database


def write_tracking(path, timepoints):
    """A tracking file in SQLite."""
    database = new_database(path)
    types = [{str: "VARCHAR", int: "INTEGER", float: "FLOAT"}[type(v)] for v in STATIC.values()]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(STATIC, types))
    database.execute(f"CREATE TABLE static_data ({columns})")
    database.execute(f"INSERT INTO static_data VALUES ({', '.join('?' * len(STATIC))})",
                     list(STATIC.values()))
    columns = ", ".join(f"{name} {'INTEGER' if name.endswith('_threads') else 'FLOAT'}"
                        for name in (*MEASUREMENTS, "timestamp"))
    database.execute(f"CREATE TABLE data ({columns})")
    values = [value(index, name) for index, name in enumerate(MEASUREMENTS)]
    stamp = f"{START} + i * {STEP} + (i * 31 % 1009) * 1e-6"
    database.execute(f"INSERT INTO data {numbers(timepoints)} SELECT {', '.join(values)}, {stamp}"
                     " FROM n")
    database.commit()
    database.close()


def write_sub_tracking(path, timepoints, calls):
    """A sub-tracking file in SQLite: `calls` of the inner block and what they lie in."""
    spacing = timepoints * STEP / calls
    database = new_database(path)
    database.execute("CREATE TABLE data (process_id INTEGER, code_block_name VARCHAR,"
                     " position INTEGER, timestamp FLOAT)")
    outer = f"i % {CALLS_PER_OUTER_CALL}"
    marks = (("epoch", 0, 0.0, f"{outer} = 0"), ("batch", 0, 0.05, "1"), ("batch", 1, 0.85, "1"),
             ("epoch", 1, 0.9, f"{outer} = {CALLS_PER_OUTER_CALL - 1}"))
    selects = " UNION ALL ".join(
        f"SELECT '{name}' AS name, {position} AS position, {part} AS part, i FROM n WHERE {when}"
        for name, position, part, when in marks)
    database.execute(f"INSERT INTO data {numbers(calls)} SELECT 4711, name, position,"
                     f" {START} + (i + part) * {spacing} FROM ({selects}) ORDER BY i, part")
    database.commit()
    database.close()


def write_csv(path, source, with_static):
    """The same rows as in the SQLite file `source`."""
    database = sqlite3.connect(source)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if with_static:
            writer.writerow(STATIC)
            writer.writerow(STATIC.values())
        rows = database.execute("SELECT * FROM data")
        writer.writerow([column[0] for column in rows.description])
        writer.writerows(rows)
    database.close()
