#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""AIPowerMeter's folders: what we read and what we write agree with what its own
reader would find there. That reader is written anew here, from what is known of it:
every line is JSON; an object is a record, the string is the end of a segment; a
dictionary of processes is added up; the total of a metric is the trapezoid over the
records of each segment; GPUs need all three of their metrics."""

import datetime
import json
import math
import os
import re
import subprocess
import sys

from tap import BUILD, SOURCE, WATTMETER, case, main

END = "END OF RECORDING SEGMENT"
GPU_METRICS = ("nvidia_memory", "nvidia_power", "nvidia_use_rate")


class Results:
    """One folder."""

    def __init__(self, folder):
        lines = (folder / "power_metrics.json").read_text(encoding="ascii").splitlines()
        self.series = {}
        self.ends = []
        date = None
        for line in lines:
            record = json.loads(line)
            if record == END:
                self.ends.append(date)
                continue
            date = datetime.datetime.fromisoformat(record["date"])
            for name, value in record["metrics"].get("cpu", {}).items():
                if isinstance(value, dict):
                    value = sum(value.values())
                self.add(name, date, value)
            if "gpu" in record["metrics"]:
                self.add_gpus(date, record["metrics"]["gpu"])
        self.ends = self.ends[:-1]
        metadata = json.loads((folder / "metadata.json").read_text(encoding="ascii"))
        assert isinstance(metadata["description"], str)
        self.description = metadata["description"]

    def add(self, name, date, value):
        if value is not None:
            self.series.setdefault(name, []).append((date, value))

    def add_gpus(self, date, gpu):
        for name in GPU_METRICS:
            self.add(name, date, gpu[name])
            for number, value in gpu["per_gpu_" + name].items():
                self.add(f"{name} {number}", date, value)

    def segments(self, name):
        segments, segment = [], []
        for date, value in self.series.get(name, []):
            segment.append((date, value))
            if date in self.ends:
                segments.append(segment)
                segment = []
        return segments + [segment]

    def total(self, name):
        total = 0.0
        for segment in self.segments(name):
            for (before, a), (after, b) in zip(segment, segment[1:]):
                total += (after - before).total_seconds() * (a + b) / 2
        return total


def wattmeter(*arguments, **more):
    environment = {**os.environ, "TZ": "UTC", **more}
    return subprocess.run([WATTMETER, *arguments], capture_output=True, text=True,
                          timeout=300, env=environment, check=False)


def exported(source, target, *more):
    done = wattmeter("export", str(source), "-o", str(target), *more)
    assert done.returncode == 0, done.stderr
    return target


def samples(source, folder, **more):
    """The ticks as our JSON has them: the time, and a column each."""
    path = folder / f"{source.name}.json"
    done = wattmeter("export", str(source), "-o", str(path), "--overwrite", **more)
    assert done.returncode == 0, done.stderr
    document = json.loads(path.read_text(encoding="utf-8"))
    return document, [dict(zip(document["columns"], row)) for row in document["samples"]]


def integral(ticks, column):
    """By trapezoid, nothing across a tick without a value."""
    total = 0.0
    for before, after in zip(ticks, ticks[1:]):
        if before[column] is not None and after[column] is not None:
            seconds = (after["time_ns"] - before["time_ns"]) / 1e9
            total += seconds * (before[column] + after[column]) / 2
    return total


def is_near(value, expected, tolerance=1e-9):
    return math.isclose(value, expected, rel_tol=tolerance, abs_tol=1e-9)


DATA = SOURCE / "tests" / "data"
OLD = DATA / "aipm" / "generation1"


def agrees(name, folder):
    """Our joules are the trapezoid over the same records, and the first windows. For
    their reader the last line has to be whole, and GPUs are those of its own time."""
    source = DATA / "aipm" / name
    document, ticks = samples(source, folder)
    text = (source / "power_metrics.json").read_text(encoding="ascii")
    whole = text[:text.rindex("\n") + 1]
    records = [json.loads(line) for line in whole.splitlines()]
    for record in records:
        if record != END:
            record["metrics"].pop("gpu", None)
    (folder / "power_metrics.json").write_text(
        "".join(json.dumps(record) + "\n" for record in records), encoding="ascii")
    (folder / "metadata.json").write_text('{"description": ""}', encoding="ascii")
    theirs = Results(folder)

    spacing = document["run"]["interval_ns"] / 1e9
    first = sum(segment[0][1] * spacing for segment in theirs.segments("intel_power"))
    ours = integral(ticks, "package_power_W")
    assert first > 0 and is_near(ours, theirs.total("intel_power") + first), (ours, first)
    done = wattmeter("report", "--json", str(source))
    reported = json.loads(done.stdout)["energy"]["cpu"]["packages"][0]["energy"]
    assert is_near(reported, theirs.total("intel_power") + first), (reported, ours)
    said = re.search(r"([0-9.]+) J of the packages", document["run"]["notes"]["first window"])
    assert is_near(float(said[1]), first, 1e-4), (said, first)


@case("the CPU's joules of a recording of 2021 are those of its records, and the first window")
def read_2021(folder):
    agrees("2021", folder)


@case("so are those of the first generation, in two segments")
def read_first_generation(folder):
    agrees("generation1", folder)


@case("and those of the latest")
def read_head(folder):
    agrees("head", folder)


@case("what was read is written again: records, segments, GPUs, the description")
def write_again(folder):
    theirs = Results(exported(OLD, folder / "out.aipm"))
    text = (OLD / "power_metrics.json").read_text(encoding="ascii")
    records = [json.loads(line) for line in text.splitlines()]
    watts = [record["metrics"]["cpu"]["intel_power"] for record in records if record != END]
    assert [value for _, value in theirs.series["intel_power"]] == watts
    assert len(theirs.segments("intel_power")) == 2
    joules = sum(0.205 * (201 + 2 * i) / 2 for i in (0, 1, 2, 4, 5, 6))
    assert is_near(theirs.total("nvidia_power 0"), joules)
    assert theirs.description == "two segments"
    assert "psys_power" not in theirs.series, "-1 is no power"


@case("what was written is read again: the same joules, after any number of times")
def read_again(folder):
    first = integral(samples(OLD, folder)[1], "package_power_W")
    exported(OLD, folder / "one.aipm")
    exported(folder / "one.aipm", folder / "two.aipm")
    again = integral(samples(folder / "two.aipm", folder)[1], "package_power_W")
    assert is_near(first, again), (first, again)


@case("--append adds segments")
def append(folder):
    exported(OLD, folder / "out.aipm")
    theirs = Results(exported(OLD, folder / "out.aipm", "--append"))
    assert len(theirs.series["intel_power"]) == 16
    assert len(theirs.ends) == 3


@case("a run is recorded while it goes on, and is not written over")
def record(folder):
    live = folder / "live"
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    done = wattmeter("run", "-i", "50ms", "--record", f"{live}/", "--", sys.executable, "-c",
                     busy)
    assert done.returncode == 0, done.stderr
    theirs = Results(live)
    seconds = sum(value for _, value in theirs.series["absolute_cpu_time_per_pid"])
    assert 0.2 < seconds < 2, seconds
    assert "process_time" in theirs.description
    done = wattmeter("run", "--record", f"{live}/", "--", "true")
    assert done.returncode != 0 and "--append adds to" in done.stderr, done.stderr
    done = wattmeter("run", "--record", f"{live}/", "--append", "--", "true")
    assert done.returncode == 0, done.stderr
    assert len(Results(live).ends) == 1


@case("what AIPowerMeter has recorded is never replaced")
def keep(folder):
    before = (OLD / "power_metrics.json").read_text(encoding="ascii")
    (folder / "theirs").mkdir()
    (folder / "theirs" / "power_metrics.json").write_text(before, encoding="ascii")
    done = wattmeter("export", str(OLD), "-o", str(folder / "theirs") + "/", "--overwrite")
    assert done.returncode == 1 and "not made by wattmeter" in done.stderr, done.stderr
    assert (folder / "theirs" / "power_metrics.json").read_text(encoding="ascii") == before


@case("a zone other than the reader's moves the times, and no joules")
def zone(folder):
    here = samples(OLD, folder)
    there = samples(OLD, folder, TZ="CET-1CEST,M3.5.0,M10.5.0/3")
    moved = here[0]["run"]["anchor_unix_ns"] - there[0]["run"]["anchor_unix_ns"]
    assert moved == 2 * 3600 * 10**9, moved
    assert integral(here[1], "package_power_W") == integral(there[1], "package_power_W")
    assert "+0200 (CEST)" in there[0]["run"]["notes"]["times"]


@case("a meter joins in by the time of day")
def join(_folder):
    meter = DATA / "meter" / "plain.csv"
    done = wattmeter("report", "--json", "--meter", str(meter), str(OLD))
    assert done.returncode == 0, done.stderr
    assert "joined by the time of day" in json.loads(done.stdout)["notes"]["meter"]
    done = wattmeter("report", "--meter", str(OLD), str(OLD))
    assert done.returncode == 1 and "not the CSV file of a meter" in done.stderr


@case("two that record to one folder: the second is refused, and nothing is lost")
def two_writers(folder):
    live = f"{folder}/live/"
    report = folder / "report.json"
    first = subprocess.Popen([WATTMETER, "run", "--json", "-o", report, "-i", "50ms", "--record", live, "--",
                              "sleep", "2"])
    while not os.path.exists(live + "power_metrics.json"):
        assert first.poll() is None
    for option in ("--append", "--overwrite"):
        done = wattmeter("run", "-q", "--record", live, option, "--", "touch", str(folder / "mark"))
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
        assert "live" in done.stderr, done
    assert not (folder / "mark").exists()
    done = wattmeter("run", "-q", "--experiment", f"{folder}/", "--name", "live", "--", "true")
    assert done.returncode == 1 and "another wattmeter is recording to it" in done.stderr, done
    assert first.wait(timeout=300) == 0
    summary = json.loads(report.read_text())
    results = Results(folder / "live")
    dates = [date for date, _ in results.series["absolute_cpu_time_per_pid"]]
    assert not results.ends and len(dates) <= summary["tool"]["ticks"], (results.ends, len(dates))
    # From its start to its end, with no more between two records than there is between others.
    start = datetime.datetime.fromisoformat(summary["start"].replace("Z", "+00:00")).timestamp()
    bounds = [start] + [date.timestamp() for date in dates] + [start + 2]
    longest = max(late - early for early, late in zip(bounds[1:-1], bounds[2:-1]))
    for early, late in (bounds[:2], bounds[-2:]):
        assert late - early <= 2 * longest, (bounds, longest)
    done = wattmeter("run", "-q", "--record", live, "--append", "--", "true")
    assert done.returncode == 0, done


@case("one that was killed is in nobody's way")
def killed(folder):
    live = f"{folder}/live/"
    first = subprocess.Popen([WATTMETER, "run", "-q", "-i", "50ms", "--record", live, "--", "sleep", "3"])
    while not os.path.exists(live + "metadata.json") or not os.path.getsize(live + "power_metrics.json"):
        assert first.poll() is None
    first.kill()
    first.wait()
    done = wattmeter("run", "-q", "-i", "50ms", "--record", live, "--append", "--", "sleep", "0.2")
    assert done.returncode == 0, done
    assert len(Results(folder / "live").ends) == 1


@case("a GPU without an energy counter keeps its power, recorded and exported")
def no_energy(folder):
    fake = {"WATTMETER_NVML": str(BUILD / "tests/fake/libnvidia-ml.so.1"),
            "FAKE_NVML_SCENARIO": str(SOURCE / "tests/fake/scenarios/no_energy.json")}
    for name in ("live.aipm", "live.sqlite"):
        done = wattmeter("run", "--json", "-i", "50ms", "--record", str(folder / name), "-o",
                         str(folder / "report.json"), "--overwrite", "--", "sleep", "1", **fake)
        assert done.returncode == 0, done
    exported(folder / "live.sqlite", folder / "exported.aipm")
    live = json.loads((folder / "report.json").read_text())["energy"]["gpus"][0]["energy"]
    assert live > 100, live
    for name in ("live.aipm", "exported.aipm"):
        done = wattmeter("report", "--json", str(folder / name))
        again = json.loads(done.stdout)["energy"]["gpus"][0]["energy"]
        assert is_near(again, live, 0.1), (name, again, live)


def meter_file(folder, rows):
    path = folder / "meter.csv"
    path.write_text("time,power_W\n" + "".join(f"{when},{watts}\n" for when, watts in rows))
    return str(path)


def with_meter(folder, rows):
    source = DATA / "aipm" / "head"
    document, ticks = samples(source, folder)
    anchor = (document["run"]["anchor_unix_ns"] - document["run"]["anchor_ns"]) / 1e9
    start, end = (anchor + ticks[i]["time_ns"] / 1e9 for i in (0, -1))
    done = wattmeter("report", "--json", "--meter", meter_file(folder, rows(start, end)), str(source))
    assert done.returncode == 0, done
    found = json.loads(done.stdout)
    meters = [device for device in found["energy"]["other"] if device["source"] == "meter"]
    return found["remarks"], meters[0], end - start


@case("a meter that is slower than the run: a rough figure, and it says so")
def slow_meter(folder):
    for step in (1000, 60):
        remarks, meter, seconds = with_meter(
            folder, lambda start, end: [(f"{start + 0.1 + k * step:.6f}", 100 + 200 * (k % 2))
                                        for k in range(-2, 4)])
        assert any("shorter than three updates" in remark for remark in remarks), remarks
        assert meter["uncertainty_percent"] > 50, (step, seconds, meter)


@case("what cannot be used of a meter is told, even where nothing is left of it")
def meter_troubles(folder):
    def rows(watts, backwards=False):
        def make(start, end):
            times = [start - 1 + 0.2 * k for k in range(int((end - start + 2) / 0.2) + 1)]
            return [(f"{when:.6f}", watts(k)) for k, when in
                    enumerate(reversed(times) if backwards else times)]
        return make

    for make, said in ((rows(lambda k: 100, True), "line 3: is not later than the one before"),
                       (rows(lambda k: "100 W"), "column 'power_W': '100 W' is no power")):
        remarks, meter, _ = with_meter(folder, make)
        assert any("no reading that can be used" in r and said in r for r in remarks), remarks
        assert meter["energy"] is None

    # Now and then a value: the line goes on.
    remarks, meter, seconds = with_meter(folder, rows(lambda k: "NaN" if k % 3 == 2 else 100))
    assert is_near(meter["energy"], 100 * seconds, 1e-3), (meter, seconds)
    assert any("'NaN' is no power" in remark for remark in remarks), remarks


if __name__ == "__main__":
    main()
