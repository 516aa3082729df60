# SPDX-License-Identifier: Apache-2.0
"""AIPowerMeter's Python, with wattmeter's package imported in its place: on a machine
whose package takes 40 W, whose memory 4 W and whose GPU 300 W, and on its own folders.
"""

import ast
import datetime
import json
import math
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import wattmeter
from wattmeter.compat.deep_learning_power_measure.power_measure import (
    experiment,
    gpu_power,
    parsers,
    rapl,
    rapl_power,
)

SOURCE = Path(os.environ.get("WM_SOURCE_ROOT", Path(__file__).resolve().parents[3]))
BUILD = Path(os.environ.get("WM_BUILD_ROOT", SOURCE / "build"))
DATA = SOURCE / "tests/data/aipm"
NVML = BUILD / "tests/fake/libnvidia-ml.so.1"
SCENARIOS = SOURCE / "tests/fake/scenarios"

WATTS = {"package-0": 40, "core": 30, "dram": 4}


def make_zone(path, name):
    path.mkdir(parents=True)
    (path / "name").write_text(name + "\n")
    (path / "max_energy_range_uj").write_text("262143328850\n")
    (path / "energy_uj").write_text("000001000000\n")


class Counters:
    """RAPL's files, which count on in a thread of their own; on a busy machine it is late."""

    def __init__(self, sysfs):
        zones = sysfs / "class/powercap"
        numbers = zip(WATTS, ("0", "0:0", "0:1"))
        self.zones = {name: zones / f"intel-rapl:{number}" for name, number in numbers}
        for name, path in self.zones.items():
            make_zone(path, name)
        self.over = threading.Event()
        self.late = 0  # at most, in seconds
        self.thread = threading.Thread(target=self.count)

    def count(self):
        start = last = time.monotonic()
        files = {n: open(z / "energy_uj", "r+") for n, z in self.zones.items()}
        while not self.over.wait(0.002):
            for name, file in files.items():
                joules = 1 + WATTS[name] * (time.monotonic() - start)
                file.seek(0)
                file.write(f"{int(joules * 1e6):012d}\n")
                file.flush()
            self.late = max(self.late, time.monotonic() - last)
            last = time.monotonic()
        for file in files.values():
            file.close()


    def off(self, window):
        """Of what is read at both ends of a window: no reading, or one that was late."""
        return 0.1 + 2 * self.late / window


@pytest.fixture
def counters(tmp_path):
    return Counters(tmp_path / "sys")


