# SPDX-License-Identifier: Apache-2.0
"""check_run.py - what a run reports beside nvidia-smi, and its energy beside its
power."""

import smi
import tap
from tap import case, near


@case("run: power and temperature as nvidia-smi saw them before and after")
def _(folder):
    before = smi.ask()
    told = tap.report("sleep", "2", env=tap.environment(**tap.DRIVER), timeout=120)
    after = smi.ask()
    measured = {gpu["uuid"]: gpu for gpu in told["gpus"]}
    assert set(measured) == set(before), (sorted(measured), sorted(before))
    for uuid, gpu in measured.items():
        for metric, key, slack in (("power", "power.draw_watts", 20),
                                   ("temperature", "utilization.temperature_celsius", 5)):
            seen = [gpus[uuid].values[key] for gpus in (before, after)]
            seen = [value for value in seen if isinstance(value, float)]
            value = gpu[metric]["mean"]
            print(f"# gpu{gpu['index']} {metric}: {value}, nvidia-smi {seen}")
            assert (value is None) == (not seen), metric
            if seen:
                slack = max(slack, 0.3 * max(seen))
                assert min(seen) - slack <= value <= max(seen) + slack, (metric, value, seen)

    energies = {gpu["uuid"]: gpu for gpu in told["energy"]["gpus"]}
    for uuid, gpu in measured.items():
        joules, watts = energies[uuid]["energy"], gpu["power"]["mean"]
        print(f"# gpu{gpu['index']}: {joules} J by {energies[uuid]['method']}, mean {watts} W")
        if joules is not None and watts is not None:
            near(joules, watts * told["compute_time"]["time"], 0.5 * joules, "energy")
