#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_tracker's command line: the commands that its documents show, in their order, and
what they print; then what is refused, and what becomes of signals and kills.

Numbers that depend on the machine are masked, and what they have to do with each other is
checked instead.
"""

import csv
import json
import os
import re
import signal
import sqlite3
import subprocess
import time

import tap
from tap import case, near
from terminal import Terminal

DATA = tap.SOURCE / "tests/data/gpu_tracker"
FAKE = str(tap.BUILD / "tests/fake/libnvidia-ml.so.1")
PROGRAM = str(tap.BUILD / "gpu-tracker")
UUIDS = ["GPU-9942190a-aa31-4ff1-4aa9-c388d80f85f1", "GPU-9e8d35e3-a134-0fdd-0e01-23811fdbd293"]
COMPLETE = "Resource tracking complete. Process completed with status code: "
WORK = """
python3 - <<'END'
import time
memory = bytearray(64_000_000)
end = time.time() + 1.2
while time.time() < end:
    pass
END
"""
TEXT = """\
Max RAM:
   Unit: {ram}
   System capacity: #
   System: #
   Main:
      Total RSS: #
      Private RSS: #
      Shared RSS: #
   Descendants:
      Total RSS: #
      Private RSS: #
      Shared RSS: #
   Combined:
      Total RSS: #
      Private RSS: #
      Shared RSS: #
Max GPU RAM:
   Unit: {gpu_ram}
   System capacity: #
   System: #
   Main: #
   Descendants: #
   Combined: #
CPU utilization:
   System core count: N
   Number of expected cores: N
   System:
      Max sum percent: #
      Max hardware percent: #
      Mean sum percent: #
      Mean hardware percent: #
   Main:
      Max sum percent: #
      Max hardware percent: #
      Mean sum percent: #
      Mean hardware percent: #
   Descendants:
      Max sum percent: #
      Max hardware percent: #
      Mean sum percent: #
      Mean hardware percent: #
   Combined:
      Max sum percent: #
      Max hardware percent: #
      Mean sum percent: #
      Mean hardware percent: #
   Main number of threads: N
   Descendants number of threads: N
   Combined number of threads: N
GPU utilization:
   System GPU count: N
   Number of expected GPUs: N
   GPU percentages:
      Max sum percent: #
      Max hardware percent: #
      Mean sum percent: #
      Mean hardware percent: #
Compute time:
   Unit: {time}
   Time: #
