# SPDX-License-Identifier: Apache-2.0
"""gpu_tracker's tutorial, with nothing but the import changed, and what goes wrong."""

import asyncio
import json
import logging
import multiprocessing
import os
import pickle
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import asdict
from pathlib import Path

import pytest

import wattmeter.compat.gpu_tracker as gput
from wattmeter.compat.gpu_tracker import _pickles, sub_tracker
from wattmeter.compat.gpu_tracker.tracker import ResourceUsage

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("WM_BUILD_ROOT", ROOT / "build"))
DATA = ROOT / "tests/data/gpu_tracker"
GPU = {"gpus": [{"uuid": "GPU-one"}, {"uuid": "GPU-two", "utilization": 0.25}]}

MEASUREMENTS = list(json.loads((DATA / "analysis.json").read_text())["overall"])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WATTMETER_NVML", str(tmp_path / "no-driver.so"))
    return tmp_path


@pytest.fixture
def gpus(folder, monkeypatch):
    scenario = folder / "gpus.json"
    scenario.write_text(json.dumps(GPU))
    monkeypatch.setenv("FAKE_NVML_SCENARIO", str(scenario))
    monkeypatch.setenv("WATTMETER_NVML", str(BUILD / "tests/fake/libnvidia-ml.so.1"))


@pytest.fixture(params=["with pandas", "plain"])
def pandas(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setitem(sys.modules, "pandas", None)
        return None
    return pytest.importorskip("pandas")


def example_function(seconds=0.15):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def child(path):
    with gput.SubTracker("in a child", sub_tracking_file=path):
        example_function(0.05)


def keys_of(tree):
    return {
        key: keys_of(value) if isinstance(value, dict) else None
        for key, value in tree.items()
    }


def labels_of(text):
    return [re.sub(r":.*", "", line) for line in text.splitlines()]


# Tracking


def test_tracker_prints_what_the_documents_print():
    with gput.Tracker(n_expected_cores=1, sleep_time=0.1) as tracker:
        assert repr(tracker) == "State: STARTED"
        example_function()
    assert labels_of(str(tracker)) == labels_of((DATA / "tracker.txt").read_text())
    assert "   Number of expected cores: 1\n" in str(tracker)
    assert repr(tracker) == "State: STOPPED"


def test_to_json_has_the_structure_of_the_documents():
    tracker = gput.Tracker(
        ram_unit="megabytes", gpu_ram_unit="megabytes", time_unit="seconds"
    )
    begun = time.monotonic()
    tracker.start()
    example_function()
    tracker.stop()
    most = time.monotonic() - begun
    tree = tracker.to_json()
    wanted = json.loads((DATA / "tracker.json").read_text())
    assert keys_of(tree) == keys_of(wanted)
    assert list(tree["max_ram"]) == list(wanted["max_ram"])
    assert tree == asdict(tracker.resource_usage)
    assert 0.05 < tree["compute_time"]["time"] <= most
    main = tree["max_ram"]["main"]
    assert main["total_rss"] > main["private_rss"] > 1
    json.dumps(tree, allow_nan=False)


def test_resource_usage_has_the_attributes_of_the_documents():
    began, used = time.monotonic(), time.thread_time()
    with gput.Tracker(sleep_time=0.1) as tracker:
        example_function()
    percent = 100 * (time.thread_time() - used) / (time.monotonic() - began)
    usage = tracker.resource_usage
    main = usage.max_ram.main
    assert usage.max_ram.unit == "gigabytes"
    assert repr(main) == (
        f"RSSValues(total_rss={main.total_rss}, private_rss={main.private_rss}, "
        f"shared_rss={main.shared_rss})"
    )
    assert repr(usage.max_ram).startswith("MaxRAM(unit='gigabytes', system_capacity=")
    assert repr(usage.compute_time).startswith("ComputeTime(unit='hours', time=")
    assert usage.cpu_utilization.main.max_sum_percent > percent / 2 > 0
    assert isinstance(usage.cpu_utilization.main_n_threads, int)
    assert pickle.loads(pickle.dumps(usage)) == usage


def test_a_child_is_a_descendant():
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=example_function, args=(0.5,))
    with gput.Tracker(n_expected_cores=2, sleep_time=0.1) as tracker:
        process.start()
        process.join()
    process.close()
    assert tracker.resource_usage.max_ram.descendants.total_rss > 0
    assert tracker.resource_usage.cpu_utilization.descendants.max_sum_percent > 5
    assert tracker.resource_usage.cpu_utilization.descendants_n_threads >= 1


