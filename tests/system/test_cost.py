#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run cost in money and CO2e, and CodeCarbon's emissions.csv."""

import contextlib
import csv
import datetime
import fcntl
import os
import shutil
import sqlite3
import subprocess
import time

import tap
from tap import Skip, case, near, wattmeter

FAKE = tap.environment(WATTMETER_NVML=str(tap.BUILD / "tests/fake/libnvidia-ml.so.1"),
                       FAKE_NVML_SCENARIO=str(tap.SOURCE / "tests/fake/scenarios/demo.json"), TZ="UTC0")
FACTORS = ["--price", "0.30", "--currency", "EUR", "--carbon", "380", "--pue", "1.2"]
KWH = 3.6e6

COLUMNS = tap.SOURCE / "tests/data/codecarbon"  # a header of each version
NEWEST, OLDER = (COLUMNS / "3.3").read_text(), (COLUMNS / "2.8").read_text()


def record(folder, *options):
    path = folder / "r.sqlite"
    done = wattmeter("run", "-q", "-i", "20ms", *options, "--record", path, "--", "sleep", "0.5", env=FAKE)
    assert done.returncode == 0, done
    return path


def report(path, *options, env=FAKE):
    done = wattmeter("report", "--json", *options, path, env=env)
    assert done.returncode == 0, done
    return tap.json.loads(done.stdout)


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def check(energy, joules, price=0.30, carbon=380, pue=1.2):
    kwh = energy["total"] / KWH * pue
    near(energy["total"], joules, 1e-9 * joules, "joules")
    near(energy["cost"]["amount"], kwh * price, 1e-9 * kwh, "cost")
    near(energy["co2e"]["amount"], kwh * carbon, 1e-9 * kwh * carbon, "CO2e")
    for part in (energy["cost"], energy["co2e"]):
        assert part["simulated"] is True and part["origin"] == "simulated", part


@case("cost and CO2e follow from the energy, in the report of `run`, of `attach` and of the recording")
def _(folder):
    path, output = folder / "r.sqlite", folder / "report.json"
    done = wattmeter("run", "--json", "-o", output, *FACTORS, "--record", path, "--", "sleep", "0.3", env=FAKE)
    assert done.returncode == 0, done
    live = tap.json.loads(output.read_text())
    check(live["energy"], live["energy"]["total"])
    assert report(path, *FACTORS) == live
    plain = report(path)["energy"]
    assert "cost" not in plain and "co2e" not in plain, plain
    check(report(path, "--price", "2", "--carbon", "20")["energy"], plain["total"], 2, 20, 1)

    with subprocess.Popen(["sleep", "30"]) as target:
        done = wattmeter("attach", "--json", "-d", "200ms", *FACTORS, str(target.pid), env=FAKE)
        target.kill()
    assert done.returncode == 0, done
    attached = tap.json.loads(done.stdout)
    check(attached["energy"], attached["energy"]["total"])


@case("the text has a short line for each; -v has its factor, what it covers, and that it was simulated")
def _(folder):
    path = record(folder)
    lines = wattmeter("report", *FACTORS, path, env=FAKE).stdout.splitlines()
    short = [line for line in lines if line.startswith(("Cost ", "CO2e "))]
    assert len(short) == 2 and all("simulated" in line and len(line) < 50 for line in short), lines
    done = wattmeter("report", "-v", *FACTORS, path, env=FAKE)
    lines = done.stdout.splitlines()
    for label, per_kwh in (("Cost ", "at 0.300 EUR per kWh, PUE 1.20"), ("CO2e ", "at 380 g per kWh, PUE 1.20")):
        found = [i for i, line in enumerate(lines) if line.startswith(label)]
        assert len(found) == 1, done.stdout
        assert per_kwh in lines[found[0]] and "SIMULATED" in lines[found[0]], lines[found[0]]
        more = lines[found[0] + 1]
        assert "covers " in more and "GPU" in more and "not the whole machine" in more, more


