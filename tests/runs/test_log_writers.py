"""Where reports go besides metrics.jsonl: TensorBoard's files for real, Weights & Biases by a stand-in."""

import struct
import sys
import types

import pytest
from run_command import run_command
from small_run import LEARNABLE
from tensorboardX.proto.event_pb2 import Event

from jaxarc.agents import Experiment, Report
from jaxarc.config import ConfigValidationError, LoggingConfig, TrainingConfig
from jaxarc.runs import RunFolder
from jaxarc.runs.writers import LogWriterError, LogWriters, TensorBoardWriter, check_extras, open_log_writers


def experiment(num_seeds=1, **logging):
    return Experiment(LEARNABLE, training=TrainingConfig(num_seeds=num_seeds), logging=LoggingConfig(**logging))


def report(update, seed=0, **fields):
    return Report(update, 100 * update, 0.5 * update, seed=seed, **fields)


def read_events(folder):
    """The scalars of TensorBoard's record files: length, its checksum, an event, its checksum."""
    (file,) = folder.iterdir()
    data, events = file.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        events.append(Event.FromString(data[12 : 12 + length]))
        data = data[16 + length :]
    return [(event.step, value.tag, value.simple_value) for event in events for value in event.summary.value]


class Recorder:
    def __init__(self, fails_at=None, fails_to_close=False):
        self.fails_at, self.fails_to_close, self.seen, self.is_closed = fails_at, fails_to_close, [], False

    def write(self, report):
        if report.update == self.fails_at:
            raise OSError(28, "No space left on device")
        self.seen.append(report.update)

    def close(self):
        if self.fails_to_close:
            raise LogWriterError("not flushed")
        self.is_closed = True


def test_tensorboard_gets_what_was_measured_over_environment_steps_one_folder_a_seed(tmp_path):
    writer = TensorBoardWriter(tmp_path)
    for seed in (3, 4):
        writer.write(report(0, seed, train_solve_rate=0.0))
        writer.write(report(1, seed, mean_return=seed - 0.5, train_solve_rate=0.25))
    writer.close()
    scalars = read_events(tmp_path / "seed_4")
    assert (100, "mean_return", 3.5) in scalars
    assert (100, "seconds", 0.5) in scalars
    assert [value for _, tag, value in scalars if tag == "train_solve_rate"] == [0.0, 0.25]
    assert not {tag for _, tag, _ in scalars} & {"evaluation_solve_rate", "seed", "update", "environment_steps"}
    assert (100, "mean_return", 2.5) in read_events(tmp_path / "seed_3")


def test_a_sink_that_fails_is_named_once_and_the_others_go_on():
    warnings, broken, sound = [], Recorder(fails_at=1), Recorder()
    with LogWriters([broken, sound], warnings.append) as writers:
        for update in range(4):
            writers.write(report(update))
    assert (broken.seen, sound.seen) == ([0], [0, 1, 2, 3])
    assert warnings == ["Recorder gets no more reports: [Errno 28] No space left on device; metrics.jsonl has them all"]
    assert sound.is_closed


def test_every_sink_is_closed_also_when_the_run_ends_by_an_error_or_one_cannot_be_closed():
    warnings, first, second = [], Recorder(fails_to_close=True), Recorder()
    with pytest.raises(ArithmeticError), LogWriters([first, second], warnings.append):
        raise ArithmeticError("diverged")
    assert second.is_closed
    assert len(warnings) == 1


class FakeWandb(types.ModuleType):
    """Knows the few calls of wandb that are used."""

    class Error(Exception):
        pass

    def __init__(self, refuses=False, fails=False):
        super().__init__("wandb")
        self.refuses, self.fails, self.logged, self.options, self.is_finished = refuses, fails, [], {}, False

    def init(self, **options):
        if self.refuses:
            raise self.Error("no API key")
        self.options = options
        return self

    def log(self, values, step):
        if self.fails:
            raise self.Error("the connection is gone")
        self.logged.append((step, values))

    def finish(self):
        self.is_finished = True


def use(monkeypatch, wandb):
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    return wandb


def test_wandb_gets_the_config_and_the_reports_of_each_seed_under_its_name(tmp_path, monkeypatch):
    wandb = use(monkeypatch, FakeWandb())
    (writer,) = open_log_writers(experiment(num_seeds=2, wandb=True, wandb_project="grids"), RunFolder(tmp_path))
    for seed in (0, 1):
        writer.write(report(2, seed, mean_return=1.5))
    writer.close()
    assert wandb.options["project"] == "grids"
    assert wandb.options["config"]["training"]["num_seeds"] == 2
    assert wandb.logged == [
        (200, {f"seed_{seed}/seconds": 1.0, f"seed_{seed}/episodes": 0, f"seed_{seed}/mean_return": 1.5})
        for seed in (0, 1)
    ]
    assert wandb.is_finished


@pytest.mark.parametrize("overrides", [[], ["surrogate=parent_sets"]])
def test_a_run_that_wandb_refuses_leaves_no_folder(tmp_path, monkeypatch, overrides):
    use(monkeypatch, FakeWandb(refuses=True))
    result = run_command("train", *overrides, "logging.wandb=true", f"logging.run_root={tmp_path}")
    assert result.exit_code == 1
    assert "wandb: no API key" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("field", "library"), [("wandb", "wandb"), ("tensorboard", "tensorboardX")])
def test_a_library_that_is_missing_is_named_with_the_command_that_installs_it(monkeypatch, field, library):
    monkeypatch.setitem(sys.modules, library, None)  # what Python leaves where an import is known to fail
    with pytest.raises(ConfigValidationError, match=rf"logging\.{field}=true needs .*pip install {library}"):
        check_extras(LoggingConfig(**{field: True}))


def test_nothing_is_imported_or_opened_unless_it_is_asked_for(tmp_path, monkeypatch):
    for library in ("wandb", "tensorboardX"):
        monkeypatch.setitem(sys.modules, library, None)
    check_extras(LoggingConfig())
    assert open_log_writers(experiment(), RunFolder(tmp_path)) == []


OWN_WRITER = """
class Lines:
    def __init__(self, experiment, folder):
        self.file = (folder / "lines.txt").open("w")
        self.file.write(f"{experiment.logging.run_name}\\n")

    def write(self, report):
        self.file.write(f"{report.seed} {report.samples}\\n")

    def close(self):
        self.file.close()
"""


def test_a_class_of_a_user_gets_the_reports(tmp_path, monkeypatch):
    (tmp_path / "own_writers_of_a_user.py").write_text(OWN_WRITER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    wanted = experiment(writers=("own_writers_of_a_user:Lines",))
    check_extras(wanted.logging)
    with LogWriters(open_log_writers(wanted, RunFolder(tmp_path)), pytest.fail) as writers:
        for seed in (0, 1):
            writers.write(report(3, seed))
    assert (tmp_path / "lines.txt").read_text() == "ppo\n0 300\n1 300\n"


@pytest.mark.parametrize("name", ["no_such_module_here:Lines", "json:Lines"])
def test_a_writer_that_cannot_be_found_is_refused_before_the_run(name):
    with pytest.raises(ConfigValidationError, match=name):
        check_extras(LoggingConfig(writers=(name,)))
