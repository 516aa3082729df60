#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiments as a user meets them: several runs under one name, in each kind of place,
with a package that takes 40 W, a GPU that takes 300 W, and what the command writes."""

import contextlib
import csv
import datetime
import json
import os
import sqlite3
import subprocess
import time
from pathlib import Path

import tap
from postgres_server import Server
from tap import Skip, case, near, wattmeter

CPU_WATTS, GPU_WATTS = 40, 300
WATTS = CPU_WATTS + GPU_WATTS

# Three epochs of half a second.
WORK = """
import json, sys, time
with open(sys.argv[1], "a") as out:
    for epoch in (1, 2, 3):
        time.sleep(0.5)
        row = {"time": time.time(), "epoch": epoch, "accuracy": 0.5 + epoch / 10, "phase": "train"}
        print(json.dumps(row), file=out, flush=True)
"""


@contextlib.contextmanager
def machine(folder):
    """The environment of a machine that takes as much, for as long as it is needed."""
    zone = folder / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True, exist_ok=True)
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("262143328850\n")
    start = time.monotonic()

    def move():
        counter.seek(0)
        counter.write(f"{int((1 + CPU_WATTS * (time.monotonic() - start)) * 1e6):012d}\n")
        counter.flush()

    with open(zone / "energy_uj", "w", encoding="ascii") as counter:
        move()
        with tap.feeding(move):
            yield tap.environment(
                WATTMETER_SYSFS=str(folder / "sys"),
                WATTMETER_NVML=str(tap.BUILD / "tests/fake/libnvidia-ml.so.1"),
                FAKE_NVML_SCENARIO=str(tap.SOURCE / "tests/fake/scenarios/constant.json"),
                XDG_STATE_HOME=str(folder / "state"))


def run_once(folder, target, env, *options, name="resnet"):
    """How long it took, seen from outside."""
    metrics = folder / "metrics.jsonl"
    begun = time.monotonic()
    done = wattmeter("run", "-q", "-i", "20ms", "--experiment", target, "--name", name,
                     "--metrics", metrics, *options, "--", "python3", "-c", WORK, metrics, env=env)
    assert done.returncode == 0 and done.stderr == "", done
    return time.monotonic() - begun


def ask(*words, env=None):
    done = wattmeter("experiment", *words, "--json", env=env)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def figure(verb, target, metric, *options):
    return ask(verb, target, "resnet", metric, *options)


def check_figures(target, took):
    """What holds wherever the two runs are kept, which took so long together."""
    for metric, watts in (("energy", WATTS), ("cpu_energy", CPU_WATTS), ("gpu_energy", GPU_WATTS),
                          ("gpu0_energy", GPU_WATTS), ("power", WATTS)):
        total = figure("total", target, metric)
        assert total["unit"] == "J", total
        assert 3.0 < total["seconds"] < took, total  # and not the pause between the two
        near(total["value"], watts * total["seconds"], 0.06 * watts * total["seconds"], metric)
        average = figure("average", target, metric)
        assert average["unit"] == "W", average
        near(average["value"], total["value"] / total["seconds"], 1e-6 * watts, metric)
        assert figure("max", target, metric)["value"] >= 0.9 * watts, metric

    # 0.2 s of the first run, with its edges between two ticks.
    part = figure("total", target, "energy", "--from", "0.503", "--to", "0.703")
    near(part["seconds"], 0.2, 1e-6)
    near(part["value"], 0.2 * WATTS, 0.1 * 0.2 * WATTS)

    assert figure("max", target, "accuracy")["value"] == 0.8
    mean = figure("average", target, "epoch")
    near(mean["value"], 2, 0.2)
    assert 2 <= mean["seconds"] + 0.01 < took, mean  # twice from the first to the third


@case("two runs in an SQLite file: list, show, totals, averages, parts; as `report` has them")
def _(folder):
    target = folder / "r.sqlite"
    (folder / "card.json").write_text('{"parameters": 1e6, "macs": 5e9, "passes": 3, "input_size": [1, 3, 8]}')
    with machine(folder) as env:
        took = run_once(folder, target, env, "--description", "ours")
        time.sleep(1.2)
        took += run_once(folder, target, env, "--model-card", folder / "card.json")
    check_figures(target, took)

    assert [(e["name"], e["runs"], e["description"]) for e in ask("list", target)["experiments"]] == [
        ("resnet", 2, "ours")]
    shown = ask("show", target, "resnet", "--per", "epoch", "--idle-watts", "100", "--price", "0.5",
                "--currency", "EUR", "--carbon", "400", "--pue", "2")
    reports = [json.loads(wattmeter("report", "--json", "--run", n, target).stdout) for n in (0, 1)]
    for run, report in zip(shown["runs"], reports):
        assert run["energy"]["total"] == report["energy"]["total"], (run, report["energy"])
        assert report["notes"]["experiment"] == "resnet"
        assert run["segments"] == 1
        assert run["metrics"]["accuracy"] == {"values": 3, "first": 0.6, "last": 0.8}
    energy = shown["energy"]
    near(energy["total"], sum(r["energy"]["total"] for r in reports), 1e-6)
    near(figure("total", target, "energy")["value"], energy["total"], 0.001 * energy["total"])
    near(energy["cpu"] + energy["gpus"], energy["total"], 1e-6)
    near(energy["without_idle"], energy["total"] - 100 * shown["seconds"], 1e-6)
    near(energy["cost"]["amount"], energy["total"] / 3.6e6 * 0.5 * 2, 1e-9)
    near(energy["co2e"]["amount"], energy["total"] / 3.6e6 * 400 * 2, 1e-6)
    assert energy["uncertainty_percent"] > 0 and energy["dram"] is None
    assert energy["origin"] == "simulated" and "energy.dram" in shown["why"], shown["why"]
    near(shown["model"]["energy_per_parameter"], energy["total"] / 1e6, 1e-9)
    near(shown["model"]["energy_per_flop"], energy["total"] / (2 * 3 * 1e10), 1e-15)
    steps = shown["per"]["steps"]
    assert [(s["run"], s["value"]) for s in steps] == [(r, e) for r in (0, 1) for e in (1, 2, 3)]
    for step in steps[1:3] + steps[4:]:
        near(step["energy"], 0.5 * WATTS, 0.12 * WATTS, step)
    assert wattmeter("experiment", "show", target, "resnet").stdout.startswith("resnet: 2 runs\nours\n")

    rows = sqlite3.connect(target).execute(
        "SELECT run, name, value FROM metric WHERE name = 'epoch' ORDER BY time_ns").fetchall()
    assert rows == [(run, "epoch", epoch) for run in (1, 2) for epoch in (1, 2, 3)], rows


def begins_with_all_devices(place):
    """Whether each run's first record has the power of the package and of the GPU."""
    lines = [None] + [json.loads(line) for line in Path(place, "power_metrics.json").read_text().splitlines()]
    firsts = [line["metrics"] for before, line in zip(lines, lines[1:])
              if isinstance(line, dict) and not isinstance(before, dict)]
    return all("intel_power" in one["cpu"] and "nvidia_power" in one["gpu"] for one in firsts)