@pytest.fixture
def machine(tmp_path, monkeypatch, counters):
    monkeypatch.setenv("WATTMETER_SYSFS", str(tmp_path / "sys"))
    monkeypatch.setenv("WATTMETER_NVML", str(NVML))
    monkeypatch.setenv("FAKE_NVML_SCENARIO", str(SCENARIOS / "constant.json"))
    counters.thread.start()
    yield tmp_path
    counters.over.set()
    counters.thread.join()


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine that measures nothing."""
    monkeypatch.setenv("WATTMETER_SYSFS", str(tmp_path / "none"))
    monkeypatch.setenv("WATTMETER_NVML", str(tmp_path / "none.so"))
    return tmp_path


@pytest.fixture
def utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


def recorded(folder, name):
    """A copy of a folder that AIPowerMeter could have left."""
    shutil.copytree(DATA / name, folder / name)
    return experiment.ExpResults(parsers.JsonParser(folder / name))


# What the manual shows.


def test_first_program(machine, monkeypatch, capsys, counters):
    monkeypatch.chdir(machine)
    driver = parsers.JsonParser("output_folder")
    exp = experiment.Experiment(driver)

    begun = time.monotonic()
    p, q = exp.measure_yourself(period=0.05)
    work(1.5)
    q.put(experiment.STOP_MESSAGE)
    elapsed = time.monotonic() - begun

    driver = parsers.JsonParser("output_folder")
    exp_result = experiment.ExpResults(driver)
    exp_result.print()
    printed = capsys.readouterr().out
    for word in ("EXPERIMENT SUMMARY", "on the cpu", "on the gpu", "joules"):
        assert word in printed
    total = exp_result.total_power_draw()
    json.dump({"power_draw": total}, open("result.json", "w"))
    d, start, end = exp_result.get_duration()
    assert 1.5 / 2 < d <= elapsed  # from the first record to the last
    assert total == pytest.approx(340 * d, rel=counters.off(d))
    assert exp_result.total_("rel_intel_power") <= exp_result.total_("intel_power")
    assert "intel_power" in str(exp_result)


def test_stop_is_acknowledged(machine):
    driver = parsers.JsonParser(machine / "out")
    p, q = experiment.Experiment(driver).measure_yourself(period=0.02)
    assert p.is_alive() and p.exitcode is None and p.pid == os.getpid()
    time.sleep(0.1)
    with pytest.raises(ValueError, match="Stop"):
        q.put("stop it")
    assert p.is_alive()
    q.put("Stop")
    assert not p.is_alive() and p.exitcode == 0
    p.join()
    q.put(experiment.STOP_MESSAGE)  # Once more is no fault.
    lines = (machine / "out/power_metrics.json").read_text().splitlines()
    assert json.loads(lines[-1]) == "END OF RECORDING SEGMENT"
    assert len(lines) >= 5
    assert set(json.loads(lines[0])) >= {"date", "metrics"}


def test_join_waits(machine):
    driver = parsers.JsonParser(machine / "out")
    p, q = experiment.Experiment(driver).measure_yourself(period=0.02)
    p.join(0.01)
    assert p.is_alive()
    stopper = threading.Timer(0.1, q.put_nowait, ("Stop",))
    stopper.start()
    p.join()
    assert not p.is_alive()
    stopper.join()


def test_terminate(machine):
    driver = parsers.JsonParser(machine / "out")
    p, _ = experiment.Experiment(driver).measure_yourself(period=0.02)
    time.sleep(0.1)
    p.terminate()
    assert experiment.ExpResults(driver).total_("intel_power") > 0


FORGETFUL = """
import sys, time
from wattmeter.compat.deep_learning_power_measure.power_measure import (
    experiment, parsers)
exp = experiment.Experiment(parsers.JsonParser(sys.argv[1]))
exp.measure_yourself(period=0.02)
time.sleep(0.3)
"""


def test_never_stopped(machine):
    done = subprocess.run(
        [sys.executable, "-c", FORGETFUL, str(machine / "out")], timeout=300
    )
    assert done.returncode == 0
    text = (machine / "out/power_metrics.json").read_text()
    assert text.endswith('"END OF RECORDING SEGMENT"\n')
    results = experiment.ExpResults(parsers.JsonParser(machine / "out"))
    assert results.get_exp_duration()[0] > 0.25


def test_fork(machine):
    """A child has none of its parent's recording."""
    driver = parsers.JsonParser(machine / "out")
    p, q = experiment.Experiment(driver).measure_yourself(period=0.02)
    child = os.fork()
    if child == 0:
        try:
            q.put("Stop")
        except ValueError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    child_ended = time.time()
    time.sleep(0.2)
    q.put("Stop")
    recorded, first, last = experiment.ExpResults(driver).get_exp_duration()
    assert last > child_ended and recorded == pytest.approx(last - first, abs=1e-3)


def test_period(machine):
    exp = experiment.Experiment(parsers.JsonParser(machine / "out"))
    with pytest.raises(ValueError, match="1 ms"):
        exp.measure_yourself(period=0)
    p, q = exp.measure_yourself(period=1, measurement_period=1)
    q.put("Stop")


# Where it is kept.


def test_cont(machine):
    folder = machine / "deep/er/out"
    for cont, segments in ((False, 1), (True, 2), (False, 1)):
        driver = parsers.JsonParser(str(folder), description="ours")
        exp = experiment.Experiment(driver, cont=cont)
        if not cont:
            assert not (folder / "power_metrics.json").exists()
        p, q = exp.measure_yourself(period=0.02)
        time.sleep(0.15)
        q.put("Stop")
        (folder / "latency.csv").write_text("1\n")
        results = experiment.ExpResults(driver)
        assert len(results.get_curve("intel_power")) == segments
        assert results.description == "ours"
    assert (folder / "latency.csv").exists()
    assert sorted(p.name for p in folder.iterdir()) == [
        "latency.csv",
        "metadata.json",
        "power_metrics.json",
    ]


