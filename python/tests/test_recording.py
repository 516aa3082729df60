# SPDX-License-Identifier: Apache-2.0
"""read() and compare(): recordings as columns, and what differs between them."""

import json
import math
import pickle
import re
import shutil
import sqlite3
import time

import pytest

import wattmeter
from wattmeter import _core


def test_columns(data):
    recording = wattmeter.read(data / "recordings" / "v1.sqlite")
    assert len(recording) == len(recording.times) == len(recording.seconds) > 0
    assert recording.times.format == "q" and recording.seconds.format == "d"
    assert recording.seconds[0] == 0
    assert recording.times[0] == recording.report.info["start_unix_ns"]
    assert list(recording.times) == sorted(recording.times)
    assert set(recording) == set(recording.keys()) == set(recording.columns)
    for name in recording:
        column = recording[name]
        assert name in recording and column.name == name and column.unit
        assert column.values.format == "d" and column.states.format == "B"
        assert len(column) == len(column.states) == len(recording)
        for i, value in enumerate(column):
            assert math.isnan(value) == (column.state(i) != "ok")
    with pytest.raises(KeyError):
        recording["nonsense"]


FORMATS = ["v1.csv", "v1.sqlite", "v2.csv", "v1-load.aipm", "v1-amd.csv"]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_read(data, name):
    recording = wattmeter.read(data / "recordings" / name)
    assert len(recording) > 0 and recording.columns
    assert recording.report.time.value > 0


def test_a_run_of_several(data):
    path = data / "recordings" / "v1-three-runs.sqlite"
    assert wattmeter.read(path).run_count == 3
    assert ", run 2 of 0 to 2: " in repr(wattmeter.read(path))
    assert ", run 1 of 0 to 2: " in repr(wattmeter.read(path, run=1))
    assert ", run" not in repr(wattmeter.read(path.with_name("v1.sqlite")))
    ids = {wattmeter.read(path, run).report.info["id"] for run in range(3)}
    assert len(ids) == 3
    with pytest.raises((wattmeter.Error, ValueError)):
        wattmeter.read(path, 3)
    with pytest.raises((ValueError, OverflowError)):
        wattmeter.read(path, -1)
    assert len(_core.print_list(path).splitlines()) == 4
    assert '"runs"' in _core.print_list(path, "json")


def test_regions(data, tmp_path):
    recording = wattmeter.read(data / "recordings" / "v1-regions.sqlite")
    regions = recording.regions
    assert len(regions) > 0
    one = regions[0]
    assert regions[one.name].calls == one.calls
    assert one.exclusive.time.value <= one.time.value
    assert sum(calls for _, calls in one.histogram) == one.calls
    assert len(recording.report.paths) > 0 and recording.report.rest.time.unit == "s"
    target = tmp_path / "sub.csv"
    assert recording.export_sub_tracking(target) >= 0
    assert "code_block_name" in target.read_text()


def test_export_and_compare(data, tmp_path):
    source = data / "recordings" / "v1.sqlite"
    wattmeter.read(source).export(tmp_path / "copy.csv")
    with pytest.raises(wattmeter.Error) as caught:
        wattmeter.read(source).export(tmp_path / "copy.csv")
    assert caught.value.status == "EEXIST" and isinstance(caught.value, FileExistsError)
    result = wattmeter.compare({"a": source, "b": tmp_path / "copy.csv"})
    assert not result.worst and result.worst_figure is None
    assert "Values " not in str(result)  # A run alone is its median and its mean.
    assert "Runs " in str(result) and result.untested == "b" and "<pre>" in result._repr_html_()
    assert result.to_dict()["statistic"] == "mean"
    watched = wattmeter.compare({"a": source, "b": source}, statistic="total", watch=["cpu_time"])
    with pytest.raises(ValueError, match="worst is missing: b: cpu_time could not be tested"):
        assert watched.worst < 0.05
    paths = wattmeter.compare(source, tmp_path / "copy.csv").to_dict()
    assert paths["overall"].keys() == result.to_dict()["overall"].keys()
    read = wattmeter.compare(wattmeter.read(source), tmp_path / "copy.csv")
    assert read.to_dict() == paths and str(source) in str(paths)