@case("in a folder: AIPowerMeter's files, one folder to a name, and the same figures")
def _(folder):
    with machine(folder) as env:
        for attempt in range(20):  # until no driver starts late, so that all joules are in records
            target = f"{folder}/results{attempt}/"
            took = run_once(folder, target, env)
            time.sleep(1.2)
            took += run_once(folder, target, env)
            if begins_with_all_devices(f"{target}/resnet"):
                break
        done = wattmeter("run", "-q", "-i", "20ms", "--experiment", target, "--name", "other one",
                         "--", "sleep", "0.2", env=env)
        assert done.returncode == 0, done
    check_figures(target, took)
    assert [(e["name"], e["runs"]) for e in ask("list", target)["experiments"]] == [
        ("resnet", 2), ("other one", 1)]
    shown = ask("show", target, "resnet")
    assert shown["energy"]["origin"] == "simulated", shown
    assert 0 < shown["energy"]["uncertainty_percent"] < 30, shown["energy"]
    for run in shown["runs"]:
        assert run["segments"] == 1 and run["metrics"]["epoch"]["values"] == 3, run

    # The folder as a whole is what AIPowerMeter takes it for; each run is there as well.
    place = f"{target}/resnet"
    parts = [json.loads(wattmeter("report", "--json", "--run", n, place).stdout) for n in (0, 1)]
    whole = json.loads(wattmeter("report", "--json", place).stdout)
    near(sum(part["energy"]["total"] for part in parts), whole["energy"]["total"], 0.05)
    records = json.loads(Path(place, "results_exp.json").read_text())
    assert [r["epoch"] for r in records] == [1, 2, 3, 1, 2, 3], records
    for record in records:
        datetime.datetime.fromisoformat(record["end_training_epoch"])


