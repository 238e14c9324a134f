"""Learning: a layer with gradients, and linear models fitted to labelled examples."""

from softmap.learn.layer import Beliefs, soft_map, soft_map_vjp

__all__ = ["Beliefs", "soft_map", "soft_map_vjp"]