def test_an_exception_leaves_the_results():
    with pytest.raises(RuntimeError, match="AN ERROR"):
        with gput.Tracker() as tracker:
            raise RuntimeError("AN ERROR")
    assert tracker.resource_usage.max_gpu_ram.main == 0.0
    assert tracker.state == gput.Tracker.State.STOPPED


def test_another_process(caplog):
    sleeper = subprocess.Popen(["sleep", "10"])
    before = time.monotonic()
    with gput.Tracker(process_id=sleeper.pid, sleep_time=0.1, time_unit="seconds") as t:
        begun = time.monotonic()
        time.sleep(0.2)
        lived = time.monotonic() - begun
        sleeper.kill()
        sleeper.wait()
        ended = time.monotonic()
        time.sleep(0.3)
    assert lived < t.resource_usage.compute_time.time < ended - before
    assert t.resource_usage.cpu_utilization.main_n_threads == 1

    with gput.Tracker(process_id=sleeper.pid) as t:
        pass
    gone = f"The target process of ID {sleeper.pid} ended before tracking could begin."
    assert gone in caplog.text and str(t) == gone
    assert t.to_json()["compute_time"] == {"unit": "hours", "time": None}


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"sleep_time": 0.0}, ValueError, "Sleep time of 0.0 is invalid. Must be at"),
        ({"sleep_time": float("nan")}, ValueError, "Sleep time of nan is invalid."),
        (
            {"ram_unit": "milligrams"},
            ValueError,
            '"milligrams" is not a valid RAM unit. Valid values are bytes, gigabytes, '
            "kilobytes, megabytes, terabytes",
        ),
        ({"gpu_ram_unit": "x"}, ValueError, '"x" is not a valid GPU RAM unit.'),
        (
            {"time_unit": "years"},
            ValueError,
            '"years" is not a valid time unit. Valid values are days, hours, minutes, '
            "seconds",
        ),
        (
            {"tracking_file": "my-file.txt"},
            ValueError,
            'Invalid file name: "my-file.txt". Valid file extensions are ".csv" and '
            '".sqlite".',
        ),
        (
            {"gpu_brand": "invalid-brand"},
            ValueError,
            '"invalid-brand" is not a valid GPU brand. Supported values are "nvidia" '
            'and "amd".',
        ),
        ({"gpu_brand": "nvidia"}, FileNotFoundError, "no GPU of the brand nvidia"),
        (
            {"gpu_uuids": set()},
            ValueError,
            "gpu_uuids is not None but the set is empty.",
        ),
        ({"n_expected_cores": 0}, ValueError, "Number of expected cores of 0"),
        ({"sleep_time": "1"}, TypeError, "not supported"),
        ({"no_such": 1}, TypeError, "no_such"),
    ],
)
def test_wrong_arguments(arguments, error, text):
    with pytest.raises(error, match=re.escape(text)):
        gput.Tracker(**arguments)


def test_arguments_in_their_order():
    gput.Tracker(
        0.5, "bytes", "bytes", "days", 1, None, True, os.getpid(), "f.pkl", 5, 10.0
    )


def test_order_of_calls():
    tracker = gput.Tracker()
    with pytest.raises(RuntimeError, match="tracking has not started yet"):
        tracker.stop()
    for show in (str, gput.Tracker.to_json):
        with pytest.raises(RuntimeError, match="before tracking completes"):
            show(tracker)
    assert (repr(tracker), tracker.resource_usage) == ("State: NEW", None)
    tracker.start()
    with pytest.raises(RuntimeError, match="when tracking has already started"):
        tracker.start()
    tracker.stop()
    with pytest.raises(RuntimeError, match="stop tracking when .* already stopped"):
        tracker.stop()
    with pytest.raises(RuntimeError, match="start tracking when .* already stopped"):
        tracker.start()


