# SPDX-License-Identifier: Apache-2.0
"""Reports: copied, saved, and shown."""

import subprocess
import time
import types

import pytest

import wattmeter

pytestmark = pytest.mark.usefixtures("no_gpus")


def test_figures_are_formatted_pickled_and_copied():
    import copy
    import pickle

    with wattmeter.track() as t:
        pass
    known, missing = t.report.time, t.report.dram_energy
    if missing.value is None:
        assert f"{missing:>9}" == f"{missing:9.2f}" == "      n/a"
        assert f"{missing:.3g}" == "n/a"
    assert f"{known:9.4f}" == f"{known.value:9.4f}"
    for figure in (known, missing):
        assert pickle.loads(pickle.dumps(figure)) == figure == copy.deepcopy(figure)


def saved_and_loaded(report, folder):
    report.save(folder / "report.json", overwrite=True)
    return wattmeter.Report.load(folder / "report.json")


def test_power_has_the_range_of_the_energy(fake_gpus):
    fake_gpus("constant")
    with wattmeter.track(interval=0.02) as t:
        time.sleep(0.5)
    energy, power, seconds = t.report.energy, t.report.power, t.report.time
    assert energy.low < energy.value < energy.high
    assert power.origin == energy.origin and (energy / seconds).unit == power.unit == "W"
    for end in ("low", "high"):
        expected = getattr(energy, end) / energy.value * power.value
        assert getattr(power, end) == pytest.approx(expected)


@pytest.mark.parametrize("how", ["copy", "deepcopy", "pickle", "save", "twice"])
def test_reports_are_copied_pickled_and_saved(tmp_path, fake_gpus, how):
    import copy
    import pickle

    fake_gpus("everything")
    with wattmeter.track(interval=0.02, notes={"batch": 3}) as t:
        with wattmeter.region("a"), wattmeter.region("b"):
            time.sleep(0.05)
    report = t.report
    same = {
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
        "pickle": lambda one: pickle.loads(pickle.dumps(one)),
        "save": lambda one: saved_and_loaded(one, tmp_path),
        "twice": lambda one: pickle.loads(pickle.dumps(saved_and_loaded(one, tmp_path))),
    }[how](report)
    assert type(same) is wattmeter.Report and same is not report
    for name in ("figures", "info", "exit_code", "notes", "remarks", "command"):
        assert getattr(same, name) == getattr(report, name), name
    for name in ("variables", "sources"):
        assert getattr(same, name) == getattr(report, name), name
    assert same.to_dict() == report.to_dict() and repr(same) == repr(report)
    for level in (0, 1, 2):
        assert same.to_text(verbosity=level) == report.to_text(verbosity=level)
    assert same["max_ram.main.total_rss"] == report["max_ram.main.total_rss"]
    for kind in ("regions", "paths", "gpus", "devices"):
        parts, others = getattr(same, kind), getattr(report, kind)
        assert len(parts) == len(others) > 0
        for part, other in zip(parts, others):
            assert part.figures == other.figures and repr(part) == repr(other)
            facts = {k: v for k, v in vars(part).items() if not k.startswith("_")}
            assert facts == {k: v for k, v in vars(other).items() if k in facts}
    assert same.regions["b"].exclusive.time == report.regions["b"].exclusive.time
    assert same.gpus[report.gpus[0].uuid].label == "gpu0" and "c" not in same.regions
    assert same.rest.figures == report.rest.figures
    assert [vars(p) for p in same.processes] == [vars(p) for p in report.processes]
    with pytest.raises(AttributeError, match="there is no figure 'enrgy'"):
        same.enrgy
    if how in ("pickle", "save", "twice"):
        with pytest.raises(ValueError, match="print these before"):
            same.to_text(price_per_kwh=0.3)