@case("in a PostgreSQL database")
def _(folder):
    done = wattmeter("report", "postgresql:///x?host=/nonexistent")
    if "built without" in done.stderr:
        raise Skip("built without libpq")
    server = Server()
    try:
        target = server.new_database("experiments")
        with machine(folder) as env:
            took = run_once(folder, target, env)
            time.sleep(1.2)
            took += run_once(folder, target, env)
        check_figures(target, took)
        assert [(e["name"], e["runs"]) for e in ask("list", target)["experiments"]] == [("resnet", 2)]
        assert server.sql("SELECT name, count(*), max(value) FROM wattmeter.metric"
                          " GROUP BY name ORDER BY name", "experiments") == "accuracy|6|0.8\nepoch|6|3"
    finally:
        server.remove()


@case("curves and two metrics on their times together: values, no lines across pauses, no flat ends")
def _(folder):
    target = folder / "r.sqlite"
    with machine(folder) as env:
        run_once(folder, target, env)
        run_once(folder, target, env)
    output = folder / "curve.csv"
    done = wattmeter("experiment", "curve", target, "resnet", "epoch", "-o", output)
    assert done.returncode == 0 and done.stdout == "", done
    told = list(csv.DictReader(output.open()))
    assert [(row["epoch"], row["segment"]) for row in told] == [
        (e, s) for s in "01" for e in "123"], told
    assert wattmeter("experiment", "curve", target, "resnet", "epoch", "-o", output).returncode == 1

    text = wattmeter("experiment", "interpolate", target, "resnet", "epoch", "energy").stdout
    rows = list(csv.DictReader(text.splitlines()))
    begun, ended = (float(row["seconds"]) for row in (told[0], told[2]))
    joules = [float(row["energy J"]) for row in rows if row["epoch"] and float(row["seconds"]) <= ended]
    text = wattmeter("experiment", "curve", target, "resnet", "energy").stdout
    samples = [float(row["seconds"]) for row in csv.DictReader(text.splitlines())]
    between = [at for at in samples if begun <= at <= ended]
    assert joules == sorted(joules) and len(joules) >= len(between) > 2, (joules, between)
    first = [row for row in rows if float(row["seconds"]) < begun]
    assert first and all(row["epoch"] == "" for row in first), first
    between = [float(row["epoch"]) for row in rows if row["epoch"]]
    assert min(between) == 1 and max(between) == 3 and any(1.1 < v < 1.9 for v in between)
    curves = ask("interpolate", target, "resnet", "epoch", "energy")
    assert len(curves["seconds"]) == len(curves["curves"][0]["values"]) == len(rows)

    # Absolute times, a part, and a column of the recording.
    start = ask("list", target)["experiments"][0]["first_start"]
    whole = figure("total", target, "gpu0_power_W")
    part = figure("total", target, "gpu0_power_W", "--from", start, "--to", "0.5")
    near(part["value"], 0.5 * GPU_WATTS, 0.05 * GPU_WATTS)
    assert whole["value"] > 4 * part["value"]


