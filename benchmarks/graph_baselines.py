"""Print the rows of PC, GES and R2-SortnRegress in docs/surrogate.md, for drawn models and for published networks.

They are no dependencies, so they have an environment of their own. Of cdt and pgmpy only files of data are read.

    python -m venv /tmp/peers
    /tmp/peers/bin/pip install ".[train]" causal-learn==0.1.4.8 CausalDisco==0.2.4
    /tmp/peers/bin/pip install --no-deps cdt==0.6.0 pgmpy==0.1.26
    /tmp/peers/bin/python benchmarks/graph_baselines.py               # drawn models, and their sortability
    /tmp/peers/bin/python benchmarks/graph_baselines.py RUN8 RUN11 RUN20    # networks, with runs of so many variables

A method returns certainties [d, d] of the edges i -> j. Above 1/2 an edge is decided; both directions of an undirected
edge have 1/2.
"""

import gzip
import re
import sys
import warnings
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from CausalDisco.analytics import r2_sortability, relatives_sortability, var_sortability
from CausalDisco.baselines import r2_sort_regress
from causallearn.search.ConstraintBased.PC import pc
from causallearn.search.ScoreBased.GES import ges

import jaxarc
from jaxarc.config import StructuralModelConfig
from jaxarc.surrogate import edge_probabilities
from jaxarc.surrogate.agreement import area_under_roc, graph_accuracy
from jaxarc.surrogate.structural_models import describe_samples, sample_models

DATA_SETS = {5: 200, 10: 100, 20: 25}  # of either kind, by variables
HELD_OUT = 200  # models of either kind that `jaxarc evaluate` draws
NUM_SAMPLES = 853  # of a network; the cells that Sachs et al. 2005 measured under the first, general condition
NUM_DRAWS = 10  # data sets of a network
SACHS = ["Raf", "Mek", "Plcg", "PIP2", "PIP3", "Erk", "Akt", "PKA", "PKC", "P38", "Jnk"]  # the columns of cdt's file


def run_peers(values, is_discrete=False):
    test, criterion = ("chisq", "local_score_BDeu") if is_discrete else ("fisherz", "local_score_BIC")
    size = np.abs(r2_sort_regress(values))  # of coefficients; what is not 0 is an edge
    return {
        "PC": edges_of(pc(values, 0.05, test, show_progress=False).G.graph),
        "GES": edges_of(ges(values, score_func=criterion)["G"].graph),
        "R2-SortnRegress": (size > 0) * (1 + size / max(size.max(), 1e-9)) / 2,
    }


def edges_of(graph):
    # causal-learn marks both ends of an edge: graph[i, j] at i is -1 for a tail, 1 for an arrow and 0 without an edge.
    is_directed = (graph == -1) & (graph.T == 1)
    return np.where(is_directed, 1.0, np.where((graph != 0) & ~is_directed.T, 0.5, 0.0))


def print_drawn(d, mechanism):
    config = StructuralModelConfig(d, min(5, d - 1), mechanism=mechanism, num_samples=200, intervention_share=0.5)
    drawn = sample_models(np.random.default_rng((1,)), 2 * HELD_OUT, config, "random", HELD_OUT)
    graphs = drawn.parents.swapaxes(1, 2)
    observed = [(drawn.values[model], graphs[model].astype(int)) for model in range(HELD_OUT) if graphs[model].any()]
    measures = {"variance": var_sortability, "R2": r2_sortability, "number of relatives": relatives_sortability}
    sortability = (f"{name} {np.mean([by(*pair) for pair in observed]):.3f}" for name, by in measures.items())
    print(f"{d}, {mechanism}: sortability by", ", ".join(sortability))
    count = DATA_SETS[d]
    chosen = np.r_[:count, HELD_OUT : HELD_OUT + count]
    found = [run_peers(values) for values in describe_samples(drawn.values[chosen])[..., 0]]
    for name in found[0]:
        kinds = graph_accuracy(np.stack([each[name] for each in found]), graphs[chosen], count).by_samples
        print(f"  {name}: AUROC", *(f"{kind} {accuracy.auroc:.3f}" for kind, accuracy in kinds.items()))


