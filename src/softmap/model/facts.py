"""Summary of a model: sizes, arities, families."""

from __future__ import annotations

from collections import Counter

from softmap.model.network import Network


def arity_counts(model: Network) -> dict[int, int]:
    """Return the number of factors of each arity, without unary costs.

    An auxiliary node counts as one factor; the edges to its members do not count.
    """
    counts: Counter[int] = Counter(model.memberships.arity.tolist())
    pairs = int((model.edges < model.num_variables).all(axis=1).sum())
    if pairs:
        counts[2] += pairs
    return dict(sorted(counts.items()))


def arity_max(model: Network) -> int:
    """The largest number of variables that one cost depends on."""
    return max(arity_counts(model), default=1)


def families(model: Network) -> dict[str, int]:
    """Return the number of edges of each potential family."""
    found: Counter[str] = Counter()
    for potential in model.potentials:
        found[potential.family] += len(potential)
    return dict(found)


def model_facts(model: Network) -> dict[str, str]:
    """Return the sizes of a model as text, by name."""
    counts = model.visible_counts
    low, high = int(counts.min()), int(counts.max())
    varied = f"{low} to {high}, {counts.mean():.1f} on average"
    arities = {f"of arity {k}": count for k, count in arity_counts(model).items()}
    facts = {
        "variables": f"{len(counts):,}",
        "edges": f"{model.m:,}",
        "labels": f"{low} each" if low == high else varied,
        "arities": _listed(arities) or "unary only",
        "families": _listed(families(model)) or "none",
        "hard constraints": "yes" if model.has_forbidden else "none",
    }
    if model.shape is not None:
        facts["grid"] = " × ".join(str(size) for size in model.shape)
    if model.names is not None:
        some = [str(name) for name in model.names.variables[:4]]
        facts["names"] = ", ".join(some) + (", …" if len(counts) > len(some) else "")
    if model.has_factors:
        facts["auxiliary variables"] = (
            f"{len(model.memberships.arity):,} (one per factor of three or more)"
        )
    return facts


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())