@case("attach, an own process that writes while it is measured")
def _(folder):
    target, metrics = folder / "r.sqlite", folder / "metrics.jsonl"
    with machine(folder) as env:
        process = subprocess.Popen(["python3", "-c", WORK, metrics])
        done = wattmeter("attach", "-q", "-i", "20ms", "--experiment", target, "--name", "attached",
                         "--metrics", metrics, process.pid, env=env)
        process.wait()
    assert done.returncode == 0, done
    assert ask("show", target, "attached")["runs"][0]["metrics"]["epoch"]["last"] == 3


@case("lines that cannot be used are said with their numbers, and cost nothing else")
def _(folder):
    target, metrics = folder / "r.sqlite", folder / "metrics.jsonl"
    metrics.write_text('{"time": 1000000000, "epoch": 7}\n')
    script = 'echo "{\\"time\\": $(date +%s.%N), \\"epoch\\": 1}"; echo nonsense; echo "{\\"epoch\\": 2}"; printf "{\\"ti"'
    done = wattmeter("run", "--experiment", target, "--name", "x", "--metrics", metrics, "--",
                     "sh", "-c", f"({script}) >> {metrics}")
    assert done.returncode == 0, done
    note = " ".join(done.stderr.split("note: metrics: ")[1].split())
    for words in ("line 3: not a JSON object", 'line 4: no "time"', "line 5: not a JSON object",
                  "1 of 5 lines are of another time"):
        assert words in note, note
    shown = ask("show", target, "x")
    assert shown["runs"][0]["metrics"] == {"epoch": {"values": 1, "first": 1, "last": 1}}, shown

    done = wattmeter("run", "--experiment", target, "--name", "x", "--metrics", folder / "none", "--", "true")
    assert done.returncode == 0 and "note: metrics: " in done.stderr, done
    assert "No such file" in done.stderr


@case("an export keeps what the command told of itself")
def _(folder):
    first, second = folder / "a.sqlite", folder / "b.csv"
    with machine(folder) as env:
        run_once(folder, first, env)
    assert wattmeter("export", first, "-o", second).returncode == 0
    for path in (first, second):
        assert figure("max", path, "epoch")["value"] == 3


@case("wrong words, names, files and ranges are refused in one line, and nothing has run")
def _(folder):
    (folder / "bad.json").write_text('{"parameters": -1}')
    mark, target = folder / "mark", folder / "r.sqlite"
    for options, words in (
            (["--experiment", target], "--name"),
            (["--name", "x"], "--experiment is missing"),
            (["--metrics", "m"], "--metrics"),
            (["--experiment", target, "--name", "../x"], "name of an experiment"),
            (["--experiment", target, "--name", "a/b"], "name of an experiment"),
            (["--experiment", target, "--name", ""], "--name"),
            (["--experiment", folder / "x.csv", "--name", "x"], "holds one run"),
            (["--experiment", folder / "x", "--name", "x"], "x"),
            (["--experiment", target, "--name", "x", "--record", folder / "y.sqlite"], "exclude"),
            (["--experiment", target, "--name", "x", "--model-card", folder / "bad.json"], "parameters"),
            (["--experiment", target, "--name", "x", "--model-card", folder / "none.json"], "none.json")):
        done = wattmeter("run", *options, "--", "touch", mark)
        assert done.returncode in (1, 2, 127) and len(done.stderr.splitlines()) == 1, (options, done)
        assert words in done.stderr and not mark.exists() and not target.exists(), (options, done)

    assert wattmeter("run", "-q", "--experiment", target, "--name", "x", "--", "true").returncode == 0
    for words, status, said in (
            (["dance", target], 2, "not dance"),
            (["show", target], 2, "usage"),
            (["total", target, "x"], 2, "usage"),
            (["list", target, "x"], 2, "usage"),
            (["show", target, "y"], 1, "there are: x"),
            (["total", target, "x", "nothing"], 1, "no metric 'nothing'"),
            (["show", target, "x", "--per", "epoch"], 1, "epoch"),
            (["show", target, "x", "--from", "1"], 2, "--from"),
            (["total", target, "x", "tree_threads", "--from", "soon"], 2, "soon"),
            (["total", target, "x", "tree_threads", "--from", "-1"], 2, "-1"),
            (["total", target, "x", "tree_threads", "--from", "2", "--to", "1"], 2, "before"),
            (["total", target, "x", "tree_threads", "--from", "1000"], 1, "no value"),
            (["total", target, "x", "tree_threads", "--price", "3"], 2, "--price"),
            (["average", target, "x", "tree_threads", "--pue", "1.2"], 2, "--pue"),
            (["list", target, "--carbon", "30"], 2, "--carbon"),
            (["list", folder / "none.sqlite"], 1, "none.sqlite"),
            (["list", folder / "bad.json"], 1, "bad.json")):
        done = wattmeter("experiment", *words)
        assert done.returncode == status and len(done.stderr.splitlines()) == 1, (words, done)
        assert said in done.stderr and done.stdout == "", (words, done)


