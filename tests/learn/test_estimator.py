"""Linear models: energies, losses with certified bounds, and the manners of scikit-learn."""

import warnings

import numpy as np
import pytest

import softmap
from softmap.learn import LinearModel, Sample, StructuredClassifier
from softmap.learn.losses import LOSSES, Data, Fit
from support.oracles import brute_force

CHAIN = [[0, 1], [1, 2], [3, 2]]


def noisy_chains(count, seed):
    rng = np.random.default_rng(seed)
    y = [np.repeat(rng.integers(0, 3, 2), 2) for _ in range(count)]
    X = [(np.eye(3)[labels] + 0.6 * rng.normal(size=(4, 3)), CHAIN) for labels in y]
    return X, y


def data_for(pairwise="potts"):
    X, y = noisy_chains(5, seed=0)
    return Data(LinearModel(3, 1, 3, pairwise), [Sample(*x) for x in X], y)


def fit_options(**changed):
    options = {
        "alpha": 0.1, "eta": 1.5, "max_iter": 25, "tol": 1e-6, "batch_size": None, "seed": 0,
        "threads": 1, "options": {"goal": "lp", "lp_gap": 1e-6},
    }  # fmt: skip
    return Fit(**(options | changed))


@pytest.mark.parametrize("pairwise", ["potts", "tables"])
def test_energies_are_weights_times_statistics(pairwise):
    linear = LinearModel(2, 3, 4, pairwise)
    rng = np.random.default_rng(1)
    sample = Sample(rng.normal(size=(5, 2)), [[0, 1], [4, 1], [2, 3]], rng.normal(size=(3, 3)))
    weights, labels = rng.normal(size=linear.size), rng.integers(0, 4, (6, 5))
    model = linear.model(sample, weights)
    for x in labels:
        assert weights @ linear.of_labels(sample, x) == pytest.approx(model.energy(x))


def hinge_by_enumeration(data, weights, alpha):
    total = 0.0
    for sample, y in zip(data.samples, data.labels, strict=True):
        augmented = data.linear.model(sample, weights, np.eye(3)[y] - 1.0)
        # the added costs are 0 at the truth and -1 elsewhere: minus the Hamming loss
        total += float(weights @ data.linear.of_labels(sample, y)) - brute_force(augmented)[0]
    return 0.5 * alpha * weights @ weights + total / data.variables


@pytest.mark.filterwarnings("ignore:StructuredClassifier")  # few rounds suffice here
def test_the_hinge_ends_between_its_certified_bounds():
    data, fit = data_for(), fit_options()
    weights = LOSSES["hinge"](data, fit)
    uppers = [r.upper for r in fit.log]
    lowers = [r.lower for r in fit.log]
    assert lowers == sorted(lowers)  # the dual never falls
    value = hinge_by_enumeration(data, weights, fit.alpha)
    assert fit.log[-1].lower - 1e-9 <= value <= min(uppers) + 1e-9
    assert min(uppers) - lowers[-1] < 0.1 * min(uppers)
    assert all(i.gap <= 1e-5 for r in fit.log for i in r.inferences)
    batched = fit_options(batch_size=3, max_iter=8)
    again = LOSSES["hinge"](data, batched)
    assert hinge_by_enumeration(data, again, fit.alpha) == pytest.approx(value, rel=0.2)


def test_the_smoothed_loss_is_minimised_and_bounds_hold():
    data, fit = data_for("tables"), fit_options(alpha=0.05, max_iter=100)
    weights = LOSSES["fenchel-young"](data, fit)
    values = [r.upper for r in fit.log]
    assert values[-1] < 0.8 * values[0]
    assert all(i.gap <= 1e-6 for i in fit.log[-1].inferences)
    # at the optimum the statistics of beliefs are those of the truth, up to regularisation
    gradient = fit.alpha * weights
    for k, sample in enumerate(data.samples):
        soft = softmap.methods.marginals.smoothed_optimum(
            data.linear.model(sample, weights), fit.eta
        )
        phi = data.linear.statistics(sample, soft.nodes, soft.edges)
        gradient = gradient + (data.truth()[k] - phi) / data.variables
    assert np.abs(gradient).max() < 1e-4


