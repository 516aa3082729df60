#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings as traces for the viewers of profiles, taken apart again."""

import contextlib
import gzip
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import time

import tap
from tap import case

RECORDINGS = tap.SOURCE / "tests/data/recordings"
TREE = RECORDINGS / "v1-tree.sqlite"
PROGRAM = str(tap.HELPERS / "regions")


def wattmeter(*arguments, **options):
    return subprocess.run([tap.WATTMETER, *map(str, arguments)], env=tap.environment(),
                          capture_output=True, text=True, timeout=300, check=False, **options)


def export(*arguments):
    done = wattmeter("export", *arguments)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout


def refused(*arguments, status):
    """The one line that it says."""
    done = wattmeter("export", *arguments)
    assert done.returncode == status and done.stdout == "", done
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("wattmeter export: "), done.stderr
    return lines[0].removeprefix("wattmeter export: ")


def record(folder, *arguments):
    path = folder / "run.sqlite"
    done = wattmeter("run", "-i", "20ms", "--record", path, "--overwrite", "--", PROGRAM, *arguments)
    assert done.returncode == 0, done
    return path


def regions_of(recording):
    return json.loads(wattmeter("report", "--json", recording).stdout)["regions"]


def value_of(part, measure):
    energy = part.get("energy") or {}
    return (part.get("time") if measure == "time" else energy.get("total")) or 0


def stacks_of(recording, measure):
    """What the report says of each stack, by measure; those that have something."""
    regions, stacks = regions_of(recording), {}
    rows = regions["by_path"]
    for row in rows:
        path, at = (row["name"],), row["parent"]
        while at is not None:
            path, at = (rows[at]["name"], *path), rows[at]["parent"]
        stacks[path] = stacks.get(path, 0) + value_of(row["exclusive"], measure)
    stacks["(outside of all regions)",] = value_of(regions["rest"], measure)
    return {path: value for path, value in stacks.items() if value > 0}


def folded_of(text):
    stacks = {}
    for line in text.splitlines():
        names, number = line.rsplit(" ", 1)
        path = tuple(names.split(";"))
        stacks[path] = stacks.get(path, 0) + int(number) / 1e6
    return stacks


