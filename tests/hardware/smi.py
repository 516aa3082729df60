# SPDX-License-Identifier: Apache-2.0
"""smi.py - what `nvidia-smi -q -x` says, of any generation of drivers, under the
names of `wattmeter info --json`."""

import subprocess
import xml.etree.ElementTree as ElementTree

MISSING = {"", "N/A", "[N/A]", "NONE", "UNKNOWN ERROR", "NOT SUPPORTED",
           "REQUESTED FUNCTIONALITY HAS BEEN DEPRECATED"}


class NotShown:
    """This nvidia-smi has no such line, which is no answer."""

    def __repr__(self):
        return "not shown"


NOT_SHOWN = NotShown()


def words(text):
    """As a person would not tell them apart."""
    return text.replace("_", " ").casefold()


def number(scale):
    """From "340.00 W", "81920 MiB", "16x", "36 %"."""
    return lambda text: float(text.split()[0].rstrip("x%")) * scale


def bus_id(text):
    domain, rest = text.split(":", 1)
    return f"{int(domain, 16):04x}:{rest}".casefold()


def enabled(text):
    return {"enabled": True, "yes": True, "disabled": False, "no": False}[text.casefold()]


MIB, MHZ, PERCENT = 1 << 20, 1e6, 0.01


class Row:
    """One value: our name, where it may stand, how it is read, and how far two
    readings that are not taken at once may differ, by an amount or a share."""

    def __init__(self, key, paths, read=words, slack=0.0, share=0.0):
        self.key, self.paths, self.read = key, paths.split(), read
        self.slack, self.share = slack, share

    def find(self, root, gpu):
        found = [element.text or "" for path in self.paths
                 for element in [(root if path.startswith("/") else gpu).find(path.lstrip("/"))]
                 if element is not None]
        if not found:
            return NOT_SHOWN
        told = [text.strip() for text in found if text.strip().upper() not in MISSING]
        return self.read(told[0]) if told else None

    def agrees(self, ours, seen):
        """`seen` is what nvidia-smi told before and after."""
        told = [value for value in seen if value is not None]
        if ours is None or not told:
            return ours is None and len(told) < len(seen)
        if isinstance(told[0], bool) or isinstance(told[0], str):
            return self.as_seen(ours) in told
        slack = max(self.slack, self.share * max(map(abs, told)))
        return min(told) - slack <= ours <= max(told) + slack

    def as_seen(self, ours):
        return self.read(ours) if isinstance(ours, str) else ours


def power(old, new):
    """Drivers to 530 have one element, newer ones one of the GPU and one of the
    module that it may stand on."""
    return " ".join([*(f"power_readings/{name}" for name in old.split()),
                     *(f"gpu_power_readings/{name}" for name in new.split())])


