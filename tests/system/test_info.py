#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`wattmeter info`: what the GPUs say, from the driver to the screen."""

import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import tap
from tap import case, wattmeter
from terminal import Terminal, wait_for

FAKE = str(tap.BUILD / "tests/fake/libnvidia-ml.so.1")
SCENARIOS = tap.SOURCE / "tests/fake/scenarios"


def environment(scenario, **extra):
    """With the fake driver alone; `scenario` is a path, or the name of one of the project's."""
    path = scenario if isinstance(scenario, os.PathLike) else SCENARIOS / f"{scenario}.json"
    clean = {name: value for name, value in tap.environment().items()
             if not name.endswith(("_VISIBLE_DEVICES", "_DEVICE_ORDER", "_AFFINITY_MASK"))}
    return {**clean, "WATTMETER_NVML": FAKE, "FAKE_NVML_SCENARIO": str(path),
            "WATTMETER_SYSFS": "/nonexistent", **extra}


def info(scenario, *arguments, status=0, extra={}, **options):
    done = wattmeter("info", *arguments, env=environment(scenario, **extra), **options)
    assert done.returncode == status, (done.returncode, done.stderr)
    return done


def told(scenario, *arguments, **options):
    return json.loads(info(scenario, "--json", *arguments, **options).stdout)


def leaves(node, path=""):
    """Every value below `node`, with its path; reasons are left out."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key not in ("why", "states", "time"):
                yield from leaves(value, f"{path}.{key}" if path else key)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from leaves(value, f"{path}.{index}" if path else str(index))
    else:
        yield path, node


def check_reasons(gpu):
    """Every null has a reason and a state; a reason has a null, or is about a whole list."""
    nulls = {path for path, value in leaves(gpu) if value is None}
    assert nulls <= gpu["why"].keys(), nulls - gpu["why"].keys()
    assert gpu["why"].keys() - nulls <= {"processes"}, gpu["why"].keys() - nulls
    assert gpu["why"].keys() == gpu["states"].keys()
    assert all(gpu["why"].values()), gpu["why"]


def scenario_with(folder, name, **changes):
    """A copy of one of the project's scenarios, with more faults or other keys."""
    scenario = json.loads((SCENARIOS / f"{name}.json").read_text())
    scenario["faults"] = scenario.get("faults", []) + changes.pop("faults", [])
    scenario.update(changes)
    path = folder / "scenario.json"
    path.write_text(json.dumps(scenario))
    return path


@case("the board of igpu's README: every line that igpu prints, to the letter")
def _(folder):
    text = info("igpu", "0").stdout
    theirs = (tap.SOURCE / "tests/data/gpus/igpu-0.1.2.txt").read_text()
    head, _, processes = theirs.partition("PROCESSES\n")
    assert text.startswith(head.replace("N/A", "n/a")), text
    columns = processes.splitlines()[0]
    assert columns in text, text
    for line in processes.splitlines()[1:]:
        pid, *_, memory = (cell.strip() for cell in line.split("|"))
        assert re.search(rf"^    {pid} +\|.*\| {memory} +\| C +\|", text, re.MULTILINE), text
    assert re.search(r"^n/a because:\n(.*\n)*.*\bserial\b", text, re.MULTILINE), text


@case("all GPUs, some, by index, UUID and address; in the order of the driver")
def _(folder):
    for words, expected in (((), [0, 1, 2, 3]), (("2",), [2]), (("3", "0,1"), [0, 1, 3]),
                            (("GPU-d9bf",), [1]), (("0000:b2:00.0",), [3]), (("gpu2",), [2]),
                            (("all",), [0, 1, 2, 3]), (("none",), [])):
        got = told("igpu", *words)
        assert [gpu["index"] for gpu in got["gpus"]] == expected, (words, expected)
        assert got["present"] == 4
    assert "No GPU of 4 is chosen" in info("igpu", "none").stdout


@case("a wrong choice: status 2, the word, and what there is")
def _(folder):
    for words in (("7",), ("0", "x"), ("0,,1",), ("",), ("GPU-zz",)):
        done = info("igpu", *words, status=2)
        assert done.stdout == "" and done.stderr.startswith("wattmeter info: "), done
        assert words[-1].split(",")[0] in done.stderr or "''" in done.stderr, done.stderr
        assert "GPU-115dafb8" in done.stderr or words == ("",), done.stderr


