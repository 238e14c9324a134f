"""`StructuredClassifier`: a linear model as a scikit-learn estimator."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from softmap import Model, Result, SoftMarginals, solve_batch
from softmap.arguments import count, positive
from softmap.errors import ModelError, OptionError, shown
from softmap.extend.smoothing import smoothed_optimum
from softmap.learn.features import LinearModel, Sample, as_sample
from softmap.learn.losses import LOSSES, Data, Fit, Round

INFERENCE: dict[str, Any] = {"goal": "lp", "lp_gap": 1e-3, "gap": 1e-4}


@dataclass(frozen=True, eq=False)
class Fitted:
    """The outcome of `fit`: classes, the map from weights to costs, weights, and a log."""

    classes: NDArray[Any]
    linear: LinearModel
    weights: NDArray[np.float64]
    log: tuple[Round, ...]


class StructuredClassifier:
    """Classifier of the variables of a graph, from features of variables and edges.

    The energy is linear in its weights; `fit` learns them from labelled samples. X is a list of
    samples, each a `Sample` or a tuple (features, edges, edge features), and y a list of label
    arrays. A 2-D array X with one label per row is accepted, too: variables without edges.

    Parameters
    ----------
    loss : "fenchel-young" or "hinge"
        The smoothed loss at temperature 1/`eta`, or the structured hinge with Hamming loss.
    pairwise : "potts" or "tables"
        One weight per edge feature, added if the labels differ; or one table per edge feature.
    alpha : float
        Factor of the regulariser ½ alpha ‖w‖², which is added to the mean loss per variable.
    eta : float
        Inverse temperature of the smoothed loss.
    max_iter : int
        Largest number of rounds.
    tol : float
        Tolerance at which `fit` stops.
    batch_size : int, optional
        Number of samples between two updates of the weights with the hinge loss; all by default.
    fit_intercept : bool
        Whether to add a constant feature 1 to every variable.
    inference : dict, optional
        Options of `softmap.solve`.
    threads : int, optional
        Number of threads; all available ones by default.
    random_state : int
        Random seed.
    verbose : bool
        Whether to print a line per round of `fit`.

    Attributes
    ----------
    classes_ : array
        The labels that occur in y.
    coef_ : float64 array (features, labels)
        Weights of the variables.
    pairwise_coef_ : float64 array
        Weights of the edges.
    log_ : tuple of Round
        What each round of training computed, with the certified gap of each inference.

    Examples
    --------
    >>> import numpy as np
    >>> from softmap.learn import StructuredClassifier
    >>> rng = np.random.default_rng(0)
    >>> chain = [[0, 1], [1, 2], [2, 3]]
    >>> y = [np.full(4, k % 2) for k in range(6)]
    >>> X = [(labels[:, None] + rng.normal(size=(4, 1)), chain) for labels in y]
    >>> model = StructuredClassifier(alpha=0.01).fit(X, y)
    >>> bool(model.pairwise_coef_[0] > 0), max(i.gap for i in model.log_[-1].inferences) < 1e-6
    (True, True)
    """

    _estimator_type = "classifier"

    def __init__(  # noqa: PLR0913 - one keyword per thing a user may want to say
        self,
        *,
        loss: str = "fenchel-young",
        pairwise: str = "potts",
        alpha: float = 1e-3,
        eta: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-4,
        batch_size: int | None = None,
        fit_intercept: bool = True,
        inference: dict[str, Any] | None = None,
        threads: int | None = None,
        random_state: int | None = 0,
        verbose: bool = False,
    ) -> None:
        self.loss, self.pairwise, self.alpha, self.eta = loss, pairwise, alpha, eta
        self.max_iter, self.tol, self.batch_size = max_iter, tol, batch_size
        self.fit_intercept, self.inference = fit_intercept, inference
        self.threads, self.random_state, self.verbose = threads, random_state, verbose

    # --- parameters -----------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        names = list(inspect.signature(StructuredClassifier.__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor; return the estimator."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise OptionError(f"Invalid parameter {name!r}: expected one of {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = type(self)().get_params()
        shown_ = {k: v for k, v in self.get_params().items() if v != defaults[k]}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in shown_.items())})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(),
        )

    # --- fitting --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the weights, and return the estimator.

        Parameters
        ----------
        X : list of samples, or array (samples, features)
            See the class.
        y : list of arrays, or array (samples,)
            The true label of each variable, of any type.
        """
        samples = _samples(X, self.fit_intercept)
        truth = _labels(y, samples, _is_flat(X))
        classes = np.unique(np.concatenate(truth))
        if len(classes) < 2:
            raise ModelError(f"y has {len(classes)} class: a classifier needs two or more classes")
        features = np.asarray(samples[0].nodes).shape[1]
        edge_features = max(np.asarray(s.pairs).shape[1] for s in samples)
        linear = LinearModel(features, edge_features, len(classes), self.pairwise)
        _check_features(samples, linear, type(self).__name__, bool(self.fit_intercept))
        if self.loss not in LOSSES:
            raise OptionError(f"loss={shown(self.loss)}: expected one of {', '.join(LOSSES)}")
        fit = self._options()
        data = Data(linear, samples, [np.searchsorted(classes, t) for t in truth])
        weights = LOSSES[self.loss](data, fit)
        self.fitted_ = Fitted(classes, linear, weights, tuple(fit.log))
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels that occur in y."""
        return self.fitted_.classes

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of variables: (features, labels)."""
        return self.fitted_.linear.split(self.fitted_.weights)[0]

    @property
    def pairwise_coef_(self) -> NDArray[np.float64]:
        """Weights of edges."""
        return self.fitted_.linear.split(self.fitted_.weights)[1]

    @property
    def log_(self) -> tuple[Round, ...]:
        """What each round of training computed, with the certified gap of each inference."""
        return self.fitted_.log

    @property
    def n_iter_(self) -> int:
        """Number of rounds."""
        return len(self.fitted_.log)

    @property
    def n_features_in_(self) -> int:
        """Number of features of a variable."""
        return self.fitted_.linear.features - bool(self.fit_intercept)

    def _options(self) -> Fit:
        batch = None if self.batch_size is None else count("batch_size", self.batch_size, 1)
        return Fit(
            alpha=positive("alpha", self.alpha),
            eta=positive("eta", self.eta),
            max_iter=count("max_iter", self.max_iter, 1),
            tol=positive("tol", self.tol),
            batch_size=batch,
            seed=0 if self.random_state is None else count("random_state", self.random_state),
            threads=self.threads,
            options=INFERENCE | (self.inference or {}),
            verbose=bool(self.verbose),
        )

    # --- using ----------------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """Return the predicted labels: a list of arrays, or an array if X is an array.

        Parameters
        ----------
        X : list of samples, or array (samples, features)
            See the class.
        """
        labels = [self.classes_[r.labels] for r in self.infer(X)]
        return labels[0] if _is_flat(X) else labels

    def infer(self, X: Any) -> list[Result]:
        """Return the results of `softmap.solve` for all samples, with their certificates.

        Parameters
        ----------
        X : list of samples, or array (samples, features)
            See the class.
        """
        options = INFERENCE | (self.inference or {})
        return list(solve_batch(self.models(X), threads=self.threads, **options))

    def marginals(self, X: Any, eta: float | None = None) -> list[SoftMarginals]:
        """Return the smoothed marginals of every sample.

        Parameters
        ----------
        X : list of samples, or array (samples, features)
            See the class.
        eta : float, optional
            Inverse temperature; by default that of the loss.
        """
        eta = self.eta if eta is None else eta
        return [smoothed_optimum(model.network, eta) for model in self.models(X)]

    def models(self, X: Any) -> list[Model]:
        """Return the model of every sample for the learned weights.

        Parameters
        ----------
        X : list of samples, or array (samples, features)
            See the class.
        """
        if not hasattr(self, "fitted_"):
            raise not_fitted(type(self).__name__)
        samples = _samples(X, self.fit_intercept)
        linear, weights = self.fitted_.linear, self.fitted_.weights
        _check_features(samples, linear, type(self).__name__, bool(self.fit_intercept))
        return [linear.model(sample, weights) for sample in samples]

    def score(self, X: Any, y: Any) -> float:
        """Return the fraction of variables whose predicted label is the true one.

        Parameters
        ----------
        X : list of samples, or array (samples, features)
            See the class.
        y : list of arrays, or array (samples,)
            The true label of each variable.
        """
        found, flat = self.predict(X), _is_flat(X)
        truth = np.concatenate(_labels(y, _samples(X, self.fit_intercept), flat))
        guess = found if flat else np.concatenate(found)
        return float((guess == truth).mean())


def _samples(X: Any, intercept: bool) -> list[Sample]:
    """Return the samples, with a feature 1 of each variable for the intercept."""
    flat = _is_flat(X)
    if hasattr(X, "toarray"):
        raise TypeError("sparse data is not supported: call X.toarray()")
    if flat:
        _check_array(X)
    listed = [Sample(X)] if flat else [as_sample(x) for x in X]
    if not listed:
        raise ModelError("X has no samples")
    return [_with_one(s) for s in listed] if intercept else listed


def _check_features(samples: list[Sample], linear: LinearModel, name: str, one: bool) -> None:
    """Raise `ModelError` unless the numbers of features are those of `fit`.

    Parameters
    ----------
    samples : list of Sample
        The samples.
    linear : LinearModel
        The model with the numbers of features.
    name : str
        The name of the estimator, for the message.
    one : bool
        Whether the last feature of a variable is that of the intercept.
    """
    for sample in samples:
        width = np.asarray(sample.nodes).shape[1]
        if width != linear.features:
            raise ModelError(
                f"X has {width - one} features, but {name} is expecting "
                f"{linear.features - one} features as input"
            )
        pairs = np.asarray(sample.pairs)
        if len(pairs) and pairs.shape[1] != linear.edge_features:
            raise ModelError(
                f"edges have {pairs.shape[1]} features, expected {linear.edge_features}"
            )


def not_fitted(name: str) -> Exception:
    """Return the error for use before `fit`: scikit-learn's, if it is installed."""
    message = f"This {name} instance is not fitted yet: call fit first"
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return OptionError(message)
    error: Exception = NotFittedError(message)
    return error