def test_twice(machine):
    exp = experiment.Experiment(parsers.JsonParser(machine / "out"))
    for _ in range(2):
        p, q = exp.measure_yourself(period=0.02)
        time.sleep(0.1)
        q.put("Stop")
    results = experiment.ExpResults(exp.db_driver)
    assert len(results.get_curve("intel_power")) == 2


@pytest.mark.parametrize(
    ("meta_data", "description"),
    [
        ("a convolution", "a convolution"),
        ({"description": "a net", "lr": 0.1}, "a net"),
        ({"lr": 0.1}, '{"lr": 0.1}'),
    ],
)
def test_meta_data(machine, meta_data, description):
    folder = machine / "out"
    driver = parsers.JsonParser(folder, meta_data=meta_data)
    p, q = experiment.Experiment(driver).measure_yourself(period=0.1)
    with pytest.raises(queue.Empty):
        q.get(block=False)
    q.put("Stop")
    assert q.get(block=True) == "Stop"
    results = experiment.ExpResults(parsers.JsonParser(folder))
    assert results.description == description
    later = parsers.JsonParser(folder, meta_data="said when it is read")
    assert experiment.ExpResults(later).description == "said when it is read"


# A GPU of 300 W whose counter moves each 0.1 s, which the last window ends in the middle of.
@pytest.mark.parametrize("seconds", [1.004, 1.06, 1.3, 0.3])
def test_last_window(machine, counters, monkeypatch, seconds):
    steps = {"start": 1000, "period_ms": 100}
    gpu = {"name": "H100", "power": 300, "utilization": 0.75, "energy": steps}
    (machine / "steps.json").write_text(json.dumps({"gpus": [gpu]}))
    monkeypatch.setenv("FAKE_NVML_SCENARIO", str(machine / "steps.json"))
    driver = parsers.JsonParser(machine / "out")
    p, q = experiment.Experiment(driver).measure_yourself(period=0.5)
    time.sleep(seconds)
    q.put("Stop")
    lines = (machine / "out/power_metrics.json").read_text().splitlines()[:-1]
    last = json.loads(lines[-1])["metrics"]
    assert last["gpu"]["nvidia_power"] == pytest.approx(300, rel=0.1)
    assert last["cpu"]["intel_power"] == pytest.approx(40, rel=counters.off(min(seconds, 0.5)))
    results = experiment.ExpResults(driver)
    joules = 300 * results.get_exp_duration()[0]
    half_a_step = 300 * 0.1 / 2
    assert results.total_("nvidia_power") == pytest.approx(joules, abs=0.05 * joules + half_a_step)


@pytest.mark.parametrize("kind", [parsers.JsonParser, parsers.DatabaseParser])
def test_starts_at_the_start(machine, kind):
    driver = kind(machine / ("out.sqlite" if kind is parsers.DatabaseParser else "out"))
    before = time.time()
    p, q = experiment.Experiment(driver).measure_yourself(period=1)
    after = time.time()
    time.sleep(1.2)
    q.put("Stop")
    results = experiment.ExpResults(driver)
    seconds, start, end = results.get_exp_duration()
    assert before - 0.1 <= start <= after + 0.1
    assert end - start == pytest.approx(seconds, abs=0.01)
    (curve,) = results.get_curve("intel_power")
    assert curve[0]["date"] == start and curve[0]["value"] == curve[1]["value"]


def test_others_are_not_deleted(machine):
    home = machine / "home"
    home.mkdir()
    (home / "thesis.txt").write_text("years of work")
    experiment.Experiment(parsers.JsonParser(home))
    assert (home / "thesis.txt").exists()

    shutil.copytree(DATA / "head", machine / "theirs")
    with pytest.raises(wattmeter.Error, match="not made by wattmeter"):
        experiment.Experiment(parsers.JsonParser(machine / "theirs"))
    assert (machine / "theirs/power_metrics.json").exists()


def test_in_use(machine):
    driver = parsers.JsonParser(machine / "out")
    p, q = experiment.Experiment(driver).measure_yourself(period=0.02)
    time.sleep(1)  # By then something of it is written.
    with pytest.raises(wattmeter.Error, match="recording to it"):
        experiment.Experiment(driver)
    with pytest.raises(wattmeter.Error, match="recording to it"):
        experiment.Experiment(driver, cont=True).measure_yourself()
    q.put("Stop")
    assert experiment.ExpResults(driver).total_("intel_power") > 0


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request, machine):
    """What a DatabaseParser writes to: a file, or a database of a server of our own."""
    if request.param == "sqlite":
        yield machine / "r.sqlite"
        return
    sys.path.insert(0, str(SOURCE / "tests" / "system"))
    try:
        import postgres_server
    finally:
        del sys.path[0]
    try:
        server = postgres_server.Server()
    except postgres_server.Skip as why:
        pytest.skip(str(why))
    try:
        yield server.url()
    finally:
        server.remove()


