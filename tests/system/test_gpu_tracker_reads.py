#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether gpu_tracker itself opens our recordings and finds in them what we wrote.

Skipped (77) where gpu_tracker cannot be imported; `pip install gpu-tracker` in a
virtual environment is all it takes.
"""
import csv
import math
import os
import pathlib
import sqlite3
import sys
import tempfile

try:
    from gpu_tracker import SubTrackingAnalyzer
except ImportError as error:
    print(f'skipped: gpu_tracker cannot be imported: {error}')
    sys.exit(77)

ROOT = pathlib.Path(os.environ.get('WM_SOURCE_ROOT', '.'))
SAMPLES = ROOT / 'tests' / 'data' / 'recordings'
MEASUREMENTS = 21
STATIC = {
    'ram_unit': 'bytes',
    'gpu_ram_unit': 'bytes',
    'time_unit': 'seconds',
    'ram_system_capacity': 13e9,
    'gpu_ram_system_capacity': 17e9,
    'system_core_count': 8,
    'n_expected_cores': 4,
    'system_gpu_count': 2,
    'n_expected_gpus': 2,
}


def rows_of_csv(path):
    """The data rows, as dictionaries of numbers; an empty cell is None."""
    with open(path, newline='') as file:
        reader = csv.reader(file)
        next(reader), next(reader)
        header = next(reader)
        return [{name: float(cell) if cell else None for name, cell in zip(header, row)}
                for row in reader]


def rows_of_sqlite(path):
    database = sqlite3.connect(f'file:{path}?mode=ro', uri=True)
    database.row_factory = sqlite3.Row
    rows = [dict(row) for row in database.execute('SELECT * FROM data')]
    database.close()
    return rows


def statistics(rows, name):
    values = [row[name] for row in rows if row[name] is not None]
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / len(values)
    return {'min': min(values), 'max': max(values), 'mean': mean, 'std': math.sqrt(variance)}


def check(good, what):
    if not good:
        sys.exit(f'failed: {what}')


def check_overall(analyzer, rows, path):
    overall = analyzer.overall_timepoint_results()
    check(len(overall) == MEASUREMENTS, f'{path}: {len(overall)} measurements')
    for name in overall.index:
        expected = statistics(rows, name)
        for statistic in ('min', 'max', 'mean', 'std'):
            found = overall.loc[name, statistic]
            if expected is None:
                check(found is None or math.isnan(found), f'{path}: {name} {statistic} is {found}')
            else:
                check(math.isclose(found, expected[statistic], rel_tol=1e-9, abs_tol=1e-6),
                      f'{path}: {name} {statistic}: {found}, not {expected[statistic]}')


def check_static(analyzer, path):
    static = analyzer.read_static_data()
    for name, value in STATIC.items():
        check(static[name] == value, f'{path}: {name} is {static[name]}, not {value}')


def check_block(path, rows, suffix):
    """A code block over the 4th to the 8th time point."""
    stamps = [row['timestamp'] for row in rows if row['timestamp'] is not None]
    with tempfile.TemporaryDirectory() as folder:
        blocks = os.path.join(folder, 'blocks' + suffix)
        marks = [(1, 'block', 0, stamps[3]), (1, 'block', 1, stamps[7])]
        if suffix == '.csv':
            with open(blocks, 'w', newline='') as file:
                writer = csv.writer(file)
                writer.writerow(('process_id', 'code_block_name', 'position', 'timestamp'))
                writer.writerows(marks)
        else:
            database = sqlite3.connect(blocks)
            database.execute('CREATE TABLE data (process_id INTEGER, code_block_name VARCHAR,'
                             ' position INTEGER, timestamp FLOAT)')
            database.executemany('INSERT INTO data VALUES (?, ?, ?, ?)', marks)
            database.commit()
            database.close()
        results = SubTrackingAnalyzer(str(path), blocks).sub_tracking_results()
    block = results.code_block_results[0]
    check(block.num_timepoints == 5, f'{path}: {block.num_timepoints} time points in the block')
    inside = [row for row in rows if row['timestamp'] in stamps[3:8]]
    expected = statistics(inside, 'main_ram')['mean']
    found = block.resource_usage.loc['main_ram', 'mean']
    check(math.isclose(found, expected, rel_tol=1e-9), f'{path}: block: {found}, not {expected}')
    str(results)


def main():
    for suffix, read in (('.csv', rows_of_csv), ('.sqlite', rows_of_sqlite)):
        path = SAMPLES / f'v1{suffix}'
        rows = read(path)
        analyzer = SubTrackingAnalyzer(str(path), str(path))
        check_overall(analyzer, rows, path)
        check_static(analyzer, path)
        check_block(path, rows, suffix)
        print(f'{path.name}: {len(rows)} rows, {MEASUREMENTS} measurements and a block agree')


if __name__ == '__main__':
    main()