def test_logs(caplog):
    gput.Tracker(disable_logs=True)
    assert not caplog.records
    gput.Tracker()
    assert "GPU RAM and GPU utilization values will remain 0.0." in caplog.text


# GPUs


def test_gpus(gpus, caplog):
    with gput.Tracker(sleep_time=0.1, disable_logs=True) as tracker:
        example_function()
    usage = tracker.resource_usage
    assert usage.max_gpu_ram.system_capacity == pytest.approx(2 * 80 * 1.073741824)
    assert usage.max_gpu_ram.system > 0 and usage.max_gpu_ram.main == 0
    assert usage.gpu_utilization.system_gpu_count == 2
    assert usage.gpu_utilization.gpu_percentages.max_sum_percent == pytest.approx(75)
    assert "SIMULATED: the driver says of 2 of 2 GPUs" in caplog.text


def test_chosen_gpus(gpus):
    with gput.Tracker(sleep_time=0.1, gpu_uuids={"GPU-two"}, gpu_brand="nvidia") as t:
        example_function()
    utilization = t.resource_usage.gpu_utilization
    assert (utilization.system_gpu_count, utilization.n_expected_gpus) == (2, 1)
    assert utilization.gpu_percentages.mean_hardware_percent == pytest.approx(25)
    available = re.escape(
        "GPU UUID of GPU-three is not valid. Available UUIDs are: GPU-one, GPU-two"
    )
    with pytest.raises(ValueError, match=available):
        gput.Tracker(gpu_uuids={"GPU-three"})
    with pytest.raises(FileNotFoundError):
        gput.Tracker(gpu_brand="amd")


def test_a_wrong_gpu_of_many_is_refused_with_all_there_are(folder, gpus):
    uuids = [f"GPU-{number:032x}" for number in range(16)]
    (folder / "gpus.json").write_text(json.dumps({"gpus": [{"uuid": u} for u in uuids]}))
    with pytest.raises(ValueError, match=", ".join(uuids) + "$"):
        gput.Tracker(gpu_uuids={uuids[3], "GPU-x"})


# The file of an interrupted tracker


def run_script(script, **options):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )


def test_an_interrupted_tracker_leaves_its_file(folder):
    done = run_script("""
        import wattmeter.compat.gpu_tracker as gput
        tracker = gput.Tracker(resource_usage_file="usage.pkl", time_unit="seconds")
        tracker.start()
        raise RuntimeError("AN ERROR")
        """)
    assert done.returncode == 1 and "AN ERROR" in done.stderr
    usage = pickle.loads((folder / "usage.pkl").read_bytes())
    assert isinstance(usage, ResourceUsage)
    assert usage.max_ram.main.total_rss > 0 and usage.compute_time.time > 0
    assert os.listdir(folder) == ["usage.pkl"]


def test_a_killed_program_leaves_its_file(folder):
    done = run_script("""
        import glob, os, time
        import wattmeter.compat.gpu_tracker as gput
        tracker = gput.Tracker(sleep_time=0.1, time_unit="seconds")
        began = time.monotonic()
        tracker.start()
        while not glob.glob(".gpu-tracker_*.pkl"):
            time.sleep(0.02)
        print(time.monotonic() - began, flush=True)
        os.kill(os.getpid(), 9)
        """)
    assert done.returncode == -signal.SIGKILL
    [path] = folder.glob(".gpu-tracker_*.pkl")
    usage = pickle.loads(path.read_bytes())
    assert 0 < usage.compute_time.time <= float(done.stdout)


def test_a_forgotten_tracker_leaves_its_file(folder):
    tracker = gput.Tracker(resource_usage_file="usage.pkl")
    tracker.start()
    del tracker
    assert pickle.loads((folder / "usage.pkl").read_bytes()).max_ram.main.total_rss > 0


def await_true(is_so):
    """The file is written about once a second."""
    until = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_stopped_tracker_leaves_no_file(folder):
    with gput.Tracker(sleep_time=0.1):
        await_true(lambda: list(folder.glob(".gpu-tracker_*.pkl")))
    assert os.listdir(folder) == []


def test_a_file_that_cannot_be_written(folder, caplog):
    with gput.Tracker(resource_usage_file="path/to/my-file.pkl") as tracker:
        await_true(lambda: "my-file.pkl is not kept up to date: " in caplog.text)
    assert tracker.resource_usage.max_ram.main.total_rss > 0