def test_runs_of_a_recording_are_repeats(data):
    source = data / "recordings" / "v1-eight-runs.sqlite"
    result = wattmeter.compare({"a": source, "b": source}, watch=["cpu_time"])
    assert result.untested is None and result.worst.value == 0
    assert result.worst < 0.05 and f"{result.worst:+.1%}" == "+0.0%"
    overall = result.to_dict()["overall"]
    families = {overall[name]["family"] for name in ("time", "cpu_time", "energy", "memory")}
    assert families == {"headlines"} and overall["cpu_use"]["family"] == "others"
    assert "Values       medians of the runs; changes are of their geometric" in str(result)
    cell = overall["cpu_time"]["sessions"]["b"]
    assert cell["runs"] == 8 and cell["verdict"] == "not_shown"
    assert cell["low"] < 0 < cell["high"]
    again = pickle.loads(pickle.dumps(result))
    assert str(again) == str(result) and again.to_dict() == result.to_dict()


def test_what_cannot_be_compared(data):
    source = data / "recordings" / "v1.sqlite"
    with pytest.raises(ValueError):
        wattmeter.compare({"a": source, "b": source}, statistic="median")
    with pytest.raises(ValueError):
        wattmeter.compare({"a": source, "b": source}, watch=["nonsense"])
    with pytest.raises(ValueError, match='more "cpu_use" is no regression; .*: .* time, '):
        wattmeter.compare({"a": source, "b": source}, watch=["cpu_use"])
    with pytest.raises(wattmeter.Error):
        wattmeter.compare({"a": source, "b": "nonexistent.sqlite"})
    with pytest.raises(FileNotFoundError, match="nonexistent"):
        wattmeter.compare(source, "nonexistent.sqlite")
    with pytest.raises(TypeError):
        wattmeter.compare([source])
    with pytest.raises(TypeError, match="either a dict"):
        wattmeter.compare({"a": source}, source)
    with pytest.raises(ValueError, match="twice"):
        wattmeter.compare(source, source)
    with pytest.raises(ValueError, match="from 0 to 1"):
        wattmeter.compare({"a": source, "b": source}, threshold=5)
    with pytest.raises(TypeError, match="not one text"):
        wattmeter.compare({"a": source}, watch="time")


def test_a_run_alone_has_no_worst_figure(data):
    result = wattmeter.compare({"a": data / "recordings" / "v1.sqlite"})
    assert repr(result) == (
        "<Comparison: worst n/a (a could not be tested: both sessions need 6 runs or more)>"
    )


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(wattmeter.Error, match="nonexistent") as caught:
        wattmeter.read(tmp_path / "nonexistent.sqlite")
    assert caught.value.status == "ENOENT"
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(wattmeter.Error):
        wattmeter.read(broken)
    with pytest.raises(TypeError):
        wattmeter.read(5)


@pytest.mark.parametrize("run", [-1, 99])
def test_a_run_that_is_not_there(data, run):
    with pytest.raises(ValueError, match=f"there is no run {run}"):
        wattmeter.read(data / "recordings" / "v1.sqlite", run)


def test_a_killed_tracker_s_recording_ends_where_it_ends(data):
    recording = wattmeter.read(data / "recordings" / "v2-killed-tracker.csv")
    assert len(recording) > 0 and not recording.report.info["is_complete"]


def test_an_external_meter_joins(data, tmp_path):
    recording = wattmeter.read(data / "recordings" / "v1.sqlite")
    path = tmp_path / "meter.csv"
    seconds = [t / 1e9 for t in recording.times]
    rows = [f"{t:.3f},100" for t in (seconds[0] - 1, *seconds, seconds[-1] + 1)]
    path.write_text("time,wall_W\n" + "\n".join(rows) + "\n")
    joined = wattmeter.read(data / "recordings" / "v1.sqlite", meter=path)
    assert 100 in list(joined["meter_power"])


def test_pandas(data):
    pytest.importorskip("pandas")
    recording = wattmeter.read(data / "recordings" / "v1.sqlite")
    frame = recording.to_pandas()
    assert list(frame.columns) == list(recording)
    assert frame.index[0].value == recording.times[0] and frame.index.name == "time"
    name = next(iter(recording))
    assert frame.attrs["units"][name] == recording[name].unit
    assert frame[name].isna().sum() == sum(map(math.isnan, recording[name]))


