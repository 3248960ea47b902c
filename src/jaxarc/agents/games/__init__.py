"""Agents that learn games: the levels of a run, the policy, and the agent as a player of frames."""
