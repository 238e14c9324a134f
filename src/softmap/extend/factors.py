"""The factors of a network, and the model of factors that another library has.

`factors_of` returns scopes and tables, `conditionals` the tables of a Bayesian network,
`quadratic_of` a quadratic function of variables with two labels. An `Assembly` collects factors one
by one, without a list of them; `assembled` makes the model.
"""

from softmap.io.bayes import conditionals
from softmap.io.factors import factors_of, require_pairwise
from softmap.io.qubo import quadratic_of
from softmap.model.factors import Assembly
from softmap.model.model import assembled

__all__ = [
    "Assembly",
    "assembled",
    "conditionals",
    "factors_of",
    "quadratic_of",
    "require_pairwise",
]
