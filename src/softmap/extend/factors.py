"""The factors of a network: scopes and tables, conditional tables, a quadratic function."""

from softmap.io.bayes import conditionals
from softmap.io.factors import factors_of, require_pairwise
from softmap.io.qubo import quadratic_of

__all__ = ["conditionals", "factors_of", "quadratic_of", "require_pairwise"]