def _is_flat(X: Any) -> bool:
    """Whether X is one sample: an array, or a list of rows of numbers."""
    if not isinstance(X, list | tuple):
        return True
    return len(X) > 0 and not isinstance(X[0], tuple | Sample | Mapping)


def _check_array(X: Any) -> None:
    """Raise `ModelError` unless X is an array of real features, in the words of scikit-learn."""
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ModelError(
            "X must be an array of features, or a list of samples: a Sample or a tuple "
            f"(features, edges, edge features) each, not a {type(X[0]).__name__}"
        ) from error
    if array.dtype.kind == "c":
        raise ModelError("Complex data not supported")
    if array.ndim == 2 and 0 in array.shape:
        what = ("sample(s)", "feature(s)")[int(array.shape[0] > 0)]
        raise ModelError(
            f"Found array with 0 {what} (shape={array.shape}) while a minimum of 1 is required."
        )


def _with_one(sample: Sample) -> Sample:
    nodes = np.asarray(sample.nodes)
    return Sample(np.column_stack([nodes, np.ones(len(nodes))]), sample.edges, sample.pairs)


def _labels(y: Any, samples: list[Sample], flat: bool) -> list[Any]:
    """Return one array of labels per sample."""
    if y is None:
        raise ModelError("requires y to be passed, but the target y is None")
    listed = [np.asarray(y)] if flat else [np.asarray(labels) for labels in y]
    if flat and listed[0].ndim == 2 and listed[0].shape[1] == 1:
        _warn_column()
        listed = [listed[0].ravel()]
    if len(listed) != len(samples):
        raise ModelError(f"{len(samples)} samples, but labels of {len(listed)}")
    for k, (labels, sample) in enumerate(zip(listed, samples, strict=True)):
        if labels.shape != (len(np.asarray(sample.nodes)),):
            raise ModelError(
                f"sample {k} has {len(np.asarray(sample.nodes))} variables, but labels of shape "
                f"{labels.shape}: inconsistent numbers of samples"
            )
        if (
            labels.dtype.kind == "f"
            and not (np.isfinite(labels) & (labels == labels.round())).all()
        ):
            raise ModelError("Unknown label type: continuous; labels must be classes (no NaN, inf)")
    return listed


def _warn_column() -> None:
    import warnings

    message = "A column-vector y was passed when a 1d array was expected"
    try:
        from sklearn.exceptions import DataConversionWarning
    except ImportError:
        DataConversionWarning = UserWarning
    warnings.warn(message, DataConversionWarning, stacklevel=3)
