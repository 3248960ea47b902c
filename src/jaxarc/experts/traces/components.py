"""Strongly connected components of a graph, what is needed first."""

from jaxarc.experts.traces.graph import Graph


def get_scc_graphs(graph: Graph) -> list[Graph]:
    """Cut a graph into its strongly connected components.

    Returns:
        Each component as a graph with the needs within it. A component comes after all that it needs, and among those
        that could come next, the one whose first node stands first in the graph.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"a Graph was expected, got {type(graph).__name__}; see Graph.of_tasks")
    import networkx  # takes a third of a second, for which nobody shall wait who asks a command for help

    order = {name: place for place, name in enumerate(graph.nodes)}
    whole = networkx.DiGraph()
    whole.add_nodes_from(graph.nodes)
    whole.add_edges_from((need, node) for node, need in graph.needs)
    condensed = networkx.condensation(whole)
    members = {index: condensed.nodes[index]["members"] for index in condensed}
    first = {index: min(order[name] for name in names) for index, names in members.items()}
    sequence = networkx.lexicographical_topological_sort(condensed, key=first.__getitem__)
    return _cut(graph, [members[index] for index in sequence])


def _cut(graph: Graph, components: list[set[str]]) -> list[Graph]:
    """Make the subgraphs in one pass over nodes and needs, which a call of ``subgraph`` for each would not be."""
    home = {name: index for index, names in enumerate(components) for name in names}
    within: list[set[tuple[str, str]]] = [set() for _ in components]
    for node, need in graph.needs:
        if home[node] == home[need]:
            within[home[node]].add((node, need))
    nodes = [{} for _ in components]
    for name, pair in graph.nodes.items():
        nodes[home[name]][name] = pair
    return [Graph(held, frozenset(needs)) for held, needs in zip(nodes, within, strict=True)]
