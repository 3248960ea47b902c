"""The comparison of surrogates of graphs with peers: the graphs of causal-learn, and a run beside a fake peer."""

import json
import sys

import graph_peers
import numpy as np
import pytest
import worker_graphs

from jaxarc.cli.main import main

TINY = [
    "surrogate=graphs",
    *("structural_models.num_variables=3", "structural_models.max_parents=2", "structural_models.num_samples=20"),
    *("surrogate_network.latent_size=4", "surrogate_network.num_layers=1", "surrogate_network.num_heads=1"),
    *("surrogate_training.warmup_steps=2", "surrogate_training.num_steps=4", "graphs.models_per_batch=4"),
    *("graphs.eval_models=16", "surrogate.compilation_cache=false"),
]
ORACLE = """
import sys
import numpy as np
method, clock, _, seconds, data, output = sys.argv[1:]
assert clock == "--cpu-time"
arrays = np.load(data)
assert arrays["values"].shape == arrays["is_set"].shape == (8, 20, 3)
assert len(arrays["train_values"]) == len(arrays["train_edges"])
np.savez(output, probs=np.full((8, 3, 3), 0.5), seconds=0.001, train_examples=int(float(seconds) > 0))
"""


def test_edges_of_causal_learn_are_read_by_their_marks():
    # X0 -> X1 has a tail (-1) at X0 and an arrow (1) at X1, X1 - X2 tails at both ends, X0 <-> X3 arrows at both.
    graph = np.zeros((4, 4), int)
    graph[0, 1], graph[1, 0] = -1, 1
    graph[1, 2] = graph[2, 1] = -1
    graph[0, 3] = graph[3, 0] = 1
    expected = np.zeros((4, 4))
    expected[0, 1] = 1
    expected[1, 2] = expected[2, 1] = expected[0, 3] = expected[3, 0] = 0.5
    np.testing.assert_array_equal(worker_graphs.edges_of(graph), expected)


def test_without_the_peers_environment_it_says_how_to_build_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(graph_peers, "PYTHON", tmp_path / ".venv-graph-peers" / "bin" / "python")
    assert graph_peers.main(["some/run"]) == 1
    assert "run: make benchmark-graphs" in capsys.readouterr().out


@pytest.mark.usefixtures("standard_promotion")
def test_a_run_and_a_peer_are_measured_on_the_same_data_sets(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["train", *TINY, f"logging.run_root={tmp_path / 'runs'}"])
    assert not ended.value.code
    (run,) = (tmp_path / "runs").iterdir()
    worker = tmp_path / "worker.py"
    worker.write_text(ORACLE)
    monkeypatch.setattr(graph_peers, "PYTHON", type(tmp_path)(sys.executable))
    monkeypatch.setattr(graph_peers, "WORKER", worker)
    monkeypatch.setattr(graph_peers, "_POOL", 2)
    results = tmp_path / "results.json"
    arguments = ["--models", "4", "--methods", "pc", "avici", "--times", "2", "--json", str(results)]
    assert graph_peers.main([str(run), *arguments, "--cpu-seconds", "3"]) == 0
    (recorded,) = json.loads(results.read_text())
    assert recorded["structural_models"]["num_variables"] == 3
    ours, pc, avici = recorded["results"]
    assert ours["method"] == "surrogate, seed 0"
    assert (ours["train_examples"], pc["train_examples"], avici["train_examples"]) == (16, 0, 1)
    assert (ours["train_seconds"], avici["train_seconds"]) == (3, 6)
    for kind in ("observational", "interventional"):
        assert ours[kind]["num_models"] == 4
        assert (pc[kind]["auroc"], pc[kind]["expected_shd"]) == (0.5, 3.0)
    assert "expected SHD" in capsys.readouterr().out