@pytest.mark.filterwarnings("ignore:StructuredClassifier")  # few rounds suffice here
@pytest.mark.parametrize("loss", LOSSES)
def test_edges_help(loss):
    X, y = noisy_chains(10, seed=1)
    X_new, y_new = noisy_chains(25, seed=2)
    options = {"loss": loss, "alpha": 0.02, "eta": 3.0, "max_iter": 10, "threads": 1}
    learner = StructuredClassifier(**options).fit(X, [labels + 10 for labels in y])
    assert set(learner.classes_) <= {10, 11, 12}
    alone = StructuredClassifier(**options).fit(
        np.concatenate([x for x, _ in X]), np.concatenate(y) + 10
    )
    with_edges = learner.score(X_new, [labels + 10 for labels in y_new])
    without = alone.score(np.concatenate([x for x, _ in X_new]), np.concatenate(y_new) + 10)
    assert learner.pairwise_coef_[0] > 0
    assert with_edges > without + 0.05
    results, beliefs = learner.infer(X_new[:2]), learner.marginals(X_new[:2], eta=1.0)
    assert all(r.bound <= r.energy for r in results)
    assert beliefs[0].nodes.shape == (12,)


def test_bad_input_is_refused_with_a_sentence():
    X, y = noisy_chains(2, seed=0)
    for bad, words in [
        ({"loss": "nonsense"}, "loss="),
        ({"pairwise": "nonsense"}, "pairwise="),
        ({"alpha": -1.0}, "alpha"),
    ]:
        with pytest.raises(softmap.OptionError, match=words):
            StructuredClassifier(**bad).fit(X, y)
    with pytest.raises(softmap.ModelError, match="labels of shape"):
        StructuredClassifier().fit(X, [y[0], y[1][:2]])
    with pytest.raises(softmap.ModelError, match="labels of 1"):
        StructuredClassifier().fit(X, y[:1])
    with pytest.raises(softmap.ModelError, match="features of 1 edges"):
        Sample(X[0][0], CHAIN, [[1.0]])
    with pytest.raises(ValueError, match="not fitted"):
        StructuredClassifier().predict(X)
    with pytest.raises(softmap.OptionError, match="Invalid parameter"):
        StructuredClassifier().set_params(nonsense=1)


def test_the_checks_of_scikit_learn_pass():
    pytest.importorskip("sklearn", minversion="1.6")
    from sklearn.base import clone
    from sklearn.utils.estimator_checks import check_estimator

    learner = StructuredClassifier(max_iter=4, threads=1, inference={"max_work": 1000})
    assert clone(learner).get_params() == learner.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = check_estimator(learner, on_skip=None, on_fail=None)
    failed = {row["check_name"]: row["exception"] for row in rows if row["status"] == "failed"}
    assert failed == {}
    assert sum(row["status"] == "passed" for row in rows) > 40


@pytest.mark.filterwarnings("ignore:StructuredClassifier")  # few rounds suffice here
@pytest.mark.parametrize("loss", ["hinge", "fenchel-young"])
def test_a_verbose_fit_prints_a_line_per_round(loss, capsys):
    rng = np.random.default_rng(0)
    y = [np.full(3, k % 2) for k in range(6)]
    X = [(labels[:, None] + rng.normal(size=(3, 1)), [[0, 1], [1, 2]]) for labels in y]
    learner = StructuredClassifier(loss=loss, max_iter=4, verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == learner.n_iter_
    assert lines[0].startswith("round 1  objective ")
    StructuredClassifier(loss=loss, max_iter=2).fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("loss", LOSSES)
def test_a_fit_that_stops_early_says_so(loss):
    data = data_for()
    with pytest.warns(softmap.ConvergenceWarning, match="after max_iter=2 rounds"):
        LOSSES[loss](data, fit_options(max_iter=2, alpha=0.01))
    LOSSES[loss](data, fit_options(max_iter=2, alpha=0.01, tol=100.0))  # no warning