"""
JSON_KEYS = {
    "max_ram": {"unit": str, "system_capacity": float, "system": float,
                **{part: {"total_rss": float, "private_rss": float, "shared_rss": float}
                   for part in ("main", "descendants", "combined")}},
    "max_gpu_ram": {"unit": str, "system_capacity": float, "system": float, "main": float,
                    "descendants": float, "combined": float},
    "cpu_utilization": {
        "system_core_count": int, "n_expected_cores": int,
        **{part: dict.fromkeys(("max_sum_percent", "max_hardware_percent", "mean_sum_percent",
                                "mean_hardware_percent"), float)
           for part in ("system", "main", "descendants", "combined")},
        "main_n_threads": int, "descendants_n_threads": int, "combined_n_threads": int},
    "gpu_utilization": {
        "system_gpu_count": int, "n_expected_gpus": int,
        "gpu_percentages": dict.fromkeys(("max_sum_percent", "max_hardware_percent",
                                          "mean_sum_percent", "mean_hardware_percent"), float)},
    "compute_time": {"unit": str, "time": float},
}


def without_gpus(folder, **extra):
    return tap.environment(WATTMETER_NVML=str(folder / "none"),
                           WATTMETER_SYSFS=str(folder / "none"), **extra)


def with_gpus(folder, scenario):
    path = folder / "scenario.json"
    path.write_text(json.dumps(scenario))
    return without_gpus(folder) | {"WATTMETER_NVML": FAKE, "FAKE_NVML_SCENARIO": str(path)}


def gpu_tracker(folder, *arguments, env=None, timeout=300, **options):
    (folder / "example-script.sh").write_text(WORK)
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout, cwd=folder, env=env or without_gpus(folder), **options)


def started(folder, *arguments):
    return subprocess.Popen([PROGRAM, *arguments], cwd=folder, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=without_gpus(folder))


def same_layout(text, ram="gigabytes", gpu_ram="gigabytes", time="hours"):
    masked = re.sub(r": \d+\.\d{1,3}$", ": #", text, flags=re.M)
    masked = re.sub(r": \d+$", ": N", masked, flags=re.M)
    expected = TEXT.format(ram=ram, gpu_ram=gpu_ram, time=time)
    assert masked == expected, text


def same_keys(value, expected, path=""):
    if not isinstance(expected, dict):
        assert type(value) is expected, (path, value)
        return
    assert list(value) == list(expected), path
    for key, inner in expected.items():
        same_keys(value[key], inner, path + "." + key)


def related(report, seconds=1.2):
    """What is true of each report."""
    same_keys(report, JSON_KEYS)
    ram, cpu = report["max_ram"], report["cpu_utilization"]
    assert 0 < ram["system"] <= ram["system_capacity"]
    for part in ("main", "descendants", "combined"):
        assert ram[part]["private_rss"] <= ram[part]["total_rss"] * 1.001, part
        assert ram["combined"]["total_rss"] >= ram[part]["total_rss"], part
    for part in ("system", "main", "descendants", "combined"):
        usage = cpu[part]
        cores = cpu["system_core_count" if part == "system" else "n_expected_cores"]
        assert usage["max_sum_percent"] >= usage["mean_sum_percent"] >= 0, part
        for kind in ("max", "mean"):
            near(usage[f"{kind}_hardware_percent"] * cores, usage[f"{kind}_sum_percent"], 1e-6)
    near(cpu["main"]["mean_sum_percent"] + cpu["descendants"]["mean_sum_percent"],
         cpu["combined"]["mean_sum_percent"], 1e-6)
    assert cpu["combined_n_threads"] >= cpu["main_n_threads"] >= 1
    units = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}
    passed = report["compute_time"]["time"] * units[report["compute_time"]["unit"]]
    assert seconds <= passed < seconds + 20, passed
    return report


# The commands of the documents, in their order.

@case("-h prints the documents' help, and -v a version")
def _(folder):
    help_text = (DATA / "help.txt").read_text()
    for words in (["-h"], ["--help"], ["-e", "x", "--he"]):
        done = gpu_tracker(folder, *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, help_text, ""), done
    for word in ("-v", "--version"):
        done = gpu_tracker(folder, word)
        assert done.returncode == 0 and re.fullmatch(r"\d+\.\d+\.\d+\n", done.stdout), done
    done = tap.wattmeter("gpu-tracker", "-h")
    assert (done.returncode, done.stdout) == (0, help_text)


@case('-e "bash example-script.sh" --st=0.3')
def _(folder):
    done = gpu_tracker(folder, "-e", "bash example-script.sh", "--st=0.3")
    first, _, text = done.stdout.partition("\n")
    assert done.returncode == 0 and first == COMPLETE + "0", done
    same_layout(text)
    assert "GPU count: 0" in text and "There is no GPU to profile" in done.stderr, done


@case("--tu=seconds --gru=megabytes --ru=megabytes")
def _(folder):
    done = gpu_tracker(folder, "-e", "bash example-script.sh", "--tu=seconds", "--gru=megabytes",
                       "--ru=megabytes", "--st=0.2")
    text = done.stdout.partition("\n")[2]
    same_layout(text, "megabytes", "megabytes", "seconds")
    total = float(re.search(r"Descendants:\n +Total RSS: (.*)", text)[1])
    assert 64 < total < 200, text
    assert 1.2 <= float(re.search(r"Time: (.*)", text)[1]) < 20, text


@case("-o out.txt gets the same, without a line end, and replaces what was there")
def _(folder):
    (folder / "out.txt").write_text("x" * 100000)
    done = gpu_tracker(folder, "-e", "bash example-script.sh", "-o", "out.txt", "--st=0.2")
    assert done.stdout == COMPLETE + "0\n", done
    text = (folder / "out.txt").read_text()
    assert not text.endswith("\n")
    same_layout(text + "\n")


@case("-f json, on the screen and in a file")
def _(folder):
    done = gpu_tracker(folder, "-e", "bash example-script.sh", "-f", "json", "--st=0.2")
    first, _, text = done.stdout.partition("\n")
    assert first == COMPLETE + "0", done
    report = related(json.loads(text))
    assert text == json.dumps(report, indent=1) + "\n", text
    assert report["max_ram"]["unit"] == "gigabytes" and report["compute_time"]["unit"] == "hours"

    done = gpu_tracker(folder, "-e", "bash example-script.sh", "-f", "json", "-o", "out.json",
                       "--st=0.3")
    assert done.stdout == COMPLETE + "0\n", done
    text = (folder / "out.json").read_text()
    assert text == json.dumps(related(json.loads(text)), indent=1), text


@case("--tconfig=config.json, and options count more")
def _(folder):
    (folder / "config.json").write_text(json.dumps(
        {"sleep_time": 0.5, "ram_unit": "megabytes", "gpu_ram_unit": "megabytes",
         "time_unit": "seconds"}))
    done = gpu_tracker(folder, "-e", "bash example-script.sh", "--tconfig=config.json")
    assert done.stdout.startswith(COMPLETE + "0\n"), done
    same_layout(done.stdout.partition("\n")[2], "megabytes", "megabytes", "seconds")

    (folder / "config.json").write_text(json.dumps(
        {"sleep_time": 0.05, "ram_unit": "megabytes", "n_expected_cores": 4, "gpu_uuids": ["x"],
         "gpu_brand": None, "tracking_file": "no.txt", "disable_logs": True, "overwrite": False,
         "join_timeout": 3}))
    done = gpu_tracker(folder, "-e", "sleep 0.5", "--tconfig", "config.json", "--st=0.1",
                       "--ru=kilobytes", "--nec=3", "--tf=yes.csv", "-f", "json")
    assert done.returncode == 0 and done.stderr == "", done
    report = json.loads(done.stdout.partition("\n")[2])
    assert report["max_ram"]["unit"] == "kilobytes"
    assert report["cpu_utilization"]["n_expected_cores"] == 3
    assert (folder / "yes.csv").exists() and not (folder / "no.txt").exists()

    (folder / "config.json").write_bytes(b'\xef\xbb\xbf{"ram_unit": "bytes"}')
    done = subprocess.run(
        ["bash", "-c", f"{PROGRAM} -e true -f json --disable-logs --tconfig=config.json;"
         f" {PROGRAM} -e true --disable-logs --tconfig=<(echo '{{\"ram_unit\": \"bytes\"}}')"],
        cwd=folder, env=without_gpus(folder), capture_output=True, text=True, timeout=300)
    assert done.stdout.count(COMPLETE + "0") == 2 and done.stderr == "", done
    assert '"unit": "bytes"' in done.stdout and "Unit: bytes" in done.stdout, done


@case("sub-track combine: files by -p, and a folder")
def _(folder):
    head = "process_id,code_block_name,position,timestamp\r\n"
    rows = ["1,a,0,1795247379.25\r\n1,a,1,1795247380.5\r\n", "2,a,0,1795247379.75\r\n"]
    (folder / "in").mkdir()
    for index, row in enumerate(rows, 1):
        (folder / f"sub-tracking{index}.csv").write_text(head + row, newline="")
        (folder / "in" / f"{index}.csv").write_text(head + row, newline="")
    done = gpu_tracker(folder, "sub-track", "combine", "--stf=combined-file.csv",
                       "-p", "sub-tracking1.csv", "-p", "sub-tracking2.csv")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
    expected = (head + "".join(rows)).replace("\r", "")
    assert (folder / "combined-file.csv").read_text() == expected
    assert gpu_tracker(folder, "sub-track", "combine", "--stf=all.csv", "-p", "in").returncode == 0
    assert (folder / "all.csv").read_text() == expected

    done = gpu_tracker(folder, "sub-track", "combine", "--stf=all.csv", "-p", "in")
    assert done.returncode == 1 and "all.csv" in done.stderr, done
    done = gpu_tracker(folder, "sub-track", "combine", "--stf=more.csv")
    assert done.returncode == 1 and "-p is missing" in done.stderr, done

    for second in ("sub-tracking1.csv", "./sub-tracking1.csv", folder / "sub-tracking1.csv"):
        done = gpu_tracker(folder, "sub-track", "combine", "--stf=more.csv",
                           "-p", "sub-tracking1.csv", "-p", second)
        assert done.returncode == 1 and not (folder / "more.csv").exists(), done
        assert done.stderr == f"ERROR:root:{second}: is given twice\n", done
    (folder / "in" / ".gpu-tracker_x.pkl").write_text("x")
    (folder / "in" / "notes.txt").write_text("x")
    done = gpu_tracker(folder, "sub-track", "combine", "--stf=more.csv", "-p", "in")
    assert done.returncode == 0 and (folder / "more.csv").read_text() == expected, done
    assert done.stderr == ("WARNING:root:left out: in/.gpu-tracker_x.pkl: is hidden\n"
                           "WARNING:root:left out: in/notes.txt: does not end as the new file "
                           "does\n"), done


def sessions(folder):
    """Two sessions of gpu_tracker's files."""
    for name, factor in (("1", 1), ("2", 2)):
        with open(folder / f"tracking{name}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow("ram_unit gpu_ram_unit time_unit ram_system_capacity"
                            " gpu_ram_system_capacity system_core_count n_expected_cores"
                            " system_gpu_count n_expected_gpus".split())
            writer.writerow(["gigabytes", "gigabytes", "hours", 67.254166, 16.376, 12, 12, 1, 1])
            names = (DATA / "analysis.txt").read_text().split("Static")[0].split()[5::5]
            writer.writerow([*names, "timestamp"])
            for tick in range(10):
                writer.writerow([*(factor * (tick + column) / 8 for column in range(21)),
                                 1795247379.25 + tick / 4])
        with open(folder / f"sub-tracking{name}.csv", "w", newline="") as file:
            file.write("process_id,code_block_name,position,timestamp\r\n"
                       "1,my-code-block,0,1795247379.5\r\n1,my-code-block,1,1795247380.5\r\n")


