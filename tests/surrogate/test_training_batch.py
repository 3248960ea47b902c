import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxarc.surrogate.batch import TrainingBatchJAX, from_static, to_static
from jaxarc.surrogate.candidate_features import candidates_of

ORDERS = [["A", "B", "C"], ["C", "B", "A"]]
SETS = [[frozenset(), frozenset({"B", "A"})], [frozenset({"B"}), frozenset({"C"}), frozenset()]]
TARGETS = ["C", "A"]
DATA = np.arange(2 * 4 * 3 * 3, dtype=np.float32).reshape(2, 4, 3, 3)
PROBS = np.float32([[0.25, 0.75, 0], [0.5, 0.3, 0.2]])
ACCURACIES = np.float32([1, 0.5])


def make(**changes):
    fields = {
        "observational_data": DATA,
        "expert_probs": PROBS,
        "expert_accuracies": ACCURACIES,
        "parent_sets": SETS,
        "variable_orders": ORDERS,
        "target_variables": TARGETS,
    }
    return TrainingBatchJAX(**{**fields, **changes})


def test_the_leaves_are_the_three_arrays():
    leaves = jax.tree.leaves(make())
    assert [(leaf.shape, leaf.dtype) for leaf in leaves] == [
        ((2, 4, 3, 3), jnp.float32),
        ((2, 3), jnp.float32),
        ((2,), jnp.float32),
    ]


def test_labels_are_canonical_tuples():
    batch = make()
    assert batch.parent_sets == (((), ("A", "B")), (("B",), ("C",), ()))
    assert batch.variable_orders == (("A", "B", "C"), ("C", "B", "A"))
    assert batch.target_variables == ("C", "A")


names = st.frozensets(st.text(max_size=3), max_size=4)


@given(st.lists(st.lists(names, min_size=1, max_size=5, unique=True), max_size=4))
def test_labels_come_back_as_they_were(parent_sets):
    static = to_static(parent_sets)
    assert from_static(static) == parent_sets
    assert to_static(from_static(static)) == static
    hash(static)


def test_equal_labels_share_a_program_and_others_do_not():
    traces = []

    @jax.jit
    def total(batch):
        traces.append(batch.target_variables)
        return batch.expert_probs.sum()

    total(make())
    total(make(parent_sets=[[set(), {"A", "B"}], [["B"], ["C"], []]]))
    assert len(traces) == 1
    total(make(parent_sets=[[set(), {"A"}], [["B"], ["C"], []]]))
    assert len(traces) == 2


def test_a_parent_set_is_the_region_of_its_variables_and_the_target():
    candidates = candidates_of(make())
    assert np.array_equal(candidates.columns[0], [[0, 0, 1], [1, 1, 1], [0, 0, 0]])
    assert np.array_equal(candidates.columns[1], [[0, 1, 1], [1, 0, 1], [0, 0, 1]])
    assert np.array_equal(candidates.rows, candidates.columns)
    assert np.array_equal(candidates.is_real, [[True, True, False], [True, True, True]])
    assert np.allclose(candidates.features[..., 0], [[0, 2 / 3, 0], [1 / 3, 1 / 3, 0]])


def test_a_description_asked_for_in_compiled_code_is_good_outside():
    batch = make(target_variables=["B", "B"], parent_sets=[[()], [()]], expert_probs=[[1.0], [1.0]])
    inside = jax.jit(lambda batch: candidates_of(batch).columns)(batch)
    assert np.array_equal(inside, candidates_of(batch).columns)


def test_arrays_stay_where_they_are():
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    assert make(observational_data=jax.device_put(DATA, split)).observational_data.sharding == split


def test_a_batch_without_labels_has_no_parent_sets():
    plain = TrainingBatchJAX(DATA, PROBS, ACCURACIES)
    assert len(jax.tree.leaves(plain)) == 3
    with pytest.raises(ValueError, match="parent_sets"):
        candidates_of(plain)


nan_data = DATA.copy()
nan_data[1, 2, 0, 1] = np.nan
SURE = [[1, 0, 0], [1, 0, 0]]
BAD = {  # what is changed, and the names and values in the message
    "sum": ({"expert_probs": [[0.5, 0.6, 0], [1, 0, 0]]}, r"expert_probs\[0\].*1\.1"),
    "negative": ({"expert_probs": [[1.5, -0.5, 0], [1, 0, 0]]}, r"expert_probs.*\[0, 1\]"),
    "nan data": ({"observational_data": nan_data}, r"observational_data.*nan.*\(1, 2"),
    "accuracy": ({"expert_accuracies": [2, 1]}, "expert_accuracies.*2"),
    "channels": ({"observational_data": DATA[..., :2]}, "observational_data.*B, N,"),
    "rank": ({"expert_probs": PROBS[0]}, r"expert_probs.*\(B, k\)"),
    "accuracies": ({"expert_accuracies": [1]}, r"expert_accuracies.*\(2,\)"),
    "words": ({"expert_probs": "half"}, "expert_probs.*str"),
    "too many candidates": ({"expert_probs": [[1, 0], [0, 1]]}, r"parent_sets\[1\].*3.*expert_probs.*k = 2"),
    "weight on padding": ({"expert_probs": [[0.5, 0.3, 0.2], [1, 0, 0]]}, r"expert_probs\[0\].*parent_sets\[0\].*2"),
    "order": ({"variable_orders": [["A", "B"], ["C", "B", "A"]]}, r"variable_orders\[0\].*2.*d = 3"),
    "half of the labels": ({"target_variables": ()}, "target_variables.*0.*2"),
    "target": ({"target_variables": ["Z", "A"]}, r"target_variables\[0\].*'Z'"),
    "own parent": ({"parent_sets": [[{"C"}], SETS[1]], "expert_probs": SURE}, r"parent_sets\[0\]\[0\].*'C'"),
    "a dict as label": ({"parent_sets": [[[{"name": "A"}]], SETS[1]]}, r"parent_sets\[0\]\[0\].*dict"),
    "bare string": ({"parent_sets": [["AB"], SETS[1]]}, r"parent_sets\[0\]\[0\]"),
    "twice": ({"parent_sets": [[{"A"}, ["A"]], SETS[1]]}, r"parent_sets\[0\].*\('A',\)"),
}


@pytest.mark.parametrize(("changes", "named"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_by_name(changes, named):
    with pytest.raises((TypeError, ValueError), match=named):
        make(**changes)
