"""Networks of policies over grid edits, behind one interface."""

from jaxtyping import Array, Key

from jaxarc.agents.edits import Kind
from jaxarc.agents.networks.cells import CellNetwork
from jaxarc.agents.networks.network import Network, PolicyInput
from jaxarc.agents.networks.relational import RelationalNetwork
from jaxarc.config import NetworkConfig

__all__ = ["CellNetwork", "Network", "PolicyInput", "RelationalNetwork", "make_network"]


def make_network(
    key: Key[Array, ""], grid_shape: tuple[int, int], kinds: tuple[Kind, ...], config: NetworkConfig
) -> Network:
    """Make a fresh network of the config's kind."""
    kind = RelationalNetwork if config.kind == "relational" else CellNetwork
    return kind(key, grid_shape, kinds, config)
