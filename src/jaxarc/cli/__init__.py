"""The command line: the only place that parses overrides by Hydra."""
