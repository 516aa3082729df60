# SPDX-License-Identifier: Apache-2.0
"""python -m wattmeter.compat.gpu_tracker: the command `gpu-tracker`."""

import sys

from wattmeter.__main__ import main

if __name__ == "__main__":
    sys.argv.insert(1, "gpu-tracker")
    main()