@case("without energy there is no cost, and the reason is said")
def _(folder):
    path, target = folder / "without.sqlite", folder / "emissions.csv"
    shutil.copy(tap.SOURCE / "tests/data/recordings/v1.sqlite", path)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute('UPDATE sample SET "gpu0_power_W" = NULL')
    found = report(path, *FACTORS)
    for part in ("cost", "co2e"):
        assert found["energy"][part]["amount"] is None, found["energy"]
        assert found["why"][f"energy.{part}.amount"].startswith("no source of CPU energy"), found["why"]
    text = wattmeter("report", *FACTORS, path).stdout
    assert "\nCost          n/a           as the energy is not known\n" in text, text
    text = wattmeter("report", "-v", *FACTORS, path).stdout
    assert "\nCost          n/a           (no source" in text and "\nCO2e          n/a           (no source" in text, text

    done = wattmeter("export", path, "--codecarbon", target, "--carbon", "380")
    assert done.returncode == 0, done
    row = rows(target)[0]
    for name in ("emissions", "emissions_rate", "cpu_power", "cpu_energy", "ram_energy", "energy_consumed"):
        assert row[name] == "", (name, row)
    assert float(row["duration"]) > 0 and row["run_id"], row


@case("factors from the environment and from the configuration file; 0 switches one off; wrong ones are refused")
def _(folder):
    path = record(folder)
    (folder / "wattmeter").mkdir()
    (folder / "wattmeter/config").write_text("carbon = 100\nprice = 5\n[report]\npue = 2\n")
    env = dict(FAKE, XDG_CONFIG_HOME=str(folder), WATTMETER_PRICE="0.5")
    energy = report(path, env=env)["energy"]
    check(energy, energy["total"], 0.5, 100, 2)
    assert "cost" not in report(path, "--price", "0", env=env)["energy"]
    for words in (["--price", "-1"], ["--price=nan"], ["--carbon", "inf"], ["--carbon", "1e300"], ["--pue", "0.5"],
                  ["--pue", "x"], ["--currency", "a b"]):
        done = wattmeter("report", *words, path)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done
    done = wattmeter("report", path, env=dict(env, WATTMETER_CARBON="lots"))
    assert done.returncode == 2 and "WATTMETER_CARBON" in done.stderr, done


def is_near(cell, expected, scale):
    if expected is None:
        assert cell == "", (cell, expected)
    else:
        near(float(cell), expected * scale, 1e-9 * abs(expected * scale), "cell")


def check_row(row, truth, pue=1.2, carbon=380):
    energy, seconds = truth["energy"], truth["compute_time"]["time"]
    is_near(row["energy_consumed"], energy["total"], pue / KWH)
    is_near(row["cpu_energy"], energy["cpu"]["total"], pue / KWH)
    gpus = sum(gpu["energy"] for gpu in energy["gpus"])
    is_near(row["gpu_energy"], gpus, pue / KWH)
    is_near(row["gpu_power"], gpus, pue / seconds)
    is_near(row["duration"], seconds, 1)
    is_near(row["pue"], pue, 1)
    is_near(row["emissions"], energy["total"] if carbon else None, pue / KWH * carbon / 1000)
    is_near(row["emissions_rate"], energy["total"] if carbon else None, pue / KWH * carbon / 1000 / seconds)
    is_near(row["ram_total_size"], truth["max_ram"]["system_capacity"], 2**-30)
    assert row["cpu_count"] == str(truth["cpu_utilization"]["system_core_count"])
    assert row["gpu_count"] == str(len(truth["gpus"]))
    assert row["cpu_model"] == (truth["host"]["cpu_model"] or "")
    assert row["tracking_mode"] == "machine" and row["python_version"] == "" and row["country_name"] == ""
    assert row["codecarbon_version"].startswith("wattmeter ") and "(simulated)" in row["codecarbon_version"], row


