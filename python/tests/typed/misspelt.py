# SPDX-License-Identifier: Apache-2.0
"""Each line with a comment is an error to the type checkers; nothing runs it."""

import wattmeter

with wattmeter.track() as t:
    pass
report = t.report
report.enrgy  # error
report.energy.vlaue  # error
report.regions[0].clals  # error
report.regions["a"].exclusive.cpu_tmie  # error
report.rest.time  # error: it may be None
report.gpus["gpu0"].utilisation  # error
report.devices[0].modle  # error
report.processes[0].piid  # error
report.info["hsot"]  # error
report.to_text(verbose=1)  # error
report.to_dict()["start"].upper()  # error: it may be no text
wattmeter.gpus()[0].power.drwa  # error
wattmeter.gpus()["gpu0"].nmae  # error
wattmeter.gpus()[0].processes[0].memory_gpu  # error
wattmeter.read("a.sqlite").colums  # error
wattmeter.read("a.sqlite")["a"].valeus  # error
wattmeter.compare("a.sqlite", "b.sqlite").wrost  # error
wattmeter.measure().secnods  # error
wattmeter.track(intervall=1)  # error
wattmeter.region("a").nmae  # error


@wattmeter.region
def double(x: int) -> int:
    return 2 * x


double("a")  # error
