"""The command line: the only place that reads YAML through Hydra."""
