#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real NVIDIA GPUs: what wattmeter says beside what nvidia-smi says, how often the
sensors are renewed, what each call of NVML costs, whose memory is whose. No setting
is changed. Run by hand, with the GPUs at rest; docs/hardware.md explains the tables.

    python3 tests/hardware/run.py [--only info,run,sensor,cost,memory,training] [--markdown FILE]

Without a GPU it is skipped (status 77)."""

import argparse
import importlib
import os
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent),
                str(Path(__file__).resolve().parents[1] / "system")]
import nvml
import smi
import tables
import tap

PARTS = ("info", "run", "sensor", "cost", "memory", "training")


def skip(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(77)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default=",".join(PARTS), metavar="PARTS",
                        help="of " + ", ".join(PARTS))
    parser.add_argument("--markdown", metavar="FILE", help="write the tables there")
    options = parser.parse_args()
    parts = options.only.split(",")
    if not set(parts) <= set(PARTS):
        parser.error(f"--only is of {', '.join(PARTS)}")

    try:
        gpus = smi.ask()
    except (OSError, subprocess.SubprocessError) as error:
        skip(f"nvidia-smi does not work here: {error}")
    if not gpus:
        skip("nvidia-smi sees no GPU")
    try:
        with nvml.Nvml():
            pass
    except nvml.Failed as error:
        skip(f"NVML does not start here: {error}")

    # The command asks the driver that we ask.
    tap.DRIVER = {name: os.environ[name] for name in ("WATTMETER_NVML",) if name in os.environ}
    for part in parts:
        importlib.import_module(f"check_{part}")
    try:
        tap.main()
    finally:
        if options.markdown:
            seen = sorted({f"{gpu.values['name']}, driver {gpu.values['driver_version']}"
                           for gpu in gpus.values()})
            tables.write_markdown(options.markdown, "; ".join(seen))


if __name__ == "__main__":
    main()
