"""The registered methods by what one of their steps is; λ that proves the bound of chains."""

from typing import Any

import numpy as np

from softmap.methods.base import METHODS
from softmap.methods.sweeps.chains import Chains

PASSES = [name for name, method in METHODS.items() if method.sweeping]
UPDATES = [name for name, method in METHODS.items() if not method.sweeping]


def proving_lam(chains: Chains, state: Any) -> np.ndarray:
    """λ whose dual bound is the chain bound of the messages, to which the state returns."""
    lam = chains.prove(state).lam()
    chains.undo_proposal(state)
    return lam
