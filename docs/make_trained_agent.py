"""Put the policy of a run into the package, as the agent that works before anybody has trained one.

Run ``python docs/make_trained_agent.py RUN`` with the folder of a run of ``jaxarc train experiment=ladder_l2_small``.
Of its best checkpoint, the weights of the policy are kept; of the run, its config and its metrics.
"""

import json
import shutil
import sys
from pathlib import Path

from jaxarc.agents.saved_agent import policy_shapes
from jaxarc.files import TRAINED, write_whole
from jaxarc.runs import RunFolder
from jaxarc.runs.checkpoint import save_checkpoint
from jaxarc.runs.kind import SavedRun


def bring(run: RunFolder) -> Path:
    """Write the folder, in place of the one that is there, and return it."""
    saved = SavedRun.open(run, "best")
    record, experiment = saved.checkpoint.record, saved.experiment
    (part, like), *others = policy_shapes(experiment, experiment.environment).items()
    assert not others, "an agent that predicts answers has two parts"
    policy = saved.checkpoint.load(like, within=part)
    for name in reversed(part.split(".")):
        policy = {name: policy}
    target = RunFolder(TRAINED / experiment.logging.run_name)
    shutil.rmtree(target.path, ignore_errors=True)
    config = json.loads(run.config.read_text(encoding="utf-8"))
    write_whole(target.config, (json.dumps(config, indent=2) + "\n").encode())
    write_whole(target.metrics, run.metrics.read_bytes())
    save_checkpoint(target.checkpoints.at(record.update), policy, record)
    return target.path


if __name__ == "__main__":
    print(bring(RunFolder(Path(sys.argv[1]))))