def with_python(folder, script):
    """An environment in which this is all the Python that there is."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin/python3").write_text("#!/bin/sh\n" + script)
    (folder / "bin/python3").chmod(0o755)
    return {**without_gpus(folder), "PATH": f"{folder}/bin:/usr/bin:/bin"}


@case("sub-track analyze: text, JSON, a file")
def _(folder):
    sessions(folder)
    files = ("--tf=tracking1.csv", "--stf=sub-tracking1.csv")
    done = gpu_tracker(folder, "sub-track", "analyze", *files)
    assert done.returncode == 0 and done.stderr == "", done
    text = done.stdout
    expected = tap.wattmeter("analyze", folder / "tracking1.csv", "--format", "gpu-tracker",
                             "--regions", folder / "sub-tracking1.csv")
    assert text == expected.stdout
    layout = [line.split(":")[0] for line in text.splitlines() if ":" in line]
    assert layout == ["Overall", "Static Data", "Code Block Results", "    Name",
                      "    Num Timepoints", "    Num Calls", "    Num Non Empty Calls",
                      "    Compute Time", "    Resource Usage"], layout

    done = gpu_tracker(folder, "sub-track", "analyze", *files, "-f", "json")
    results = json.loads(done.stdout)
    assert list(results) == ["overall", "static_data", "code_block_results"]
    assert done.stdout == json.dumps(results, indent=1) + "\n"
    done = gpu_tracker(folder, "sub-track", "analyze", *files, "-f", "json", "-o", "my.json")
    assert done.returncode == 0 and done.stdout == done.stderr == "", done
    assert json.loads((folder / "my.json").read_text()) == results


@case("pickles are left to our package for Python; JSON is written where that is not installed")
def _(folder):
    sessions(folder)
    files = ("--tf=tracking1.csv", "--stf=sub-tracking1.csv")
    output = ("--format=pickle", "--output=my-results.pkl")
    without = with_python(folder, "exit 77\n")
    done = gpu_tracker(folder, "sub-track", "analyze", *files, *output, env=without)
    assert done.returncode == 0 and done.stdout == "" and "as JSON instead" in done.stderr, done
    assert "overall" in json.loads((folder / "my-results.pkl").read_text())
    done = gpu_tracker(folder, "-e", "true", *output, env=without)
    assert done.returncode == 0 and "as JSON instead" in done.stderr, done
    done = gpu_tracker(folder, "-e", "true", "--format=pickle")
    assert done.returncode == 0 and "as JSON instead" in done.stderr, done
    (folder / "real.pkl").write_bytes(b"\x80\x04N.")
    done = gpu_tracker(folder, "sub-track", "compare", "-m", "A=real.pkl", env=without)
    assert done.returncode == 1 and "a pickle is a program" in done.stderr, done

    telling = with_python(folder, "shift 2; printf '%s\\n' \"$@\"\n")
    sessions_of = ("-m", "A=my-results.pkl", "-m", "B=real.pkl")
    for words, expected in (
            (("sub-track", "analyze", *files, *output),
             ["analyze", "tracking1.csv", "sub-tracking1.csv", "my-results.pkl"]),
            (("sub-track", "analyze", *files, "-fpickle"),
             ["analyze", "tracking1.csv", "sub-tracking1.csv", ""]),
            (("sub-track", "compare", *sessions_of),
             ["compare", "mean", "text", "", "A", "my-results.pkl", "B", "real.pkl"]),
            (("sub-track", "compare", "-m", "A=my-results.pkl", "--stat=max", "-o", "c", "-f", "pickle"),
             ["compare", "max", "pickle", "c", "A", "my-results.pkl"]),
            (("-e", "true", *output), ["usage", "my-results.pkl"])):
        done = gpu_tracker(folder, *words, env=telling)
        told = [line for line in done.stdout.splitlines() if "Resource tracking" not in line]
        assert (done.returncode, told) == (0, expected), done
    failing = with_python(folder, "exit 1\n")
    done = gpu_tracker(folder, "sub-track", "compare", *sessions_of, env=failing)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", ""), done


@case("sub-track analyze says what it makes of its files")
def _(folder):
    sessions(folder)
    files = ("--tf=tracking1.csv", "--stf=sub-tracking1.csv")
    whole = gpu_tracker(folder, "sub-track", "analyze", *files).stdout
    rows = (folder / "sub-tracking1.csv").read_bytes().replace(b"\r\n", b"\n")
    (folder / "sub-tracking1.csv").write_bytes(rows[:-1])
    done = gpu_tracker(folder, "sub-track", "analyze", *files)
    assert (done.returncode, done.stdout) == (0, whole), done
    assert done.stderr.startswith("WARNING:root:sub-tracking1.csv:3: the last line has no end"), done
    done = gpu_tracker(folder, "sub-track", "analyze", "--tf=sub-tracking1.csv",
                       "--stf=tracking1.csv")
    assert (done.returncode, done.stderr) == (
        1, "ERROR:root:--tf and --stf are swapped: tracking1.csv is the tracking file, and "
           "sub-tracking1.csv the sub-tracking file\n"), done
    (folder / "empty.csv").write_text("")
    for words, message in ((("--tf=tracking1.csv", "--stf=empty.csv"), "empty.csv: is empty: a "),
                           (("--tf=tracking1.csv", "--stf=."), ".: is a folder"),
                           (("--tf=empty.csv", "--stf=sub-tracking1.csv"), "empty.csv: empty")):
        done = gpu_tracker(folder, "sub-track", "analyze", *words)
        assert done.returncode == 1 and done.stderr.startswith("ERROR:root:" + message), done
    head, *lines = rows.decode().splitlines()
    start = lines[0].split(",")
    unpaired = [",".join(start[:2] + [position, str(float(start[3]) + late)])
                for position, late in (("1", -3), ("1", -2), ("0", 1e6))]
    (folder / "sub-tracking1.csv").write_text("\n".join([head, *lines, *unpaired, ""]))
    done = gpu_tracker(folder, "sub-track", "analyze", *files)
    assert (done.returncode, done.stdout) == (0, whole), done
    assert done.stderr == ("WARNING:root:sub-tracking1.csv: left out: stops that nothing had started: 2\n"
                           "WARNING:root:sub-tracking1.csv: left out: calls that never stopped: 1\n"), done
    (folder / "sub-tracking1.csv").write_bytes(rows.replace(b"1795", b"1695"))
    done = gpu_tracker(folder, "sub-track", "analyze", *files)
    assert done.returncode == 0 and "calls seem to be those of another session" in done.stderr, done


@case("sub-track compare: -m, --cconfig, --stat, and what is wrong with them")
def _(folder):
    sessions(folder)
    for name in "12":
        assert gpu_tracker(folder, "sub-track", "analyze", f"--tf=tracking{name}.csv",
                           f"--stf=sub-tracking{name}.csv", "-f", "pickle",
                           "-o", f"results{name}.pkl").returncode == 0
    done = gpu_tracker(folder, "sub-track", "compare", "-m", "A=results1.pkl", "-m",
                       "B=results2.pkl")
    assert done.returncode == 0, done
    assert done.stdout.startswith("Overall Resource Usage:\n    Main Ram:\n"), done.stdout
    assert "\nCode Block Compute Time:\nmy-code-block:\n" in done.stdout

    (folder / "compare.json").write_text(json.dumps(
        {"file_path_map": {"A": "results1.pkl", "B": "nothing"}, "statistic": "max"}))
    done = gpu_tracker(folder, "sub-track", "compare", "--cconfig=compare.json", "-m",
                       "B=results2.pkl", "-f", "json")
    results = json.loads(done.stdout)
    assert list(results) == ["overall_resource_usage", "code_block_resource_usage",
                             "code_block_compute_time"]
    assert results["overall_resource_usage"]["main_ram"] == {"A": 9 / 8, "B": 18 / 8}
    done = gpu_tracker(folder, "sub-track", "compare", "--cconfig=compare.json", "-m",
                       "B=results2.pkl", "-f", "json", "--stat=min")
    assert json.loads(done.stdout)["overall_resource_usage"]["descendants_ram"] == {
        "A": 1 / 8, "B": 2 / 8}

    for words, message in (
            ([], "A mapping of tracking session name to file path must be provided either "
                 "through the -m option or a config file."),
            (["-m", "A"], "A is not of the form NAME=FILE"),
            (["-m", "=x"], "=x is not of the form"),
            (["-m", "A=b=c"], "A=b=c is not of the form"),
            (["-m", "A=results1.pkl", "--stat=total"], "Invalid summary statistic 'total'. "
                                                       "Valid values are min max mean std."),
            (["-m", "A=results1.pkl", "-o", "results1.pkl"], "cannot be written over"),
            (["-m", "A=results1.pkl", "-f", "xml"], '"xml" is not a valid format'),
            (["--cconfig", "nothing.json"], "nothing.json: No such file or directory")):
        done = gpu_tracker(folder, "sub-track", "compare", *words)
        assert done.returncode == 1 and message in done.stderr and not done.stdout, done
    for text, message in (("[]", "not a JSON object"), ("{", "not JSON"),
                          ('{"stat": "max"}', "stat is not expected"),
                          ('{"file_path_map": ["a"]}', "file_path_map is not an object of names"),
                          ('{"file_path_map": {"A": 1}}', "the path of A is not a text"),
                          ('{"statistic": 3}', "wrong.json: statistic is not a text"),
                          ('{"statistic": null}', "A mapping of tracking session name")):
        (folder / "wrong.json").write_text(text)
        done = gpu_tracker(folder, "sub-track", "compare", "--cconfig=wrong.json")
        assert done.returncode == 1 and message in done.stderr, done

    mark = b"\xef\xbb\xbf" # which Windows' editors put in front
    (folder / "marked.pkl").write_bytes(mark + (folder / "results2.pkl").read_bytes())
    (folder / "marked.json").write_bytes(
        mark + b'{"file_path_map": {"A": "results1.pkl", "B": "marked.pkl"}}')
    marked = gpu_tracker(folder, "sub-track", "compare", "--cconfig=marked.json")
    plain = gpu_tracker(folder, "sub-track", "compare", "-m", "A=results1.pkl", "-m",
                        "B=results2.pkl")
    assert marked.returncode == 0 and marked.stdout == plain.stdout, marked


@case("sub-track compare prints what the documents show, byte by byte")
def _(folder):
    done = gpu_tracker(folder, "sub-track", "compare", "-m", f"A={DATA}/analysis_a.json", "-m",
                       f"B={DATA}/analysis.json", "-o", "compared.txt")
    assert done.returncode == 0 and done.stdout == "", done
    assert (folder / "compared.txt").read_bytes() == (DATA / "compare_mean.txt").read_bytes()


# What is not in the documents' examples.

@case("the status, and that of a command that was killed")
def _(folder):
    for command, shown, status in (("bash -c 'exit 7'", "7", 7), ("false", "1", 1),
                                   ("bash -c 'kill -9 $$'", "-9", 137),
                                   ("bash -c 'exit 137'", "137", 137)):
        done = gpu_tracker(folder, "-e", command, "--st=0.1")
        assert done.returncode == status, done
        assert done.stdout.startswith(COMPLETE + shown + "\n"), done


@case("a command is split as a shell would, and is no shell's")
def _(folder):
    done = gpu_tracker(folder, "-e", r"""printf '<%s>' "a b" c\ d '$HOME' && "x'y" """, "--st=0.1")
    assert done.stdout.startswith("<a b><c d><$HOME><&&><x'y>" + COMPLETE + "0\n"), done
    done = gpu_tracker(folder, "-e", "cat", "--st=0.1", input="to the command\n", stdin=None)
    assert done.stdout.startswith("to the command\n" + COMPLETE), done


@case("all options are checked before the command starts")
def _(folder):
    units = "Valid values are bytes, gigabytes, kilobytes, megabytes, terabytes"
    rows = (
        ("--st=0", "Sleep time of 0.0 is invalid. Must be at least 0.1 seconds."),
        ("--st=0.05", "Sleep time of 0.05 is invalid. Must be at least 0.1 seconds."),
        ("--st=x", "Sleep time of x is invalid. Must be at least 0.1 seconds."),
        ("--st=nan", "Sleep time of nan is invalid."),
        ("--st=", "Sleep time of  is invalid."),
        ("--st=3601", "Must be at most 3600 seconds."),
        ("--ru=mb", f'"mb" is not a valid RAM unit. {units}'),
        ("--gru=", f'"" is not a valid GPU RAM unit. {units}'),
        ("--tu=weeks", '"weeks" is not a valid time unit. '
                       "Valid values are days, hours, minutes, seconds"),
        ("--nec=0", "Number of expected cores of 0 is invalid."),
        ("--nec=1.5", "Number of expected cores of 1.5 is invalid."),
        ("--tf=x.txt", 'Invalid file name: "x.txt". Valid file extensions are ".csv" and '
                       '".sqlite".'),
        ("--tf=.csv", 'Invalid file name: ".csv".'),
        ("--tf=none/x.csv", "there is no such folder"),
        ("--gb=intel", '"intel" is not a valid GPU brand. Supported values are "nvidia" and '
                       '"amd".'),
        ("--gb=nvidia", "There is no GPU of the brand nvidia"),
        ("--gb=amd", "There is no GPU of the brand amd"),
        ("-fxml", '"xml" is not a valid format. Valid values are "json" or "text".'),
        ("-onone/x", "ERROR:root:--output: none: No such file or directory"),
        ("-o.", "ERROR:root:--output: .: is a folder"),
        ("-o", "ERROR:root:--output: '': is no file"),
        ("-odangling", "ERROR:root:--output: dangling: is a link to a file that does not exist"),
        ("--tconfig=none.json", "none.json: No such file or directory"),
        ("--tconfig=.", ".: is a folder; a file with JSON is expected"),
        ("--tconfig=/dev/null", "/dev/null: is empty; a JSON object is expected"),
        ("--tconfig=/dev/zero", "/dev/zero: has 1 MiB or more"),
        ("--tconfig=pipe", "pipe: is empty"), # nobody writes to it
        ("--tf=there.csv", "File there.csv already exists. Set overwrite to True to overwrite "
                           "the existing file."),
    )
    (folder / "there.csv").write_text("mine")
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    for option, message in rows:
        words = [option, ""] if option == "-o" else [option]
        done = gpu_tracker(folder, "-e", "touch begun", *words)
        assert done.returncode == 1 and message in done.stderr and not done.stdout, done
        assert done.stderr.splitlines()[-1].startswith("ERROR:root:"), done
    for output in ("x.csv", "./x.csv", str(folder / "x.csv")):
        done = gpu_tracker(folder, "-e", "touch begun", "--tf=x.csv", "-o" + output)
        assert done.returncode == 1 and "cannot be written over x.csv" in done.stderr, done
    for text, message in (("{", "not JSON"), ("[1]", "not a JSON object"),
                          ('{"sleep": 1}', 'there is no setting "sleep"'),
                          ('{"process_id": 1}', "process_id cannot be set"),
                          ('{"gpu_uuids": []}', "gpu_uuids is not None but the set is empty."),
                          ('{"gpu_uuids": [1]}', "wrong.json: gpu_uuids is not a list of texts"),
                          ('{"gpu_uuids": {"a": 1}}', "gpu_uuids is not a list of texts"),
                          ('{"ram_unit": null}', "wrong.json: ram_unit is not a text"),
                          ('{"tracking_file": 3}', "wrong.json: tracking_file is not a text"),
                          ('{"overwrite": "yes"}',
                           "wrong.json: overwrite is neither true nor false"),
                          ('{"sleep_time": [1]}', "wrong.json: sleep_time is not a number"),
                          ('{"n_expected_cores": 2.5}', "Number of expected cores of 2.5")):
        (folder / "wrong.json").write_text(text)
        done = gpu_tracker(folder, "-e", "touch begun", "--tconfig=wrong.json")
        assert done.returncode == 1 and message in done.stderr and not done.stdout, done
    for command, message in (("", "Empty command provided."), ("  ", "Empty command provided."),
                             ("a 'b", "a single quote is not closed"),
                             ("no-such-command", 'Command not found: "no-such-command"'),
                             ("/", 'The following error occurred when starting the command "/":')):
        done = gpu_tracker(folder, "-e", command)
        assert done.returncode == 1 and message in done.stderr and not done.stdout, done
    assert not (folder / "begun").exists()
    assert (folder / "there.csv").read_text() == "mine"


@case("words that fit no usage are answered with it, and status 1")
def _(folder):
    usage = re.search(r"Usage:\n(.+\n)+", (DATA / "help.txt").read_text())[0]
    for words in ([], ["-e"], ["-x"], ["-e", "a", "b"], ["--s=1", "-e", "x"], ["sub-track"],
                  ["--st=1"], ["sub-track", "combine"], ["sub-track", "analyze", "--tf=a"],
                  ["-e", "a", "--stat=max"], ["-e", "a", "--disable-logs=1"], [""], ["-e", "a", ""],
                  ["sub-track", "analyze", ""]):
        done = gpu_tracker(folder, *words)
        assert done.returncode == 1 and done.stdout == "", done
        said, _, rest = done.stderr.partition("\n")
        assert said and rest == usage, done


@case("long options may be cut off, letters have their value right behind them")
def _(folder):
    for words in (["--exec=true", "--out=o", "--form=json"], ["--e", "true", "--ou", "o", "--f=json"],
                  ["-etrue", "-oo", "-fjson"], ["-f", "json", "-e", "true", "-o", "o"]):
        (folder / "o").unlink(missing_ok=True)
        done = gpu_tracker(folder, *words)
        assert done.returncode == 0 and done.stdout == COMPLETE + "0\n", done
        assert list(json.loads((folder / "o").read_text())) == list(JSON_KEYS)


@case("warnings say what is not known and why, unless they are switched off")
def _(folder):
    for _ in range(50):  # until it was too short for the machine's clock of CPU time
        done = gpu_tracker(folder, "-e", "true", "-f", "json")
        report = json.loads(done.stdout.partition("\n")[2])
        assert all(line.startswith("WARNING:root:") for line in done.stderr.splitlines())
        if report["cpu_utilization"]["system"]["max_sum_percent"] is None:
            break
    assert "cpu_utilization.system.max_sum_percent and " in done.stderr, done
    for _ in range(50):
        done = gpu_tracker(folder, "-e", "true", "--disable-logs")
        assert done.stderr == "", done
        if "      Max sum percent: n/a\n" in done.stdout:
            return
    raise AssertionError(done)


def check_warnings(report, warnings):
    for line in warnings.splitlines():
        assert "energy" not in line, warnings
        path = line.removeprefix("WARNING:root:").split(" ")[0]
        value = report
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        assert ("known" in line) == (value is None) or "." not in path, (line, value)


@case("a number that is printed is not called unknown, and of energy, which is not there, there is no warning")
def _(folder):
    (folder / "lost.json").write_text(json.dumps({"gpus": [{"power": 200, "energy": {"reset_at": 0.3}}]}))
    env = {"WATTMETER_NVML": str(tap.BUILD / "tests/fake/libnvidia-ml.so.1"),
           "FAKE_NVML_SCENARIO": str(folder / "lost.json")}
    script = "/bin/true; python3 -c 'a=bytearray(50000000)'; sleep 0.6"
    for _ in range(10):  # until no sample sees the short process
        done = gpu_tracker(folder, "-e", f'sh -c "{script}"', "--st=2", "-f", "json", env={**without_gpus(folder), **env})
        check_warnings(json.loads(done.stdout.partition("\n")[2]), done.stderr)
        if "may have been more" in done.stderr:
            return
    raise AssertionError(done.stderr)


def columns(path):
    rows = list(csv.reader(open(path, newline="")))
    return dict(zip(rows[0], rows[1])), rows[2], rows[3:]


@case("a tracking file: its layout, its units, and --overwrite")
def _(folder):
    words = ("-e", "bash example-script.sh", "--st=0.1", "--disable-logs", "-o", "out.txt",
             "--ru=megabytes", "--tu=days")
    assert gpu_tracker(folder, *words, "--tf=t.csv").returncode == 0
    data = (folder / "t.csv").read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") and data.endswith(b"\r\n")
    static, names, rows = columns(folder / "t.csv")
    assert (static["ram_unit"], static["gpu_ram_unit"], static["time_unit"]) == (
        "megabytes", "gigabytes", "days")
    assert len(names) == 22 and names[-1] == "timestamp" and 8 <= len(rows), rows
    for row in rows:
        values = dict(zip(names, row))
        assert all(re.fullmatch(r"\d+", values[name]) for name in names if "threads" in name), row
        assert all(not values[name] or "." in values[name] or "e" in values[name]
                   for name in names if "threads" not in name), row
        assert values["main_ram"] and values["combined_ram"] and values["timestamp"], row
        if values["cpu_combined_sum_utilization_percent"]:
            near(float(values["cpu_combined_hardware_utilization_percent"]) * os.cpu_count(),
                 float(values["cpu_combined_sum_utilization_percent"]), 1e-6)
    assert max(float(row[1]) for row in rows) > 60
    stamps = [float(row[-1]) for row in rows]
    assert stamps == sorted(stamps) and abs(stamps[-1] - time.time()) < 60

    assert gpu_tracker(folder, *words, "--tf=t.csv").returncode == 1
    assert (folder / "t.csv").read_bytes() == data
    assert gpu_tracker(folder, *words, "--tf=t.csv", "--overwrite").returncode == 0
    assert (folder / "t.csv").read_bytes() != data

    assert gpu_tracker(folder, *words, "--tf=t.sqlite").returncode == 0
    database = sqlite3.connect(folder / "t.sqlite")
    tables = [name for name, in database.execute("SELECT name FROM sqlite_master")]
    assert tables == ["static_data", "data"], tables
    assert [row[1] for row in database.execute("PRAGMA table_info(data)")] == names
    assert database.execute("SELECT count(*) FROM data").fetchone()[0] >= 8
    assert sorted(path.name for path in folder.glob("t.*")) == ["t.csv", "t.sqlite"]
    for path in ("t.csv", "t.sqlite"):
        done = tap.wattmeter("analyze", folder / path, "--json")
        assert done.returncode == 0, done


@case("a tracking file survives that we are killed")
def _(folder):
    for name in ("k.csv", "k.sqlite"):
        tracker = started(folder, "-e", "bash -c 'echo $$ > pid; exec sleep 30'", "--st=0.1",
                          f"--tf={name}")
        time.sleep(2)
        tracker.kill()
        tracker.wait()
        command = int((folder / "pid").read_text())
        os.kill(command, signal.SIGKILL)
        tracker.communicate()
        if name.endswith("csv"):
            count = len(columns(folder / name)[2])
        else:
            count = sqlite3.connect(folder / name).execute("SELECT count(*) FROM data").fetchone()[0]
        assert count >= 8, (name, count)


@case("a signal to us goes to the command, and there is a report")
def _(folder):
    for number, shown in ((signal.SIGTERM, -15), (signal.SIGINT, -2)):
        tracker = started(folder, "-e", "bash -c ': > ready; exec sleep 30'", "--st=0.1")
        end = time.time() + 20
        while not (folder / "ready").exists() and time.time() < end:
            time.sleep(0.02)
        time.sleep(0.3)
        tracker.send_signal(number)
        out, _ = tracker.communicate(timeout=300)
        (folder / "ready").unlink()
        assert tracker.returncode == 128 - shown, (tracker.returncode, out)
        first, _, text = out.partition("\n")
        assert first == COMPLETE + str(shown), out
        same_layout(text)


@case("after Ctrl-C on a terminal the report begins on a line of its own")
def _(folder):
    terminal = Terminal(folder, "sh")
    try:
        terminal.type(f"stty echoctl; clear; cd {folder}; WATTMETER_NVML=none WATTMETER_SYSFS=none"
                      f" {tap.WATTMETER} gpu-tracker --disable-logs -o report -e 'sleep 30'", "Enter")
        time.sleep(1)
        terminal.type("C-c")
        terminal.wait(COMPLETE)
        assert f"^C\n{COMPLETE}-2\n" in terminal.screen(), terminal.screen()
    finally:
        terminal.close()


@case("a pipe that nobody reads holds the results up until a signal comes")
def _(folder):
    os.mkfifo(folder / "pipe")
    tracker = started(folder, "-e", "true", "-o", "pipe")
    time.sleep(1.5)
    assert tracker.poll() is None
    tracker.send_signal(signal.SIGTERM)
    _, said = tracker.communicate(timeout=300)
    assert tracker.returncode == 1 and "these are the results:" in said, said


@case("GPUs: all, by UUID, by brand; and a driver in trouble is not nothing")
def _(folder):
    env = with_gpus(folder, {"gpus": [
        {"uuid": uuid, "memory_used": 2e9, "memory_total": 16e9, "utilization": 0.25}
        for uuid in UUIDS]})

    def track(*words, env=env):
        done = gpu_tracker(folder, "-e", "sleep 0.5", "--st=0.1", "-f", "json", *words, env=env)
        assert done.returncode == 0, done
        said = re.sub(r"(?m)^WARNING:root:late samples: .*\n", "", done.stderr)
        return json.loads(done.stdout.partition("\n")[2]), said

    simulated = ("WARNING:root:The GPU numbers are SIMULATED: the driver says of 2 of 2 GPUs that "
                 "they are not real.\n")
    for words in ([], ["--gb=nvidia"], ["--disable-logs"]):
        report, said = track(*words)
        same_keys(report, JSON_KEYS)
        assert said == simulated, said
        usage, ram = report["gpu_utilization"], report["max_gpu_ram"]
        assert (usage["system_gpu_count"], usage["n_expected_gpus"]) == (2, 2)
        near(usage["gpu_percentages"]["mean_sum_percent"], 50, 1)
        near(usage["gpu_percentages"]["mean_hardware_percent"], 25, 0.5)
        near(ram["system"], 4, 0.2)
        assert ram["system_capacity"] >= ram["system"]
    report, _ = track("--guuids=" + UUIDS[1])
    usage = report["gpu_utilization"]
    assert (usage["system_gpu_count"], usage["n_expected_gpus"]) == (2, 1)
    near(usage["gpu_percentages"]["mean_sum_percent"], 25, 0.5)

    done = gpu_tracker(folder, "-e", "touch begun", f"--guuids={UUIDS[0]},GPU-x", env=env)
    assert done.returncode == 1 and (
        "GPU UUID of GPU-x is not valid. Available UUIDs are: " + ", ".join(UUIDS)
    ) in done.stderr, done
    done = gpu_tracker(folder, "-e", "touch begun", "--guuids=none", env=env)
    assert done.returncode == 1 and "GPU UUID of none is not valid" in done.stderr, done
    done = gpu_tracker(folder, "-e", "touch begun", "--gb=amd", env=env)
    assert done.returncode == 1 and not (folder / "begun").exists(), done

    trouble = with_gpus(folder, {"no such thing": 1}) # whose driver does not start
    for words in ([], ["--guuids=" + UUIDS[0]], ["--gb=nvidia"]):
        report, said = track(*words, env=trouble)
        assert report["max_gpu_ram"]["system"] is None, report
        assert report["gpu_utilization"]["gpu_percentages"]["max_sum_percent"] is None, report
        assert "GPU RAM and GPU utilization values are not known" in said, said
        assert "There is no GPU" not in said, said
    report, said = track("--guuids=GPU-x", env=without_gpus(folder))
    assert report["gpu_utilization"]["n_expected_gpus"] == 0, report
    assert "GPU-x: there is no such GPU." in said and "There is no GPU to" in said, said


if __name__ == "__main__":
    tap.main()
