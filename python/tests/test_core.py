# SPDX-License-Identifier: Apache-2.0
"""The rest of the extension, the package as a whole, and what Python sees of both."""

import ast
import os
import pickle
import subprocess
import sys
import threading
import time

import pytest

import wattmeter
from wattmeter import _core

PACKAGE = os.path.dirname(os.path.abspath(wattmeter.__file__))


def test_the_import_is_small(python):
    done = python("""
        import os, sys
        before = set(sys.modules)
        import wattmeter
        print(*sorted(set(sys.modules) - before), file=sys.stderr)
        print(len(os.listdir("/proc/self/task")))
        """)
    modules = [
        name for name in done.stderr.split() if not name.startswith("encodings.")
    ]
    assert modules == ["wattmeter", "wattmeter._core"]
    assert done.stdout.split() == ["1"]


def test_names_of_the_package():
    for name in wattmeter.__all__:
        assert name in dir(wattmeter)
        assert getattr(wattmeter, name).__doc__
    with pytest.raises(AttributeError, match="nonsense"):
        wattmeter.nonsense
    assert wattmeter.__version__ == _core.version


def described(path):
    """The names that a stub has, at the top and in classes."""
    with open(path) as file:
        tree = ast.parse(file.read())
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        for inner in getattr(node, "body", ()):
            if isinstance(node, ast.ClassDef) and isinstance(inner, ast.FunctionDef):
                names.add(f"{node.name}.{inner.name}")
    return names


def test_the_stub_has_every_name():
    known = described(os.path.join(PACKAGE, "_core.pyi"))
    for name, value in vars(_core).items():
        if name.startswith("_") or name in ("version", "Error"):
            continue
        assert name in known
        if isinstance(value, type) and not issubclass(value, tuple):
            for method in vars(value):
                if not method.startswith("_"):
                    assert f"{name}.{method}" in known
    for name in known - {"Error.status"}:
        value = _core
        for part in name.split("."):
            value = getattr(value, part)
        assert value.__doc__


@pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", ""), reason="it does not run our code"
)
def test_mypy_finds_nothing():
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "-p", "wattmeter"],
        cwd=os.path.dirname(PACKAGE),
        stdout=subprocess.PIPE,
        universal_newlines=True,
    )
    assert done.returncode == 0, done.stdout


def test_errors():
    with pytest.raises(wattmeter.Error) as caught:
        _core.Report.from_recording("/nonexistent")
    error = caught.value
    assert error.status == "ENOENT" and "/nonexistent" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (again.status, str(again)) == (error.status, str(error))
    assert wattmeter.Error("x").status == "EIO"


UNMAKEABLE = [_core.Report, _core.Series, type(_core.region("x")).__mro__[0]]


@pytest.mark.parametrize("kind", UNMAKEABLE)
def test_what_is_not_made_by_its_class(kind):
    with pytest.raises(TypeError):
        kind()


def test_units_prices_and_carbon(data):
    report = _core.Report.from_recording(data / "recordings" / "v1-estimate.csv")
    assert "EUR" in report.print(price_per_kwh=0.3, currency="EUR")
    assert "CO2e" in report.print(carbon_g_per_kwh=400, pue=1.2)
    assert "hours" in report.print("json", time_unit="hours")
    assert report.print("gpu-tracker-api") and report.print("gpu-tracker-json")
    for style in (
        {"ram_unit": "nonsense"},
        {"pue": 0.5},
        {"price_per_kwh": float("nan")},
    ):
        with pytest.raises(ValueError):
            report.print(**style)
    with pytest.raises(TypeError):
        report.print("text", 1)


def test_codecarbon(data, tmp_path):
    report = _core.Report.from_recording(data / "recordings" / "v1.sqlite")
    path = tmp_path / "emissions.csv"
    report.write_codecarbon(path, carbon_g_per_kwh=400)
    with pytest.raises(wattmeter.Error) as caught:
        report.write_codecarbon(path)
    assert caught.value.status == "EEXIST"
    report.write_codecarbon(path, "append")
    assert len(path.read_text().splitlines()) == 3


