# SPDX-License-Identifier: Apache-2.0
"""The callbacks of training frameworks, each with its real package, and ranks."""

import importlib
import json
import pathlib
import sys
from types import SimpleNamespace

import pytest

import wattmeter
from wattmeter._training import Training, of_rank


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_a_training(fake_gpus, tmp_path):
    fake_gpus("constant")
    training = Training(tmp_path / "run.sqlite", interval=0.01)
    with pytest.raises(ValueError, match="not begun"):
        training.report
    training.enter("epoch")
    training.leave("epoch")
    assert training.figures() == {}
    training.begin()
    for _ in range(2):
        training.enter("epoch")
        for _ in range(3):
            training.enter("step")
            training.leave("step")
        training.enter("step")  # A break in the middle of it.
        training.leave("epoch")
    training.leave("epoch")
    while not training.figures():
        pass
    first = training.figures()["energy_J"]
    training.enter("epoch")
    training.end()
    training.end()
    assert training.figures() == {}  # of what comes later nothing is known
    report = wattmeter.read(tmp_path / "run.sqlite").report
    assert {r.name: r.calls for r in report.regions} == {"epoch": 3, "step": 8}
    assert 0 < first <= report.energy.value == training.report.energy.value


def test_a_second_training_is_one_more_run(no_gpus, tmp_path):
    training = Training(tmp_path / "run.sqlite", interval=0.01)
    for _ in range(3):
        training.begin()
        training.end()
    assert wattmeter.read(tmp_path / "run.sqlite").run_count == 3
    with pytest.raises(wattmeter.ExistsError):
        Training(tmp_path / "run.sqlite").begin()


def test_a_second_training_into_a_file_of_one_run(no_gpus, tmp_path):
    path = tmp_path / "run.csv"
    training = Training(path, mode="overwrite", interval=0.01)
    notes = []
    for number in range(2):
        training._options["notes"] = {"number": number}
        training.begin()
        training.end()
        notes.append(wattmeter.read(path).report.notes)
    assert notes == [{"number": "0"}, {"number": "1"}]
    once = Training(tmp_path / "once.csv", interval=0.01)
    once.begin()
    with pytest.raises(wattmeter.ExistsError):
        once.begin()


@pytest.mark.parametrize(
    ("value", "half", "origin", "logged"),
    [
        (3.4894731, 1.85, "estimated", {"energy_J": 3.4, "energy_is_estimated": True}),
        (1349.8765, 667, "estimated", {"energy_J": 1340, "energy_is_estimated": True}),
        (12.3456789, 0.0123, "measured", {"energy_J": 12.345}),
        (12.3456789, None, "measured", {"energy_J": 12.34}),
        (0.0, None, "measured", {"energy_J": 0}),
        (None, None, "measured", {}),
    ],
)
def test_what_is_logged_has_the_digits_that_are_known(monkeypatch, value, half, origin, logged):
    ends = () if half is None else (value - half, value + half)
    joules = wattmeter.Figure("energy", value, "J", *ends, origin=origin)
    training = Training()
    training._is_running = True
    monkeypatch.setattr(Training, "report", SimpleNamespace(energy=joules))
    assert training.figures() == logged


def test_without_a_sensor_nothing_is_logged(no_gpus):
    training = Training(interval=0.01, gpus="none")
    training.begin()
    before = training.report.energy.value
    figures = training.figures()
    after = training.report.energy.value
    training.end()
    # It becomes known at some sample, which may come between any two of these.
    assert figures or before is None
    assert not figures or after is not None


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("a.b/run.sqlite", "a.b/run-rank3.sqlite"),
        (pathlib.Path("run"), "run-rank3"),
        ("postgresql://host/db", "postgresql://host/db"),
        (None, None),
    ],
)
def test_a_rank_has_a_file_of_its_own(path, own):
    assert of_rank(path, 3) == own