def test_a_forked_child_has_no_part_in_it(folder):
    done = run_script("""
        import os, sys
        import wattmeter.compat.gpu_tracker as gput
        with gput.Tracker(resource_usage_file="usage.pkl", disable_logs=True) as tracker:
            if os.fork() == 0:
                sys.exit(0)
            os.wait()
        print(tracker.resource_usage.max_ram.main.total_rss > 0, os.listdir("."))
        """)
    assert done.stdout == "True []\n", done.stderr


def test_nothing_is_leaked():
    def tracked():
        with gput.Tracker(disable_logs=True):
            pass

    def held():
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    for _ in range(3):
        tracked()
    least = held()
    for _ in range(30):
        tracked()
    await_true(lambda: all(now <= before for now, before in zip(held(), least)))  # by a thread of its own


# Tracking files


def test_tracking_file_csv(folder):
    with gput.Tracker(sleep_time=0.1, tracking_file="my-file.csv") as tracker:
        example_function(0.35)
    lines = (folder / "my-file.csv").read_text().splitlines()
    capacity = tracker.resource_usage.max_ram.system_capacity
    assert lines[1].startswith(f"gigabytes,gigabytes,hours,{capacity},0.0,")
    assert lines[2].split(",") == [*MEASUREMENTS, "timestamp"]
    assert len(lines) >= 3 + 3


def test_tracking_file_sqlite(folder):
    with gput.Tracker(sleep_time=0.1, tracking_file="my-file.sqlite"):
        example_function()
    database = sqlite3.connect(folder / "my-file.sqlite")
    assert database.execute("SELECT count(*) FROM static_data").fetchone() == (1,)
    assert database.execute("SELECT count(*) FROM data").fetchone()[0] >= 1
    database.close()


def test_a_tracking_file_that_exists(folder):
    file = folder / "t.csv"
    file.write_text("precious\n")
    with pytest.raises(
        FileExistsError, match="File t.csv already exists. Set overwrite"
    ):
        gput.Tracker(tracking_file="t.csv")
    assert file.read_text() == "precious\n"
    with gput.Tracker(sleep_time=0.1, tracking_file="t.csv", overwrite=True):
        example_function()
    assert "main_ram" in file.read_text()


def test_files_may_be_paths(folder):
    tracking, sub_tracking = folder / "t.csv", folder / "s.csv"
    with gput.Tracker(sleep_time=0.1, tracking_file=tracking):
        with gput.SubTracker("block", sub_tracking_file=sub_tracking):
            example_function()
    results = gput.SubTrackingAnalyzer(tracking, sub_tracking).sub_tracking_results()
    assert [block.name for block in results.code_block_results] == ["block"]


def test_a_folder_that_is_gone_is_no_process_that_ended(folder):
    (folder / "soon gone").mkdir()
    tracker = gput.Tracker(sleep_time=0.1, tracking_file="soon gone/t.csv")
    (folder / "soon gone").rmdir()
    with pytest.raises(FileNotFoundError, match="soon gone"):
        tracker.start()
    assert tracker.state == gput.Tracker.State.NEW


# Sub-tracking


def rows_of(path):
    return [line.split(",") for line in Path(path).read_text().splitlines()]


def test_sub_tracker(folder):
    with gput.SubTracker("outer", sub_tracking_file="sub.csv") as outer:
        with pytest.raises(KeyError):
            with gput.SubTracker("inner", sub_tracking_file="sub.csv"):
                raise KeyError
    assert outer.code_block_name == "outer" and outer.sub_tracking_file == "sub.csv"
    header, *rows = rows_of("sub.csv")
    assert header == ["process_id", "code_block_name", "position", "timestamp"]
    pid = str(os.getpid())
    assert [row[:3] for row in rows] == [
        [pid, "outer", "0"],
        [pid, "inner", "0"],
        [pid, "inner", "1"],
        [pid, "outer", "1"],
    ]
    assert float(rows[0][3]) == pytest.approx(time.time(), abs=10)