def test_parts_of_a_report(data):
    report = _core.Report.from_recording(data / "recordings" / "v1-regions.sqlite")
    for kind in ("run", "region", "path", "rest", "gpu", "device"):
        for i in range(report.count(kind)):
            assert report.figures(kind, i)
    assert report.figures("gpu", 99) == []
    name = report.region("region", 0)["name"]
    assert report.find("region", name) == 0
    for wrong, error in [
        (lambda: report.count("nonsense"), ValueError),
        (lambda: report.figure("energy", share="nonsense"), ValueError),
        (lambda: report.figure("energy", "gpu", 99), KeyError),
        (lambda: report.figure("energy", "gpu", -1), KeyError),
        (lambda: report.region("region", 99), IndexError),
        (lambda: report.region("gpu", 0), IndexError),
        (lambda: report.device("gpu", 99), IndexError),
        (lambda: report.find("region", "nonsense"), KeyError),
    ]:
        with pytest.raises(error):
            wrong()


def test_a_meter(tmp_path, no_gpus):
    path, table = tmp_path / "snippets.csv", tmp_path / "run.csv"
    meter = _core.Meter(estimate=True, snippets=path)
    number = meter.start("a")
    meter.run(table, 0.02)
    with pytest.raises(ValueError):
        meter.run(table, 0.02)
    time.sleep(0.1)
    reading = meter.stop(number)
    assert len(reading.devices) == len(meter.devices) and meter.remark is None
    assert reading.cpu.state == "ok" and reading.gpu.why
    meter.halt()
    with pytest.raises(ValueError):
        meter.halt()
    with pytest.raises(ValueError):
        meter.stop(number)
    meter.start("b")
    assert meter.close() == 1 and meter.close() == 0
    with pytest.raises(ValueError, match="closed"):
        meter.start()
    assert len(path.read_text().splitlines()) == 3
    assert len(table.read_text().splitlines()) > 2
    with pytest.raises(wattmeter.Error):
        _core.Meter(snippets=path)


def test_a_row_that_cannot_be_written_does_not_lose_the_figures(python):
    done = python("""
        import resource, signal
        from wattmeter import _core
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        meter = _core.Meter(snippets="snippets.csv")
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
        try:
            meter.stop(meter.start("a"))
        except _core.Error as error:
            print(error.status, error.reading.elapsed >= 0)
        """)
    assert done.stdout.split() == ["EIO", "True"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("ENOENT", FileNotFoundError),
        ("EEXIST", FileExistsError),
        ("EACCES", PermissionError),
        ("ENODEV", wattmeter.Error),
    ],
)
def test_an_error_has_its_status_and_its_kind(status, kind):
    error = _core.failure(status, "gpu0: no limit")
    assert isinstance(error, kind) and isinstance(error, wattmeter.Error)
    assert (error.status, str(error)) == (status, "gpu0: no limit")


def test_sub_tracking(data, tmp_path):
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path in paths:
        file = _core.RegionFile(path)
        file.write("block", False)
        file.write("block", True, time.time() + 1)
        file.close()
        file.close()
        with pytest.raises(ValueError, match="closed"):
            file.write("block", False)
    assert _core.combine_sub_tracking(paths, tmp_path / "all.csv") == []
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 5
    recording = data / "recordings" / "v1.sqlite"
    text, remarks, unpaired = _core.analyze(recording, [tmp_path / "all.csv"], "text")
    assert "block" in text and unpaired == (0, 0)
    assert '"block"' in _core.analyze(recording, paths, "gpu-tracker-json")[0]
    assert "another session" in remarks[0]
    files = [recording, data / "recordings" / "v1.csv"]
    comparison = _core.compare(["a", "b"], files, "mean", "json", 0.01, ())
    assert comparison.text and comparison.json == "" and len(comparison.remarks) == 2
    with pytest.raises(ValueError, match='"a"'):
        _core.compare(["a", "a"], files, "mean", "text", 0.01, ())
    with pytest.raises(ValueError, match="each session has a name and a path"):
        _core.compare(["a"], files, "mean", "text", 0.01, ())
    with pytest.raises(TypeError, match="list"):
        _core.combine_sub_tracking("a.csv", tmp_path / "x.csv")