def speedscope_of(text):
    """By the rules of its schema: frames by number, a weight for each sample."""
    profile = json.loads(text)
    assert profile["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames, (one,) = profile["shared"]["frames"], profile["profiles"]
    assert one["type"] == "sampled" and len(one["samples"]) == len(one["weights"]), one
    stacks = {}
    for sample, weight in zip(one["samples"], one["weights"]):
        path = tuple(frames[number]["name"] for number in sample)
        stacks[path] = stacks.get(path, 0) + weight
    assert abs(one["endValue"] - one["startValue"] - sum(one["weights"])) < 1e-9, one
    return one, stacks


def same(found, expected, error):
    for path in {*found, *expected}:
        assert abs(found.get(path, 0) - expected.get(path, 0)) <= error, (path, found, expected)


def measures_of(recording):
    return [measure for measure in ("energy", "time") if stacks_of(recording, measure)]


@case("folded and speedscope have what the report has, of each stack")
def _(folder):
    for recording in (TREE, record(folder, "nested"), record(folder, "threads", 4, 50)):
        measures = measures_of(recording)
        assert "time" in measures, recording
        for measure in measures:
            expected = stacks_of(recording, measure)
            same(folded_of(export(recording, "--format", "folded", "--by", measure)), expected, 1e-6)
            one, stacks = speedscope_of(export(recording, "--format", "speedscope", "--by", measure))
            same(stacks, expected, 1e-9)
            assert one["unit"] == ("seconds" if measure == "time" else "none"), one
            assert one["name"].endswith(f"{measure} in {'s' if measure == 'time' else 'J'}"), one
        assert export(recording, "--format", "folded") == \
            export(recording, "--format", "folded", "--by", measures[0])


@case("names with separators and control characters stay one frame")
def _(_folder):
    recording = RECORDINGS / "v1-regions.sqlite"
    names = {row["name"] for row in regions_of(recording)["by_name"]}
    assert any(";" in name and "\n" in name for name in names), names
    frames = {name
              for path in folded_of(export(recording, "--format", "folded", "--by", "time")) for name in path}
    plain = {"".join("," if c == ";" else " " if c < " " else c for c in name) for name in names}
    assert frames <= {*plain, "(no name)", "(outside of all regions)"}, frames - plain
    _, stacks = speedscope_of(export(recording, "--format", "speedscope", "--by", "time"))
    assert {name for path in stacks for name in path} <= \
        {*names, "(no name)", "(outside of all regions)"}


def chrome_of(text):
    trace = json.loads(text)
    events = trace["traceEvents"]
    assert all({"ph", "pid", "tid", "name"} <= event.keys() for event in events)
    assert all("ts" in event for event in events if event["ph"] != "M")
    return trace, events


def of_phase(events, phase):
    return [event for event in events if event["ph"] == phase]


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def assert_nested(events):
    """Slices of a thread lie in one another or beside, as the format asks."""
    threads = {}
    for event in of_phase(events, "X"):
        start = nanoseconds(event["ts"])
        threads.setdefault((event["pid"], event["tid"]), []).append(
            (start, -start - nanoseconds(event["dur"])))
    for slices in threads.values():
        stops = []
        for start, stop in sorted(slices):
            stop = -stop
            while stops and stops[-1] <= start:
                stops.pop()
            assert not stops or stop <= stops[-1], (start, stop, stops)
            stops.append(stop)


def calls_of(recording):
    """Name, start and stop, since 1970, as the recording has them."""
    database = sqlite3.connect(recording)
    monotonic, unix = database.execute("SELECT anchor_monotonic_ns, anchor_unix_ns FROM run").fetchone()
    rows = database.execute("SELECT name, start_ns, stop_ns FROM region").fetchall()
    return sorted((name, start - monotonic + unix, stop - monotonic + unix)
                  for name, start, stop in rows)


@case("chrome: a slice for each call, nested, in unix time")
def _(folder):
    for program in (("nested",), ("recursive", 20), ("forks",)):
        before = time.time_ns()
        recording = record(folder, *program)
        after = time.time_ns()
        trace, events = chrome_of(export(recording, "--format", "chrome"))
        base = trace["baseTimeNanoseconds"]
        slices = sorted((event["name"], base + nanoseconds(event["ts"]),
                         base + nanoseconds(event["ts"]) + nanoseconds(event["dur"]))
                        for event in of_phase(events, "X"))
        assert slices and slices == calls_of(recording), (program, slices, calls_of(recording))
        assert all(before <= start <= stop <= after for _, start, stop in slices), (before, slices, after)
        assert_nested(events)
        named = {(event["pid"], event["tid"]) for event in of_phase(events, "M")
                 if event["name"] == "thread_name"}
        assert {(event["pid"], event["tid"]) for event in of_phase(events, "X")} <= named


@case("chrome: calls outside of stacks, and short ones recorded together, are pairs of their own")
def _(folder):
    _, events = chrome_of(export(record(folder, "free"), "--format", "chrome"))
    begins, ends = of_phase(events, "b"), of_phase(events, "e")
    assert begins and sorted(event["id"] for event in begins) == sorted(event["id"] for event in ends)
    assert len({event["id"] for event in begins}) == len(begins)
    stops = {event["id"]: event["ts"] for event in ends}
    assert all(event["ts"] <= stops[event["id"]] for event in begins)
    recording = record(folder, "threads", 2, 5000)
    _, events = chrome_of(export(recording, "--format", "chrome"))
    assert_nested(events)
    count = {name: 0 for name in ("outer", "inner")}
    for event in of_phase(events, "X") + of_phase(events, "b"):
        count[event["name"]] += event.get("args", {}).get("calls", 1)
    expected = {row["name"]: row["calls"] for row in regions_of(recording)["by_name"]}
    assert count == expected, (count, expected)


@case("calls that never ended say so")
def _(folder):
    for recording in (record(folder, "open"), RECORDINGS / "v1-killed-in-region.sqlite"):
        rows = regions_of(recording)["by_name"]
        _, events = chrome_of(export(recording, "--format", "chrome"))
        open_ones = [event["name"] for event in of_phase(events, "X") + of_phase(events, "b")
                     if event.get("args", {}).get("unfinished")]
        expected = [row["name"] for row in rows for _ in range(row["unfinished"])]
        assert expected and sorted(open_ones) == sorted(expected), (open_ones, expected)
        assert_nested(events)
        _, thread = firefox_of(export(recording, "--format", "firefox"))
        markers = thread["markers"]
        assert sorted(thread["stringArray"][name] for name, data in zip(markers["name"], markers["data"])
                      if data.get("unfinished")) == sorted(expected), markers


def integral(events, name):
    samples = [(event["ts"], event["args"]["value"]) for event in events
               if event["ph"] == "C" and event["name"] == name]
    assert samples and samples == sorted(samples, key=lambda sample: sample[0]), name
    return sum(value * (later - when) / 1e6
               for (when, value), (later, _) in zip(samples, samples[1:]))


@case("chrome: watts over time come to the joules of the counters")
def _(_folder):
    _, events = chrome_of(export(TREE, "--format", "chrome"))
    database = sqlite3.connect(TREE)
    for label in ("package0", "dram0", "package1", "dram1", "gpu0", "gpu1"):
        column = f'"{label}_energy_J"'
        values = [value for value, in database.execute(
            f"SELECT {column} FROM sample WHERE {column} IS NOT NULL ORDER BY time_ns")]
        found = integral(events, f"{label} energy rate (W)")
        grown = values[-1] - values[0]
        assert grown > 0 and abs(found - grown) < 1e-6 * grown, (label, found, grown)


@case("chrome: a recording without regions has its counters")
def _(_folder):
    _, events = chrome_of(export(RECORDINGS / "v1.sqlite", "--format", "chrome"))
    assert not of_phase(events, "X") and not of_phase(events, "b")
    watts = [event["args"]["value"] for event in of_phase(events, "C")
             if event["name"] == "gpu0 power (W)"]
    stored = {value for value, in sqlite3.connect(RECORDINGS / "v1.sqlite").execute(
        'SELECT "gpu0_power_W" FROM sample')}
    assert watts and set(watts) <= stored, (watts, stored)


def torch_trace(path, base, events, **members):
    """As PyTorch's profiler writes one."""
    path.write_text(json.dumps({
        "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "traceEvents [{"}],
        **({} if base is None else {"baseTimeNanoseconds": base}),
        "traceEvents": events, "traceName": "x.json", **members}, indent=1))
    return path


def kernel(ts, dur=100.0):
    return {"ph": "X", "cat": "kernel", "name": "gemm \"\\[", "pid": 0, "tid": 7, "ts": ts, "dur": dur,
            "args": {"stream": 7, "ts": 1}}


@case("--with: kernels and watts are on one clock, and the trace stays as it is")
def _(folder):
    recording = record(folder, "nested")
    name, start, _ = next(call for call in calls_of(recording) if call[0] == "outer")
    old = {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0.5, "args": {"name": "python"}}
    for base in (start - 10**15 // 7, None):  # PyTorch up to 2.2 has times since 1970.
        kernels = [old, kernel((start - (base or 0)) / 1000)]
        torch = torch_trace(folder / "torch.json", base, kernels)
        trace, events = chrome_of(export(recording, "--format", "chrome", "--with", torch))
        assert trace["traceEvents"][-2:] == kernels and trace["traceName"] == "x.json", trace
        assert trace.get("baseTimeNanoseconds") == base, trace
        ours = events[:-2]
        outer, = (event for event in of_phase(ours, "X") if event["name"] == name)
        assert abs(outer["ts"] - kernels[1]["ts"]) < 1, (outer, kernels)
        places = {(event["pid"], event["tid"]) for event in ours}
        assert not places & {(event["pid"], event["tid"]) for event in kernels}, places
        own, _ = chrome_of(export(recording, "--format", "chrome"))
        assert len(own["traceEvents"]) == len(ours), (len(own["traceEvents"]), len(ours))


@case("--with: what is no trace, or has no time in common with the run, is refused in a line")
def _(folder):
    recording = record(folder, "nested")
    start = calls_of(recording)[0][1]
    path = folder / "torch.json"

    def says(text):
        line = refused(recording, "--format", "chrome", "--with", path, status=1)
        assert text in line and line.startswith(f"{path}: "), line

    says("No such file")
    for text in ("", "[]", "{}", "\"traceEvents\"", '{"traceEvents": 1}', '{"a": {"traceEvents": []}}',
                 "import torch\n"):
        path.write_text(text)
        says("is no trace of PyTorch's profiler: it has no traceEvents")
    whole = torch_trace(path, start, [kernel(1.0)]).read_text()
    for text in (whole[:-10], whole.replace("]", "}"), whole.replace('"ts": 1.0', '"ts": soon'),
                 whole.replace(str(start), "12e"), '{"traceEvents": ' + "[" * 1000):
        path.write_text(text)
        says("is no trace of PyTorch's profiler")
    torch_trace(path, start, [])
    says("has no events")
    path.write_bytes(gzip.compress(whole.encode()))
    says("is compressed; run: gunzip")
    torch_trace(path, None, [kernel(1.0)])
    says("has no time in common with the run: it ends ")
    torch_trace(path, start + 3600 * 10**9, [kernel(1.0)])
    says("has no time in common with the run: it begins 3600 s after its end")


def firefox_of(text):
    """A list for each column, all of one length, as its processed format has them."""
    profile = json.loads(text)
    assert profile["meta"]["preprocessedProfileVersion"] == 48, profile["meta"]
    thread, = profile["threads"]
    tables = [thread["samples"], thread["markers"], *(one["samples"] for one in profile["counters"])]
    for table in tables:
        assert all(len(column) == table["length"] for column in table.values()
                   if isinstance(column, list)), table
    return profile, thread


@case("firefox: power tracks come to the joules of the counters, each device once")
def _(_folder):
    profile, _ = firefox_of(export(TREE, "--format", "firefox", "--carbon", 123))
    tracks = {one["name"]: one["samples"] for one in profile["counters"]}
    assert len(tracks) == len(profile["counters"]) and profile["meta"]["gramsOfCO2ePerKWh"] == 123
    database = sqlite3.connect(TREE)
    for label in ("package0", "dram0", "package1", "dram1", "gpu0", "gpu1"):
        first, last = database.execute(
            f'SELECT min("{label}_energy_J"), max("{label}_energy_J") FROM sample').fetchone()
        found = sum(tracks[label]["count"][1:]) * 3600e-12
        assert tracks[label]["count"][0] == 0 and abs(found - (last - first)) < 1e-6, (label, found)
    rows = database.execute('SELECT "BAT0_time_ns", "BAT0_power_W" FROM sample ORDER BY 1').fetchall()
    joules = sum((b - a) / 1e9 * (v + w) / 2 for (a, v), (b, w) in zip(rows, rows[1:]))
    assert abs(sum(tracks["BAT0"]["count"]) * 3600e-12 - joules) < 1e-6, joules


@case("firefox: a marker for each call, in unix time")
def _(folder):
    for program in (("nested",), ("recursive", 20), ("free",)):
        recording = record(folder, *program)
        profile, thread = firefox_of(export(recording, "--format", "firefox"))
        start, markers = profile["meta"]["startTime"] * 1_000_000, thread["markers"]
        assert set(markers["phase"]) == {1} and len(set(thread["stringArray"])) == len(thread["stringArray"])
        found = sorted((thread["stringArray"][name], start + round(begin * 1e6), start + round(end * 1e6))
                       for name, begin, end in zip(markers["name"], markers["startTime"], markers["endTime"]))
        assert found == calls_of(recording), (found, calls_of(recording))
        schema = profile["meta"]["markerSchema"][0]
        assert all(data["type"] == schema["name"] and data["calls"] == 1 for data in markers["data"])


@case("firefox: a recording without regions has its power tracks")
def _(_folder):
    profile, thread = firefox_of(export(RECORDINGS / "v1.sqlite", "--format", "firefox"))
    # gpu1 has no power sensor.
    assert [one["name"] for one in profile["counters"]] == ["gpu0"], profile["counters"]
    assert thread["markers"]["length"] == 0 and thread["stringArray"] == []


@case("a recording without regions has no stacks")
def _(_folder):
    recording = RECORDINGS / "v1.sqlite"
    for words in ("folded",), ("speedscope",), ("folded", "--by", "time"):
        line = refused(recording, "--format", *words, status=1)
        assert line == f"{recording}: has no regions", line


@case("stacks of unknown energy have seconds, which a note says; --by energy is refused")
def _(folder):
    lost = folder / "lost.sqlite"
    shutil.copy(TREE, lost)
    with contextlib.closing(sqlite3.connect(lost)) as database, database:
        database.execute("UPDATE sample SET gpu1_energy_J = NULL, gpu1_power_W = NULL, "
                         "gpu1_power_average_W = NULL")
    for name in "folded", "speedscope":
        done = wattmeter("export", lost, "--format", name)
        assert done.returncode == 0 and re.fullmatch(
            rf"note: {lost}: by time, as there is no energy by region \(.+\)\n", done.stderr), done
        assert done.stdout == export(lost, "--format", name, "--by", "time")
        line = refused(lost, "--format", name, "--by", "energy", status=1)
        assert line.startswith(f"{lost}: no energy by region ("), line


@case("misuse is told in a line, and no file is touched")
def _(folder):
    target = folder / "x.json"
    target.write_text("mine")
    for words, text in (
            (("--format", "perf"), "--format: there is no 'perf'; there are: chrome"),
            (("--format", "folded", "--by", "watts"), "--by: 'watts' is none of energy time"),
            (("--format", "firefox", "--by", "time"), "--by: is for --format speedscope or folded"),
            (("--format", "chrome", "--by", "time"), "--by: is for --format speedscope or folded"),
            (("--format", "folded", "--with", "x"), "--with: is for --format chrome"),
            (("--by", "time", "-o", target), "--by: is for --format"),
            (("--with", "x", "-o", target), "--with: is for --format"),
            (("--format", "folded", "--append"), "--append: nothing is added to a trace"),
            (("--format", "folded", "--codecarbon", target), "exclude each other"),
            (("--format", "chrome", "--with", target, "--overwrite", "-o", target), "is what is to be read"),
            (("--format", "folded", "--overwrite", "-o", TREE), "is what is to be read")):
        done = wattmeter("export", TREE, *words)
        assert done.returncode == 2 and text in done.stderr, (words, done)
    assert "exists" in refused(TREE, "--format", "folded", "-o", target, status=1)
    assert target.read_text() == "mine"
    assert export(TREE, "--format", "folded", "--overwrite", "-o", target) == ""
    assert target.read_text() == export(TREE, "--format", "folded")


# A process's peak begins with that of the one it was forked from: this one is small.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_kb(*arguments):
    done = subprocess.run([sys.executable, "-c", MEASURE, tap.WATTMETER, "export", *map(str, arguments)],
                          env=tap.environment(), capture_output=True, text=True, timeout=300, check=True)
    return int(done.stdout)


@case("memory does not grow with the recording, or the trace that is added")
def _(folder):
    if tap.SANITIZED:
        raise tap.Skip("a sanitized build keeps freed memory")
    peaks = []
    for count in 20_000, 200_000:
        recording = folder / f"{count}.sqlite"
        subprocess.run([tap.HELPERS / "record_regions", recording, str(count)], check=True,
                       env=tap.environment(), timeout=300)
        torch = torch_trace(folder / "torch.json", None, [kernel(float(i)) for i in range(count)])
        peaks.append([peak_kb(recording, "--format", *words)
                      for words in (("chrome",), ("chrome", "--with", torch), ("firefox",))])
    assert all(many < few + 4096 for few, many in zip(*peaks)), peaks


tap.main()