def test_polars(data):
    polars = pytest.importorskip("polars")
    recording = wattmeter.read(data / "recordings" / "v1.sqlite")
    frame = recording.to_polars()
    assert frame.columns == ["time", *recording] and frame.height == len(recording)
    assert frame["time"].dtype == polars.Datetime("ns", "UTC")
    assert frame["time"].to_physical().to_list() == list(recording.times)
    for name, column in recording.columns.items():
        known = [None if math.isnan(value) else value for value in column]
        assert frame[name].to_list() == known


def test_experiments(tmp_path):
    target = tmp_path / "experiments.sqlite"
    for _ in range(2):
        with wattmeter.track(experiment=(target, "resnet"), interval=0.02):
            sum(range(100000))
    experiment = _core.Experiment(target, "resnet")
    assert json.loads(experiment.json())["experiment"] == "resnet"
    series = experiment.series("main_memory_total_B")
    figure = series.figure("max")
    assert figure.unit == "B" and figure.value > 0
    (times, values, first), *rest = series.segments()
    assert len(times) == len(values) and first == 0 and len(rest) == 1
    with pytest.raises(wattmeter.Error, match="resnet"):
        _core.Experiment(target, "other")
    with pytest.raises(wattmeter.Error):
        experiment.series("nonsense")
    with pytest.raises(ValueError):
        series.figure("median")


def record_ranks(folder, monkeypatch, **options):
    """Two ranks of a job on this machine, which measure at the same time."""
    paths = [folder / f"run-rank{rank}.sqlite" for rank in range(2)]
    monkeypatch.setenv("WORLD_SIZE", "2")
    trackers = []
    for rank, path in enumerate(paths):
        monkeypatch.setenv("RANK", str(rank))
        gpus = options.get("gpus", [None, None])[rank]
        trackers.append(wattmeter.track(path, interval=0.02, gpus=gpus).start())
    for tracker in trackers:
        while tracker.report.gpu_energy.value is None:
            pass
    for tracker in trackers[::-1]:  # The first rank sees all of what the other one sees.
        tracker.stop()
    return paths


def change_run(path, **facts):
    base = sqlite3.connect(path)
    info = json.loads(base.execute("SELECT info FROM run").fetchone()[0])
    assert set(facts) <= set(info)
    base.execute("UPDATE run SET info = ?", [json.dumps({**info, **facts})])
    base.commit()
    base.close()


def test_ranks_of_a_node_are_counted_once(fake_gpus, tmp_path, monkeypatch):
    fake_gpus("everything")
    paths = record_ranks(tmp_path, monkeypatch)
    ranks = wattmeter.read(paths[::-1])
    assert [r.report.variables["RANK"] for r in ranks] == ["0", "1"]
    each = [r.report.energy.value for r in ranks]
    assert len(ranks) == 2 and ranks[1].report.variables["WORLD_SIZE"] == "2"
    assert ranks.energy.value in each
    # A driver that answers late on a busy machine leaves a gap in a rank's own figure.
    if {r.report.energy.state for r in ranks} == {"known"}:
        assert ranks.energy.state == "known", ranks.energy.why
        assert ranks.energy.low <= ranks.energy.value <= ranks.energy.high
    times = [r.report.cpu_time.value for r in ranks]
    assert ranks.cpu_time.value == pytest.approx(sum(times))
    assert len(ranks.nodes) == 1 and "1 nodes" in repr(ranks)

    # The same on another machine, and a long time later.
    other = tmp_path / "other.sqlite"
    shutil.copy(paths[1], other)
    boot = ranks[0].report.info["boot_id"]
    change_run(other, id="i", host="other", boot_id="b")
    both = wattmeter.read((paths[0], other))
    assert [node.host for node in both.nodes][1] == "other"
    assert both.energy.value == pytest.approx(sum(each))
    change_run(other, boot_id=boot, anchor_unix_ns=1)
    later = wattmeter.read([paths[0], other])
    assert later.energy.state == "at least" and "s of" in later.energy.why