def test_a_tracker_by_hand(tmp_path, no_gpus):
    (tmp_path / "card.json").write_text('{"name": "net"}')
    (tmp_path / "metrics.jsonl").write_text('{"time": %f, "loss": 1}\n' % time.time())
    tracker = _core.Tracker(interval=0.02, cores=1, cpu_watts="1:2")
    assert (tracker.state, tracker.pid, tracker.exit_code) == ("new", 0, None)
    with pytest.raises(wattmeter.Error):
        tracker.add("nvml")
    tracker.add("host")
    with pytest.raises(wattmeter.Error):
        tracker.add("host")
    tracker.note("a", "b")
    target = tmp_path / "x.sqlite"
    tracker.experiment(target, "net", "text", tmp_path / "card.json")
    tracker.metrics(tmp_path / "metrics.jsonl")
    tracker.start_command(["sleep", "60"])
    assert tracker.state == "running" and tracker.pid > 0 and tracker.regions
    assert tracker.poll(0) is True
    tracker.signal(15)
    while tracker.poll():
        pass
    assert tracker.state == "ended"
    tracker.stop()
    assert tracker.exit_code == 143
    with pytest.raises(wattmeter.Error) as caught:
        tracker.signal(15)
    assert caught.value.status == "ENOENT"
    assert tracker.report().notes["a"] == "b"
    with pytest.raises(TypeError):
        tracker.poll("x")


def test_two_threads_do_not_use_one_tracker():
    tracker = _core.Tracker(interval=10)
    tracker.start_command(["sleep", "60"])

    def wait():
        while tracker.poll():
            pass

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.2)
    with pytest.raises(ValueError, match="another thread"):
        tracker.stop()
    tracker.signal(9)
    thread.join()
    tracker.stop()
    assert tracker.exit_code == 137


def test_a_doctor(no_gpus):
    found = wattmeter.doctor(0.2)
    assert found.can_measure is True
    assert {source["name"] for source in found.to_dict()["sources"]} >= {"host", "nvml"}
    assert repr(found).splitlines()[:5] == str(found).splitlines()[:5]
    assert "<pre>" in found._repr_html_()
    for duration in (-1, float("nan"), 1e9):
        with pytest.raises(ValueError):
            wattmeter.doctor(duration)


def test_the_command(build):
    environment = {
        **os.environ,
        "PATH": str(build),
        "PYTHONPATH": os.path.dirname(PACKAGE),
    }
    done = subprocess.run(
        [sys.executable, "-m", "wattmeter", "--version"],
        env=environment,
        stdout=subprocess.PIPE,
        universal_newlines=True,
    )
    assert done.returncode == 0 and wattmeter.__version__ in done.stdout


def test_a_notebook(tmp_path, monkeypatch, capsys):
    pytest.importorskip("IPython")
    from IPython.testing.globalipapp import start_ipython

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = start_ipython()
    shell.run_line_magic("load_ext", "wattmeter")
    shell.run_cell_magic("wattmeter", "-i 0.02 -o cost", "x = 1 + 1")
    assert shell.user_ns["x"] == 2
    assert shell.user_ns["cost"].time.value > 0
    with pytest.raises(ZeroDivisionError):
        shell.run_cell_magic("wattmeter", "-o failed", "1 / 0")
    assert shell.user_ns["failed"].time.value > 0
    capsys.readouterr()
    for cell in "1 / 0", "1 +":
        assert not shell.run_cell(f"%%wattmeter\n{cell}").success
        out = capsys.readouterr().out
        assert out.count("Error: ") == 1 and "CPU time " in out, out
    shell.run_line_magic("wattmeter", "y = 2 + 2")
    assert shell.user_ns["y"] == 4 and "CPU time " in capsys.readouterr().out
    from IPython.core.error import UsageError

    for line, why in (
        ("--nonsense", "unrecognized arguments: --nonsense\nusage: %%wattmeter"),
        ("-i fast", "invalid float value: 'fast'"),
        ('-o "cost', "No closing quotation"),
    ):
        with pytest.raises(UsageError, match=why):
            shell.run_cell_magic("wattmeter", line, "z = 1")
    assert "z" not in shell.user_ns
    with pytest.raises(UsageError, match="needs a statement"):
        shell.run_line_magic("wattmeter", "")
    with pytest.raises(UsageError, match="an await of its own"):
        shell.run_cell_magic("wattmeter", "", "import asyncio\nawait asyncio.sleep(0)")
