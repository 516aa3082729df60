# SPDX-License-Identifier: Apache-2.0
"""What type checkers see: every attribute is declared, and a misspelt one is an error."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import wattmeter
from wattmeter import _core
from wattmeter._devices import gpu_fields
from wattmeter._results import report as reports

TYPED = pathlib.Path(__file__).resolve().parent / "typed"
PACKAGE = pathlib.Path(wattmeter.__file__).resolve().parents[1]


def mypy(name, folder):
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", TYPED / name],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(PACKAGE)},
        stdout=subprocess.PIPE,
        universal_newlines=True,
    )
    return done.stdout


def test_a_user_s_program_has_no_errors(tmp_path):
    found = mypy("user.py", tmp_path)
    assert "checked 1 source file" in found or "no issues" in found
    assert "user.py:" not in found


def test_a_user_s_program_runs(python):
    done = python((TYPED / "user.py").read_text(), "a.sqlite", "b.sqlite")
    assert len(done.stdout.splitlines()) == 5


def test_what_is_misspelt_is_an_error(tmp_path):
    lines = (TYPED / "misspelt.py").read_text().splitlines()
    wrong = [number for number, line in enumerate(lines, 1) if "# error" in line]
    found = re.findall(r"misspelt\.py:(\d+): error", mypy("misspelt.py", tmp_path))
    assert sorted(set(map(int, found))) == wrong and len(wrong) == 21


def declared(cls):
    names = {name for one in cls.__mro__ for name in vars(one).get("__annotations__", {})}
    return names


def test_every_figure_is_declared(fake_gpus):
    fake_gpus("everything")
    with wattmeter.track() as t:
        with wattmeter.region("a"):
            pass
    report = t.report
    region, gpu, device = report.regions[0], report.gpus[0], report.devices[0]
    for part, core in (
        (report, {}),
        (region, _core.Report.region(report._core, "region", 0)),
        (region.exclusive, {}),
        (report.rest, {}),
        (gpu, _core.Report.device(report._core, "gpu", 0)),
        (device, _core.Report.device(report._core, "device", 0)),
    ):
        known = {*core, *(key for key in part.figures if key.isidentifier())}
        assert declared(type(part)) == known, type(part)
    assert set(reports.Process.__annotations__) == set(report._core.processes()[0])


def test_every_field_of_a_gpu_is_declared():
    for kind, cls in (
        ("gpu", gpu_fields.GpuFields),
        ("process", gpu_fields.ProcessFields),
        ("mig", gpu_fields.MigFields),
    ):
        known = {}
        for field in _core.Gpus.fields(kind):
            group, _, key = field.name.rpartition(".") if kind == "gpu" else ("", "", field.key)
            owner = gpu_fields._GROUPS[group] if group else cls
            known.setdefault(owner, {})[key] = field.type
            if group:
                known.setdefault(cls, {})[group] = owner.__name__
        for owner, fields in known.items():
            types = {n: t.replace(" | None", "") for n, t in owner.__annotations__.items()}
            assert types == fields
