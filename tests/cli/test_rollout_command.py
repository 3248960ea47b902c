import re

import pytest

from jaxarc.cli.main import main


@pytest.mark.usefixtures("standard_promotion")
def test_a_rollout_reports_speed_and_what_random_actions_gain(capsys):
    with pytest.raises(SystemExit) as exit_info:
        main(["rollout", "--num-envs", "8", "--steps", "60", "--max-steps", "10", "--format", "point"])
    out = capsys.readouterr().out
    assert exit_info.value.code == 0
    assert "8 × 100" in out  # whole calls of 50 steps
    assert re.search(r"steps per second +│ +[\d,]+", out)
    assert int(re.search(r"episodes +│ +([\d,]+)", out)[1].replace(",", "")) >= 80
    assert re.search(r"mean return +│ +-?\d", out)