@case("--visible: what CUDA_VISIBLE_DEVICES leaves, and a word on what it does not take")
def _(folder):
    mask = {"CUDA_VISIBLE_DEVICES": "1,3", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    got = told("igpu", "--visible", extra=mask)
    assert [gpu["index"] for gpu in got["gpus"]] == [1, 3], got["gpus"]
    mask["CUDA_VISIBLE_DEVICES"] = "3,1"
    got = told("igpu", "--visible", extra=mask)
    assert [(gpu["index"], gpu["seen_as"]) for gpu in got["gpus"]] == [(3, 0), (1, 1)]
    lines = info("igpu", "--visible", "--brief", extra=mask).stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["0", "3"], ["1", "1"]], lines
    text = info("igpu", "--visible", extra=mask).stdout
    assert re.findall(r"^(?:SEEN AS|INDEX) +: (\d)$", text, re.M) == ["0", "3", "1", "1"]
    mask["CUDA_VISIBLE_DEVICES"] = "2,nonsense,0"
    done = info("igpu", "--visible", "--brief", extra=mask)
    assert "SEEN AS" not in info("igpu", "--brief", "3", "1").stdout
    assert "nonsense" in done.stderr and len(done.stdout.splitlines()) == 2, done
    done = info("igpu", "--visible", "0", status=2)
    assert "exclude" in done.stderr, done.stderr


@case("--brief: a header and one line for each")
def _(folder):
    lines = info("igpu", "--brief").stdout.splitlines()
    assert len(lines) == 5 and all(len(line) <= 100 for line in lines), lines
    assert re.search(r"^  0  GeForce GTX 1080 Ti +44 % +10799 / 11179 +61 °C +122 / 250 +36 % +2$",
                     lines[1]), lines[1]
    assert all(line.endswith("SIMULATED")
               for line in info("everything", "--brief").stdout.splitlines()[1:])


@case("JSON: a reason for every null, the same keys in every GPU")
def _(folder):
    for scenario in ("igpu", "everything", "many", "lost"):
        gpus = told(scenario)["gpus"]
        assert gpus
        for gpu in gpus:
            check_reasons(gpu)
            assert gpu.keys() == gpus[0].keys()
    one = told("igpu", "0")["gpus"][0]
    assert one["memory"]["total_bytes"] == 11721506816 and one["power"]["draw_watts"] == 122.23
    assert one["states"]["serial"] == "unsupported" and one["simulated"] is False
    assert told("everything")["gpus"][0]["simulated"] is True
    assert one["pci"]["sent_bytes_per_second"] is not None, "asked, too"


@case("the documentation has every field, and no other")
def _(folder):
    page = (tap.SOURCE / "docs/gpu-info.md").read_text()
    documented = re.findall(r"^\| `([\w.]+)` \|", page[page.index("## Fields"):], re.MULTILINE)
    gpus = told("everything")["gpus"]
    process = next(gpu["processes"][0] for gpu in gpus if gpu["processes"])
    mig = next(gpu["migs"][0] for gpu in gpus if gpu["migs"])
    own = {key: value for key, value in gpus[0].items() if key not in ("processes", "migs")}
    expected = [path for path, _ in leaves(own)] + list(process) + list(mig)
    assert sorted(documented) == sorted(expected), set(documented) ^ set(expected)


def calls_of(library):
    """The calls about a GPU that the fake driver exports, but for those that find it."""
    names = re.findall(rb"\0(nvmlDeviceGet\w+)(?=\0)", open(library, "rb").read())
    return sorted({name.decode() for name in names
                   if not re.search(rb"Handle|Count$|Count_v2$|UUID$", name) or b"Mig" in name})


@case("each call unsupported, one at a time: costs its own values, each with a reason")
def _(folder):
    before = dict(leaves(told("everything")["gpus"]))
    lines = info("everything").stdout.splitlines()
    calls = calls_of(FAKE)
    assert len(calls) > 50, calls
    silent = []
    for call in calls:
        path = scenario_with(folder, "everything", faults=[{"call": call, "error": "NOT_SUPPORTED"}])
        gpus = told(path)["gpus"]
        for gpu in gpus:
            check_reasons(gpu)
        after = dict(leaves(gpus))
        lost = {leaf for leaf in before if before[leaf] is not None and after.get(leaf) is None}
        groups = {leaf.split(".")[1] if "." in leaf else leaf for leaf in lost}
        silent += [] if lost else [call]
        assert len(groups) <= 4, (call, sorted(lost))
        text = info(path).stdout.splitlines()
        gone = [line for line in lines if line not in text]
        assert len(gone) <= 16, (call, gone)
    print(f"# {len(calls)} calls; others tell the same as {', '.join(silent)}")


