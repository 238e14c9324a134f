"""Learning: a differentiable layer, and linear models fitted to labelled samples."""

from softmap.learn.estimator import StructuredClassifier
from softmap.learn.features import LinearModel, Sample
from softmap.learn.layer import Beliefs, soft_map, soft_map_vjp
from softmap.learn.losses import Inference, Round

__all__ = [
    "Beliefs",
    "Inference",
    "LinearModel",
    "Round",
    "Sample",
    "StructuredClassifier",
    "soft_map",
    "soft_map_vjp",
]