@case("--codecarbon: the columns of CodeCarbon, with the numbers of the report")
def _(folder):
    path = record(folder, "--note", "project_name=a \"b\", c", "--note", "experiment_id=7")
    truth = report(path)
    target = folder / "emissions.csv"
    done = wattmeter("export", path, "--codecarbon", target, "--carbon", "380", "--pue", "1.2", env=FAKE)
    assert done.returncode == 0 and not done.stdout and not done.stderr, done
    assert target.read_text().splitlines()[0] == NEWEST
    found = rows(target)
    assert len(found) == 1
    check_row(found[0], truth)
    assert found[0]["project_name"] == "a \"b\", c" and found[0]["experiment_id"] == "7"
    start = datetime.datetime.fromisoformat(truth["start"][:19])
    end = datetime.datetime.strptime(found[0]["timestamp"], "%Y-%m-%dT%H:%M:%S")
    near((end - start).total_seconds(), truth["compute_time"]["time"], 1.01, "timestamp")

    done = wattmeter("export", path, "--codecarbon", target, "--overwrite", env=FAKE)
    assert done.returncode == 0, done
    check_row(rows(target)[0], truth, 1, 0)


@case("--codecarbon: files that are there are left alone, added to, or replaced, as asked")
def _(folder):
    path, target = record(folder), folder / "emissions.csv"
    truth = report(path)
    for _ in range(2):
        done = wattmeter("export", path, "--codecarbon", target, "--append", "--carbon", "380", "--pue", "1.2")
        assert done.returncode == 0, done
    before = target.read_bytes()
    assert wattmeter("export", path, "--codecarbon", target).returncode == 1
    assert target.read_bytes() == before
    assert len(rows(target)) == 2 and rows(target)[0] == rows(target)[1]

    target.write_text(OLDER + "\r\n" + "x" + "," * OLDER.count(",") + "\r\n", newline="")
    done = wattmeter("export", path, "--codecarbon", target, "--append", "--carbon", "380", "--pue", "1.2")
    assert done.returncode == 0, done
    assert len(rows(target)) == 2
    check_row(rows(target)[1], truth)

    for content in ("a,b\n1,2\n", "not a table", "x" * 10000, NEWEST + ",more\n"):
        target.write_text(content)
        done = wattmeter("export", path, "--codecarbon", target, "--append")
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done
        assert target.read_text() == content

    for words in ([path, "--codecarbon", path, "--overwrite"], [path, "--codecarbon", target, "-o", target]):
        assert wattmeter("export", *words).returncode == 2
    assert report(path) == truth
    if os.path.exists("/dev/full"):
        assert wattmeter("export", path, "--codecarbon", "/dev/full", "--append").returncode != 0


@case("--codecarbon: runs that end together wait for each other, and lose no row")
def _(folder):
    path, target = record(folder), folder / "emissions.csv"
    with open(target, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        started = [subprocess.Popen([tap.WATTMETER, "export", str(path), "--codecarbon", str(target), "--append"],
                                    env=FAKE) for _ in range(6)]
        time.sleep(1)
        assert [process.poll() for process in started] == [None] * 6, "somebody did not wait"
        file.write(OLDER + "\n")
    assert [process.wait(60) for process in started] == [0] * 6
    found = rows(target)
    assert len(found) == 6 and all(row == found[0] for row in found), found
    assert target.read_text().startswith(OLDER + "\n") and target.read_text().count("timestamp") == 1


@case("pandas reads the file, and unknown cells are NaN")
def _(folder):
    try:
        import pandas
    except ImportError:
        raise Skip("there is no pandas (python3-pandas)") from None
    path, target = record(folder), folder / "emissions.csv"
    truth = report(path)
    for _ in range(2):
        wattmeter("export", path, "--codecarbon", target, "--append", "--carbon", "380")
    frame = pandas.read_csv(target)
    assert list(frame.columns) == NEWEST.split(",") and len(frame) == 2
    near(float(frame.energy_consumed.sum()), 2 * truth["energy"]["total"] / KWH, 1e-12, "sum")
    near(float(frame.emissions[0]), truth["energy"]["total"] / KWH * 0.38, 1e-12, "emissions")
    assert frame.country_name.isna().all() and frame.wue.isna().all()


if __name__ == "__main__":
    tap.main()
