import inspect
import logging

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from linear_scorer import SETS, BranchingScorer, LinearScorer, make_batch

from jaxarc.profiling import CompileCounter
from jaxarc.surrogate import (
    CandidateSet,
    GraphBatch,
    SurrogateTrainingConfig,
    TrainingBatchJAX,
    candidates_of,
    convert_metrics,
    create_adaptive_train_step,
    create_jax_surrogate_train_step,
    create_surrogate_train_step,
    edge_loss,
    init_optimizer,
    kl_divergence_loss_jax,
)

CONFIG = SurrogateTrainingConfig(weight_by_accuracy=True)
SGD = optax.sgd(0.5)
FACTORIES = {"compiled": create_jax_surrogate_train_step, "plain": create_surrogate_train_step}
both_paths = pytest.mark.parametrize("create", FACTORIES.values(), ids=FACTORIES)


def start(model=LinearScorer, optimizer=SGD):
    """Make a model and an optimizer's state of their own: a compiled step takes them away."""
    made = model(jax.random.key(0))
    return made, init_optimizer(optimizer, made)


def run(step, num_steps=1, batch=None, model=LinearScorer, optimizer=SGD):
    made, state = start(model, optimizer)
    metrics = {}
    for _ in range(num_steps):
        made, state, metrics = step(made, state, make_batch() if batch is None else batch)
    return made, state, convert_metrics(metrics)


def make(create, config=CONFIG, loss_fn=kl_divergence_loss_jax, model=LinearScorer, optimizer=SGD):
    return create(model(jax.random.key(7)), optimizer, loss_fn, config)


@pytest.fixture(scope="module")
def compiled_step():
    return make(create_jax_surrogate_train_step)


def test_the_factories_have_the_documented_signature():
    for create in FACTORIES.values():
        assert list(inspect.signature(create).parameters) == ["model", "optimizer", "loss_fn", "config"]
    assert next(iter(inspect.signature(create_adaptive_train_step).parameters)) == "use_jax_compilation"
    hash(CONFIG)


@both_paths
def test_the_loss_falls(create):
    step = make(create)
    first, last = run(step)[2], run(step, 3)[2]
    assert last["total_loss"] < 0.95 * first["total_loss"]


@both_paths
def test_metrics_are_arrays_until_they_are_converted(create):
    made, state = start()
    metrics = make(create)(made, state, make_batch())[2]
    assert sorted(metrics) == ["gradient_norm", "top1_agreement", "total_loss"]
    assert all(isinstance(value, jax.Array) for value in metrics.values())
    assert all(type(value) is float for value in convert_metrics(metrics).values())


@both_paths
def test_the_loss_is_the_mean_by_accuracy(create):
    batch, (made, _) = make_batch(), start()
    logits = jax.vmap(made)(batch.observational_data, candidates_of(batch))
    weighted = kl_divergence_loss_jax(logits, batch.expert_probs, weights=batch.expert_accuracies)
    alike = kl_divergence_loss_jax(logits, batch.expert_probs)
    assert run(make(create))[2]["total_loss"] == pytest.approx(float(weighted), rel=1e-5)
    config = CONFIG.replace(weight_by_accuracy=False)
    assert run(make(create, config))[2]["total_loss"] == pytest.approx(float(alike), rel=1e-5)


@both_paths
def test_examples_that_nobody_believes_teach_nothing(create):
    batch = eqx.tree_at(lambda batch: batch.expert_accuracies, make_batch(), jnp.zeros(4, jnp.float32))
    made, _, metrics = run(make(create), batch=batch)
    assert metrics["gradient_norm"] == 0
    assert eqx.tree_equal(made, start()[0])


@both_paths
def test_parts_add_up_to_the_whole_batch(create):
    whole, _, one = run(make(create), 2)
    parts, _, four = run(make(create, CONFIG.replace(accumulation_steps=4)), 2)
    assert four == pytest.approx(one, rel=1e-5)
    np.testing.assert_allclose(parts.weight, whole.weight, rtol=1e-5, atol=1e-6)


@both_paths
def test_a_batch_that_cannot_be_cut_is_refused(create):
    with pytest.raises(ValueError, match=r"accumulation_steps.*3.*4"):
        run(make(create, CONFIG.replace(accumulation_steps=3)))


@both_paths
def test_bfloat16_computes_and_float32_keeps(create):
    seen = []

    def loss_fn(logits, target):
        seen.append(logits.dtype)
        return kl_divergence_loss_jax(logits, target)

    class Watching(LinearScorer):
        def __call__(self, data, candidates):
            seen.append((self.weight.dtype, data.dtype, candidates.columns.dtype))
            return super().__call__(data, candidates)

    config = CONFIG.replace(precision="bfloat16")
    optimizer = optax.sgd(0.5, momentum=0.9)
    step = make(create, config, loss_fn, Watching, optimizer)
    made, state, metrics = run(step, 2, model=Watching, optimizer=optimizer)
    assert seen[0] == (jnp.bfloat16, jnp.float32, jnp.bfloat16)
    assert seen[1] == jnp.float32
    assert {leaf.dtype for leaf in jax.tree.leaves((made, state))} == {jnp.dtype("float32")}
    exact = run(make(create, optimizer=optimizer), 2, optimizer=optimizer)[2]
    assert metrics["total_loss"] == pytest.approx(exact["total_loss"], rel=2e-2)


