#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands that are run again and again: the runs are counted by the commands themselves, and
the results are read as scripts for hyperfine read them."""

import csv
import json
import os
import re
import resource
import signal
import sqlite3
import statistics
import subprocess
import time

import tap
from tap import case, wattmeter

# Energy is estimated, whatever the machine has, by a model that has something new every 20 ms:
# commands of 0.21 s are not short.
SENSORS = "--gpu", "none", "--cpu-watts", "1:2"


def log_command(folder, name, seconds="0.25", status=0):
    """A command that notes each of its runs in the file "log", and takes so long."""
    script = folder / name
    script.write_text(f"#!/bin/sh\necho {name} $1 >> {folder}/log\nsleep {seconds}\nexit {status}\n")
    script.chmod(0o755)
    return str(script)


def log(folder):
    path = folder / "log"
    return path.read_text().split("\n")[:-1] if path.exists() else []


def run(*arguments, **options):
    env = tap.environment(WATTMETER_SYSFS="/nonexistent")
    return wattmeter("run", *SENSORS, *arguments, env=env, **options)


def results(*arguments, **options):
    ran = run("--json", *arguments, **options)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@case("each command runs as often as asked, in blocks of A B B A from a seed")
def _(folder):
    a, b = log_command(folder, "a", "0.21"), log_command(folder, "b", "0.22")
    orders = set()
    for seed in range(4):
        (folder / "log").unlink(missing_ok=True)
        result = results("-r", 4, "--seed", seed, "--vs", b, "--", a)
        order = [line.strip() for line in log(folder)]
        assert sorted(order) == ["a"] * 4 + ["b"] * 4, order
        for block in order[:4], order[4:]:
            assert block == block[::-1] and sorted(block[:2]) == ["a", "b"], order
        assert result["seed"] == str(seed)
        orders.add(tuple(order))
    assert len(orders) > 1, orders


@case("the JSON is what scripts for hyperfine read")
def _(folder):
    a, b = log_command(folder, "a", "0.21"), log_command(folder, "b", "0.3")
    all_of = results("-r", 3, "-n", "quick", "-n", "slow", "--vs", b, "--", a)["results"]
    # As plot_whisker.py and advanced_statistics.py do.
    assert [one["command"] for one in all_of] == ["quick", "slow"]
    for one, least in zip(all_of, (0.21, 0.3)):
        times = one["times"]
        assert len(times) == 3 and len(one["exit_codes"]) == 3 and set(one["exit_codes"]) == {0}
        assert min(times) >= least and one["min"] == min(times) and one["max"] == max(times)
        for key, function in (("mean", statistics.mean), ("median", statistics.median),
                              ("stddev", statistics.stdev)):
            tap.near(one[key], function(times), 1e-6, key)
        assert len(one["memory_usage_byte"]) == 3
        assert {"user", "system", "energy_mean", "energy_low", "energy_high"} <= set(one)
        assert one["cpu_time_mean"] > 0


@case("warm-up runs, and what is run before, between and after, are not measured")
def _(folder):
    def touch(name):
        return log_command(folder, name, "0")

    a = log_command(folder, "a", "0.21")
    one = results("-r", 2, "-w", 1, "--setup", touch("setup"), "--prepare", touch("prepare"),
                  "--conclude", touch("conclude"), "--cleanup", touch("cleanup"), "--", a)["results"][0]
    order = [line.strip() for line in log(folder)]
    assert order == ["setup"] + ["prepare", "a", "conclude"] * 3 + ["cleanup"], order
    assert len(one["times"]) == 2 and one["runs_per_repeat"] == 1


@case("a short command runs in batches, of which each run is counted")
def _(folder):
    count = folder / "count"
    program = folder / "short"
    program.write_text(f"#!/bin/sh\necho >> {count}\n")
    program.chmod(0o755)
    path = folder / "r.sqlite"
    one = results("-r", 6, "-w", 1, "--record", path, "--", program)["results"][0]
    batch = one["runs_per_repeat"]
    runs = json.loads(wattmeter("list", "--json", path).stdout)["runs"]
    assert [run["runs_per_repeat"] for run in runs] == [batch] * 6, (runs, batch)
    assert wattmeter("list", path).stdout.count(f"  {batch} × ") == (6 if batch > 1 else 0)
    assert batch > 1 or min(one["times"]) > 0.2, one
    assert one["repeats"] == 6, one
    assert len(one["times"]) == 6 * batch == len(one["exit_codes"])
    # Warm-up and the search for the size of the batch come before.
    assert count.stat().st_size > 6 * batch
    assert one["energy_origin"] == "estimated" and len(one["energy_values"]) == 6
    assert 0 <= one["energy_low"] <= one["energy_mean"] <= one["energy_high"]
    assert one["user"] + one["system"] > 0


@case("parameters take each place, and the results say which they are")
def _(folder):
    a = log_command(folder, "a", "0.21")
    both = results("-r", 1, "-L", "x=1..3", "-L", "y=b,c d", "-n", "{x}{y}", "--", f"{a} {{x}}{{y}}")
    assert [one["parameters"] for one in both["results"]] == [
        {"x": x, "y": y} for x in "123" for y in ("b", "c d")]
    assert [one["command"] for one in both["results"]] == ["1b", "1c d", "2b", "2c d", "3b", "3c d"]
    assert sorted(log(folder)) == sorted(f"a {x}{y}" for x in "123" for y in ("b", "c d"))
    # Without names the values are the names, for text and comparisons, too.
    file = folder / "r.sqlite"
    named = results("-r", 1, "-L", "x=1,2", "-L", "y=b", "--record", file, "--", f"{a} {{x}}{{y}}")["results"]
    assert [one["command"] for one in named] == ["x=1 y=b", "x=2 y=b"]
    assert [one["command_line"] for one in named] == [f"{a} 1b", f"{a} 2b"]
    assert re.search(r"^ +x=1 y=b +x=2 y=b +change$", wattmeter("compare", file).stdout, re.M)


@case("words are split as a shell does, and none is started but with --shell")
def _(folder):
    show = folder / "show"
    show.write_text(f"#!/bin/sh\nprintf '<%s>' \"$@\" > {folder}/words\nsleep 0.21\n")
    show.chmod(0o755)
    results("-r", 1, "--", f"{show} 'a b' \"c$HOME\" d\\ e | *")
    assert (folder / "words").read_text() == "<a b><c$HOME><d e><|><*>"
    results("-r", 1, "--", show, "a b", "c")
    assert (folder / "words").read_text() == "<a b><c>"
    results("-r", 1, "--shell", "sh", "--", f"x=1; {show} $x 'y  z'; true")
    assert (folder / "words").read_text() == "<1><y  z>"


@case("the start of the shell is subtracted")
def _(folder):
    shell = folder / "shell"
    shell.write_text('#!/bin/sh\nsleep 0.6\nexec sh "$@"\n')
    shell.chmod(0o755)
    one = results("-r", 2, "--shell", shell, "--", "sleep 0.5; true")["results"][0]
    # 1.1 s together, of which 0.6 s or more are the shell's.
    assert 0 <= one["min"] < 1.1, one


@case("all runs are in one recording, with what tells them apart")
def _(folder):
    a, b = log_command(folder, "a", "0.21"), log_command(folder, "b", "0.22")
    file = folder / "r.sqlite"
    for extra, runs in ((), 4), (("--append",), 8), (("--overwrite",), 4):
        results("-r", 2, "-w", 1, "--seed", 7, "--record", file, *extra, "--vs", b, "--", a)
        with sqlite3.connect(file) as database:
            assert database.execute("SELECT count(*) FROM run").fetchone()[0] == runs
    report = wattmeter("report", "--json", "--run", 0, file)
    notes = json.loads(report.stdout)["notes"]
    assert notes["repeat.seed"] == "7" and notes["repeat.round"] == "1", notes
    assert notes["repeat.command"] in (a, b) and notes["repeat.batch"] == "1", notes


@case("compare says the same of the recording, of single runs and of batches")
def _(folder):
    a, b = log_command(folder, "a", "0.21"), log_command(folder, "b", "0.25")
    short = folder / "short"
    short.write_text("#!/bin/sh\n:\n")
    short.chmod(0o755)
    file = folder / "r.sqlite"
    said = results("-r", 6, "--vs", b, "--vs", short, "--record", file, "--", a)
    figures = json.loads(wattmeter("compare", "--json", file).stdout)["overall"]
    assert said["results"][2]["runs_per_repeat"] > 1, said["results"][2]
    assert len(said["comparisons"]) == 8, said["comparisons"]
    for one in said["comparisons"]:
        other = figures[one["metric"]]["sessions"][one["command"]]
        assert other["verdict"] == one["verdict"], (one, other)
        if one["metric"] != "memory":  # of a short run at least so much is known
            assert other["paired"], (one, other)
        elif one["verdict"] == "not_tested":
            continue
        for key, name in ("ratio", "change"), ("low", "low"), ("high", "high"):
            tap.near(1 + other[name], one[key], 1e-9, (one, other))
    for one in said["results"]:
        for key, name in ("median", "time"), ("cpu_time_median", "cpu_time"), ("energy_median", "energy"):
            tap.near(figures[name]["sessions"][one["command"]]["value"], one[key], 1e-9, one["command"])


@case("text, Markdown and CSV")
def _(folder):
    a, b = log_command(folder, "a", "0.21"), log_command(folder, "b", "0.8")
    ran = run("-v", "-r", 6, "-n", "quick", "-n", "a|b", "--markdown", folder / "r.md",
                    "--csv", folder / "r.csv", "--vs", b, "--", a)
    assert ran.returncode == 0 and ran.stderr == "", ran.stderr
    # In times or percent; or not told apart, where the machine disturbs the runs.
    found = re.search(r"^a\|b takes ([\d.]+) (?:times the time of|% more time than) quick "
                      r"\(95 %: ([\d.]+) to ([\d.]+), 6 pairs\)$", ran.stdout, re.M) or re.search(
                      r"^a\|b ~ quick in time()? \(95 %: (-[\d.]+) to (\+[\d.]+) %, 6 pairs\)$", ran.stdout, re.M)
    assert found, ran.stdout
    middle, low, high = (float(group or 0) for group in found.groups())
    assert low < middle < high, found[0]
    energy = [line for line in ran.stdout.splitlines() if " energy" in line and "6 pairs" in line]
    assert len(energy) == 1 and energy[0].endswith("6 pairs)  ESTIMATED"), ran.stdout
    assert ran.stdout.count("\n~ not shown, or below 1 %\n") == (" ~ " in ran.stdout), ran.stdout
    assert re.search(r"^Order \(seed \d+\): ", ran.stdout, re.M), ran.stdout
    table = (folder / "r.md").read_text().splitlines()
    assert len(table) == 4 and table[3].startswith("| `a\\|b` | "), table
    assert all("(estimated)" in line for line in table[2:]), table
    rows = list(csv.DictReader((folder / "r.csv").open()))
    relative = table[3].split(" | ")[-1].rstrip(" |")
    last_digit = 10.0 ** -len(relative.partition(".")[2])
    tap.near(float(relative), float(rows[1]["mean"]) / float(rows[0]["mean"]), 0.51 * last_digit, "relative")
    assert [row["energy_origin"] for row in rows] == ["estimated"] * 2, rows
    assert run("-q", "-r", 1, "--markdown", folder / "1.md", "--", a).returncode == 0
    assert re.match(r"\| `[^`]+` \| [\d.]+ \| ", (folder / "1.md").read_text().splitlines()[2]), "no \u00b1 0.0"
    assert [row["command"] for row in rows] == ["quick", "a|b"]
    assert all(0.2 < float(row["min"]) <= float(row["mean"]) <= float(row["max"]) for row in rows)


@case("repeats end when the interval is narrow, at a look, or when their time is up")
def _(folder):
    a = log_command(folder, "a", "0.21")
    one = results("--until", "100%", "--", a)["results"][0]
    assert len(one["times"]) in (6, 9, 14, 21), one  # a look, the first as a rule
    both = results("--until", "0.000001%", "--limit", "2s", "--", a)
    assert 1 <= len(both["results"][0]["times"]) <= 10
    assert "was not reached" in both["notes"][0]


@case("Ctrl-C in a run gives the results of the runs before it, in the recording, too")
def _(folder):
    for end, flags in (("exec sleep 1000", ("--json",)),
                       ("trap 'exit 0' INT; while :; do sleep 0.05; done", ()),
                       ("exec sleep 1000", ("--json", "--ignore-failure"))):
        (folder / "log").unlink(missing_ok=True)
        a = log_command(folder, "a", f"0.21\ntest $(wc -l < {folder}/log) -lt 4 || {{ {end}; }}")
        file = folder / "r.sqlite"
        ran = subprocess.Popen([tap.WATTMETER, "run", *SENSORS, "-r", "20", "--record", file, "--overwrite",
                                *flags, "--", a], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=tap.environment(WATTMETER_SYSFS="/nonexistent"))
        while len(log(folder)) < 4:
            assert ran.poll() is None
            time.sleep(0.01)
        ran.send_signal(signal.SIGINT)
        out, err = ran.communicate(timeout=300)
        if "--json" in flags:
            assert ran.returncode == -signal.SIGINT, (ran.returncode, err)
            assert len(json.loads(out)["results"][0]["times"]) == 3, out
            assert json.loads(out)["notes"][0] == "stopped after 3 of 20 runs", out
        else:
            assert "(3 runs, medians)" in out and "note: stopped after 3 of 20 runs\n" in out and "need 6" not in out, out
        compared = wattmeter("compare", f"all={file}", f"one={file}", "--run", "one=0")
        assert compared.returncode == 0, compared.stderr
        assert re.search(r"^ *Runs +3 +1$", compared.stdout, re.M), compared.stdout
        assert 'session "all": 1 run was broken off, or not recorded as a whole, and does not count' in compared.stderr, compared.stderr
        assert "signal" not in compared.stderr, compared.stderr


@case("a full disk ends the runs; those before it are in the results and the recording")
def _(folder):
    file, size = folder / "r.sqlite", 160 * 1024
    ran = run("-r", 100, "--record", file, "--json", "--", log_command(folder, "a", "0.21"),
              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
    assert ran.returncode == 1 and ran.stderr.count("\n") == 1 and str(file) in ran.stderr, ran
    result = json.loads(ran.stdout)
    count = len(result["results"][0]["times"])
    assert count > 0 and f"stopped after {count} of 100 runs" in result["notes"], result
    runs = json.loads(wattmeter("list", "--json", file).stdout)["runs"]
    assert len(runs) in (count, count + 1), runs  # whatever did not fit was of the last
    with sqlite3.connect(file) as database:
        database.execute("UPDATE run SET result = json_set(result, '$.recording_trouble', 'full') WHERE id = 1")
    compared = wattmeter("compare", file)
    assert re.search(rf"^ *Runs +{len(runs) - 1}$", compared.stdout, re.M), compared
    assert "1 run was broken off, or not recorded as a whole, and does not count" in compared.stderr, compared


@case("Ctrl-C before a run has ended says so in one line")
def _(folder):
    a = log_command(folder, "a", "0\nexec sleep 1000")
    ran = subprocess.Popen([tap.WATTMETER, "run", *SENSORS, "-r", "20", "-w", "1", "--", a], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=tap.environment(WATTMETER_SYSFS="/nonexistent"))
    while not log(folder):
        assert ran.poll() is None
        time.sleep(0.01)
    ran.send_signal(signal.SIGINT)
    out, err = ran.communicate(timeout=300)
    assert (ran.returncode, out) == (-signal.SIGINT, ""), (ran.returncode, out)
    assert err == "wattmeter run: stopped before the first run has ended\n", err


@case("a recording all of whose repeats were broken off is none to compare")
def _(folder):
    file = folder / "r.sqlite"
    assert run("-r", 3, "--record", file, "--", "false").returncode == 1
    ran = wattmeter("compare", file)
    assert ran.returncode == 1 and "all of its runs were broken off" in ran.stderr, ran


@case("a run that fails ends it all with its status, and what was measured is kept")
def _(folder):
    a = log_command(folder, "a", "0.21\ntest $(wc -l < %s/log) -lt 3 || exit 7" % folder)
    ran = run("-r", 5, "--json", "--", a)
    assert ran.returncode == 7, ran.stderr
    assert "ended with status 7 in run 3 of 5" in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr
    assert len(json.loads(ran.stdout)["results"][0]["times"]) == 2
    one = results("-r", 2, "--ignore-failure", "--", a)["results"][0]
    assert one["exit_codes"] == [7, 7]
    text = run("-r", 2, "--ignore-failure", "--", a).stdout
    assert "\nnote: 2 of 2 runs failed\n" in text, text
    one = results("-r", 2, "--ignore-failure", "--", "sh -c 'kill -9 $$'")["results"][0]
    assert set(one["exit_codes"]) == {137}


@case("a failure after words of a shell says that there is none")
def _(folder):
    for options, is_noted in ((), True), (("--shell", "sh"), False):
        ran = run("-r", 2, *options, "--", "false | false > /dev/null")
        assert ran.returncode == 1 and ("no shell" in ran.stderr) == is_noted, ran.stderr


@case("simulated energy is marked in text and Markdown")
def _(folder):
    scenario = folder / "gpus.json"
    scenario.write_text(json.dumps({"gpus": [{"power": 300}]}))
    env = tap.environment(WATTMETER_NVML=str(tap.BUILD / "tests/fake/libnvidia-ml.so.1"),
                          FAKE_NVML_SCENARIO=str(scenario), WATTMETER_SYSFS="/nonexistent")
    table = folder / "t.md"
    ran = wattmeter("run", "-r", 2, "--markdown", table, "--vs", "sleep 0.4", "--", "sleep 0.25", env=env)
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"Energy .* SIMULATED$", ran.stdout, re.M), ran.stdout
    assert re.search(r" energy .*\(not tested\)  SIMULATED$", ran.stdout, re.M), ran.stdout
    assert table.read_text().count(" (simulated) |") == 2, table.read_text()


@case("what is printed is shown when asked for, and the input is the caller's then")
def _(folder):
    ran = run("-q", "-r", 1, "--", "sh -c 'echo out; echo err >&2; cat; sleep 0.21'",
                    stdin=None, input="in\n")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    ran = run("-q", "-r", 1, "--show-output", "--",
                    "sh -c 'echo out; echo err >&2; cat; sleep 0.21'", stdin=None, input="in\n")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "out\nin\n", "err\n")


@case("processes that outlive their run are named once")
def _(folder):
    notes = results("-r", 2, "--", "sh -c 'sleep 10 & sleep 0.21'")["notes"]
    assert sum("still run" in note for note in notes) == 1, notes


# What is wrong, the status, and what the one line says.
BAD = (
    (("-r", 1, "--json", "--markdown", "-", "--", "true"), 2, "one of --json, --markdown and --csv is printed"),
    (("-r", 3, "--", "no-such-command"), 127, "no-such-command: command not found"),
    (("-r", 3, "--vs", "no-such-command", "--seed", 1, "true"), 127, "no-such-command: command not found"),
    (("-r", 3, "--", "sh -c 'exit"), 2, "sh -c 'exit: a single quote is not closed"),
    (("-r", 3, "--vs", 'a "b', "true"), 2, 'a "b: a double quote is not closed'),
    (("-r", 3, "--prepare", "a\\", "true"), 2, "nothing behind the backslash"),
    (("-r", 3, "--", ""), 2, "there is no command in ''"),
    (("-r", 0, "true"), 2, "--repeat: there are 1 to 100000 runs"),
    (("-r", "x", "true"), 2, "'x'"),
    (("--warmup", 3, "true"), 2, "--warmup needs --repeat N or --until P%"),
    (("--vs", "false", "true"), 2, "--vs needs --repeat"),
    (("-r", 3, "-L", "n=1,2", "true"), 2, "no command has a place for {n}"),
    (("-r", 3, "-L", "n", "true"), 2, "it is no NAME=a,b,c"),
    (("-r", 3, "-L", "=1", "true"), 2, "it is no NAME=a,b,c"),
    (("-r", 3, "-L", "n=1", "-L", "n=2", "echo {n}"), 2, "n=2: --parameter-list: the name is given twice"),
    (("-r", 3, "-L", "n=9..1", "echo {n}"), 2, "a range has 1 to 1000 numbers"),
    (("-r", 3, "--prepare", "false", "true"), 1, "--prepare: false ended with status 1"),
    (("-r", 3, "--setup", "no-such-command", "true"), 1, "--setup: no-such-command: "),
    (("-r", 3, "--prepare", "a", "--prepare", "b", "--vs", "c", "--vs", "d", "true"), 2, "--prepare is given once"),
    (("-r", 3, "--shell", "sh '", "true"), 2, "--shell: sh ': a single quote is not closed"),
    (("-r", 3, "--shell", " ", "true"), 2, "--shell:  : there is no command in it"),
    (("-r", 3, "--shell", "no-such-shell", "true"), 127, "no-such-shell: command not found"),
    (("-r", 3, "--until", "0%", "true"), 2, "0% is no percentage"),
    (("-r", 3, "--threshold", "x", "true"), 2, "x is no percentage"),
    (("-r", 3, "-n", "a", "-n", "b", "true"), 2, "there are 2 names for 1 command"),
    (("-r", 3, "--record", "r.csv", "true"), 2, "not into r.csv"),
    (("-r", 3, "--csv", "r", "--markdown", "./r", "true"), 2, "r: is given twice"),
    (("-r", 3, "--csv", "r.sqlite", "--record", "r.sqlite", "true"), 2, "r.sqlite: is given twice"),
    (("-r", 3, "--json", "-o", "r", "--csv", "r", "true"), 2, "r: is given twice"),
    (("-r", 3, "--fail-above", "5%", "true"), 2, "'wattmeter compare' has it"),
    (("-r", 3, "--markdown", "no/such/folder", "true"), 1, "--markdown: no/such: No such file"),
    (("-r", 3, "--", "false"), 1, "'false' ended with status 1 in run 1 of 3"),
    (("-r", 3, "--", "sh -c 'kill -9 $$'"), 137, "was killed by signal 9 in run 1 of 3"),
    (("-r", 3, "--", "sh -c 'test -t 0'"), 1, "--show-output shows its output and gives it the terminal"),
)


@case("what a file does not take is shown, and other outputs are written")
def _(folder):
    full = "--json", "-o", "/dev/full"
    a = log_command(folder, "a", "0.21")
    for place, status in ((full, 1), (("--csv", "/dev/full"), 1), ((), 0)):
        ran = run("-r", 1, *place, "--markdown", folder / "r.md", "--overwrite", "--", a)
        assert ran.returncode == status, (place, ran.returncode, ran.stderr)
        assert re.search(r"^   Time  +[\d.]+ m?s", ran.stderr if place == full else ran.stdout, re.M), (place, ran)
        assert len((folder / "r.md").read_text().splitlines()) == 3, place


@case("what other programs do to a busy machine is noted once")
def _(folder):
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
    try:
        ran = run("-r", 3, "--", log_command(folder, "a", "0.3"))
    finally:
        for one in busy:
            one.kill()
            one.wait()
    assert ran.stdout.count("note: other programs kept ") == 1, ran.stdout


@case("report and plot say which of many runs they show")
def _(folder):
    env = tap.environment(ASAN_OPTIONS="detect_leaks=0")  # of the library of fonts
    file = folder / "r.sqlite"
    assert run("-q", "-r", 3, "--record", file, "--", log_command(folder, "a", "0.21")).returncode == 0
    for command in ("report", file), ("plot", file, "-o", folder / "r.svg"):
        chat = wattmeter(*command, env=env).stderr
        assert "run 2 of 0 to 2, the newest; --run N chooses another" in chat and chat.count("\n") == 1, chat
        assert wattmeter(*command, "--run", 2, "--overwrite", env=env).stderr == ""
    done = wattmeter("plot", "--kind", "repeats", file, "-o", folder / "r.svg", "--overwrite", env=env)
    assert done.stderr == "", done
    alone = wattmeter("compare", file)
    assert re.search(r"^ *Runs +3$", alone.stdout, re.M) and "one session" in alone.stderr, alone
    assert wattmeter("compare", file, "--fail-above", "5%").returncode == 2


@case("what is wrong is told in one line")
def _(folder):
    for arguments, status, text in BAD:
        ran = run(*arguments, cwd=folder)
        assert ran.returncode == status and text in ran.stderr, (arguments, ran.returncode, ran.stderr)
        assert ran.stderr.count("\n") == 1, (arguments, ran.stderr)
    assert not os.listdir(folder)


if __name__ == "__main__":
    tap.main(jobs=4)
