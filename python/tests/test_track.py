# SPDX-License-Identifier: Apache-2.0
"""track() and run(): what they measure, and what becomes of it in forked children, threads,
exceptions and at the end of the interpreter."""

import gc
import html
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import wattmeter

pytestmark = pytest.mark.usefixtures("no_gpus")


def spin(seconds):
    """Uses CPU time, that of the tracker's threads not counted."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_a_run_has_figures_with_what_is_known_of_them():
    with wattmeter.track(interval=0.02, notes={"batch": 32}) as t:
        spin(0.1)
    report = t.report
    assert report.time.unit == "s" and float(report.time) >= 0.05
    assert 0.05 <= float(report.cpu_time) <= float(report.time) + 0.05
    assert report["max_ram.combined.total_rss"] == report.memory
    assert float(report.memory) > 1e6
    assert report.notes == {"batch": "32"}
    assert report.info["mode"] == "self" and report.info["is_complete"]
    assert report.processes[0].pid == os.getpid()
    assert report.command[0]
    assert report.exit_code is None
    assert "Time" in str(report) and str(report) == report.to_text()
    assert report.to_dict()["compute_time"]["time"] == float(report.time)
    assert len(report.to_text(verbosity=2)) > len(str(report))
    assert report._repr_html_() == f"<pre>{html.escape(str(report))}</pre>"
    assert report.sources["nvml"][0] is False


def fork_and_wait(seconds):
    child = os.fork()
    if child == 0:
        spin(seconds)
        os._exit(0)
    os.waitpid(child, 0)


def test_a_process_without_children_has_used_all_of_it():
    fork_and_wait(0.05)  # which ended before
    for _ in range(20):
        with wattmeter.track() as t:
            spin(0.0003)
        assert t.report["cpu_time.descendants"].value == 0
        assert t.report["cpu_utilization.descendants.max_sum_percent"].value == 0
        assert t.report["cpu_time.main"].value == t.report.cpu_time.value > 0.0003


def test_the_tracker_s_own_work_at_the_end_is_not_taken_off():
    """A hundred thousand regions, say, which it sorts after its last reading of the clocks."""
    region = wattmeter.region("r")
    with wattmeter.track() as t:
        began = time.thread_time()
        for _ in range(100_000):
            with region:
                pass
        used = time.thread_time() - began
    assert t.report["cpu_time.main"].value >= used


def test_a_child_that_nobody_saw_has_used_what_it_has_used(python):
    python(
        """
        import os, time, wattmeter
        with wattmeter.track(interval=30) as t:
            if os.fork() == 0:
                while time.process_time() < 0.004:
                    pass
                os._exit(0)
            os.wait()
        assert t.report["cpu_time.descendants"].value >= 0.0039, t.report.to_dict()["cpu_time"]
        """
    )


def test_what_is_missing_is_none_with_a_reason():
    with wattmeter.track() as t:
        pass
    gpu = t.report.gpu_energy
    assert gpu.value is None and gpu.state == "missing" and gpu.why
    assert str(gpu) == f"n/a ({gpu.why})"
    with pytest.raises(ValueError, match="gpu_energy is missing: "):
        float(gpu)
    with pytest.raises(KeyError):
        t.report["no_such_figure"]
    with pytest.raises(AttributeError, match="no_such_figure"):
        t.report.no_such_figure
    assert not t.report.gpus and list(t.report.gpus) == []
    assert "energy" in t.report.figures and "energy" in dir(t.report)


def test_figures_of_gpus_and_their_names(fake_gpus):
    fake_gpus("everything")
    with wattmeter.track(interval=0.02, gpus="0") as t:
        time.sleep(0.1)
    assert len(t.report.gpus) == 1
    gpu = t.report.gpus["gpu0"]
    assert gpu.label == "gpu0" and gpu.kind == "gpu" and gpu.origin == "simulated"
    assert t.report.gpus[gpu.uuid].uuid == gpu.uuid
    assert t.report.gpus[-1].label == t.report.gpus[:1][0].label
    asked = wattmeter.gpus()
    for name in ("gpu0", gpu.uuid, 0):
        one = asked[name]
        assert [getattr(one, k) for k in ("label", "name", "uuid", "index")] == [
            getattr(gpu, k) for k in ("label", "name", "uuid", "index")
        ]
    assert "gpu0" in asked and "gpu7" not in asked and asked[:1][0].index == 0
    with pytest.raises(KeyError):
        asked["gpu7"]
    assert "gpu0" in t.report.gpus and "gpu7" not in t.report.gpus
    assert float(gpu.power) == pytest.approx(340, rel=0.2)
    assert "(simulated)" in str(gpu.energy)
    with pytest.raises(IndexError):
        t.report.gpus[1]
    with pytest.raises(KeyError):
        t.report.gpus["gpu7"]


WRONG = [
    ({"interval": 0}, ValueError, "0 s is not between 1 ms and 1 h"),
    ({"interval": float("nan")}, ValueError, "not between"),
    ({"interval": 1e300}, ValueError, "not between"),
    ({"interval": "1s"}, TypeError, "interval must be a number, not '1s'"),
    ({"cores": "2"}, TypeError, "cores must be a number, not '2'"),
    ({"cores": -1}, ValueError, "no number of cores"),
    ({"gpus": "nonsense"}, ValueError, "nonsense"),
    ({"gpus": 0.5}, TypeError, "gpus must be numbers and words"),
    ({"gpus": [True]}, TypeError, "gpus must be numbers and words"),
    ({"notes": ["batch"]}, TypeError, "notes must be a dict, not list"),
    ({"experiment": "x.sqlite"}, ValueError, "its recording and its name"),
    ({"experiment": ("x.sqlite", "a"), "record": "x.csv"}, ValueError, "not both"),
    ({"mode": "maybe", "record": "x.csv"}, ValueError, "new, overwrite or append"),
    ({"record": "run.txt"}, ValueError, "run.txt"),
    ({"record": "run.json"}, ValueError, "export"),
    ({"record": "a\0b.csv"}, ValueError, None),
    ({"nonsense": 1}, TypeError, "nonsense"),
]


@pytest.mark.parametrize("options, error, text", WRONG)
def test_wrong_arguments_are_refused_before_anything_is_measured(options, error, text):
    with pytest.raises(error, match=text):
        wattmeter.track(**options)


@pytest.mark.parametrize("pid", [0, -1])
def test_a_number_that_is_no_process_is_named(pid):
    with pytest.raises(ValueError, match=f"^{pid} is no process"):
        wattmeter.track(pid=pid).start()


def test_a_recording_has_what_the_report_has(tmp_path):
    path = tmp_path / "run.sqlite"
    with wattmeter.track(path, interval=0.02) as t:
        with wattmeter.region("work"):
            spin(0.05)
    again = wattmeter.read(path).report
    assert again.figures == t.report.figures
    assert again.info == t.report.info
    assert again.regions["work"].calls == 1
    with pytest.raises(wattmeter.Error) as caught:
        wattmeter.track(path).start()
    assert caught.value.status == "EEXIST"
    with wattmeter.track(path, mode="append"):
        pass
    assert wattmeter.read(path).run_count == 2


def test_an_interval_that_is_no_number_is_named():
    with pytest.raises(ValueError, match="^an interval of nan s is not between"):
        wattmeter.track(interval=float("nan"))


def test_an_exception_goes_through_and_the_report_is_there():
    with pytest.raises(KeyError):
        with wattmeter.track() as t:
            raise KeyError("mine")
    assert float(t.report.time) > 0


def test_an_exception_is_not_hidden_by_a_recording_that_fails(python):
    done = python(
        """
        import resource, warnings, wattmeter
        warnings.simplefilter("always")
        try:
            with wattmeter.track("run.csv"):
                resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
                raise KeyError("mine")
        except KeyError as error:
            print(error)
        """
    )
    assert done.stdout == "'mine'\n"
    assert "RuntimeWarning: " in done.stderr and "run.csv" in done.stderr


def test_a_recording_is_whole_whatever_threads_do_at_the_end(python, tmp_path):
    python(
        """
        import threading, wattmeter
        t = wattmeter.track("run.sqlite", interval=0.01).start()
        begun = threading.Barrier(4)

        def work():
            t.report
            begun.wait()
            while True:
                t.report

        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        begun.wait()
        """
    )
    assert wattmeter.read(tmp_path / "run.sqlite").report.info["is_complete"]


def test_states_and_their_order():
    t = wattmeter.track()
    with pytest.raises(ValueError):
        t.report
    with pytest.raises(ValueError):
        t.stop()
    assert t.start() is t
    assert not t.report.info["is_complete"]
    with pytest.raises(ValueError, match="thread"):
        t.start()
    report = t.stop()
    assert t.stop() is report is t.report
    with pytest.raises(ValueError, match="started already"):
        t.start()
    assert repr(t) == "<wattmeter.track: stopped>"


def test_a_report_that_is_asked_for_is_in_nobody_s_way():
    t = wattmeter.track(interval=0.01).start()
    ends = threading.Event()

    def ask():
        while not ends.is_set():
            assert t.report

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.1)
    try:
        assert float(t.stop().time) >= 0.1
    finally:
        ends.set()
        thread.join()


def test_another_process():
    with subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"]
    ) as other:
        with wattmeter.track(pid=other.pid) as t:
            time.sleep(0.1)
        other.kill()
    assert t.report.info["mode"] == "attach"
    assert t.report.processes[0].pid == other.pid
    with pytest.raises(wattmeter.Error) as caught:
        wattmeter.track(pid=other.pid).start()
    assert caught.value.status == "ENOENT"


def test_a_command(tmp_path):
    path = tmp_path / "run.csv"
    report = wattmeter.run(["sh", "-c", "exit 3"], path, interval=0.02)
    assert report.exit_code == 3
    assert report.command == ["sh", "-c", "exit 3"]
    assert wattmeter.read(path).report.exit_code == 3
    assert wattmeter.run(["sh", "-c", "kill -9 $$"]).exit_code == 137


def test_a_command_that_is_not_there():
    with pytest.raises(wattmeter.Error, match="no-such-command") as caught:
        wattmeter.run(["no-such-command"])
    assert caught.value.status == "ENOENT"
    with pytest.raises(ValueError):
        wattmeter.run([])
    with pytest.raises(TypeError, match="list"):
        wattmeter.run("true")


def test_a_command_has_its_own_place(tmp_path, monkeypatch):
    """As subprocess.run() gives it one; PATH is that of the command."""
    folder = tmp_path / "folder"
    folder.mkdir()
    tool = folder / "tool"
    tool.write_text('#!/bin/sh\npwd > "$OUT"; echo "$RANK" >> "$OUT"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("RANK", "7")
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "OUT": "out", "RANK": "3"}
    for words in (["tool"], ["./tool"]):
        report = wattmeter.run(words, env=environment, cwd=folder)
        assert report.exit_code == 0 and report.variables["RANK"] == "3"
        assert (folder / "out").read_text() == f"{folder}\n3\n"
        (folder / "out").unlink()
    with pytest.raises(FileNotFoundError, match="nowhere: No such file"):
        wattmeter.run(["true"], cwd=tmp_path / "nowhere")
    with pytest.raises(wattmeter.Error, match="tool: Not a directory"):
        wattmeter.run(["true"], cwd=tool)
    with pytest.raises(FileNotFoundError, match="tool: command not found"):
        wattmeter.run(["tool"])
    with pytest.raises(ValueError, match="'a=b' is no name"):
        wattmeter.run(["true"], env={"a=b": "c"})
    with wattmeter.track() as t:
        wattmeter.run(["true"], env={})
    assert t.report


def test_a_timeout_ends_the_command_and_keeps_what_was_measured(tmp_path):
    import pickle
    import subprocess

    path = tmp_path / "x.sqlite"
    with pytest.raises(wattmeter.TimeoutExpired, match="after 0.2 seconds") as caught:
        wattmeter.run(["sleep", "60"], path, timeout=0.2)
    error = caught.value
    assert isinstance(error, subprocess.TimeoutExpired) and error.status == "ETIMEDOUT"
    assert (error.cmd, error.timeout) == (["sleep", "60"], 0.2)
    assert error.report.exit_code == 143 and 0.2 <= float(error.report.time) < 60
    assert wattmeter.read(path).report.time == error.report.time
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.report.time == error.report.time
    assert wattmeter.run(["true"], timeout=600).exit_code == 0


def test_an_interrupt_ends_the_command_too(python):
    done = python("""
        import _thread, os, threading, time, wattmeter
        threading.Timer(0.5, _thread.interrupt_main).start()
        begin = time.monotonic()
        try:
            wattmeter.run(["sh", "-c", "echo $$ > pid; exec sleep 60"])
        except KeyboardInterrupt:
            print("interrupted")
        assert time.monotonic() - begin < 20
        try:
            os.kill(int(open("pid").read()), 0)
        except ProcessLookupError:
            print("ended")
        """)
    assert done.stdout.split() == ["interrupted", "ended"]


def test_threads_lose_no_regions():
    def work():
        for _ in range(2000):
            with wattmeter.region("thread"):
                pass

    with wattmeter.track() as t:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert t.report.regions["thread"].calls == 8000
    assert t.report["dropped_events"].value == 0


def test_threads_report_and_stop_at_once():
    t = wattmeter.track(interval=0.001).start()
    times = []

    def report():
        for _ in range(50):
            times.append(t.report.time.value)

    threads = [threading.Thread(target=report) for _ in range(3)]
    threads += [threading.Thread(target=t.stop) for _ in range(2)]
    for thread in threads:
        thread.start()
    t.stop()
    for thread in threads:
        thread.join()
    assert len(times) == 150 and t.report is t.stop()


def test_a_forked_child_is_not_the_parent_s_tracker():
    with wattmeter.track() as t:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                assert t.start() is t and t.stop() is None
                with wattmeter.track() as own:
                    with wattmeter.region("child"):
                        pass
                status = 0 if own.report.regions["child"].calls == 1 else 2
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        with wattmeter.region("parent"):
            pass
    assert status == 0
    assert [(r.name, r.calls) for r in t.report.regions] == [("parent", 1)]


def test_the_environment_is_as_it_was(monkeypatch):
    name = "WATTMETER_REGIONS"
    monkeypatch.delenv(name, raising=False)
    with wattmeter.track():
        assert os.environ[name]
    assert name not in os.environ
    monkeypatch.setenv(name, "mine.csv")
    with wattmeter.track():
        assert os.environ[name] == "mine.csv"
    assert os.environ[name] == "mine.csv"


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1), (2, 1, 0)])
def test_the_environment_is_as_it_was_after_trackers_that_overlap(monkeypatch, order):
    name = "WATTMETER_REGIONS"
    monkeypatch.delenv(name, raising=False)
    trackers = [wattmeter.track().start() for _ in order]
    for place in order:
        trackers[place].stop()
    assert name not in os.environ


ENDS = [
    ("the end of the program", "", 0),
    ("exit", "sys.exit(3)", 3),
    ("an exception", "raise SystemExit(4)", 4),
    ("a daemon thread", "threading.Thread(target=wait, daemon=True).start()", 0),
    ("a cycle", "t.me = t", 0),
]


@pytest.mark.parametrize("name, statement, status", ENDS, ids=[end[0] for end in ENDS])
def test_the_end_of_the_interpreter_ends_the_recording(
    python, tmp_path, name, statement, status
):
    python(
        f"""
        import sys, threading, time, wattmeter
        def wait():
            with wattmeter.region("wait"):
                time.sleep(60)
        t = wattmeter.track("run.sqlite", interval=0.02).start()
        time.sleep(0.1)
        {statement}
        """,
        status=status,
    )
    report = wattmeter.read(tmp_path / "run.sqlite").report
    assert report.info["is_complete"]


def test_a_worker_that_ends_while_it_tracks(python, tmp_path):
    python("""
        import multiprocessing, wattmeter
        kept = []
        def work():
            kept.append(wattmeter.track("run.sqlite", interval=0.02).start())
        if __name__ == "__main__":
            process = multiprocessing.get_context("fork").Process(target=work)
            process.start()
            process.join()
        """)
    assert wattmeter.read(tmp_path / "run.sqlite").report.info["is_complete"]


def test_trackers_have_the_same_folder_one_after_the_other(monkeypatch):
    name = "WATTMETER_REGIONS"
    monkeypatch.delenv(name, raising=False)
    paths = set()
    for _ in range(3):
        with wattmeter.track():
            paths.add(os.environ[name])
    assert len(paths) == 1


def test_an_outer_tracker_says_that_it_lacks_regions_of_an_inner_one():
    with wattmeter.track() as outer:
        with wattmeter.track() as inner:
            with wattmeter.region("work"):
                pass
    assert inner.report.regions["work"].calls == 1
    assert not any("another tracker" in remark for remark in inner.report.remarks)
    assert any("another tracker" in remark for remark in outer.report.remarks)


INNER = """
import sys, wattmeter
with wattmeter.region("before"):
    pass
