# SPDX-License-Identifier: Apache-2.0
"""What a block of a program costs, and what is known of each figure."""

import wattmeter


def work():
    return sum(i * i for i in range(2_000_000))


with wattmeter.track() as t:
    work()
report = t.report

print(report)
for key in ("time", "cpu_time", "memory", "energy", "tree_energy", "gpu_energy"):
    figure = report[key]
    if figure.value is None:
        print(f"{key} is missing: {figure.why}")
    elif figure.low is None:
        print(f"{key}: {figure.value:.4g} {figure.unit}, {figure.origin}")
    else:
        print(
            f"{key}: between {figure.low:.4g} and {figure.high:.4g} {figure.unit}, "
            f"{figure.origin}"
        )