def test_what_is_no_saved_report(tmp_path):
    import pickle

    (tmp_path / "x.json").write_text("[1, ")
    with pytest.raises(ValueError, match=r"x.json: not written by Report.save\(\)"):
        wattmeter.Report.load(tmp_path / "x.json")
    with wattmeter.track() as t:
        pass
    (tmp_path / "x.json").write_text(t.report.to_json())
    with pytest.raises(ValueError, match=r"to_json\(\) keeps less, and cannot be read back"):
        wattmeter.Report.load(tmp_path / "x.json")
    with pytest.raises(wattmeter.Error, match="x.json: .* that of a report cannot be read back"):
        wattmeter.read(tmp_path / "x.json")
    with pytest.raises(ValueError, match="end the name in .json"):
        t.report.save(tmp_path / "x.csv")
    with pytest.raises(FileExistsError, match="exists already; overwrite=True rep") as caught:
        t.report.save(tmp_path / "x.json")
    assert isinstance(caught.value, wattmeter.Error) and caught.value.status == "EEXIST"
    t.report.save(tmp_path / "x.json", overwrite=True)
    with pytest.raises(FileNotFoundError, match=r"y.json: there is no such file; Rep") as caught:
        wattmeter.Report.load(tmp_path / "y.json")
    assert isinstance(caught.value, wattmeter.Error) and caught.value.status == "ENOENT"
    with pytest.raises(ValueError, match=r"x.json: a saved report; compare\(\) takes rec"):
        wattmeter.compare(tmp_path / "x.json", tmp_path / "y.json")
    with pytest.raises(ValueError, match=r"x.json: a saved report: .*Report.load\(\) reads"):
        wattmeter.read(tmp_path / "x.json")
    with pytest.raises(TypeError, match="^a part of a report cannot be pickled: "):
        pickle.dumps(t.report.devices)


def test_what_is_asked_for_and_not_there_is_named():
    with wattmeter.track() as t:
        for i in range(30):
            with wattmeter.region(f"r{i}"):
                pass
    with pytest.raises(KeyError, match=r"no figure 'enrgy'; did you mean energy, .*\? \.figures"):
        t.report["enrgy"]
    with pytest.raises(AttributeError, match=r"no figure 'zzz'; there are: .*, \.\.\.; "):
        t.report.zzz
    with pytest.raises(KeyError, match=r"no region 'x'; there are: r0, r1, .*r19, \.\.\."):
        t.report.regions["x"]
    with pytest.raises(KeyError, match="no gpu 'gpu0'; there are: none"):
        t.report.gpus["gpu0"]
    with pytest.raises(TypeError, match="recordings are compared, not reports"):
        wattmeter.compare(t.report, t.report)


def lines_shown(html):
    """Those that a notebook shows before anything is unfolded."""
    import re

    return re.sub("</summary>.*?</details>", "\n", html, flags=re.S).count("\n") + 1


def test_what_is_shown_of_many_names_stays_short(monkeypatch):
    """Whatever the number of regions, processes and figures: 20 lines."""
    import re
    import subprocess

    with wattmeter.track(interval=0.05) as t:
        for number in range(20_000):
            with wattmeter.region(f"batch{number}"):
                pass
        children = [subprocess.Popen(["sleep", "0.2"]) for _ in range(30)]
        for child in children:
            child.wait()
    report = t.report
    assert sum(region.calls for region in report.regions) == 20_000
    html = report._repr_html_()
    assert lines_shown(html) <= 20 and len(html) < 10_000
    unfolded = re.sub("</pre><details><summary>[^<]*</summary><pre>", "\n", html)
    assert unfolded.count("\n") == len(str(report).splitlines()) - 1
    for shown in (report, report.regions, report.paths, report.figures, report.devices):
        assert len(repr(shown).splitlines()) <= 20 and len(repr(shown)) < 10_000
    more = len(report.regions) - 19
    assert f"... and {more} more" in repr(report.regions)


def test_what_is_shown_of_a_machine_and_a_recording_stays_short(tmp_path, fake_gpus):
    fake_gpus("everything")
    with wattmeter.track(tmp_path / "run.sqlite") as t:
        t.log({f"metric{i}": i for i in range(100)})
    recording = wattmeter.read(tmp_path / "run.sqlite")
    gpus = wattmeter.gpus()
    found = wattmeter.doctor(0.1)
    for shown in (recording, recording.columns, recording.metrics, gpus, gpus[0].values,
                  gpus[0].power, found, gpus[0]):
        assert len(repr(shown).splitlines()) <= 20, repr(shown)
    for shown in (t.report, gpus, found):
        assert lines_shown(shown._repr_html_()) <= 20
    assert gpus[0].values == dict(gpus[0].values) and len(recording.columns) > 20


def test_ipython_in_a_terminal_shows_the_text():
    with wattmeter.track() as t:
        for i in range(40):
            with wattmeter.region(f"r{i}"):
                pass
    shown = []
    t.report._repr_pretty_(types.SimpleNamespace(text=shown.append), False)
    (text,) = shown
    lines, whole = text.splitlines(), str(t.report).splitlines()
    assert len(whole) > len(lines) == 20 and lines[:19] == whole[:19]
    assert lines[19].startswith("... and ")
