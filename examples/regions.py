# SPDX-License-Identifier: Apache-2.0
"""Regions of functions, async tasks and threads, all in one report."""

import asyncio
import threading

import wattmeter


@wattmeter.region("parse")
def parse(rows):
    return [row.split(",") for row in rows]


@wattmeter.region("request")
async def request(seconds):
    await asyncio.sleep(seconds)


async def serve():
    # These overlap: each is from its own start to its own end.
    await asyncio.gather(*(request(0.02) for _ in range(3)))
    async with wattmeter.region("answer"):
        await asyncio.sleep(0.01)


def worker():
    with wattmeter.region("worker"):
        parse(["1,2,3"] * 20_000)


with wattmeter.track() as t:
    with wattmeter.region("load"):
        parse(["a,b,c"] * 20_000)
    threads = [threading.Thread(target=worker) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(serve())

for region in t.report.regions:
    print(
        f"{region.name}: {region.calls} calls, {region.time} with the regions inside, "
        f"{region.exclusive.time} without, {region.energy}"
    )
assert t.report.regions["parse"].calls == 3
assert t.report.regions["request"].calls == 3
