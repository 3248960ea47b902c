"""The cluster on which other tests rely: it runs jobs side by side, and two of them do not meet."""

from pathlib import Path

pytest_plugins = ["slurm_cluster"]


def test_three_jobs_of_an_array_run_on_three_nodes_at_once(slurm, tmp_path):
    script = "#!/bin/bash\necho $SLURMD_NODENAME > node.$SLURM_ARRAY_TASK_ID\nuntil [ -e go ]; do sleep 0.1; done\n"
    job = slurm.submit(script, "--array=0-2", folder=tmp_path)
    slurm.wait_until(lambda: len(list(tmp_path.glob("node.*"))) == 3)
    assert slurm.state(job).split() == ["RUNNING"] * 3
    assert sorted(file.read_text().strip() for file in tmp_path.glob("node.*")) == ["node1", "node2", "node3"]
    (tmp_path / "go").touch()
    slurm.wait_until(lambda: slurm.state(job).split() == ["COMPLETED"] * 3)


def test_a_second_cluster_stands_beside_the_first_and_leaves_nothing(slurm, tmp_path):
    other = type(slurm)(tmp_path)
    job = other.submit("#!/bin/bash\necho $$ > pid\nsleep 600\n", "-w", "node2", folder=tmp_path)
    other.wait_until((tmp_path / "pid").exists)
    other.kill(2)
    assert not slurm.run("squeue", "-h")
    other.revive(2)
    assert other.state(job) == "RUNNING"
    other.kill(2)
    process = Path("/proc", (tmp_path / "pid").read_text().strip())
    assert process.exists()
    other.stop()
    slurm.wait_until(lambda: not process.exists())