def test_ranks_with_a_gpu_each_have_all_of_them(fake_gpus, tmp_path, monkeypatch):
    fake_gpus("everything")
    ranks = wattmeter.read(record_ranks(tmp_path, monkeypatch, gpus=["0", "1"]))
    gpus = [r.report.gpu_energy.value for r in ranks]
    cpu = [r.report.energy.value - g for r, g in zip(ranks, gpus)]
    assert any(ranks.energy.value == pytest.approx(sum(gpus) + c) for c in cpu)


def test_ranks_are_what_their_recordings_say(fake_gpus, tmp_path, monkeypatch):
    fake_gpus("everything")
    paths = record_ranks(tmp_path, monkeypatch)
    copies = [tmp_path / name for name in ("copy.sqlite", "again.sqlite")]
    for copy, name in zip(copies, "ab"):
        shutil.copy(paths[1], copy)
        change_run(copy, id=name)
    alone = wattmeter.read([paths[1]])
    assert alone[1] is alone.recordings[0]
    with pytest.raises(KeyError, match="no rank 0, but 1"):
        alone[0]
    with pytest.raises(ValueError, match="rank 1 is given twice"):
        wattmeter.read([paths[1], copies[0]])
    monkeypatch.delenv("RANK")
    with wattmeter.track(tmp_path / "none.sqlite", interval=0.02):
        pass
    with pytest.raises(ValueError, match="some have none"):
        wattmeter.read([paths[1], tmp_path / "none.sqlite"])


def test_ranks_that_are_none(data):
    path = data / "recordings" / "v1.sqlite"
    with pytest.raises(ValueError, match="no recording"):
        wattmeter.read([])
    with pytest.raises(ValueError, match="twice"):
        wattmeter.read([path, path])
    with pytest.raises(ValueError, match="for one"):
        wattmeter.read([path], run=0)
    alone = wattmeter.read([path])
    with pytest.raises(KeyError, match="no rank 1, but 0"):
        alone[1]
    assert alone.energy.value == alone[0].report.energy.value
    assert alone.time.value == alone[0].report.time.value


def test_parts_and_comparisons_in_pandas(tmp_path, fake_gpus):
    pandas = pytest.importorskip("pandas")
    fake_gpus("everything")
    paths = [tmp_path / "a.sqlite", tmp_path / "b.sqlite"]
    for path in paths:
        with wattmeter.track(path, interval=0.02) as t:
            with wattmeter.region("outer"), wattmeter.region("inner"):
                while sum(bool(gpu.power) for gpu in t.report.gpus) < 2:
                    time.sleep(0.01)
    report = t.report
    frame = report.regions.to_pandas()
    assert list(frame.index) == ["outer", "inner"] and frame.index.name == "name"
    for name in frame.index:
        region = report.regions[name]
        row = frame.loc[name]
        assert row["calls"] == region.calls and row["time"] == region.time.value
        assert row["exclusive_time"] == region.exclusive.time.value
        for key, figure in region.figures.items():
            assert pandas.isna(row[key]) == (figure.value is None)
            assert figure.low is None or row[f"{key}_low"] == figure.low
    assert frame.attrs["units"]["energy"] == "J"
    gpus = report.gpus.to_pandas()
    assert list(gpus.index) == ["gpu0", "gpu1"]
    assert gpus["power"]["gpu0"] == report.gpus[0].power.value
    assert list(report.paths.to_pandas()["depth"]) == [0, 1]

    frame = wattmeter.compare(*paths).to_pandas()
    overall = frame[frame["region"].isna() & (frame["figure"] == "time")]
    assert list(overall["session"]) == list(map(str, paths))
    assert len(set(frame["region"].dropna())) == 2
    assert overall["value"].iloc[1] == report.time.value
    assert set(overall["family"]) == {"headlines"}


def test_without_pandas_one_line_says_so(python):
    done = python("""
        import sys
        sys.modules["pandas"] = sys.modules["polars"] = None
        import wattmeter
        with wattmeter.track("a.csv") as t:
            pass
        recording = wattmeter.read("a.csv")
        for convert in t.report.regions.to_pandas, recording.to_pandas, recording.to_polars:
            try:
                convert()
            except ImportError as error:
                print(error)
        """)
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    for line, name in zip(lines, ("pandas", "pandas", "polars")):
        assert line.startswith(f"to_{name}() needs {name}, ")
        assert line.endswith(f"pip install {name}")