@case("a GPU that hangs costs what it did not tell, with the reason, and not the others")
def _(folder):
    path = scenario_with(folder, "igpu", faults=[
        {"call": "nvmlDeviceGetPowerUsage", "gpu": 1, "delay_ms": 30000}])
    begin = time.monotonic()
    done = info(path, "--json")
    took = time.monotonic() - begin
    print(f"# {took:.1f} s")
    assert took < 15, took
    gpus = json.loads(done.stdout)["gpus"]
    draws = [gpu["power"]["draw_watts"] for gpu in gpus]
    assert draws == [122.23, None, 93.067, 8.7], draws
    assert "has not answered" in gpus[1]["why"]["power.draw_watts"], gpus[1]["why"]


@case("a GPU that hangs: who it is, as far as it said so, and that it is simulated")
def _(folder):
    for call, name in (("nvmlDeviceGetMigMode", "SIMULATED H100"), ("nvmlDeviceGet*", "n/a")):
        path = folder / "scenario.json"
        path.write_text(json.dumps({"gpus": [{"count": 3}], "faults": [
            {"call": call, "gpu": 1, "delay_ms": 30000}]}))
        lines = info(path, "--brief").stdout.splitlines()[1:]
        assert re.match(rf"  1  {name} +n/a +n/a / n/a ", lines[1]), lines
        assert all(line.endswith("  SIMULATED") for line in lines), lines
        assert info(path).stdout.count("SIMULATED: the driver says") == 3


@case("a GPU that does not answer, chosen: n/a and the reason, as without a choice")
def _(folder):
    hanging = scenario_with(folder, "many", faults=[
        {"call": "nvmlDeviceGet*", "gpu": 1, "delay_ms": 30000}])
    check_silent(hanging, "the driver has not answered for")
    lost = folder / "lost.json"
    lost.write_text(json.dumps({"gpus": [{}, {"lost_at": 0}]}))
    check_silent(lost, "GPU is lost")


def check_silent(scenario, why):
    for words in (("1",), ("gpu1",), ("0", "1")):
        gpu = told(scenario, *words)["gpus"][-1]
        check_reasons(gpu)
        assert gpu["index"] == 1 and gpu["uuid"] is None, gpu
        assert gpu["why"]["uuid"].startswith(why), gpu["why"]
    text = info(scenario, "1").stdout
    assert re.search(r"^UUID +: n/a$", text, re.MULTILINE) and why in text, text


def board(folder, address, status):
    device = folder / "sys/bus/pci/devices" / address
    (device / "power").mkdir(parents=True, exist_ok=True)
    for name, text in (("vendor", "0x10de"), ("class", "0x030000"), ("power/runtime_status", status)):
        (device / name).write_text(text + "\n")


@case("a GPU that is asleep is not asked, and NVML is not started for it; a report has it once it is awake")
def _(folder):
    asleep = "it is asleep; wattmeter does not wake it"
    board(folder, "0000:01:00.0", "suspended")
    broken = folder / "broken.json"  # with which NVML does not start
    broken.write_text("nonsense")
    extra = {"WATTMETER_SYSFS": str(folder / "sys")}
    gpu = told(broken, extra=extra)["gpus"][0]
    assert gpu["uuid"] == "0000:01:00.0" and gpu["why"]["power.draw_watts"] == asleep, gpu
    report = tap.report("sleep", "0.3", env=environment(broken, **extra))
    assert report["gpus"][0]["power"]["mean"] is None, report["gpus"]
    assert asleep in report["why"]["energy.gpus.0.energy"], report["why"]

    scenario = folder / "one.json"
    scenario.write_text('{"gpus": [{"power": 100}]}')
    woken = [folder / "wake.sh", folder / "sys/bus/pci/devices/0000:01:00.0/power/runtime_status"]
    woken[0].write_text('sleep 1; echo active > "$1"; sleep 2\n')
    report = tap.report("sh", *map(str, woken), env=environment(scenario, **extra))
    energy = report["energy"]["gpus"][0]
    awake = report["compute_time"]["time"] - 1  # at most; it is looked for once a second
    assert 50 < energy["energy"] < 100 * awake + 10 and energy["uncertainty_percent"] is None, energy
    assert any(asleep in remark for remark in report["remarks"]), report["remarks"]
    assert told(scenario, extra=extra)["gpus"][0]["uuid"].startswith("GPU-")