def test_database(machine, target, capsys, counters):
    metrics = machine / "m.jsonl"
    driver = parsers.DatabaseParser(target, "resnet", "50 layers", metrics)
    with pytest.raises(wattmeter.Error):
        experiment.ExpResults(driver)
    card = {"total_params": 25600000, "total_mult_adds": 4100000000}
    exp = experiment.Experiment(driver, model=card)
    for accuracy in (0.5, 0.75):
        p, q = exp.measure_yourself(period=0.02)
        time.sleep(0.1)
        driver.save_exp_metrics({"accuracy": accuracy})
        time.sleep(0.4)
        q.put("Stop")

    driver = parsers.DatabaseParser(target, "resnet")
    results = experiment.ExpResults(driver)
    assert results.description == "50 layers"
    assert results.model_card == card
    assert results.list_metrics()["Experiment"] == ["accuracy"]
    assert [s[0]["value"] for s in results.get_curve("accuracy")] == [0.5, 0.75]
    assert results.max_("accuracy") == 0.75
    d = results.get_duration_metric("intel_power")[0]
    assert d > 0.9
    assert results.total_("intel_power") == pytest.approx(40 * d, rel=counters.off(d))
    assert results.total_("total_dram_power") == pytest.approx(4 * d, rel=counters.off(d))
    assert results.total_("nvidia_power") == pytest.approx(300 * d, rel=0.1)
    each = results.average_("per_gpu_power_draw")
    assert each == {"0": pytest.approx(300, rel=0.05)}
    results.print()
    assert "25600000 parameters and 4100000000 mac" in capsys.readouterr().out

    with pytest.raises(wattmeter.Error, match="never deleted") as caught:
        experiment.Experiment(driver)
    assert caught.value.status == "EEXIST"
    experiment.Experiment(driver, cont=True)
    experiment.Experiment(parsers.DatabaseParser(target, "other"))
    with pytest.raises(ValueError, match="without a file"):
        driver.save_exp_metrics({"accuracy": 1})


def test_exp_metrics_in_a_folder(machine):
    driver = parsers.JsonParser(machine / "out")
    p, q = experiment.Experiment(driver).measure_yourself(period=0.02)
    for accuracy in (0.25, 0.5):
        time.sleep(0.1)
        driver.save_exp_metrics({"accuracy": accuracy})
    time.sleep(0.1)
    q.put("Stop")
    results = experiment.ExpResults(driver)
    assert results.list_metrics()["Experiment"] == ["accuracy"]
    ((one, other),) = results.get_curve("accuracy")
    assert (one["value"], other["value"]) == (0.25, 0.5)
    told = json.loads((machine / "out/results_exp.json").read_text())
    assert [r["accuracy"] for r in told] == [0.25, 0.5]
    assert all("end_training_epoch" in r for r in told)


class Parameter:
    def __init__(self, count):
        self.count = count

    def numel(self):
        return self.count


class Net:
    def parameters(self):
        return [Parameter(90), Parameter(10)]


def test_model_card(machine):
    driver = parsers.JsonParser(machine / "out")
    experiment.Experiment(driver, model=Net(), input_size=(64, 3, 32, 32))
    card = driver.get_model_card()
    assert card["name"] == "Net" and card["total_params"] == 100
    assert card["input_size"] == [64, 3, 32, 32]