with wattmeter.track() as tracker:
    if "region" in sys.argv:
        with wattmeter.region("inside"):
            pass
with wattmeter.region("after"):
    pass
assert [region.name for region in tracker.report.regions] in (["inside"], [])
"""


@pytest.mark.parametrize("has_regions", (True, False))
def test_a_script_with_a_tracker_of_its_own_under_run(has_regions):
    """The outer report has the others, of one process, and says what it lacks, if anything."""
    words = ["region"] if has_regions else []
    report = wattmeter.run([sys.executable, "-c", INNER, *words])
    assert report.exit_code == 0
    assert sorted(region.name for region in report.regions) == ["after", "before"]
    assert report.to_dict()["regions"]["processes"] == 1
    said = [remark for remark in report.remarks if "another tracker" in remark]
    assert len(said) == has_regions, report.remarks


def test_an_outer_tracker_goes_on_after_an_inner_one(monkeypatch):
    monkeypatch.delenv("WATTMETER_REGIONS", raising=False)
    with wattmeter.track() as outer:
        with wattmeter.region("before"):
            pass
        with wattmeter.track():
            pass
        with wattmeter.region("after"):
            pass
    assert sorted(region.name for region in outer.report.regions) == ["after", "before"]
    assert not any("another tracker" in remark for remark in outer.report.remarks)


def test_messages_name_no_option_of_the_command(tmp_path):
    path = tmp_path / "run.sqlite"
    path.touch()
    with pytest.raises(wattmeter.Error, match='"overwrite" replaces it, mode "append"') as caught:
        wattmeter.track(path)
    assert "--" not in str(caught.value)


def test_a_decorated_function_has_a_session_for_each_call(tmp_path):
    import asyncio
    import pickle

    tracking = wattmeter.track(tmp_path / "runs.sqlite", mode="append", notes={"a": 1})

    @tracking
    def step(x):
        """Divides."""
        time.sleep(0.02)
        return 1 / x

    with pytest.raises(ValueError):
        tracking.report
    assert step(2) == 0.5 and (step.__name__, step.__doc__) == ("step", "Divides.")
    first = tracking.report
    with pytest.raises(ZeroDivisionError):
        step(0)
    assert tracking.report is not first and float(tracking.report.time) >= 0.02
    assert wattmeter.read(tmp_path / "runs.sqlite").run_count == 2

    @tracking
    async def serve(x):
        await asyncio.sleep(0.03)
        return x

    @tracking
    def rows(count):
        return (yield from range(count))

    assert asyncio.run(serve(4)) == 4 and float(tracking.report.time) >= 0.03
    assert list(rows(3)) == [0, 1, 2]
    recording = wattmeter.read(tmp_path / "runs.sqlite")
    assert recording.run_count == 4 and recording.report.notes == {"a": "1"}
    with pickle.loads(pickle.dumps(tracking)) as again:
        pass
    assert wattmeter.read(tmp_path / "runs.sqlite").run_count == 5 and again.report


def test_what_no_session_decorates():
    async def steps():
        yield 1

    for wrong, why in ((steps, "'with track"), (dict, "functions"), (5, "not int")):
        with pytest.raises(TypeError, match=why):
            wattmeter.track()(wrong)


def test_async_with():
    import asyncio

    async def serve():
        async with wattmeter.track() as t, wattmeter.measure() as m:
            await asyncio.sleep(0.02)
        return t.report, m

    report, m = asyncio.run(serve())
    assert m.seconds >= 0.02 and float(report.time) >= 0.02


def test_signals_are_the_program_s_own():
    before = [
        signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)
    ]
    with wattmeter.track():
        now = [
            signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)
        ]
    assert now == before


def held():
    """Threads, descriptors and resident bytes of this process."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    threads = len(os.listdir("/proc/self/task"))
    return threads, len(os.listdir("/proc/self/fd")), pages * os.sysconf("SC_PAGESIZE")


def cycle():
    with wattmeter.track() as t:
        with wattmeter.region("cycle"):
            pass
    assert t.report.regions["cycle"].calls == 1


def test_cycles_leak_nothing():
    for _ in range(50):
        cycle()
    gc.collect()
    threads, files, memory = held()
    for _ in range(300):
        cycle()
    gc.collect()
    assert held()[:2] == (threads, files)
    # A sanitizer keeps what is freed for a while.
    if "asan" not in os.environ.get("LD_PRELOAD", ""):
        assert held()[2] - memory < 300_000