def test_default_names(folder):
    with gput.SubTracker() as tracker:
        line = sys._getframe().f_lineno - 1

    @gput.sub_track()
    def function():
        return 7

    @gput.sub_track(code_block_attribute="other")
    def second():
        pass

    assert function() == 7 and function.__name__ == "function"
    second()
    path = os.path.relpath(__file__)
    assert tracker.code_block_name == f"{path}:{line}"
    assert tracker.sub_tracking_file == f"{os.getpid()}.csv"
    names = [row[1] for row in rows_of(f"{os.getpid()}.csv")[1::2]]
    assert names == [f"{path}:{line}", f"{path}:function", f"{path}:other"]


def test_one_decorator_for_two_functions():
    decorate = gput.sub_track(sub_tracking_file="two.csv")
    for function in (lambda: 1, child):
        decorate(function)
    decorate(example_function)(0)
    assert rows_of("two.csv")[1][1].endswith(":example_function")


def test_async_function():
    @gput.sub_track("sleep", sub_tracking_file="async.csv")
    async def function():
        await asyncio.sleep(0.1)
        return 7

    assert asyncio.run(function()) == 7
    [_, start, stop] = rows_of("async.csv")
    assert float(stop[3]) - float(start[3]) >= 0.09


@pytest.mark.parametrize("suffix", [".csv", ".sqlite"])
def test_sub_tracking_file_that_exists(folder, suffix):
    path = f"there{suffix}"
    (folder / path).write_text("")
    with pytest.raises(FileExistsError, match=f"File .*{path} already exists."):
        with gput.SubTracker("a", sub_tracking_file=path):
            pass
    for _ in range(2):  # the second adds to what the first has made
        with gput.SubTracker("a", sub_tracking_file=path, overwrite=True):
            pass
    with gput.SubTracker("a", sub_tracking_file=path):
        pass
    pairs = gput.SubTrackingAnalyzer(None, path).load_timestamp_pairs("a")
    assert len(pairs) == 3


def test_sub_tracking_file_that_was_deleted(folder):
    with gput.SubTracker("a", sub_tracking_file="gone.csv"):
        pass
    os.remove("gone.csv")
    with pytest.raises(FileNotFoundError, match="gone.csv was removed in the middle"):
        with gput.SubTracker("a", sub_tracking_file="gone.csv"):
            pass