@pytest.mark.parametrize(
    ("name", "needs", "content", "words"),
    [
        ("huggingface", "transformers", "TrainerCallback", ("process_index", "train_begin")),
        ("lightning", "lightning.pytorch", "Callback", ("global_rank", "train_start")),
    ],
)
def test_the_framework_says_which_rank_it_is(
    no_gpus, tmp_path, monkeypatch, name, needs, content, words
):
    """Its launcher may set no RANK. Of the framework there is no more here than that."""
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setitem(sys.modules, needs, SimpleNamespace(**{content: object}))
    monkeypatch.setitem(sys.modules, f"wattmeter.{name}", None)  # to be put back
    del sys.modules[f"wattmeter.{name}"]
    kind = importlib.import_module(f"wattmeter.{name}").EnergyCallback

    def train(path, rank, count):
        energy = kind(tmp_path / path, interval=0.01, gpus="none", notes={"mine": "x"})
        told = SimpleNamespace(**{words[0]: rank, "world_size": count})
        getattr(energy, f"on_{words[1]}")(told, None)
        energy.on_train_end(told, None)

    for rank in (1, 0):
        train("run.sqlite", rank, 2)
    ranks = wattmeter.read([tmp_path / f"run-rank{rank}.sqlite" for rank in (1, 0)])
    for rank in (0, 1):
        assert ranks[rank].report.notes == {"rank": str(rank), "mine": "x"}
    train("alone.sqlite", 0, 1)
    assert wattmeter.read(tmp_path / "alone.sqlite").report.notes == {"mine": "x"}


def patient(kind, folder):
    """A callback whose joules, estimated, are known from the first step on."""

    class Patient(kind):
        def on_step_end(self, *arguments, **keywords):
            self.wait()
            super().on_step_end(*arguments, **keywords)

        def on_train_batch_end(self, *arguments):
            self.wait()
            super().on_train_batch_end(*arguments)

        def wait(self):
            while not self._training.figures():
                pass

    return Patient(folder / "run.sqlite", interval=0.01, cpu_watts="10:100")


def test_hugging_face(torch, no_gpus, tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from wattmeter.huggingface import EnergyCallback

    has_short_name = hasattr(transformers.TrainingArguments, "eval_strategy")
    strategy = "eval_strategy" if has_short_name else "evaluation_strategy"

    class Reporter(transformers.TrainerCallback):
        """What report_to names comes before the user's callbacks, as this one."""

        seen = []

        def on_log(self, args, state, control, logs=None, **keywords):
            self.seen.append("energy_J" in logs)

    config = transformers.GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=16)
    arguments = transformers.TrainingArguments(
        str(tmp_path / "out"),
        num_train_epochs=2,
        per_device_train_batch_size=2,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        **{strategy: "epoch"},
    )
    ids = torch.arange(8)
    energy = patient(EnergyCallback, tmp_path)
    trainer = transformers.Trainer(
        transformers.GPT2LMHeadModel(config),
        arguments,
        train_dataset=[{"input_ids": ids, "labels": ids}] * 6,
        eval_dataset=[{"input_ids": ids, "labels": ids}] * 2,
        callbacks=[Reporter, energy],
    )
    trainer.train()
    regions = {r.name: r.calls for r in energy.report.regions}
    assert regions == {"epoch": 2, "step": 6, "validation": 2}
    assert Reporter.seen and all(Reporter.seen)
    lines = trainer.state.log_history
    logged = [line["energy_J"] for line in lines if "energy_J" in line]
    assert logged and logged == sorted(logged)
    assert 0 < logged[-1] <= energy.report.energy.value
    trainer.state.save_to_json(str(tmp_path / "state.json"))
    kept = json.loads((tmp_path / "state.json").read_text())
    assert "energy_J" in kept["log_history"][-1]
    assert kept["log_history"][-1]["energy_is_estimated"] is True
    trainer.evaluate()
    assert "eval_loss" in lines[-1] and "energy_J" not in lines[-1]


def test_lightning(torch, no_gpus, tmp_path):
    try:
        import lightning.pytorch as lightning
    except ImportError:
        lightning = pytest.importorskip("pytorch_lightning")
    from wattmeter.lightning import EnergyCallback

    class Module(lightning.LightningModule):
        def __init__(self, fails=False):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
            self.fails = fails

        def training_step(self, batch, number):
            if self.fails:
                raise KeyError("mine")
            return self.layer(batch).sum()

        def validation_step(self, batch, number):
            self.layer(batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    def trainer(energy):
        return lightning.Trainer(
            max_epochs=2,
            accelerator="cpu",
            devices=1,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            log_every_n_steps=1,
            callbacks=[energy],
        )

    data = torch.utils.data.DataLoader(torch.ones(6, 4), batch_size=2)
    energy = patient(EnergyCallback, tmp_path)
    one = trainer(energy)
    one.fit(Module(), data, data)
    regions = {r.name: r.calls for r in energy.report.regions}
    assert regions == {"epoch": 2, "step": 6, "validation": 2}
    assert 0 < one.callback_metrics["energy_J"] <= energy.report.energy.value * 1.0001

    failed = EnergyCallback(interval=0.01)
    with pytest.raises(KeyError):
        trainer(failed).fit(Module(fails=True), data)
    assert failed.report.regions["step"].calls == 1
