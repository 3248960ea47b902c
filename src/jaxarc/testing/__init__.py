"""What tests start from: a task and a config that work together, and a check of any environment."""

from jaxarc.testing.environment_check import CheckReport, EnvironmentCheckError, check_environment
from jaxarc.testing.mock import create_mock_task, create_test_config

__all__ = [
    "CheckReport",
    "EnvironmentCheckError",
    "check_environment",
    "create_mock_task",
    "create_test_config",
]
