# SPDX-License-Identifier: Apache-2.0
"""gpus() and _core.Gpus: what GPUs say of themselves."""

import pytest

import wattmeter
from wattmeter import _core


def test_values_are_attributes(fake_gpus):
    fake_gpus("everything")
    gpus = wattmeter.gpus()
    assert len(gpus) == 2 and gpus.why is None
    first = gpus[0]
    assert first.index == 0 and first.name == "SIMULATED everything"
    assert first.power.draw == 340.0 and first.simulated is True
    assert first.memory.total == 80 * 2**30 and isinstance(first.memory.total, int)
    assert "limit" in dir(first.power) and "power" in dir(first)
    assert [p.pid for p in first.processes] and first.processes[0].type
    assert gpus[1].migs[0].uuid
    assert "SIMULATED everything" in str(gpus)
    assert "SIMULATED" in repr(gpus) and "<pre>" in gpus._repr_html_()
    assert len(gpus.to_dict()["gpus"]) == 2
    gpus.refresh()
    gpus.refresh(["power"])
    assert [gpu.index for gpu in gpus] == [0, 1]
    for one in 1, [1], ("1",), "1", range(1, 2):
        assert [gpu.index for gpu in wattmeter.gpus(one)] == [1]
    assert len(wattmeter.gpus([])) == 0 and len(wattmeter.gpus([1, 0])) == 2


def test_a_missing_value_is_none_and_says_why(fake_gpus):
    fake_gpus("errors")
    values = [value for gpu in wattmeter.gpus() for value in gpu.values.values()]
    missing = [value for value in values if value.state != "ok"]
    assert missing
    for value in missing:
        assert value.value is None and value.why


def test_no_gpu_is_an_answer(no_gpus):
    gpus = wattmeter.gpus()
    assert len(gpus) == 0 and list(gpus) == []
    assert "nvml" in gpus.why and _core.Gpus().looked[0].status == "ENODEV"
    assert repr(gpus).startswith("no GPU: ")


def test_wrong_use(fake_gpus):
    fake_gpus("everything")
    gpu = wattmeter.gpus("0")[0]
    with pytest.raises(AttributeError, match="nonsense"):
        gpu.nonsense
    with pytest.raises(AttributeError, match="power.nonsense"):
        gpu.power.nonsense
    with pytest.raises(KeyError):
        gpu["nonsense"]
    with pytest.raises(ValueError, match="GPUs here: 0"):
        wattmeter.gpus("7")


def test_functions_of_the_extension(fake_gpus):
    fake_gpus("everything")
    gpus = _core.Gpus()
    assert (gpus.count, gpus.present) == (2, 2)
    assert gpus.get(0, "power.draw") == gpus.values(0)["power.draw"]
    assert gpus.get(1, "uuid").value.startswith("GPU-")
    assert gpus.select("1") == ([1], None)
    assert gpus.select(None) == ([0, 1], None)
    assert gpus.select("visible", ["CUDA_VISIBLE_DEVICES=1"])[0] == [1]
    assert gpus.processes(0)[1].state == "ok"
    assert gpus.print("brief").count("\n") == 3
    assert gpus.print("json-line").count("\n") == 1
    names = [field.name for field in _core.Gpus.fields()]
    assert names == list(gpus.values(0)) and len(set(names)) == len(names)
    assert _core.Gpus.fields("mig")[0].key == "index"
    assert _core.Gpus.fields("process")[0].key == "pid"
    assert gpus.refresh(["throughput"]) is False


WRONG = [
    (lambda gpus: gpus.get(2, "name"), IndexError),
    (lambda gpus: gpus.get(-1, "name"), IndexError),
    (lambda gpus: gpus.values(9), IndexError),
    (lambda gpus: gpus.processes(9), IndexError),
    (lambda gpus: gpus.migs(9), IndexError),
    (lambda gpus: gpus.get(0, "power."), KeyError),
    (lambda gpus: gpus.get(0, "powerdraw"), KeyError),
    (lambda gpus: gpus.refresh(["nonsense"]), ValueError),
    (lambda gpus: gpus.refresh("power"), TypeError),
    (lambda gpus: gpus.select("nonsense"), ValueError),
    (lambda gpus: gpus.print("yaml"), ValueError),
    (lambda gpus: gpus.fields("yaml"), ValueError),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_use_of_the_extension(fake_gpus, number):
    fake_gpus("everything")
    action, error = WRONG[number]
    with pytest.raises(error):
        action(_core.Gpus())


def test_a_metric_is_recorded_on_demand(fake_gpus):
    fake_gpus("everything")
    with wattmeter.track(channels="fan", interval=0.05) as t:
        pass
    fan = t.report.gpus["gpu0"]["fan"]
    assert (round(fan.value, 6), fan.unit) == (0.36, "ratio")
    with pytest.raises(ValueError, match="'fans' is no channel of a GPU"):
        wattmeter.track(channels="fans")