def test_model_card_of_pytorch(machine, capsys):
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(8, 4, bias=False), torch.nn.BatchNorm1d(4))
    net[1].requires_grad_(False)
    before = {name: one.clone() for name, one in net.state_dict().items()}
    driver = parsers.JsonParser(machine / "out")
    exp = experiment.Experiment(driver, net, (16, 8), passes=1000)
    p, q = exp.measure_yourself(period=0.02)
    time.sleep(0.3)
    q.put("Stop")
    card = driver.get_model_card()
    assert card["name"] == "Sequential" and card["input_size"] == [16, 8]
    assert (card["total_params"], card["trainable_params"]) == (40, 32)
    assert all(torch.equal(net.state_dict()[name], before[name]) for name in before)
    results = experiment.ExpResults(driver)
    summary = results.get_summary()
    results.print()
    printed = capsys.readouterr().out
    if "flops" not in card:
        assert "cannot count" in card["flops_why"] and card["flops_why"] in printed
        assert "energy_per_flop" not in summary
        return
    assert card["flops"] == 2 * 16 * 8 * 4
    cpu, gpu = summary["cpu"], summary["gpu"]
    joules = cpu["total_intel_power"] + cpu["total_dram_power"] + gpu["nvidia_power"]
    assert summary["energy_per_flop"] == pytest.approx(joules / 1024e3, rel=0.05)
    assert "40 parameters and 512 mac operations" in printed
    assert "joules per FLOP of 1000 passes" in printed


def test_why_flops_are_not_known(machine):
    torch = pytest.importorskip("torch")
    driver = parsers.JsonParser(machine / "out")
    net = torch.nn.Linear(8, 4)
    experiment.Experiment(driver, net)
    assert "was not given" in driver.get_model_card()["flops_why"]
    experiment.Experiment(driver, net, [(2, 7)])
    why = driver.get_model_card()["flops_why"]
    assert "cannot count" in why or "cannot be called" in why


# Other processes.

BUSY = "import time\nwhile time.sleep(0) is None: pass"


@pytest.fixture
def busy():
    child = subprocess.Popen([sys.executable, "-c", BUSY])
    yield child
    child.kill()
    child.wait()


def test_pids(machine, busy):
    """Two of them, which have no ancestor in the list."""
    short = subprocess.Popen(["sleep", "0.4"])
    driver = parsers.JsonParser(machine / "out")
    exp = experiment.Experiment(driver)
    p, q = exp.measure_from_pid_list([short.pid, busy], period=0.05)
    short.wait()
    time.sleep(0.6)  # The first is not all of them.
    q.put("Stop")
    results = experiment.ExpResults(driver)
    assert results.get_exp_duration()[0] > 0.9
    assert results.total_("absolute_cpu_time_per_pid") > 0
    ((*_, last),) = results.get_curve("per_process_mem_use_abs")
    assert last["value"] > 1e6


def test_pid_list(machine, busy):
    driver = parsers.JsonParser(machine / "out")
    exp = experiment.Experiment(driver)
    p, q = exp.measure_from_pid_list([busy.pid], period=0.05)
    time.sleep(0.6)
    q.put("Stop")
    results = experiment.ExpResults(driver)
    assert results.total_("absolute_cpu_time_per_pid") > 0
    line = (machine / "out/power_metrics.json").read_text().splitlines()[0]
    assert list(json.loads(line)["metrics"]["cpu"]["per_process_mem_use_abs"]) == [
        str(busy.pid)
    ]
    gone = subprocess.Popen(["true"])
    gone.wait()
    with pytest.raises(wattmeter.Error, match="no process") as caught:
        exp.measure_from_pid_list([gone.pid])
    assert caught.value.status == "ENOENT"
    with pytest.raises(ValueError):
        exp.measure_from_pid_list([])


# What it came to.


