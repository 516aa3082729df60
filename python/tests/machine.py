# SPDX-License-Identifier: Apache-2.0
"""A machine that is faked at its edge, and programs that run on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import wattmeter

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("WM_BUILD_ROOT", SOURCE / "build"))
SCENARIOS = SOURCE / "tests/fake/scenarios"


class Machine:
    """Without a sensor and without a GPU until it is given some."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.variables = {
            "WATTMETER_NVML": "/nonexistent",
            "WATTMETER_SYSFS": str(folder / "sys"),
            "WATTMETER_STATE": str(folder / "state"),
            "PYTHONPATH": os.pathsep.join(
                [str(Path(wattmeter.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
            ),
        }
        (folder / "sys").mkdir()

    def add_gpus(self, scenario: str | dict) -> None:
        """`scenario` is one of the project's by its name, or a new one."""
        path = self.folder / "gpus.json"
        if isinstance(scenario, dict):
            path.write_text(json.dumps(scenario))
        else:
            path = SCENARIOS / f"{scenario}.json"
        self.variables["WATTMETER_NVML"] = str(BUILD / "tests/fake/libnvidia-ml.so.1")
        self.variables["FAKE_NVML_SCENARIO"] = str(path)

    def add_package(self, number: int = 0, joules: float = 1000) -> Path:
        """A package whose counter stands at that energy; the file of the counter."""
        zone = self.folder / f"sys/class/powercap/intel-rapl:{number}"
        zone.mkdir(parents=True)
        (zone / "name").write_text(f"package-{number}\n")
        (zone / "max_energy_range_uj").write_text("262143328850\n")
        set_counter(zone / "energy_uj", joules)
        return zone / "energy_uj"

    def start(self, program: str, *words: str, **variables: str) -> subprocess.Popen:
        env = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
        env |= self.variables | variables
        return subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program), *words],
            cwd=self.folder,
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, program: str, *words: str, **variables: str) -> str:
        """What the program prints; it has to end well."""
        process = self.start(program, *words, **variables)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        return out


def set_counter(counter: Path, joules: float) -> None:
    """In place, and at once: whoever measures has the file open."""
    descriptor = os.open(counter, os.O_WRONLY | os.O_CREAT, 0o644)
    os.pwrite(descriptor, f"{round(joules * 1e6):013d}\n".encode(), 0)
    os.close(descriptor)
