#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each command once, on what it is for: enough to see at every change that none is broken."""

import json
import os
import re

import tap
from tap import case, wattmeter
from terminal import Terminal

FAKE = str(tap.BUILD / "tests/fake/libnvidia-ml.so.1")
DEMO = str(tap.SOURCE / "tests/fake/scenarios/demo.json")
RECORDING = tap.SOURCE / "tests/data/recordings/v1-tree.sqlite"
BLOCKS = tap.SOURCE / "tests/data/blocks"


def on_fake(*words, status=0):
    """What is printed, results and talk."""
    done = wattmeter(*words, env=tap.environment(WATTMETER_NVML=FAKE, FAKE_NVML_SCENARIO=DEMO,
                                                 WATTMETER_STATE="/nonexistent"), timeout=300)
    assert done.returncode == status, (words, done)
    return done.stdout + done.stderr


@case("run, report, list, export, plot, analyze and compare go through one recording")
def _(folder):
    recording = folder / "r.sqlite"
    text = on_fake("run", "--record", recording, "--", "sh", "-c", "sleep 0.5; exit 3", status=3)
    assert "Exit status   3" in text and "gpu0" in text and "simulated" in text, text
    assert on_fake("run", "-q", "--append", "--record", recording, "--", "true") == ""
    assert on_fake("list", recording).count("\n") == 3
    report = json.loads(on_fake("report", "--json", "--run", "0", recording))
    assert report["exit"]["status"] == 3 and report["energy"]["gpus"][0]["energy"] > 0
    on_fake("export", "--run", "0", recording, "-o", folder / "r.csv")
    assert json.loads(on_fake("report", "--json", folder / "r.csv"))["energy"] == report["energy"]
    assert "Timepoints" in on_fake("analyze", recording)
    assert "time" in on_fake("compare", f"a={recording}", f"b={recording}", "--run", "a=0", "--run", "b=1")
    # What fontconfig keeps to its end would be a finding.
    if (tap.BUILD / "wattmeter-plot.so").exists() and not tap.SANITIZED:
        on_fake("plot", recording, "-o", folder / "r.svg")
        assert (folder / "r.svg").read_text().startswith("<?xml")


@case("on a terminal a GPU's use has a bar, as long as its percent")
def bars(folder):
    terminal = Terminal(folder, f"{tap.WATTMETER} report {RECORDING}; read end", columns=120,
                        rows=60)
    terminal.wait("Overhead:")
    uses = re.findall(r"(■*)(□*) (\d+) % busy", terminal.screen())
    assert len(uses) == 2, terminal.screen()
    for full, empty, percent in uses:
        cells = len(full + empty)
        assert cells == 5 and abs(len(full) - int(percent) / 100 * cells) <= 0.5, uses
    terminal.close()


@case("attach measures this process, and info, doctor and cap show see the GPUs")
def _(folder):
    text = on_fake("attach", "-d", "0.3", os.getpid())
    assert "gpu0" in text and "Time" in text, text
    assert "SIMULATED" in on_fake("info", "--brief")
    assert "nvml" in on_fake("doctor", "--duration", "50ms")
    assert "gpu0" in on_fake("cap", "show")


@case("experiments, sub-tracking files and gpu_tracker's command line")
def _(folder):
    for number in range(2):
        on_fake("run", "-q", "--record", folder / f"{number}.sqlite", "--note", "experiment=x", "--", "true")
    assert "x" in on_fake("experiment", "list", folder)
    marks = folder / "m.csv"
    marks.write_text("process_id,code_block_name,position,timestamp\n1,a,0,1.5\n1,a,1,2.5\n")
    on_fake("combine", marks, "-o", folder / "all.csv")
    assert "a" in (folder / "all.csv").read_text()
    assert "Max RAM" in on_fake("gpu-tracker", "-e", "sleep 0.3", "--st=0.1")


@case("a start loads the C library alone; a library that is missing is named when it is needed")
def _(folder):
    loaded = wattmeter(env=tap.environment(LD_TRACE_LOADED_OBJECTS="1")).stdout
    options = json.loads((tap.BUILD / "meson-info/intro-buildoptions.json").read_text())
    bundled = any(option["name"] == "bundled" and option["value"] for option in options)
    if tap.SANITIZED or bundled or "libc.so.6" not in loaded:
        raise tap.Skip("the command is linked with its libraries")
    assert "libm.so" not in loaded and "jansson" not in loaded, loaded
    (folder / "libm.so.6").touch()
    hidden = tap.environment(LD_LIBRARY_PATH=str(folder), WATTMETER_NVML="/nonexistent")
    assert wattmeter("run", "-q", "--", "true", env=hidden).returncode == 0
    done = wattmeter("run", "--", "true", env=hidden)
    assert done.returncode == 127 and done.stderr.startswith("wattmeter: ") and "libm.so.6" in done.stderr, done


@case("help, version, and what is misused")
def _(folder):
    overview = on_fake("--help")
    for line in overview.splitlines()[3:]:
        if not line.startswith("  ") or line.startswith("  wattmeter"):
            break
        assert "usage:" in on_fake("help", line.split()[0]).lower()
    assert on_fake("--version").startswith("wattmeter ")
    assert "did you mean 'report'" in on_fake("reprt", status=2)


tap.main()