ROWS = [
    Row("name", "product_name"),
    Row("serial", "serial"),
    Row("uuid", "uuid"),
    Row("bios", "vbios_version"),
    Row("architecture", "product_architecture", lambda text: words(text).split()[0]),
    Row("driver_version", "/driver_version"),
    Row("cuda_version", "/cuda_version"),
    Row("compute_mode", "compute_mode"),
    Row("persistence", "persistence_mode"),
    Row("mig_mode", "mig_mode/current_mig"),
    Row("mig_mode_pending", "mig_mode/pending_mig"),
    Row("display_active", "display_active", enabled),
    Row("memory.total_bytes", "fb_memory_usage/total", number(MIB), MIB),
    Row("memory.used_bytes", "fb_memory_usage/used", number(MIB), 64 * MIB),
    Row("memory.free_bytes", "fb_memory_usage/free", number(MIB), 64 * MIB),
    Row("memory.reserved_bytes", "fb_memory_usage/reserved", number(MIB), MIB),
    Row("memory.bar1_total_bytes", "bar1_memory_usage/total", number(MIB), MIB),
    Row("memory.bar1_used_bytes", "bar1_memory_usage/used", number(MIB), 8 * MIB),
    Row("utilization.gpu_ratio", "utilization/gpu_util", number(PERCENT), 0.3),
    Row("utilization.memory_ratio", "utilization/memory_util", number(PERCENT), 0.3),
    Row("utilization.encoder_ratio", "utilization/encoder_util", number(PERCENT), 0.3),
    Row("utilization.decoder_ratio", "utilization/decoder_util", number(PERCENT), 0.3),
    Row("utilization.fan_ratio", "fan_speed", number(PERCENT), 0.05),
    Row("utilization.temperature_celsius", "temperature/gpu_temp", number(1), 5),
    Row("utilization.temperature_memory_celsius", "temperature/memory_temp", number(1), 5),
    Row("utilization.temperature_slowdown_celsius", "temperature/gpu_temp_slow_threshold",
        number(1)),
    Row("utilization.temperature_shutdown_celsius", "temperature/gpu_temp_max_threshold",
        number(1)),
    Row("utilization.performance", "performance_state"),
    Row("pci.bus", "pci/pci_bus"),
    Row("pci.bus_id", "pci/pci_bus_id", bus_id),
    Row("pci.device", "pci/pci_device"),
    Row("pci.device_id", "pci/pci_device_id"),
    Row("pci.sub_system_id", "pci/pci_sub_system_id"),
    Row("pci.current_link_gen", "pci/pci_gpu_link_info/pcie_gen/current_link_gen", number(1)),
    Row("pci.max_link_gen", "pci/pci_gpu_link_info/pcie_gen/max_link_gen", number(1)),
    Row("pci.current_link_width", "pci/pci_gpu_link_info/link_widths/current_link_width",
        number(1)),
    Row("pci.max_link_width", "pci/pci_gpu_link_info/link_widths/max_link_width", number(1)),
    Row("pci.replays", "pci/replay_counter", number(1), 8),
    Row("pci.sent_bytes_per_second", "pci/tx_util", number(1e3), 50e6, 1),
    Row("pci.received_bytes_per_second", "pci/rx_util", number(1e3), 50e6, 1),
    Row("clocks.graphics_hertz", "clocks/graphics_clock", number(MHZ), 60e6, 0.2),
    Row("clocks.sm_hertz", "clocks/sm_clock", number(MHZ), 60e6, 0.2),
    Row("clocks.memory_hertz", "clocks/mem_clock", number(MHZ), 60e6, 0.2),
    Row("clocks.video_hertz", "clocks/video_clock", number(MHZ), 60e6, 0.2),
    Row("clocks.max_graphics_hertz", "max_clocks/graphics_clock", number(MHZ), 1e6),
    Row("clocks.max_sm_hertz", "max_clocks/sm_clock", number(MHZ), 1e6),
    Row("clocks.max_memory_hertz", "max_clocks/mem_clock", number(MHZ), 1e6),
    Row("clocks.max_video_hertz", "max_clocks/video_clock", number(MHZ), 1e6),
    Row("power.management", "power_readings/power_management"),
    Row("power.draw_watts", power("power_draw",
                                  "power_draw average_power_draw instant_power_draw"),
        number(1), 20, 0.3),
    Row("power.instant_watts", power("", "instant_power_draw"), number(1), 20, 0.3),
    Row("power.average_watts", power("", "average_power_draw"), number(1), 20, 0.3),
    Row("power.limit_watts", power("power_limit", "requested_power_limit"), number(1), 0.01),
    Row("power.enforced_limit_watts", power("enforced_power_limit", "current_power_limit"),
        number(1), 0.01),
    Row("power.default_limit_watts", power("default_power_limit", "default_power_limit"),
        number(1), 0.01),
    Row("power.min_limit_watts", power("min_power_limit", "min_power_limit"),
        number(1), 0.01),
    Row("power.max_limit_watts", power("max_power_limit", "max_power_limit"),
        number(1), 0.01),
    Row("ecc.mode", "ecc_mode/current_ecc"),
    Row("ecc.mode_pending", "ecc_mode/pending_ecc"),
]


def throttle(gpu):
    """The reasons that hold, in our words."""
    for kind in ("event", "throttle"):
        reasons = gpu.find(f"clocks_{kind}_reasons")
        if reasons is None or not len(reasons):
            continue
        names = [reason.tag.removeprefix(f"clocks_{kind}_reason_")
                 for reason in reasons if reason.text.strip() == "Active"]
        return frozenset(name.replace("clocks_setting", "clock_setting") for name in names)
    return NOT_SHOWN


def processes(gpu):
    """Memory in bytes by pid; None where it is not known."""
    found = {}
    for process in gpu.findall("processes/process_info"):
        memory = process.findtext("used_memory", "N/A").strip()
        found[int(process.findtext("pid"))] = (
            None if memory.upper() in MISSING else number(MIB)(memory))
    return found


def migs(gpu):
    """As (GPU instance, compute instance, multiprocessors, MiB in all)."""
    return sorted(
        (int(mig.findtext("gpu_instance_id")), int(mig.findtext("compute_instance_id")),
         int(mig.findtext("device_attributes/shared/multiprocessor_count")),
         int(number(1)(mig.findtext("fb_memory_usage/total"))))
        for mig in gpu.findall("mig_devices/mig_device"))


class Gpu:
    def __init__(self, root, gpu):
        self.values = {row.key: row.find(root, gpu) for row in ROWS}
        self.throttle, self.processes, self.migs = throttle(gpu), processes(gpu), migs(gpu)


def ask():
    """All GPUs, by UUID. Raises OSError or subprocess.SubprocessError."""
    done = subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, text=True,
                          timeout=120, check=True)
    root = ElementTree.fromstring(done.stdout)
    return {gpu.findtext("uuid"): Gpu(root, gpu) for gpu in root.findall("gpu")}