def test_what_the_program_logs_comes_back(tmp_path):
    path = tmp_path / "run.sqlite"
    begun = time.time_ns()
    with wattmeter.track(path, interval=0.02) as t:
        for step in range(3):
            t.log(acc=step / 4, loss=1 - step / 4)
        t.log({"val/acc": 1})
        for wrong in (float("nan"), float("inf")):
            with pytest.raises(ValueError, match=f"^loss={wrong}: no number$"):
                t.log(loss=wrong)
        with pytest.raises(TypeError):
            t.log(loss=None)
        with pytest.raises(ValueError, match="a number without a name"):
            t.log({"": 1})
    ended = time.time_ns()
    wattmeter.read(path).export(tmp_path / "run.json")
    assert '"val/acc"' in (tmp_path / "run.json").read_text()
    for name in ("run.sqlite", "run.csv", "other.sqlite"):
        if name != "run.sqlite":
            wattmeter.read(path).export(tmp_path / name)
        recording = wattmeter.read(tmp_path / name)
        metrics = recording.metrics
        assert sorted(metrics) == ["acc", "loss", "val/acc"] and len(metrics) == 3
        assert list(metrics["acc"].values) == [0, 0.25, 0.5] and "nothing" not in metrics
        times = metrics["acc"].times
        assert begun - 10**7 <= times[0] <= times[1] <= times[2] <= ended + 10**7
        assert metrics["loss"].times == times, "what one call logs has one time"
        assert recording.times[0] <= times[0] and times[2] <= recording.times[-1]
        assert repr(metrics["val/acc"]) == "<Metric val/acc: 1 values, the last 1>"
    pytest.importorskip("pandas")
    frame = metrics.to_pandas()
    assert list(frame["acc"].dropna()) == [0, 0.25, 0.5] and str(frame.index.tz) == "UTC"
    assert len(frame) == 4 and not frame[:3][["acc", "loss"]].isna().any(axis=None)
    assert frame.index.name == "time" and frame.index.is_monotonic_increasing


def test_logging_is_between_start_and_stop_from_any_thread(tmp_path):
    import os
    import threading

    path = tmp_path / "run.sqlite"
    t = wattmeter.track(path)
    with pytest.raises(ValueError, match="acc=1: nothing is being measured"):
        t.log(acc=1)
    with t:
        threads = [
            threading.Thread(target=lambda: [t.log(step=i) for i in range(500)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if (child := os.fork()) == 0:
            t.log(step=7)  # the parent's
            os._exit(0)
        os.waitpid(child, 0)
    with pytest.raises(ValueError, match="nothing is being measured"):
        t.log(acc=1)
    metric = wattmeter.read(path).metrics["step"]
    assert len(metric) == 2000 and sum(metric.values) == 4 * sum(range(500))
    with wattmeter.track() as without:
        without.log(acc=1)
    assert without.report


def test_a_column_has_one_name_for_reading_and_drawing(tmp_path):
    """And that of the files is understood, too."""
    path = tmp_path / "run.sqlite"
    with wattmeter.track(path, interval=0.01):
        time.sleep(0.05)
    recording = wattmeter.read(path)
    pictures = set()
    for name in ("tree_memory_total", "tree_memory_total_B"):
        assert recording[name] is recording["tree_memory_total"] and name in recording
        svg = wattmeter.plot(path, channels=[name]).svg
        pictures.add(re.sub(r"surface\d+", "surface", svg))  # cairo counts them
    assert len(pictures) == 1 and "tree_memory_total_B" not in list(recording)
    for wrong in ("tree_memory", "tree_memory_total_W", "tree_memory_total_", ""):
        assert wrong not in recording
        with pytest.raises(KeyError, match="there are: .*tree_memory_total"):
            recording[wrong]
        with pytest.raises(ValueError, match="there is no channel"):
            wattmeter.plot(path, channels=[wrong]).svg


def test_slices_of_a_column(tmp_path):
    with wattmeter.track(tmp_path / "run.csv", interval=0.01):
        time.sleep(0.05)
    column = wattmeter.read(tmp_path / "run.csv")["main_cpu_time"]
    values = column.values.tolist()
    assert list(column[0:2]) == values[:2] and list(column[::-1]) == values[::-1]
    assert column[-1] == values[-1] and type(column[0]) is float
    with pytest.raises(IndexError):
        column[len(column)]