@both_paths
def test_padding_takes_no_probability(create):
    """The model would score padding highest; where only one candidate is real, nothing is left to be wrong about."""
    batch = TrainingBatchJAX(np.ones((2, 1, 3, 3)), [[1, 0], [0.5, 0.5]], [1, 1])
    columns = jnp.float32([[[1, 1, 1], [99, 99, 99]], [[1, 1, 1], [1, 1, 1]]])
    is_real = jnp.array([[True, False], [True, True]])
    candidates = CandidateSet(columns, columns, columns[..., :1], is_real)
    made, state = start()
    metrics = convert_metrics(make(create)(made, state, batch, candidates)[2])
    assert metrics["total_loss"] == pytest.approx(0, abs=1e-6)
    assert metrics["top1_agreement"] == 1


@both_paths
def test_weight_on_padding_is_refused(create):
    batch, (made, state) = make_batch(), start()
    hidden = eqx.tree_at(lambda c: c.is_real, candidates_of(batch), replace_fn=lambda x: x.at[2, 1].set(False))
    with pytest.raises(ValueError, match=r"expert_probs\[2, 1\].*0\.\d+.*candidates.is_real.*False"):
        make(create)(made, state, batch, hidden)


@both_paths
def test_candidates_without_values_pass(create):
    """Inside other compiled code nobody can look at them; weight on padding then shows as a loss beyond measure."""
    batch, (made, state) = make_batch(), start()
    step, candidates = make(create), candidates_of(batch)

    @jax.jit
    def loss(is_real):
        given = eqx.tree_at(lambda c: c.is_real, candidates, is_real)
        return step(made, state, batch, given)[2]["total_loss"]

    assert loss(candidates.is_real) < 10 < loss(candidates.is_real.at[2, 1].set(False))


@both_paths
def test_any_of_the_experts_best_is_agreed_with(create):
    """The expert likes both candidates, and the model the second."""
    batch = TrainingBatchJAX(np.ones((1, 1, 3, 3)), [[0.5, 0.5]], [1])
    made, state = start()
    sign = jnp.sign((jnp.ones(3, jnp.float32) @ made.weight)[0])
    columns = sign * jnp.float32([[[0, 0, 0], [1, 1, 1]]])
    candidates = CandidateSet(columns, columns, columns[..., :1], jnp.ones((1, 2), jnp.bool_))
    assert made(jnp.ones((1, 3, 3)), jax.tree.map(lambda x: x[0], candidates)).argmax() == 1
    assert make(create)(made, state, batch, candidates)[2]["top1_agreement"] == 1


class OrderedScorer(LinearScorer):
    """Reads the variables in an order, an array that is not learned."""

    order: jax.Array

    def __init__(self, key, order=(0, 1, 2)):
        super().__init__(key)
        self.order = jnp.array(order)

    def __call__(self, data, candidates):
        return super().__call__(data[:, self.order], candidates)


@both_paths
def test_arrays_that_are_not_learned_are_those_of_the_model_that_goes_in(create):
    step, losses = make(create, model=OrderedScorer), []
    for order in ((0, 1, 2), (2, 1, 0)):
        made = OrderedScorer(jax.random.key(0), order)
        after, _, metrics = step(made, init_optimizer(SGD, made), make_batch())
        losses.append(float(metrics["total_loss"]))
        assert np.array_equal(after.order, order)
        assert not after.order.is_deleted()
    assert losses[0] != pytest.approx(losses[1], rel=1e-3)


@both_paths
def test_candidates_that_do_not_fit_are_named(create):
    step, batch, (made, state) = make(create), make_batch(), start()
    fitting = candidates_of(batch)
    fewer = eqx.tree_at(lambda c: c.features, fitting, fitting.features[:, :2])
    with pytest.raises(ValueError, match=r"candidates.features.*\(4, 2, 1\).*expert_probs"):
        step(made, state, batch, fewer)
    narrow = eqx.tree_at(lambda c: c.columns, fitting, fitting.columns[..., :2])
    with pytest.raises(ValueError, match=r"candidates.columns.*\(4, 4, 2\).*3"):
        step(made, state, batch, narrow)


