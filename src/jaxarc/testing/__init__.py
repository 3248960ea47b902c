"""What tests and examples start from: a task and a config that work together."""

from jaxarc.testing.mock import create_mock_task, create_test_config

__all__ = ["create_mock_task", "create_test_config"]