def print_network(name, data, run, is_discrete, variables=None):
    network, model = read_network(name), jaxarc.load_surrogate(run)
    variables = variables or list(network)
    edges = np.array([[cause in network[effect][0] for effect in variables] for cause in variables])
    print(f"{name}: {len(variables)} variables, {edges.sum()} edges")
    found = [{"surrogate": edge_probabilities(model, each)} | run_peers(each, is_discrete) for each in data]
    for entrant in found[0]:
        columns = zip(("AUROC", "F1", "SHD"), np.array([score(each[entrant], edges) for each in found]).T, strict=True)
        print(f"  {entrant}:", *(f"{key} {of.mean():.3f} ({of.min():.3f} - {of.max():.3f})" for key, of in columns))


def score(certainty, edges):
    """Return AUROC and F1 over ordered pairs, and the number of unordered pairs that are not right."""
    is_pair = ~np.eye(len(edges), dtype=bool)
    decided = ((certainty > 0.5).astype(float) + (certainty >= 0.5)) / 2
    wrong = np.abs(decided - edges)
    f1 = 2 * decided[edges].sum() / (decided.sum() + edges.sum())
    return area_under_roc(certainty[is_pair], edges[is_pair]), f1, np.triu(np.minimum(wrong + wrong.T, 1)).sum()


def read_network(name):
    """Return the parents of each variable, and its probabilities by the states of the parents."""
    text = gzip.decompress(folder_of("pgmpy").joinpath(f"utils/example_models/{name}.bif.gz").read_bytes()).decode()
    states = {key: names.split(", ") for key, names in re.findall(r"variable (\S+) {\s*type.*? { (.*?) };", text)}
    network = {}
    for child, causes, body in re.findall(r"probability \( (\S+)(?: \| (.*?))? \) \{(.*?)\n\}", text, re.DOTALL):
        parents, table = causes.split(", ") if causes else [], {}
        for given, row in re.findall(r"(?:\((.*?)\)|table) (.*?);", body):
            key = tuple(states[parent].index(state) for parent, state in zip(parents, given.split(", "), strict=False))
            table[key] = np.array(row.split(", "), float)
        network[child] = parents, table
    return network


def folder_of(package):
    return Path(find_spec(package).origin).parent


def draw_samples(network, generator):
    """Draw samples [N, d]; the number of a state is its place in the file."""
    values = {}
    for child in TopologicalSorter({child: parents for child, (parents, _) in network.items()}).static_order():
        parents, table = network[child]
        given = zip(*(values[parent] for parent in parents), strict=True) if parents else [()] * NUM_SAMPLES
        bounds = np.array([table[key] for key in given]).cumsum(axis=1)[:, :-1]
        values[child] = (generator.random((NUM_SAMPLES, 1)) > bounds).sum(axis=1)
    return np.stack([values[variable] for variable in network], axis=1).astype(float)


def print_networks(run8, run11, run20):
    cells = np.loadtxt(folder_of("cdt") / "data/resources/cyto_full_data.csv", delimiter=",", skiprows=1)[:NUM_SAMPLES]
    for values in (cells, np.log(cells)):
        print_network("sachs", [values], run11, False, SACHS)
    for name, run in (("asia", run8), ("child", run20)):
        generator = np.random.default_rng(0)
        print_network(name, [draw_samples(read_network(name), generator) for _ in range(NUM_DRAWS)], run, True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the peers', about packages that they use
    if sys.argv[1:]:
        print_networks(*sys.argv[1:])
    else:
        for mechanism in ("linear", "nonlinear"):
            for size in DATA_SETS:
                print_drawn(size, mechanism)