def test_both_paths_have_the_same_numerics(compiled_step):
    compiled, _, metrics = run(compiled_step, 5)
    plain, _, plain_metrics = run(make(create_surrogate_train_step), 5)
    assert metrics == pytest.approx(plain_metrics, rel=1e-5)
    for ours, theirs in zip(jax.tree.leaves(compiled), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


@pytest.mark.usefixtures("standard_promotion")
def test_a_step_is_traced_once_whatever_the_names():
    traces = []

    def loss_fn(logits, target):
        traces.append(logits.shape)
        return kl_divergence_loss_jax(logits, target)

    optimizer = optax.adamw(1e-2)
    step = make(create_jax_surrogate_train_step, loss_fn=loss_fn, optimizer=optimizer)
    made, state = start(optimizer=optimizer)
    made, state, _ = step(made, state, make_batch())
    assert traces == [(len(SETS),)]
    batches = [make_batch(seed, names=names) for seed in range(10) for names in (("A", "B", "C"), ("X", "Y", "Z"))]
    for batch in batches:
        candidates_of(batch)
    with CompileCounter() as counter:
        for batch in batches:
            made, state, _ = step(made, state, batch)
    counter.assert_none()
    assert traces == [(len(SETS),)]


@pytest.mark.usefixtures("nans_allowed")
def test_what_goes_in_is_donated(compiled_step):
    made, state = start(optimizer=optax.sgd(0.5, momentum=0.9))
    step = make(create_jax_surrogate_train_step, optimizer=optax.sgd(0.5, momentum=0.9))
    after, _, _ = step(made, state, make_batch())
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves((made, state)))
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(after))


@pytest.mark.parametrize("path", [*FACTORIES, "adaptive"])
def test_seeds_learn_side_by_side(path, compiled_step):
    step = adaptive(LinearScorer) if path == "adaptive" else make(FACTORIES[path])
    keys = lambda: jax.random.split(jax.random.key(3), 2)
    models = eqx.filter_vmap(LinearScorer)(keys())
    states = eqx.filter_vmap(lambda model: init_optimizer(SGD, model))(models)
    batch = make_batch()
    together, _, metrics = eqx.filter_vmap(lambda model, state: step(model, state, batch))(models, states)
    assert metrics["total_loss"].shape == (2,)
    for seed in range(2):
        model = LinearScorer(keys()[seed])
        alone, _, _ = compiled_step(model, init_optimizer(SGD, model), batch)
        np.testing.assert_allclose(together.weight[seed], alone.weight, rtol=1e-5)


def adaptive(model, use_jax_compilation=True, loss_fn=kl_divergence_loss_jax, **settings):
    return create_adaptive_train_step(
        use_jax_compilation, model=model(jax.random.key(7)), optimizer=SGD, loss_fn=loss_fn, config=CONFIG, **settings
    )


def test_a_model_that_compiles_is_compiled(caplog, compiled_step):
    step = adaptive(LinearScorer)
    assert run(step, 3)[2] == pytest.approx(run(compiled_step, 3)[2], rel=1e-6)
    assert step.compiled
    assert not caplog.records


def test_a_model_that_does_not_compile_learns_all_the_same(caplog):
    step = adaptive(BranchingScorer)
    first, last = run(step, 1, model=BranchingScorer)[2], run(step, 3, model=BranchingScorer)[2]
    assert last["total_loss"] < first["total_loss"]
    assert last == pytest.approx(run(make(create_surrogate_train_step), 3)[2], rel=1e-5)
    assert step.compiled is False
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("JAX compilation failed: Attempted boolean conversion of traced array")
    assert record.getMessage().endswith(", falling back to original")


def test_a_config_that_asks_for_compilation_gets_its_error():
    made, state = start(BranchingScorer)
    step = create_adaptive_train_step(model=made, optimizer=SGD, config=CONFIG.replace(train_step="compiled"))
    with pytest.raises(jax.errors.TracerBoolConversionError):
        step(made, state, make_batch())


@pytest.mark.parametrize("path", [*FACTORIES, "adaptive"])
def test_a_batch_of_another_type_is_named(path):
    made, state = start()
    step = adaptive(LinearScorer, compile_from=8) if path == "adaptive" else make(FACTORIES[path])
    with pytest.raises(TypeError, match=r"TrainingBatchJAX.*got dict"):
        step(made, state, {"observational_data": np.ones((1, 1, 3, 3))})


class PairScorer(eqx.Module):
    """Scores each ordered pair of variables by one product."""

    weight: jax.Array

    def __init__(self, key):
        self.weight = jax.random.normal(key, (2,), jnp.float32)

    def __call__(self, data):
        values = data[..., 0]
        return self.weight[0] * (values.T @ values) + self.weight[1]


def test_edges_are_learned_by_the_same_steps():
    graphs = GraphBatch(jnp.ones((2, 4, 3, 3), jnp.float32), jnp.array([np.tri(3, k=-1), np.eye(3)], jnp.bool_))
    found = {}
    for kind in ("compiled", "plain"):
        made, state = start(PairScorer)
        config = CONFIG.replace(train_step=kind, accumulation_steps=2)
        step = create_adaptive_train_step(model=made, optimizer=SGD, loss_fn=edge_loss, config=config)
        made, _, metrics = step(made, state, graphs)
        found[kind] = [made.weight.tolist(), convert_metrics(metrics)]
    assert found["plain"][0] == pytest.approx(found["compiled"][0], rel=1e-5)
    assert found["plain"][1] == pytest.approx(found["compiled"][1], rel=1e-5)
    assert set(found["plain"][1]) == {"total_loss", "gradient_norm"}
