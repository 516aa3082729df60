#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`wattmeter compare`: sessions of every kind side by side, gpu_tracker's documents byte
by byte, and what makes it fail."""

import contextlib
import csv
import json
import math
import pickle
import sqlite3
import statistics

import tap
from tap import case, wattmeter

DATA = tap.SOURCE / "tests" / "data" / "gpu_tracker"
RUNS = tap.SOURCE / "tests" / "data" / "recordings" / "v1-eight-runs.sqlite"
SEED = (f"A={DATA / 'analysis_a.json'}", f"B={DATA / 'analysis.json'}")
PROGRAM = str(tap.HELPERS / "regions")
START = 1795247379.25
MEASUREMENTS = list(json.loads((DATA / "analysis.json").read_text())["overall"])
SIZES = {"bytes": 1, "megabytes": 1e6, "gigabytes": 1e9}


def compare(*arguments, status=0, talk=None):
    done = wattmeter("compare", *arguments)
    assert done.returncode == status, done
    if talk is None:  # the machine may be busy, and was when RUNS were recorded
        said = [line for line in done.stderr.splitlines() if "other programs kept" not in line]
        assert not said, said
    else:
        assert talk in done.stderr, done.stderr
    return done.stdout


def compare_json(*arguments, **options):
    return json.loads(compare(*arguments, "--json", **options))


def write_session(folder, name, unit="gigabytes", slower=1.0, larger=1.0, suffix=".csv",
                  block="train"):
    """A tracking file and a sub-tracking file: 10 calls of about a second, 40 timepoints;
    memory of about a gigabyte."""
    static = {"ram_unit": unit, "gpu_ram_unit": unit, "time_unit": "hours",
              "ram_system_capacity": 64e9 / SIZES[unit], "gpu_ram_system_capacity": 0.0,
              "system_core_count": 8, "n_expected_cores": 8, "system_gpu_count": 0,
              "n_expected_gpus": 0}
    rows, marks = [], []
    for i in range(40):
        ram = larger * (1e9 + 1e6 * (i * 7 % 5)) / SIZES[unit]
        rows.append([ram if "ram" in key and "gpu" not in key else float(i % 3)
                     for key in MEASUREMENTS] + [START + 0.4 * i])
    stamp = START
    for i in range(10):
        length = slower * (1 + 0.01 * (i * 3 % 7))
        marks += [(1, block, 0, stamp), (1, block, 1, stamp + length)]
        stamp += length + 0.001
    tracking, calls = folder / f"{name}{suffix}", folder / f"{name}-calls{suffix}"
    if suffix == ".sqlite":
        for path, tables in ((tracking, (("static_data", static, [list(static.values())]),
                                         ("data", [*MEASUREMENTS, "timestamp"], rows))),
                             (calls, (("data", ("process_id", "code_block_name", "position",
                                                "timestamp"), marks),))):
            database = sqlite3.connect(path)
            for table, names, content in tables:
                database.execute(f"CREATE TABLE {table} ({', '.join(names)})")
                places = ", ".join("?" * len(content[0]))
                database.executemany(f"INSERT INTO {table} VALUES ({places})", content)
            database.commit()
            database.close()
    else:
        with open(tracking, "w", newline="") as file:
            csv.writer(file).writerows([static, static.values(), [*MEASUREMENTS, "timestamp"],
                                        *rows])
        with open(calls, "w", newline="") as file:
            csv.writer(file).writerows([("process_id", "code_block_name", "position",
                                         "timestamp"), *marks])
    times = [mark[3] - marks[i - 1][3] for i, mark in enumerate(marks) if mark[2] == 1]
    return tracking, calls, times


def words(name, tracking, calls):
    return (f"{name}={tracking}", "--regions", f"{name}={calls}")


def near(value, wanted, tolerance=1e-9):
    assert value is not None and math.isclose(value, wanted, rel_tol=tolerance), (value, wanted)


@case("what gpu_tracker's documents print, byte by byte, from the numbers in them")
def seed(folder):
    for statistic, form, golden in (("mean", "gpu-tracker", "compare_mean.txt"),
                                    ("max", "gpu-tracker-api", "compare_max.txt")):
        wanted = (DATA / golden).read_text()
        options = ("--stat", statistic, "--format", form)
        assert compare(*SEED, *options) == wanted + "\n", "the screen has a line end more"
        target = folder / golden
        assert compare(*SEED, *options, "-o", target) == ""
        assert target.read_text() == wanted
    # The two forms differ in blanks alone.
    cli = compare(*SEED, "--format", "gpu-tracker").splitlines()
    api = compare(*SEED, "--format", "gpu-tracker-api").splitlines()
    assert [line.strip() for line in cli] == [line.strip() for line in api] and cli != api

    text = compare(*SEED, "--format", "gpu-tracker-json")
    theirs = json.loads(text)
    assert text == json.dumps(theirs, indent=1) + "\n"
    assert list(theirs) == ["overall_resource_usage", "code_block_resource_usage",
                            "code_block_compute_time"]
    assert list(theirs["overall_resource_usage"]["main_ram"].items()) == [
        ("B", 0.856037), ("A", 0.861921)]
    assert theirs["code_block_compute_time"]["my-function"] == {"B": 2.553176, "A": 2.559218}
    assert list(theirs["code_block_resource_usage"]["descendants_ram"]["my-function"]) == [
        "A", "B"], "equal values stay in the order of the sessions"


@case("sessions of every kind, in one comparison, in the units of the first")
def mixed(folder):
    first = write_session(folder, "first")
    csv_files = write_session(folder, "csv", "megabytes", larger=1.5)
    sqlite = write_session(folder, "sqlite", "bytes", slower=2.0, suffix=".sqlite")
    theirs = folder / "theirs.json"
    assert wattmeter("analyze", sqlite[0], "--regions", sqlite[1], "--format",
                     "gpu-tracker-json", "-o", theirs).returncode == 0
    result = compare_json(*words("first", *first[:2]), *words("csv", *csv_files[:2]),
                          *words("sqlite", *sqlite[:2]), f"theirs={theirs}")
    assert result["sessions"] == ["first", "csv", "sqlite", "theirs"]
    ram = result["overall"]["main_ram"]
    assert ram["unit"] == "gigabytes" and ram["matters"] is True
    near(ram["sessions"]["first"]["value"], 1.002)
    near(ram["sessions"]["csv"]["value"], 1.503)
    near(ram["sessions"]["csv"]["change"], 0.5)
    near(ram["sessions"]["sqlite"]["value"], 1.002)
    for name in ("csv", "sqlite", "theirs"):
        figure = ram["sessions"][name]
        assert figure["verdict"] == "not_tested" and "6 runs" in figure["why"], figure
    assert result["references"] == {name: "first" for name in result["sessions"][1:]}

    [block] = result["blocks"]
    assert block["label"] == "train" and set(block["calls"].values()) == {10}
    time = block["figures"]["time"]["sessions"]
    near(time["first"]["value"], statistics.fmean(first[2]))
    near(time["sqlite"]["change"], 1.0, 1e-6)
    for name in ("sqlite", "theirs"):
        near(time[name]["value"], time["sqlite"]["value"])
    assert result["worst"] is None

    text = compare(*words("first", *first[:2]), *words("csv", *csv_files[:2]))
    assert "  combined ram" in text and "+50.0 % ?" in text and "1.00 GB" in text, text
    assert "wattmeter run -r 10 --record FILE" in text, text


@case("blocks: some in one session only, some moved by a few lines")
def blocks(folder):
    a = write_session(folder, "a", block="train.py:7")
    b = write_session(folder, "b", block="train.py:9")
    c = write_session(folder, "c", block="load")
    both = (*words("a", *a[:2]), *words("b", *b[:2]))
    result = compare_json(*both, talk="differ by the number of their line alone")
    [block] = result["blocks"]
    assert block["label"] == "train.py:7 -> train.py:9"
    assert block["names"] == {"a": "train.py:7", "b": "train.py:9"}
    assert len(result["remarks"]) == 1
    theirs = compare(*both, "--format", "gpu-tracker",
                     talk='Code block name "train.py:7" of tracking session "a" matched with code'
                          ' block name "train.py:9" of tracking session "b" but they differ by '
                          'line number. If these')
    assert "\ntrain.py:7 -> train.py:9:\n" in theirs

    other = (*words("a", *a[:2]), *words("c", *c[:2]))
    text = compare(*other)
    assert "\n  load " in text and "\n  train.py:7 " in text, text
    assert [one["names"] for one in compare_json(*other)["blocks"]] == [
        {"a": None, "c": "load"}, {"a": "train.py:7", "c": None}]
    compare(*other, "--format", "gpu-tracker", status=2,
            talk='Code block name "train.py:7" of tracking session "a" does not match code block'
                 ' name "load" of tracking session "c"\n')
    compare(*words("a", *a[:2]), f"b={b[0]}", "--format", "gpu-tracker-json", status=2,
            talk='The first has 1 code blocks but tracking session "b" has 0 code blocks.\n')


def larger(folder, name, **factors):
    """The eight runs, with so many times the CPU time, or memory, of each."""
    path = folder / f"{name}.sqlite"
    path.write_bytes(RUNS.read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as database:
        for run, result in database.execute("SELECT id, result FROM run").fetchall():
            result = json.loads(result)
            for key in result:
                for word, factor in factors.items():
                    if word in key and isinstance(result[key], float):
                        result[key] *= factor
            database.execute("UPDATE run SET result = ? WHERE id = ?",
                             (json.dumps(result), run))
        database.commit()
    return path


@case("--fail-above: only what has grown by more for certain, as repeats tell")
def fail_above(folder):
    slower, hardly = larger(folder, "slower", cpu_=1.1), larger(folder, "hardly", cpu_=1.004)
    more = larger(folder, "more", peak=1.2)
    compare(f"a={RUNS}", f"b={slower}", "--fail-above", "5%", status=1,
            talk="b: overall: cpu_time grew by at least 9.1 %, more than 5%\n")
    compare(f"a={RUNS}", f"b={slower}", "--fail-above", "9.5%")
    compare(f"a={RUNS}", f"b={more}", "--fail-above", "10%", status=1, talk=": memory grew")
    compare(f"a={slower}", f"b={RUNS}", "--fail-above", "0%")
    compare(f"a={RUNS}", f"b={hardly}", "--fail-above", "0%")
    compare(f"a={RUNS}", f"b={more}", "--fail-above", "5%", "--metric", "cpu_time")
    compare(f"a={RUNS}", f"b={slower}", "--fail-above", "5%", "--metric", "time",
            "--metric", "cpu_time", status=1, talk="cpu_time")
    result = compare_json(f"a={RUNS}", f"b={slower}")
    figure = result["overall"]["cpu_time"]["sessions"]["b"]
    assert figure["verdict"] == "more" and figure["runs"] == 8, figure
    assert figure["low"] < figure["change"] < figure["high"] and not figure["paired"], figure
    near(figure["change"], 0.1, 1e-9)
    assert result["worst"] == {"figure": "b: overall: cpu_time", "at_least": figure["low"]}
    assert "other programs kept 1.5 cores busy" in result["remarks"][0], result["remarks"]
    assert "+10.0 % *" in compare(f"a={RUNS}", f"b={slower}")
    figure = compare_json(f"a={RUNS}", f"b={hardly}")["overall"]["cpu_time"]
    assert figure["sessions"]["b"]["verdict"] == "not_shown", figure


@case("--threshold: a smaller difference is none")
def threshold(folder):
    slower = larger(folder, "slower", cpu_=1.1)
    sessions = f"a={RUNS}", f"b={slower}"
    for percent, verdict, sign in ("8%", "more", "*"), ("12%", "not_shown", "~"):
        figure = compare_json(*sessions, "--threshold", percent)["overall"]["cpu_time"]
        assert figure["sessions"]["b"]["verdict"] == verdict, (percent, figure)
        text = compare(*sessions, "--threshold", percent)
        assert f"+10.0 % {sign}" in text and f"below {percent[:-1]} %" in text, text
    for wrong in "5", "-1%", "101%", "x":
        compare(*sessions, "--threshold", wrong, status=2, talk=f"'{wrong}' is no percentage, such as 1%")


@case("--fail-above: what cannot be tested is no failure of what is measured")
def untested(folder):
    needs = "--fail-above needs 6 runs or more of each session, as 'wattmeter run -r 10"
    for one in range(8):
        for other in range(8):
            if one != other:
                compare(f"a={RUNS}", f"b={RUNS}", "--run", f"a={one}", "--run", f"b={other}",
                        "--fail-above", "5%", status=2, talk=f"b: {needs}")
    compare(f"a={RUNS}", f"b={RUNS}", "--run", "b=0", "--fail-above", "5%", status=2, talk=needs)
    base, changed = write_session(folder, "base"), write_session(folder, "changed", slower=2.0)
    time_alone = (*words("base", *base[:2]), *words("changed", *changed[:2]), "--fail-above", "5%")
    compare(*time_alone, status=2, talk=f"changed: {needs}")
    compare(f"a={RUNS}", f"b={RUNS}", "--fail-above", "5%", "--metric", "gpu_energy", status=2,
            talk=f"b: gpu_energy: {needs}")
    for wrong in ("cpu", "TIME"):
        compare(*time_alone, "--metric", wrong, status=2,
                talk=f'there is no metric "{wrong}"; there are main_ram, ')
    for good in ("main_n_threads", "cpu_use"):
        compare(*time_alone, "--metric", good, status=2,
                talk=f'more "{good}" is no regression; these metrics can be watched: main_ram, ')
    compare(*time_alone[:-2], "--metric", "time", status=2, talk="needs --fail-above")
    for wrong in ("5", "0.05", "-5%", "%", "5%%", "abc%", "1e3%", "nan%", "5 %"):
        compare(f"a={RUNS}", f"b={RUNS}", "--fail-above", wrong, status=2,
                talk="is no percentage")
    for statistic in ("min", "max", "std"):
        compare(*SEED, "--stat", statistic, "--fail-above", "5%", status=2, talk="noise")


@case("commands of one recording by `run --repeat` are compared pair by pair")
def commands(folder):
    paths = folder / "one.sqlite", folder / "two.sqlite"
    for path in paths:
        done = wattmeter("run", "-q", "-r", "6", "-w", "1", "-n", "short", "-n", "long", "--vs",
                         "sleep 0.3", "--record", path, "--", "sleep", "0.1")
        assert done.returncode == 0, done
    result = compare_json(paths[0], talk="")  # a busy machine may make outliers
    assert result["sessions"] == ["short", "long"] and result["references"] == {"long": "short"}
    time = result["overall"]["time"]["sessions"]
    assert time["short"]["runs"] == time["long"]["runs"] == 6, time
    assert time["long"]["paired"] and time["long"]["verdict"] != "not_tested", time
    assert time["long"]["low"] <= time["long"]["change"] <= time["long"]["high"], time
    for name, least in ("short", 0.1), ("long", 0.3):
        assert time[name]["value"] >= least, "of each run, not of a batch"
    both = compare_json(f"a={paths[0]}", f"b={paths[1]}", talk="")
    assert both["sessions"] == ["a: short", "a: long", "b: short", "b: long"], both["sessions"]
    assert both["references"] == {"b: short": "a: short", "b: long": "a: long"}
    assert not both["overall"]["time"]["sessions"]["b: long"]["paired"]
    text = compare(f"a={paths[0]}", f"b={paths[1]}", talk="")
    assert "the mean of the pairs" not in text, text
    assert "\nPairs        a change is the mean of the pairs of runs" in compare(
        paths[0], talk="")
    assert text.index("a: short") < text.index("b: short") < text.index("b: long"), text


@case("a session whose command failed, or whose recording is not whole, is said to be one")
def failed(folder):
    whole = folder / "whole.sqlite"
    wattmeter("run", "-q", "--record", whole, "--", "true")
    for name, command, talk in (("three", "exit 3", "the command ended with status 3"),
                                ("killed", "kill -9 $$", "signal 9 ended the command"),
                                ("cut", "exit 0", "a recording without a result")):
        path = folder / f"{name}.sqlite"
        wattmeter("run", "-q", "--record", path, "--", "sh", "-c", command)
        if name == "cut":
            with sqlite3.connect(path) as database:
                database.execute("UPDATE run SET result = NULL")
        compare(f"whole={whole}", f"{name}={path}", talk=talk)
        found = compare_json(f"{name}={path}", f"whole={whole}", talk=talk)
        assert any(f'"{name}"' in remark and talk in remark for remark in found["remarks"]), found


@case("recordings: time, CPU time and energy, of the whole and of regions")
def recordings(folder):
    paths = [folder / "one.sqlite", folder / "two.csv"]
    for path in paths:
        done = wattmeter("run", "-q", "-i", "5ms", "--record", path, "--", PROGRAM, "nested")
        assert done.returncode == 0, done
    result = compare_json(paths[0], f"two={paths[1]}")
    assert result["sessions"] == [str(paths[0]), "two"]
    report = json.loads(wattmeter("report", "--json", paths[1]).stdout)
    near(result["overall"]["time"]["sessions"]["two"]["value"], report["compute_time"]["time"])
    assert result["overall"]["time"]["sessions"]["two"]["verdict"] == "not_tested"
    assert result["overall"]["cpu_time"]["unit"] == "seconds"
    whole = result["overall"]["cpu_time"]["sessions"]["two"]
    near(whole["value"], report["cpu_time"]["total"])
    assert "uncertainty" not in whole and whole["low"] is None, whole
    by_name = {row["name"]: row for row in report["regions"]["by_name"]}
    assert [block["label"] for block in result["blocks"]] == ["inner", "outer"]
    for block in result["blocks"]:
        row = by_name[block["label"]]
        assert block["calls"] == {str(paths[0]): row["calls"], "two": row["calls"]}
        near(block["figures"]["time"]["sessions"]["two"]["value"], row["time"]["mean"])
        cpu_time = block["figures"]["cpu_time"]["sessions"]["two"]
        assert cpu_time["value"] > 0 and cpu_time["uncertainty"] > 0, cpu_time
    total = compare_json(*paths, "--stat", "total")
    energy = report["energy"]
    if "energy" in total["overall"]:
        figure = total["overall"]["energy"]["sessions"][str(paths[1])]
        assert figure["value"] > 0 and figure["uncertainty"] > 0, (figure, energy)
    assert compare(*paths, "--stat", "total").startswith("Statistic    total\n")
    assert "\nRegion inner\n" in compare("-v", *paths)
    # A recording and what another tool made, of which nobody knows the energy.
    tracking = write_session(folder, "theirs")[0]
    result = compare_json(f"a={paths[0]}", f"b={tracking}", talk="other numbers of cores")
    assert result["overall"]["main_ram"]["unit"] == "bytes"
    assert result["overall"]["main_ram"]["sessions"]["b"]["value"] > 5e8
    assert result["overall"]["time"]["sessions"]["b"] == {
        "value": None, "runs": 0, "change": None, "low": None, "high": None,
        "verdict": "not_tested", "why": "it is not known in both sessions"}
    compare(f"a={paths[0]}", f"b={paths[0]}", "--run", "b=0")
    compare(f"a={paths[0]}", f"b={paths[0]}", "--run", "b=1", status=2, talk="run")


@case("what was not measured says so, and of GPUs that were not there nothing is told")
def origins(folder):
    fake = tap.environment(
        WATTMETER_NVML=str(tap.BUILD / "tests/fake/libnvidia-ml.so.1"),
        FAKE_NVML_SCENARIO=str(tap.SOURCE / "tests/fake/scenarios/demo.json"))
    none = tap.environment(WATTMETER_NVML="/none")
    paths = [folder / "gpus.sqlite", folder / "none.csv"]
    for path, environment in zip(paths, (fake, none)):
        done = wattmeter("run", "-q", "-i", "20ms", "--gpu", "all" if environment is fake else
                         "none", "--record", path, "--", "sleep", "0.3", env=environment)
        assert done.returncode == 0, done
    simulated = {"origin": "simulated", "simulated": True}
    gpus, none = (json.loads(wattmeter("analyze", path, "--json").stdout) for path in paths)
    report = json.loads(wattmeter("report", "--json", paths[1]).stdout)
    for name in MEASUREMENTS:
        is_gpu = "gpu" in name
        assert (simulated.items() <= gpus["usage"][name].items()) == is_gpu, name
        assert (none["usage"][name] is None) == is_gpu, name
        assert (none["why"].get(f"usage.{name}") == "no GPU was measured") == is_gpu, name
    assert none["static_data"]["gpu_ram_system_capacity"] is None
    for line in wattmeter("analyze", paths[0]).stdout.splitlines():
        assert ("SIMULATED" in line) == (" gpu " in line), line
    seed = json.loads(wattmeter("analyze", paths[1], "--format", "gpu-tracker-json").stdout)
    assert seed["overall"]["main_gpu_ram"] == {"min": 0, "max": 0, "mean": 0, "std": 0}
    assert seed["static_data"]["gpu_ram_system_capacity"] == 0

    result = compare_json(*paths, talk="other numbers of GPUs")
    used = result["overall"]["system_gpu_ram"]["sessions"]
    assert simulated.items() <= used[str(paths[0])].items(), used
    assert used[str(paths[1])]["value"] is None and "origin" not in used[str(paths[1])]
    # gpu_tracker's JSON of an analysis is read again, and ours is refused.
    stored = folder / "stored.json"
    stored.write_text(json.dumps(seed))
    result = compare_json(f"a={stored}", f"b={paths[1]}")
    assert "system_gpu_ram" not in result["overall"] and "system_ram" in result["overall"], result
    stored.write_text(json.dumps(gpus))
    compare(stored, paths[1], status=1, talk="not gpu_tracker's JSON of an analysis")
    energy = compare_json(*paths, talk="GPUs")["overall"].get("energy", {}).get("sessions")
    assert simulated.items() <= energy[str(paths[0])].items(), energy
    assert energy[str(paths[1])].get("origin") == report["energy"].get("origin"), energy
    text = compare("-v", *paths, talk="GPUs")
    lines = text.splitlines()
    assert any(line.startswith("Origin ") and "‡ simulated" in line for line in lines), text
    assert all("‡ " in line for line in lines if line.startswith("  system gpu ram")), text


@case("names: with signs, bytes that are no text, and of files that look like a name")
def names(folder):
    tracking = write_session(folder, "a")[0]
    odd = folder / "x=y.csv"
    odd.write_bytes(tracking.read_bytes())
    assert compare_json(odd, f"b={tracking}")["sessions"] == [str(odd), "b"]
    result = compare_json(f"ä µ={tracking}", f'"quoted", {{}}={odd}')
    assert result["sessions"] == ["ä µ", '"quoted", {}']
    assert "\x1b" not in compare(f"\x1b[2J={tracking}", f"b={odd}")
    compare(f"{'n' * 4000}={tracking}", f"b={odd}")
    done = tap.subprocess.run([tap.WATTMETER.encode(), b"compare", b"\xff=" + bytes(tracking),
                               b"b=" + bytes(odd), b"--json"], capture_output=True,
                              env=tap.environment())
    assert json.loads(done.stdout)["sessions"] == ["\ufffd", "b"], done


@case("what is wrong is said, in one line")
def refusals(folder):
    tracking, calls, _ = write_session(folder, "t")
    pickled = folder / "results.bin"
    pickled.write_bytes(pickle.dumps({"overall": 1}))
    old = folder / "results.pkl"
    old.write_bytes(pickle.dumps({"overall": 1}, protocol=0))
    broken = folder / "broken.json"
    broken.write_text('{"overall": {}, "static_data": 3}')
    report = folder / "report.json"
    report.write_text('{"version": 1}')
    a = f"a={tracking}"
    wrong = (
        (1, (a, f"b={pickled}"), "gpu-tracker sub-track analyze"),
        (1, (a, f"b={old}"), "--format=json"),
        (1, (a, f"b={broken}"), "static_data"),
        (1, (a, f"b={report}"), "give the recording itself"),
        (1, (a, f"b={folder / 'none'}"), "none"),
        (1, (a, f"b={calls}"), ""),
        (2, (a, a), "two sessions are called"),
        (2, (a, "--fail-above", "5%"), "--fail-above needs two sessions"),
        (2, (), ""),
        (2, (a, f"b={tracking}", "--stat", "median"), "median"),
        (2, (a, f"b={tracking}", "--stat", "total", "--format", "gpu-tracker"),
         "Invalid summary statistic 'total'. Valid values are min max mean std."),
        (2, (a, f"b={tracking}", "--format", "xml"), "xml"),
        (2, (a, f"b={tracking}", "--format", "json", "--json"), "exclude"),
        (2, (a, f"b={tracking}", "--regions", f"c={calls}"), "c="),
        (2, (a, f"b={tracking}", "--regions", calls), "--regions"),
        (2, (a, f"b={tracking}", "--run", "a=x"), "--run"),
        (1, (a, f"b={tracking}", "--regions", f"b={folder / 'none'}"), "none"),
        (2, (SEED[0], SEED[1], "--regions", f"A={calls}"), "has its calls already"),
        (2, (a, f"b={tracking}", "--overwrite", "-o", tracking), "to be read"),
        (2, (a, f"b={tracking}", "--regions", f"b={calls}", "--overwrite", "-o", calls),
         "to be read"),
        (1, (a, f"b={tracking}", "-o", folder / "no" / "x"), "no"),
    )
    before = tracking.read_bytes(), calls.read_bytes()
    for status, arguments, why in wrong:
        done = wattmeter("compare", *arguments)
        assert done.returncode == status, (arguments, done)
        assert done.stdout == "", done
        assert done.stderr.startswith("wattmeter") and done.stderr.count("\n") == 1, done.stderr
        assert why in done.stderr, (why, done.stderr)
    assert before == (tracking.read_bytes(), calls.read_bytes())


if __name__ == "__main__":
    tap.main()