@case("a process that /proc does not show has the name that the driver knows")
def _(folder):
    path = folder / "scenario.json"
    path.write_text(json.dumps({"gpus": [{"processes": [
        {"pid": 2000000001, "name": "/usr/bin/train"}, {"pid": 2000000002},
        {"pid": os.getpid(), "name": "/usr/bin/other"}]}]}))
    gpu = told(path)["gpus"][0]
    check_reasons(gpu)
    ours, named, unknown = gpu["processes"]
    assert ours["pid"] == os.getpid() and "python" in ours["name"], ours
    assert named["name"] == "train" and named["user"] is None, named
    assert unknown["name"] is None, unknown
    reasons = ("not in /proc", "the driver reports the number of another pid namespace")
    assert gpu["why"]["processes.2.name"] in reasons, gpu["why"]


@case("a name that is not ASCII, and one that would reach the terminal")
def _(folder):
    path = folder / "scenario.json"
    path.write_text(json.dumps({"gpus": [{"name": "Größe ™"}, {"name": "\033[31mred\u009b"}]}))
    assert [gpu["name"] for gpu in told(path)["gpus"]] == ["Größe ™", "?[31mred?"]
    assert "\nBOARD NAME   : Größe ™\n" in info(path).stdout


@case("the memory of an integrated GPU is the same in a report")
def _(folder):
    env = tap.environment(WATTMETER_NVML="/none", WATTMETER_SYSFS=str(tap.SOURCE / "tests/data/sys-drm/amd-apu"))
    gpu = json.loads(wattmeter("info", "--json", env=env).stdout)["gpus"][0]
    r = tap.report("sleep", "0.1", env=env)
    assert gpu["memory"]["total_bytes"] == r["gpus"][0]["memory"]["capacity"] == 16642998272, gpu
    assert gpu["memory"]["used_bytes"] == r["gpus"][0]["memory"]["max"], (gpu, r["gpus"])


@case("no GPU: what was looked for, why it is not there, and status 0")
def _(folder):
    nothing = {"WATTMETER_NVML": "/nonexistent/libnvidia-ml.so.1"}
    for arguments in ((), ("--brief",), ("none",), ("all",)):
        text = info("igpu", *arguments, extra=nothing).stdout
        assert text.startswith("No GPU was found") and "nvml: " in text and "drm: " in text, text
    got = told("igpu", extra=nothing)
    assert got["gpus"] == [] and got["present"] == 0, got
    assert [way["source"] for way in got["looked"]] == ["nvml", "drm"]
    assert all(not way["available"] and way["why"] for way in got["looked"]), got


@case("-o: a new file, not over one that exists unless told so")
def _(folder):
    path = folder / "gpus.json"
    assert info("igpu", "--json", "-o", path).stdout == ""
    assert len(json.loads(path.read_text())["gpus"]) == 4
    assert "--overwrite" in info("igpu", "-o", path, status=1).stderr
    info("igpu", "--brief", "-o", path, "--overwrite")
    assert path.read_text().startswith("GPU  NAME")
    info("igpu", "-o", folder / "none" / "x", status=1)
    assert info("igpu", "-o", "/dev/full", status=1).stderr.startswith("wattmeter info: ")


@case("standard output that is full, closed, or not read to the end")
def _(folder):
    for arguments in ((), ("--json",), ("--brief",), ("--json", "--watch", "100ms")):
        with open("/dev/full", "w") as full:
            done = subprocess.run([tap.WATTMETER, "info", *arguments], stdout=full, timeout=300,
                                  stderr=subprocess.PIPE, text=True, env=environment("igpu"))
        assert done.returncode == 1 and done.stderr.startswith("wattmeter"), done
    done = subprocess.run(f"{tap.WATTMETER} info --watch 100ms | head -n 1", shell=True, timeout=300,
                          capture_output=True, text=True, env=environment("igpu"))
    assert done.stderr == "" and "UTC" in done.stdout, done


def watched(*arguments, scenario="igpu", seconds=1.0, number=signal.SIGINT):
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([tap.WATTMETER, "info", *arguments], stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.PIPE, text=True,
                                   env=environment(scenario))
        time.sleep(seconds)
        process.send_signal(number)
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0 and err == "", (process.returncode, err)
        output.seek(0)
        return output.read()