def test_latest_generation(tmp_path, utc):
    results = recorded(tmp_path, "head")
    assert results.list_metrics()["GPU"][:4] == [
        "nvidia_power",
        "nvidia_draw_absolute",
        "nvidia_use_rate",
        "nvidia_memory",
    ]
    assert "psys_power" not in results.list_metrics()["CPU"]
    assert results.total_("psys_power") is None
    assert results.get_curve("psys_power") is None
    assert results.total_("intel_power") == pytest.approx(433.125)
    assert results.average_("intel_power") == pytest.approx(433.125 / 6.75)
    ((first, *_, last),) = results.get_curve("intel_power")
    assert (first["value"], last["value"]) == (60, 70)
    assert (
        last["date"]
        == datetime.datetime(
            2026, 3, 7, 18, 45, 6, 125000, datetime.timezone.utc
        ).timestamp()
    )
    assert results.max_("intel_power") == 70
    assert results.average_("total_dram_power") == 4.5  # Not known all of the time.
    assert results.total_("nvidia_power") == pytest.approx(1687.5)
    assert results.total_("per_gpu_nvidia_power") == {
        "0": pytest.approx(1350),
        "1": pytest.approx(337.5),
    }
    assert results.average_("per_gpu_nvidia_use_rate") == {"0": 100, "1": 0}
    assert results.average_("nvidia_use_rate") == 50
    assert results.max_("nvidia_memory") == 3e9
    assert [p["value"] for p in results.get_curve("nvidia_memory")[0]] == [3e9] * 7
    assert results.total_("absolute_cpu_time_per_pid") == 13.5
    assert results.average_("per_process_cpu_uses") == 0.5
    assert results.total_power_draw() == pytest.approx(433.125 + 1687.5)
    assert results.total_("energy") == pytest.approx(433.125 + 1687.5 + 20.25)
    assert results.total_("no such metric") is None
    assert results.get_origin("intel_power") == "measured"
    assert results.get_origin("psys_power") is None
    duration, start, end = results.get_exp_duration()
    assert (duration, end - start) == (6.75, 6.75)