def test_wrong_name_of_a_sub_tracking_file():
    with pytest.raises(ValueError, match="Invalid file name"):
        gput.SubTracker("a", sub_tracking_file="a.txt")


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("suffix", [".csv", ".sqlite"])
def test_children_and_threads_write_to_one_file(method, suffix):
    context = multiprocessing.get_context(method)
    path = f"all{suffix}"
    with gput.SubTracker("parent", sub_tracking_file=path):
        paths = [path] * 3 if method == "fork" else [f"{i}{suffix}" for i in range(3)]
        processes = [context.Process(target=child, args=(path,)) for path in paths]
        for process in processes:
            process.start()
        threads = [threading.Thread(target=child, args=(path,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for worker in processes + threads:
            worker.join()
    if method == "spawn":
        gput.SubTrackingAnalyzer(None, f"c{suffix}").combine_sub_tracking_files(
            [path, *paths]
        )
        path = f"c{suffix}"
    analyzer = gput.SubTrackingAnalyzer(None, path)
    assert analyzer.load_code_block_names() == ["in a child", "parent"]
    assert len(analyzer.load_timestamp_pairs("in a child")) == 5
    assert len(analyzer.load_timestamp_pairs("parent")) == 1


def test_many_sub_tracking_files():
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        for i in range(40):
            with gput.SubTracker("a", sub_tracking_file=f"{i}.csv"):
                pass
    assert len(os.listdir("/proc/self/fd")) <= before + 20
    assert all(len(rows_of(f"{i}.csv")) == 5 for i in range(40))


# Analysis


@pytest.fixture
def analyzer():
    return gput.SubTrackingAnalyzer(
        str(DATA / "tracking/real.csv"), str(DATA / "sub-tracking/main.csv")
    )


def test_results(analyzer, pandas):
    results = analyzer.sub_tracking_results()
    assert type(results).__module__.endswith("gpu_tracker.sub_tracker")
    names = [block.name for block in results.code_block_results]
    assert names == analyzer.load_code_block_names()
    block = results.code_block_results[0]
    assert block.num_calls >= block.num_non_empty_calls
    pairs = analyzer.load_timestamp_pairs(block.name)
    assert len(pairs) == block.num_calls
    assert len(analyzer.load_timepoints(pairs)) == block.num_timepoints
    if not pandas:
        assert list(results.overall) == MEASUREMENTS
        assert list(results.overall["main_ram"]) == ["min", "max", "mean", "std"]
        assert list(block.compute_time) == ["min", "max", "mean", "std", "total"]
        assert results.static_data == analyzer.read_static_data()
        return
    assert list(results.overall.index) == MEASUREMENTS
    assert list(results.overall.columns) == ["min", "max", "mean", "std"]
    pandas.testing.assert_frame_equal(
        results.overall, analyzer.overall_timepoint_results()
    )
    assert list(block.compute_time.index) == ["min", "max", "mean", "std", "total"]
    assert list(block.resource_usage.index) == MEASUREMENTS
    assert results.static_data["ram_unit"] == "gigabytes"
    assert str(results.static_data).endswith("Name: 0, dtype: object")


def test_results_as_text_and_json(pandas):
    wanted = json.loads((DATA / "analysis.json").read_text())
    results = sub_tracker.SubTrackingResults.from_json(wanted)
    assert results.to_json() == wanted
    assert str(results) == (DATA / "analysis.txt").read_text()
    again = pickle.loads(pickle.dumps(results))
    assert again.to_json() == wanted and type(again.overall) is type(results.overall)


def test_pickles_are_read_with_pandas_and_without(analyzer, monkeypatch):
    pytest.importorskip("pandas")
    results = analyzer.sub_tracking_results()
    written = pickle.dumps(results)
    assert b"pandas" not in written and b"numpy" not in written
    monkeypatch.setitem(sys.modules, "pandas", None)
    plain = pickle.loads(written)
    assert isinstance(plain.overall, dict) and plain.to_json() == results.to_json()
    again = pickle.dumps(plain)
    monkeypatch.undo()
    assert pickle.loads(again).overall.equals(results.overall)


def test_recursion_and_unpaired_rows(folder, caplog):
    (folder / "sub.csv").write_text(
        "process_id,code_block_name,position,timestamp\n"
        "1,f,0,10.0\n1,f,0,11.0\n1,f,1,12.0\n1,f,1,14.0\n1,g,1,15.0\n1,g,0,16.0\n"
    )
    analyzer = gput.SubTrackingAnalyzer(str(DATA / "tracking/real.csv"), "sub.csv")
    assert analyzer.load_timestamp_pairs("f") == [(11.0, 12.0), (10.0, 14.0)]
    [f, *_] = analyzer.sub_tracking_results().to_json()["code_block_results"]
    assert (f["num_calls"], f["compute_time"]["max"]) == (2, 4.0)
    assert "stops that nothing had started: 1" in caplog.text
    assert "calls that never stopped: 1" in caplog.text


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        (("no.csv", "sub.csv"), FileNotFoundError, "no.csv"),
        (("bad.csv", "sub.csv"), ValueError, "bad.csv"),
        (("no.txt", "sub.csv"), ValueError, "Invalid file name"),
        ((None, "sub.txt"), ValueError, "Invalid file name"),
        ((None, "sub.csv"), ValueError, "no tracking file"),
    ],
)
def test_analysis_of_wrong_files(folder, arguments, error, text):
    (folder / "bad.csv").write_text("neither this\nnor that\n")
    with pytest.raises(error, match=text):
        gput.SubTrackingAnalyzer(*arguments).sub_tracking_results()


def test_combine(folder):
    files = [str(DATA / "sub-tracking" / name) for name in ("main.csv", "child.csv")]
    gput.SubTrackingAnalyzer(None, "all.csv").combine_sub_tracking_files(files)
    rows = [Path(file).read_text().splitlines() for file in files]
    assert (folder / "all.csv").read_text().splitlines() == rows[0] + rows[1][1:]
    with pytest.raises(ValueError, match="Cannot create sub-tracking file all.csv."):
        gput.SubTrackingAnalyzer(None, "all.csv").combine_sub_tracking_files(files)
    with pytest.raises(
        ValueError, match='same extension as new.csv. Must end in ".csv"'
    ):
        gput.SubTrackingAnalyzer(None, "new.csv").combine_sub_tracking_files(
            ["a.sqlite"]
        )
    with pytest.raises(FileNotFoundError):
        gput.SubTrackingAnalyzer(None, "new.csv").combine_sub_tracking_files(["a.csv"])


# Comparison


def dump(results, path):
    with open(path, "wb") as file:
        pickle.dump(results, file)
    return path


def results_of(name):
    tree = json.loads((DATA / name).read_text())
    return sub_tracker.SubTrackingResults.from_json(tree)


def comparison_of(pandas):
    dump(results_of("analysis_a.json"), "results.pkl")
    dump(results_of("analysis.json"), "results2.pkl")
    return gput.TrackingComparison({"A": "results.pkl", "B": "results2.pkl"})


def test_comparison(pandas):
    results = comparison_of(pandas).compare(statistic="max")
    assert type(results).__name__ == "ComparisonResults"
    assert list(results.overall_resource_usage) == MEASUREMENTS
    assert list(results.code_block_resource_usage) == MEASUREMENTS
    main = results.code_block_resource_usage["main_ram"]["my-code-block"]
    assert dict(main) == {"A": 0.912278, "B": 0.936559}
    times = results.code_block_compute_time["my-code-block"]
    assert list(times.items()) == [("B", 2.789909), ("A", 2.869182)]
    assert str(results) == (DATA / "compare_max.txt").read_text()
    assert list(results.to_json()) == [
        "overall_resource_usage",
        "code_block_resource_usage",
        "code_block_compute_time",
    ]
    again = pickle.loads(pickle.dumps(results))
    assert str(again) == str(results) and again.to_json() == results.to_json()
    assert isinstance(main, pandas.Series if pandas else dict)


def test_wrong_statistic(pandas):
    with pytest.raises(ValueError, match="Invalid summary statistic 'total'. Valid"):
        comparison_of(pandas).compare("total")


def test_comparison_of_other_files(pandas):
    comparison = gput.TrackingComparison(
        {"A": str(DATA / "analysis.json"), "B": str(DATA / "analysis.json")}
    )
    assert comparison.results_map["A"].code_block_results[0].name == "my-code-block"
    comparison.compare()


def renamed(name):
    results = results_of("analysis.json")
    results.code_block_results[0].name = name
    return results


def test_blocks_that_differ_by_line(pandas, caplog):
    dump(renamed("tmp.py:9"), "a.pkl"), dump(renamed("tmp.py:7"), "b.pkl")
    comparison = gput.TrackingComparison({"A": "a.pkl", "B": "b.pkl"})
    assert 'Code block name "tmp.py:9" of tracking session "A" matched' in caplog.text
    assert "tmp.py:7 -> tmp.py:9" in comparison.compare().code_block_compute_time


def test_blocks_that_do_not_match(pandas):
    dump(renamed("x"), "a.pkl"), dump(renamed("y"), "b.pkl")
    with pytest.raises(ValueError, match='"B"|does not match'):
        gput.TrackingComparison({"A": "a.pkl", "B": "b.pkl"})
    fewer = results_of("analysis.json")
    del fewer.code_block_results[0]
    dump(fewer, "b.pkl")
    with pytest.raises(ValueError, match="must have the same number of code blocks"):
        gput.TrackingComparison({"A": "a.pkl", "B": "b.pkl"})


def test_nothing_to_compare():
    with pytest.raises(ValueError):
        gput.TrackingComparison({})
    with pytest.raises(FileNotFoundError):
        gput.TrackingComparison({"A": "no.pkl"})


# Pickles


def test_pickles_of_the_original():
    pandas = pytest.importorskip("pandas")
    for version in (2, 3):
        if int(pandas.__version__.split(".")[0]) < version:
            continue
        results = _pickles.load(str(DATA / f"results-pandas{version}.pkl"))
        names = [block.name for block in results.code_block_results]
        assert names == sorted(names) and "epoch" in names
        assert 0.05 < results.overall.loc["main_ram", "mean"] < 0.07
        assert type(names[0]) is str
        comparison = gput.TrackingComparison(
            {
                "A": str(DATA / f"results-pandas{version}.pkl"),
                "B": dump(results, "b.pkl"),
            }
        )
        compared = comparison.compare()
        assert "epoch" in str(compared)
        assert dict(compared.overall_resource_usage["main_gpu_ram"]) == {"A": 0, "B": 0}


class Evil:
    def __reduce__(self):
        return os.system, ("touch evil",)


def test_a_pickle_that_would_do_something(folder):
    results = results_of("analysis.json")
    results.overall["x"] = {"min": Evil()} if isinstance(results.overall, dict) else 0
    for thing in (Evil(), [Evil()], {"a": Evil()}, subprocess.Popen, gput.Tracker):
        with pytest.raises(
            pickle.UnpicklingError, match="does not belong into|not the"
        ):
            gput.TrackingComparison({"A": dump(thing, "evil.pkl")})
    assert not (folder / "evil").exists()


def test_a_pickle_that_is_damaged(folder):
    whole = pickle.dumps(results_of("analysis.json"))
    for size in range(2, len(whole), 97):
        (folder / "cut.pkl").write_bytes(whole[:size])
        with pytest.raises(pickle.UnpicklingError):
            gput.TrackingComparison({"A": "cut.pkl"})


# The command


def command(*words):
    return subprocess.run(
        [str(BUILD / "wattmeter"), "gpu-tracker", *map(str, words)],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(gput.__file__).parents[3]),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_command_as_a_module():
    words = [sys.executable, "-m", "wattmeter.compat.gpu_tracker", "-h"]
    path = f"{BUILD}:/usr/bin:/bin"
    done = subprocess.run(words, capture_output=True, env={**os.environ, "PATH": path})
    assert done.stdout == (DATA / "help.txt").read_bytes(), done


def test_the_command_writes_and_reads_pickles(folder):
    files = (f"--tf={DATA}/tracking/real.csv", f"--stf={DATA}/sub-tracking/main.csv")
    done = command("sub-track", "analyze", *files, "-f", "pickle", "-o", "a.pkl")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    results = pickle.loads((folder / "a.pkl").read_bytes())
    assert isinstance(results, sub_tracker.SubTrackingResults)
    printed = command("sub-track", "analyze", *files)
    assert printed.stdout == str(results) + "\n"

    sessions = ("-m", "A=a.pkl", "-m", "B=a.pkl")
    done = command("sub-track", "compare", *sessions, "--stat=max", "-f", "pickle")
    assert done.stdout.startswith("b'\\x80"), done
    done = command("sub-track", "compare", *sessions, "-f", "pickle", "-o", "c.pkl")
    comparison = pickle.loads((folder / "c.pkl").read_bytes())
    json_of = command("sub-track", "compare", *sessions, "-f", "json")
    assert json.loads(json_of.stdout) == comparison.to_json()
    command("sub-track", "analyze", *files, "-f", "json", "-o", "a.json")
    for layout in ((), ("-f", "json", "-o", "out")):
        mixed = command(
            "sub-track", "compare", "-m", "A=a.pkl", "-m", "B=a.json", *layout
        )
        plain = command(
            "sub-track", "compare", "-m", "A=a.json", "-m", "B=a.json", *layout
        )
        assert (mixed.returncode, mixed.stdout) == (0, plain.stdout), mixed


def test_the_command_pickles_what_it_tracked(folder):
    done = command("-e", "sleep 0.2", "--st=0.1", "-f", "pickle", "-o", "usage.pkl")
    assert done.returncode == 0, done
    usage = pickle.loads((folder / "usage.pkl").read_bytes())
    assert isinstance(usage, ResourceUsage) and usage.compute_time.time > 0


def test_the_command_refuses_other_pickles(folder):
    for thing, text in (
        (Evil(), "does not belong"),
        ({"overall": 1}, "not the results"),
    ):
        dump(thing, "evil.pkl")
        done = command("sub-track", "compare", "-m", "A=evil.pkl")
        assert done.returncode == 1 and text in done.stderr, done
        assert done.stderr.startswith("ERROR:root:")
    assert not (folder / "evil").exists()