@case("--watch into a file: one report after the other with its time, no control characters")
def _(folder):
    for number in (signal.SIGINT, signal.SIGTERM):
        out = watched("--brief", "--watch", "0.2", number=number)
        stamps = re.findall(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC$", out, re.MULTILINE)
        assert len(stamps) >= 3 and out.count("GPU  NAME") == len(stamps), out
        seen = datetime.datetime.fromisoformat(stamps[0] + "+00:00")
        assert abs((datetime.datetime.now(datetime.timezone.utc) - seen).total_seconds()) < 60
        assert "\033" not in out


@case("--watch --json: one object in each line, at the times asked for")
def _(folder):
    lines = watched("--json", "--watch", "200ms", seconds=2.1).splitlines()
    objects = [json.loads(line) for line in lines]
    assert 4 <= len(objects) <= 12, len(objects)
    assert all(len(o["gpus"]) == 4 for o in objects)
    assert len({o["time"] for o in objects}) == len(objects)
    assert "not asked" in objects[0]["gpus"][0]["states"].values(), "PCIe takes too long"


@case("a reader that does not read: the second Ctrl-C ends it, which is 130 to a shell")
def _(folder):
    for first in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen([tap.WATTMETER, "info", "--watch", "100ms"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   env=environment("cluster"))
        time.sleep(4)
        process.send_signal(first)
        time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=300) == -signal.SIGINT
        process.stdout.close()


@case("--watch -o: the file gets them all")
def _(folder):
    path = folder / "gpus.jsonl"
    assert watched("--json", "--watch", "100ms", "-o", str(path)) == ""
    assert len([json.loads(line) for line in path.read_text().splitlines()]) >= 3


@case("--watch: a GPU that comes is shown")
def _(folder):
    gpus = [{"name": "SIMULATED first"}, {"name": "SIMULATED second", "appears_at": 1.0}]
    path = folder / "scenario.json"
    path.write_text(json.dumps({"gpus": gpus}))
    out = watched("--brief", "--watch", "200ms", scenario=path, seconds=4)
    reports = out.split("\n\n")
    assert "second" not in reports[0] and "second" in reports[-1], out


@case("--watch: GPUs that cannot be found anew are not looked for with each report")
def _(folder):
    path = folder / "scenario.json"
    path.write_text(json.dumps({
        "gpus": [{"uuid": "GPU-first", "lost_at": 1}, {"appears_at": 1}],
        "faults": [{"call": "nvmlInit*", "delay_ms": 500}]}))
    out = watched("--brief", "--watch", "100ms", "GPU-first", scenario=path, seconds=6)
    reports = out.split("\n\n")
    assert len(reports) > 20, len(reports)
    assert "n/a" in reports[-1].splitlines()[-1], reports[-1]


@case("--watch on a terminal: redrawn in place, as much as fits, until Ctrl-C")
def _(folder):
    terminal = Terminal(folder, "sh")
    try:
        setting = " ".join(f"{key}={value}" for key, value in environment("igpu").items()
                           if key.startswith(("WATTMETER_", "FAKE_")))
        terminal.type(f"export {setting}; clear", "Enter")
        terminal.type(f"{tap.WATTMETER} info --brief --watch 200ms; echo status=$?", "Enter")
        terminal.wait("GeForce")
        first = terminal.screen().splitlines()[0]
        wait_for(lambda: terminal.screen().splitlines()[0] != first, "another time on top")
        assert terminal.screen().count("GPU  NAME") == 1, terminal.screen()
        terminal.type("C-c")
        terminal.wait("status=0")

        terminal.type(f"clear; {tap.WATTMETER} info --watch 200ms; echo status=$?", "Enter")
        terminal.wait("GPU MEMORY")
        time.sleep(0.6)
        lines = terminal.screen().splitlines()
        assert re.match(r"\d{4}-\d\d-\d\d .* UTC$", lines[0]), terminal.screen()
        assert lines[1].startswith("INDEX        : 0"), terminal.screen()
        terminal.type("C-c")
        terminal.wait("status=0")
    finally:
        terminal.close()


@case("64 GPUs with 200 processes each, within seconds")
def _(folder):
    begin = time.monotonic()
    text = info("cluster").stdout
    took = time.monotonic() - begin
    print(f"# {took:.1f} s, {len(text)} characters")
    assert text.count("BOARD NAME") == 64 and took < 15, took
    assert len(text.splitlines()) > 64 * 200


if __name__ == "__main__":
    if shutil.which(tap.WATTMETER) is None:
        raise SystemExit("the command is not built")
    tap.main()