def test_display(tmp_path, utc, monkeypatch):
    """Each GPU has a line of its own; the original fails there."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    results = recorded(tmp_path, "head")
    for draw in (
        lambda path: results.display_curves("nvidia_power", path),
        lambda path: results.display_curves(["intel_power", "per_gpu_nvidia_power"], path),
        lambda path: results.display_2_curves("intel_power", "nvidia_power", path),
    ):
        path = tmp_path / "figure.png"
        draw(path)
        assert path.read_bytes().startswith(b"\x89PNG")
        path.unlink()
    assert not pyplot.get_fignums()

    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.gcf()))
    results.display_curves(["intel_power", "per_gpu_nvidia_power"])
    lines = shown[0].axes[0].lines
    labels = [t.get_text() for t in shown[0].axes[0].get_legend().get_texts()]
    assert labels[0] == "intel_power" and "per_gpu_nvidia_power, GPU 0" in labels
    curve = results.get_curve("intel_power")
    assert list(lines[0].get_ydata()) == [p["value"] for p in curve[0]]
    pyplot.close("all")
    with pytest.raises(ValueError, match="no metric 'watts' here; there are .*intel_power"):
        results.display_curves("watts")
    pyplot.close("all")


def test_part_of_the_time(tmp_path, utc):
    results = recorded(tmp_path, "head")
    _, start, end = results.get_exp_duration()
    half = results.total_("nvidia_power", start=start, end=start + 2)
    assert half == pytest.approx(500)
    assert results.total_("nvidia_power", end=start + 0.5) == pytest.approx(125)
    assert results.total_("nvidia_power", start=end + 1) is None
    assert results.max_("nvidia_memory", start, start + 1) == 3e9
    assert results.max_("nvidia_memory", end + 1) is None
    duration = results.get_duration_metric("nvidia_power", start + 1, end)
    assert duration == pytest.approx((5.75, start + 1, end))
    summary = results.get_summary(start, start + 2)
    assert summary["duration"] == pytest.approx(2)
    assert summary["gpu"]["nvidia_power"] == pytest.approx(500)
    assert summary["gpu"]["per_gpu_nvidia_power"]["1"] == pytest.approx(100)


def test_summary(tmp_path, utc, capsys):
    results = recorded(tmp_path, "head")
    summary = results.get_summary()
    assert summary["start"] == "2026-03-07 18:44:59.375000"
    assert summary["cpu"] == {
        "total_psys_power": None,
        "total_intel_power": pytest.approx(433.125),
        "rel_intel_power": pytest.approx(216.5625),
        "total_dram_power": pytest.approx(20.25),
        "total_cpu_power": pytest.approx(337.5),
        "rel_dram_power": None,
        "rel_cpu_power": pytest.approx(168.75),
        "mem_use_abs": 2e9,
        "mem_use_uss": 1.5e9,
        "max_total_mem_use": 8e9,
        "absolute_cpu_time_per_pid": 13.5,
        "relative_cpu_use": 0.5,
    }
    assert summary["gpu"]["nvidia_use_rate"] == 50
    assert summary["gpu"]["nvidia_memory"] == 3e9
    json.dumps(summary)
    results.print()
    printed = capsys.readouterr().out
    assert "psys power: n/a" in printed
    assert "GPU 0: 1350 joules, GPU 1: 337.5 joules" in printed
    assert "GPU 0: 100 %, GPU 1: 0 %" in printed


def test_older_generation(tmp_path, utc):
    results = recorded(tmp_path, "generation1")
    assert results.description == "two segments"
    assert results.model_card == {"total_params": 1000, "depth": 3}
    assert results.total_("intel_power") == pytest.approx(79.13)
    assert [len(s) for s in results.get_curve("intel_power")] == [5, 5]
    assert results.get_exp_duration()[0] == pytest.approx(1.64)
    assert results.total_("nvidia_draw_absolute") == pytest.approx(213.2)
    assert results.average_("per_gpu_power_draw") == {
        "0": pytest.approx(103.125),
        "1": pytest.approx(26.875),
    }
    assert results.average_("per_gpu_attributable_power") == {"0": pytest.approx(70)}
    assert results.average_("nvidia_attributable_power") == pytest.approx(70)
    assert results.average_("per_gpu_absolute_percent_usage")["0"] == pytest.approx(0.5)
    assert results.average_("per_gpu_estimated_attributable_utilization") == {
        "0": pytest.approx(0.66),
        "1": 0,
    }
    assert results.total_("uncore_power") == 0
    assert results.average_("cpu_uses") == pytest.approx(0.85)


def test_oldest_generation(tmp_path, utc):
    results = recorded(tmp_path, "2021")
    assert "nvidia_draw_absolute" in results.list_metrics()["GPU"]
    assert results.total_power_draw() > 0
    assert results.list_metrics()["Experiment"] == ["accuracy"]


def test_nothing_measures(bare, capsys):
    driver = parsers.JsonParser(bare / "out")
    p, q = experiment.Experiment(driver).measure_yourself(period=0.02)
    work(0.2)
    q.put("Stop")
    results = experiment.ExpResults(driver)
    assert results.total_("nvidia_power") is None
    assert results.average_("per_process_mem_use_abs") > 1e6
    assert "gpu" not in results.get_summary()
    results.print()
    printed = capsys.readouterr().out
    assert "on the gpu\nNOT AVAILABLE" in printed
    assert results.get_origin("intel_power") == "estimated"
    assert "joules (estimated)" in printed


def test_no_recording(tmp_path):
    driver = parsers.JsonParser(tmp_path / "nothing")
    with pytest.raises(wattmeter.Error):
        experiment.ExpResults(driver)
    assert not (tmp_path / "nothing").exists()


# The functions.


def test_curves():
    one = [{"date": 0.0, "value": 1.0}, {"date": 2.0, "value": 3.0}]
    other = [[{"date": 1.0, "value": 10.0}], [{"date": 3.0, "value": 20.0}]]
    left, right = experiment.interpolate(one, other)
    assert [p["date"] for p in left] == [p["date"] for p in right] == [0, 1, 2, 3]
    assert [p["value"] for p in left[:3]] == [1, 2, 3]
    assert math.isnan(left[3]["value"])
    assert [math.isnan(p["value"]) for p in right] == [True, False, True, False]
    assert experiment.integrate(one) == [0, 4]
    assert experiment.integrate(other) == [0, 0]
    assert experiment.cumsum(one) == [1, 4]
    assert experiment.cumsum(other) == [10, 30]
    assert experiment.cumsum([]) == [] and experiment.integrate([]) == []


@pytest.mark.parametrize(
    "size, text",
    [(0, "0.0B"), (1023, "1023.0B"), (1536, "1.5KiB"), (2**30, "1.0GiB")],
)
def test_humanize_bytes(size, text):
    assert experiment.humanize_bytes(size) == text


def test_joules():
    assert experiment.joules_to_wh(3600) == 1
    assert experiment.joules_to_wh([3600, 7200]) == [1, 2]
    assert experiment.joules_to_kwh(3.6e6) == 1


def test_mem_uses(busy):
    gone = subprocess.Popen(["true"])
    gone.wait()
    pss, uss = rapl_power.get_mem_uses([busy, os.getpid(), gone])
    assert list(pss) == [busy.pid, os.getpid()]
    assert pss[os.getpid()] > uss[os.getpid()] > 1e6


def test_processes(busy):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with pytest.warns(UserWarning, match=f"process {gone.pid} is gone"):
        processes = rapl_power.get_processes([busy.pid, gone.pid])
    assert [process.pid for process in processes] == [busy.pid]
    assert list(rapl_power.get_mem_uses(processes)[0]) == [busy.pid]


def test_cpu_uses(busy):
    idle = subprocess.Popen(["sleep", "60"])
    try:
        uses = {busy.pid: 0}
        while uses[busy.pid] == 0:  # a busy machine may give it no turn for so long
            uses = rapl_power.get_cpu_uses([busy, idle], period=0.5)
    finally:
        idle.kill()
        idle.wait()
    assert uses[idle.pid] == 0
    assert 0 < uses[busy.pid] <= 1


def test_rapl(machine, monkeypatch, counters):
    procfs = machine / "proc"
    procfs.mkdir()
    (procfs / "cpuinfo").write_text("vendor_id\t: GenuineIntel\ncpu family\t: 6\n")
    monkeypatch.setenv("WATTMETER_PROCFS", str(procfs))
    assert rapl_power.is_rapl_compatible()[0]
    sampler = rapl.RAPLSample()
    before = sampler.take_sample()
    time.sleep(0.5)
    difference = sampler.take_sample() - before
    power = rapl_power.get_power(difference)
    assert set(power) == {
        *("package", "core", "ram"),
        *("intel_power", "cpu_power", "dram_power"),
    }
    off = counters.off(0.5)
    assert power["intel_power"] == pytest.approx(40, rel=off)
    assert power["cpu_power"] == pytest.approx(30, rel=off)
    assert power["dram_power"] == pytest.approx(4, rel=off)
    assert power["ram"] == pytest.approx(4 * difference.duration, rel=off)


def test_no_rapl(bare):
    usable, why = rapl_power.is_rapl_compatible()
    assert not usable and "RAPL" in why
    with pytest.raises(wattmeter.Error) as caught:
        rapl.RAPLSample()
    assert caught.value.status == "ENODEV"


ASK = """
import json, sys
from wattmeter.compat.deep_learning_power_measure.power_measure import gpu_power
usable, why = gpu_power.is_nvidia_compatible()
assert usable, why
some = gpu_power.get_nvidia_gpu_power([4190001, 4190003])
print(repr([some, gpu_power.get_nvidia_gpu_power()]))
"""


def test_gpu_power(machine, monkeypatch):
    """In a process of its own, as a driver is loaded once in each."""
    monkeypatch.setenv("FAKE_NVML_SCENARIO", str(SCENARIOS / "everything.json"))
    asked = subprocess.run(
        [sys.executable, "-c", ASK], check=True, stdout=subprocess.PIPE, timeout=300
    )
    power, everybody = ast.literal_eval(asked.stdout.decode())
    draws = power["per_gpu_power_draw"]
    assert list(draws) == [0, 1]
    assert power["nvidia_draw_absolute"] == pytest.approx(sum(draws.values()))
    assert power["per_gpu_attributable_mem_use"] == {
        0: {4190001: 12884901888, 4190003: 536870912},
        1: {},
    }
    assert power["per_gpu_per_pid_utilization_absolute"][0] == {
        4190001: 0.55,
        4190002: 0.21,
        4190003: 0,
        4190004: 0.02,
        4190005: 0,
    }
    assert power["per_gpu_absolute_percent_usage"][0] == pytest.approx(0.55)
    relative = power["per_gpu_estimated_attributable_utilization"]
    assert relative[0] == pytest.approx(0.55 / 0.78)
    assert everybody["per_gpu_absolute_percent_usage"][0] == pytest.approx(0.78)
    assert everybody["per_gpu_attributable_mem_use"][0][4190005] is None


def test_several_queries(machine, monkeypatch):
    monkeypatch.setattr(gpu_power, "_PAUSE", 0.01)
    power = gpu_power.get_nvidia_gpu_power(nsample=3)
    assert power["nvidia_draw_absolute"] == pytest.approx(300, rel=0.01)


def test_no_gpu(bare):
    usable, why = gpu_power.is_nvidia_compatible()
    assert not usable and "no NVIDIA" in why
    power = gpu_power.get_nvidia_gpu_power()
    assert power["nvidia_draw_absolute"] is None
    assert power["per_gpu_power_draw"] == {}