@case("a lost GPU and a killed run are told of, and how sure the figures are")
def _(folder):
    target = folder / "e.sqlite"
    (folder / "gpus.json").write_text('{"gpus": [{"power": 300, "lost_at": 5}]}')
    (folder / "empty").mkdir()
    assert "no experiment" in wattmeter("experiment", "list", folder / "empty").stdout
    env = tap.environment(WATTMETER_SYSFS=str(folder / "none"), FAKE_NVML_SCENARIO=str(folder / "gpus.json"),
                          WATTMETER_NVML=str(tap.BUILD / "tests/fake/libnvidia-ml.so.1"))
    words = ["run", "-q", "--experiment", target, "--name", "resnet"]
    assert wattmeter(*words, "--", "sleep", "0.8", env=env).returncode == 0
    told = figure("total", target, "gpu_energy")
    assert 0 < told["uncertainty_percent"] < 100 and told["missing_seconds"] == 0, told
    assert "±" in wattmeter("experiment", "total", target, "resnet", "gpu_energy").stdout
    part = figure("total", target, "gpu_energy", "--from", "0.2")
    assert part["uncertainty_percent"] is None and "whole" in part["why"]["uncertainty_percent"], part

    assert wattmeter(*words, "--", "sleep", "6", env=env).returncode == 0
    told = figure("total", target, "gpu_energy")
    assert told["uncertainty_percent"] is None and told["missing_seconds"] > 0.5, told
    shown = wattmeter("experiment", "show", target, "resnet").stdout
    assert "note: run 1: gpu0: energy does not cover" in shown, shown

    process = subprocess.Popen([tap.WATTMETER, *words, "--", "sleep", "9"], env=env)
    time.sleep(1.5)
    process.kill()
    process.wait()
    shown = wattmeter("experiment", "show", target, "resnet").stdout
    assert "note: run 2: the recording ends without a result" in shown, shown
    assert [r["complete"] for r in ask("show", target, "resnet")["runs"]] == [True, True, False]
    assert figure("total", target, "gpu_energy")["unfinished_runs"] == 1

    row = folder / "row.csv"
    done = wattmeter("export", target, "--run", "1", "--codecarbon", row)
    assert done.returncode == 0 and "incomplete" in done.stderr, done
    assert "(incomplete)" in row.read_text() and wattmeter("export", target, "--codecarbon", "-").returncode == 2


@case("one damaged recording in a folder hides no other")
def _(folder):
    target = f"{folder}/results/"
    for name in ("one", "two"):
        assert wattmeter("run", "-q", "--experiment", target, "--name", name, "--", "sleep", "0.3").returncode == 0
    (folder / "results/one/power_metrics.json").write_bytes(os.urandom(1000))
    listed = ask("list", target)
    assert [e["name"] for e in listed["experiments"]] == ["two"] and listed["unreadable"] == 1, listed


if __name__ == "__main__":
    tap.main()
