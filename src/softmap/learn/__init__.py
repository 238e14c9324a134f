"""Learning: a differentiable layer, and linear models fitted to labelled samples."""

from softmap.learn.estimator import StructuredClassifier
from softmap.learn.features import LinearModel, Sample
from softmap.learn.layer import Beliefs, soft_map, soft_map_vjp
from softmap.learn.losses import Inference, Round
from softmap.learn.perturbed import perturbed_map, perturbed_map_vjp
from softmap.learn.transport import transport_cost

__all__ = [
    "Beliefs",
    "Inference",
    "LinearModel",
    "Round",
    "Sample",
    "StructuredClassifier",
    "perturbed_map",
    "perturbed_map_vjp",
    "soft_map",
    "soft_map_vjp",
    "transport_cost",
]
