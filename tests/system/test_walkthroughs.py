#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_walkthroughs.py - the walk-throughs of docs/: what each page says is done to a copy
of the tree, word by word, and that is built.

Of a page count the C files that begin with a licence line, each under a heading that
names its path, and the blocks of "diff": a line of the form "+++ path", then a line that
is in that file already, then the lines that come after it.
"""

import configparser
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import tap

# With how many C files and changes each has.
PAGES = {"add-a-source.md": (1, 2), "add-a-recorder.md": (1, 2), "add-a-command.md": (1, 2), "add-a-figure.md": (0, 2),
         "add-a-gpu-metric.md": (0, 4)}
FILE = re.compile(r"^#+ [^\n]*`([\w/]+\.c)`\n(?:(?!^#).)*?^```c\n(/\* SPDX.*?)^```$", re.MULTILINE | re.DOTALL)
CHANGE = re.compile(r"^```diff\n\+\+\+ (\S+)\n (.*?)\n((?:\+.*\n)+)```$", re.MULTILINE)
# What the product is made of; the rest of the tree would only take time.
PARTS = ["LICENSE", "meson.build", "meson_options.txt", "bench", "cli", "contrib", "docs", "fuzz", "include",
         "nvtx", "python/meson.build", "src", "tests/meson.build"]

scratch = Path(tempfile.mkdtemp(prefix="wm-walkthroughs-"))
tree = scratch / "tree"
# As far below its tree as the build that is tested, whose commands have relative names.
build = tree / tap.BUILD.resolve().relative_to(tap.SOURCE.resolve())
wattmeter = build / "wattmeter"


def follow(page):
    """Does what the page says; how many files and changes that were."""
    text = (tap.SOURCE / "docs" / page).read_text()
    files, changes = FILE.findall(text), CHANGE.findall(text)
    for path, code in files:
        assert not (tree / path).exists(), f"{page}: {path} is there already"
        (tree / path).write_text(code)
    for path, before, added in changes:
        old = (tree / path).read_text()
        assert old.count(f"{before}\n") == 1, f"{page}: '{before}' is not once in {path}"
        lines = "".join(line[1:] + "\n" for line in added.splitlines())
        (tree / path).write_text(old.replace(f"{before}\n", f"{before}\n{lines}"))
    return len(files), len(changes)


def run(*argv, **environment):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False,
                          env={**os.environ, "WATTMETER_NVML": "/nonexistent", **environment})
    assert done.returncode == 0, f"{argv}: status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done


def begin_with_objects():
    """Sets up a build with the options of the one that is tested, and gives it that one's
    objects: what the pages add and change is all that is compiled."""
    options = configparser.ConfigParser(interpolation=None)
    options.read(tap.BUILD / "meson-private" / "cmd_line.txt")
    kept = dict(options["options"]) | dict.fromkeys(("tests", "docs", "python"), "disabled")
    run("meson", "setup", build, tree, *[f"-D{name}={value}" for name, value in kept.items()])
    for folder in tap.BUILD.glob("**/*.p"):
        if not {"tests", "bench", "python", "ci"} & set(folder.relative_to(tap.BUILD).parts):
            shutil.copytree(folder, build / folder.relative_to(tap.BUILD), dirs_exist_ok=True)
    log = (tap.BUILD / ".ninja_log").read_text().splitlines(keepends=True)
    (build / ".ninja_log").write_text("".join(line for line in log if line.startswith("#") or ".o\t" in line))
    shutil.copy2(tap.BUILD / ".ninja_deps", build)


@tap.case("the pages are followed to the letter, and what comes of them is built")
def _(_folder):
    for part in PARTS:
        copy = shutil.copytree if (tap.SOURCE / part).is_dir() else shutil.copy
        (tree / part).parent.mkdir(parents=True, exist_ok=True)
        copy(tap.SOURCE / part, tree / part)
    for page, (least_files, least_changes) in PAGES.items():
        files, changes = follow(page)
        assert files == least_files and changes >= least_changes, f"{page}: {files} files, {changes} changes"
    begin_with_objects()
    made = run("ninja", "-C", build, "wattmeter").stdout
    assert "warning:" not in made, made
    compiled = re.findall(r"Compiling C object (\S+)", made)
    assert 0 < len(compiled) < 100, compiled


@tap.case("the command of its page is in the help, and works")
def _(_folder):
    assert "sources" in run(wattmeter, "--help").stdout
    assert "available" in run(wattmeter, "sources", "--help").stdout
    assert re.search(r"^host +\d+ readings$", run(wattmeter, "sources", "-a").stdout, re.MULTILINE)


@tap.case("the sensor of its page is in text, JSON, a recording and the doctor's list")
def _(folder):
    counters = folder / "sys" / "cray" / "pm_counters"
    counters.mkdir(parents=True)
    (counters / "power").write_text("312 W 1467225014384236 us\n")
    recording, sysfs = folder / "run.csv", {"WATTMETER_SYSFS": folder / "sys"}
    run(wattmeter, "run", "-q", "-i", "50ms", "--record", recording, "--", "sleep", "0.4", **sysfs)
    assert "node_power_W" in recording.read_text()
    text = run(wattmeter, "report", "-v", recording).stdout
    assert re.search(r"^  node +\d+ J .* 312 W on average", text, re.MULTILINE), text
    others = json.loads(run(wattmeter, "report", "--json", recording).stdout)["energy"]["other"]
    assert [other["source"] for other in others] == ["cray"] and round(others[0]["power"]) == 312, others
    findings = json.loads(run(wattmeter, "doctor", "--json", "--duration", "500ms", **sysfs).stdout)["sources"]
    assert [finding["health"] for finding in findings if finding["name"] == "cray"] == ["good"]


@tap.case("the recording format of its page takes a run, line by line")
def _(folder):
    path = folder / "out.jsonl"
    run(wattmeter, "run", "-q", "-i", "50ms", "--record", path, "--", "sleep", "0.3")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert "run" in lines[0] and "channels" in lines[1] and "result" in lines[-1]
    assert sum("time_ns" in line for line in lines) >= 5


@tap.case("the figure of its page is in text, JSON, the table of regions and comparisons")
def _(_folder):
    recording = tap.SOURCE / "tests/data/recordings/v1-regions.sqlite"
    text = run(wattmeter, "report", "-v", recording).stdout
    assert re.search(r"^Core power +n/a|^Core power +[\d.]+ W", text, re.MULTILINE), text
    assert re.search(r"^ +calls .* core power .* region$", text, re.MULTILINE), text
    report = json.loads(run(wattmeter, "report", "--json", recording).stdout)
    assert "core_power" in report["energy"]
    assert ",core_power," in run(wattmeter, "report", "--csv", recording).stdout.splitlines()[0]
    assert all("core_power" in region["exclusive"] for region in report["regions"]["by_path"])
    compared = json.loads(run(wattmeter, "compare", "--json", f"a={recording}", f"b={recording}").stdout)
    power = report["energy"]["core_power"]
    shown = compared["overall"]["figures"] if "figures" in compared["overall"] else compared["overall"]
    assert ("core_power" in shown) == (power is not None)


@tap.case("the GPU metric of its page is in info, a recording, text and JSON, for two vendors")
def _(folder):
    shutil.copytree(tap.SOURCE / "tests/data/sys-drm/amd-discrete", folder / "sys", symlinks=True)
    memory = next((folder / "sys/devices").rglob("temp3_label"))
    assert memory.read_text().strip() == "mem"
    memory.with_name("temp3_crit").write_text("108000\n")
    amd = {"WATTMETER_SYSFS": folder / "sys"}
    nvidia = {"WATTMETER_NVML": tap.BUILD / "tests/fake/libnvidia-ml.so.1", "WATTMETER_SYSFS": "/nonexistent"}
    for number, (environment, celsius) in enumerate([(nvidia, 105), (amd, 108)]):
        gpu = json.loads(run(wattmeter, "info", "--json", **environment).stdout)["gpus"][0]
        assert gpu["utilization"]["temperature_memory_max_celsius"] == celsius, gpu["utilization"]
        recording = folder / f"run{number}.csv"
        run(wattmeter, "run", "-q", "-i", "50ms", "--channels", "memory_temperature_max", "--record", recording, "--",
            "sleep", "0.3", **environment)
        assert "_memory_temperature_max_celsius" in recording.read_text()
        text = run(wattmeter, "report", "-v", recording).stdout
        assert re.search(rf"memory_temperature_max {celsius} °C", text), text
        shown = json.loads(run(wattmeter, "report", "--json", recording).stdout)["gpus"][0]["channels"]
        assert shown["memory_temperature_max"] == {"unit": "celsius", "mean": celsius, "max": celsius}, shown


if __name__ == "__main__":
    try:
        tap.main()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
