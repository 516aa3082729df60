# SPDX-License-Identifier: Apache-2.0
"""What the tests share: a machine whose GPUs are pretended by the fake driver, and programs
that run in an interpreter of their own."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import wattmeter
from machine import Machine

PACKAGE = pathlib.Path(wattmeter.__file__).resolve().parents[1]
PYTHONPATH = os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WM_BUILD_ROOT", SOURCE / "build"))
DATA = SOURCE / "tests" / "data"
FAKE = BUILD / "tests" / "fake" / "libnvidia-ml.so.1"


@pytest.fixture
def data():
    """The folder of captured machines and recordings."""
    return DATA


@pytest.fixture
def build():
    """The folder that was built in, with the command `wattmeter`."""
    return BUILD


@pytest.fixture
def fake_gpus(monkeypatch):
    """A function that has the fake driver pretend a scenario: fake_gpus("everything")."""
    if not FAKE.exists():
        pytest.skip("the fake driver has not been built")

    def pretend(scenario):
        path = SOURCE / "tests" / "fake" / "scenarios" / f"{scenario}.json"
        monkeypatch.setenv("WATTMETER_NVML", str(FAKE))
        monkeypatch.setenv("FAKE_NVML_SCENARIO", str(path))

    return pretend


@pytest.fixture
def no_gpus(monkeypatch):
    """A machine without any driver."""
    monkeypatch.setenv("WATTMETER_NVML", "/nonexistent")
    monkeypatch.setenv("WATTMETER_SYSFS", "/nonexistent")


@pytest.fixture
def python(tmp_path):
    """A function that runs a program in an interpreter of its own, within `tmp_path`."""

    def run(program, *arguments, status=0, timeout=300):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(program))
        done = subprocess.run(
            [sys.executable, "-X", "dev", str(script), *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": PYTHONPATH},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            timeout=timeout,
        )
        assert done.returncode == status, done.stderr
        return done

    return run


@pytest.fixture
def machine(tmp_path):
    """A machine of files, as machine.py makes it."""
    return Machine(tmp_path)
