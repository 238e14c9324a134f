"""The lower bound that cores prove: clauses of which one literal costs something (docs/proofs.md).

Boolean literals are functions of a labelling, so that each labelling of finite cost satisfies all
constraints, and costs at least the sum of the costs of all literals that hold.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from softmap.model import Network
from softmap.verification.hints import Constraints, LiteralSum
from softmap.verification.integers import HALF, Flat, Given, Scale
from softmap.verification.limit import ITEM, Limits
from softmap.verification.literals import Literals
from softmap.verification.records import Numbers, Rejected


class _Counted(NamedTuple):
    """The literals of a core, what each of them but the first costs, and literals of counts."""

    literals: Numbers
    weight: int
    counts: dict[int, int]


class CoreProof:
    """Checks the records of a core-guided search.

    Parameters
    ----------
    model : Network
        The model.
    flat : Flat
        Its costs.
    exponent : int
        The solver multiplied all costs by 2**exponent.
    effort : Limits, optional
        Limits the work.
    """

    STEPS: ClassVar = {"booleans", "costs", "given", "learned", "core", "group"}

    def __init__(
        self, model: Network, flat: Flat, exponent: int, effort: Limits | None = None
    ) -> None:
        self._model, self._flat, self._exponent = model, flat, exponent
        self._effort = effort or Limits()
        self._rules = Constraints(self._effort)
        self._weight: dict[int, int] = {}  # what literals cost
        self._counted: list[_Counted] = []
        self._lower, self._cut = 0, math.inf
        self._next = 0  # the next new literal

    def bound(self) -> Fraction:
        """The lower bound proved so far, in the units of the model's costs."""
        units = self._cut if self._rules.broken else min(self._cut, self._lower)
        if math.isinf(units):
            raise Rejected("there is no labelling: this needs another conclusion")
        return self._scale.unit * (self._literals.base + int(units)) + self._flat.constant

    @property
    def infeasible(self) -> bool:
        """Whether no labelling satisfies the hard constraints."""
        return self._rules.broken and math.isinf(self._cut)

    def booleans(self, numbers: Numbers, variables: Numbers) -> None:
        """Number the literals of the labels of some variables; read all costs."""
        if self._next:
            raise Rejected("the literals are numbered twice")
        granule, exponent, last = numbers
        self._scale = Scale(granule, exponent - self._exponent, HALF - 1)
        self._literals = Literals(
            self._model, self._flat, self._scale, variables, last, self._effort
        )
        self._next = last + 1
        self._rules.reserve(last)

    def costs(self, table: Numbers, literals: Numbers) -> None:
        """Name the literals of the costs of a table, from the largest on."""
        (number,) = table
        for x, cost in self._literals.costs(number, literals):
            self._weight[x] = self._weight.get(x, 0) + cost

    def _fresh(self, weight: int) -> int:
        """Return a new literal with a cost."""
        self._next += 1
        self._rules.reserve(self._next)
        self._weight[self._next - 1] = weight
        return self._next - 1

    # --- constraints ------------------------------------------------------------------------------

    def given(self, numbers: Numbers, literals: Numbers) -> None:
        """Add a constraint that follows from the model, or defines a literal."""
        what, *rest = numbers
        if what == 0:
            self._literals.require_clause(rest[0], literals)
            self._rules.add(literals)
        elif what == 1:
            self._rules.add(self._literals.sum_of(rest[0], rest[1], rest[2]))
        elif what == 2:
            self._rules.add(self._literals.one_label(rest[0]))
        elif what == 3:
            self._rules.add(self._count(self._core(rest[0]), rest[1]))
        elif what == 4:
            counts = self._core(rest[0]).counts
            self._rules.add((-counts[rest[1]], counts[rest[1] - 1]))
        elif what == 5:
            self._forbid(rest[0], literals)
        else:
            raise Rejected("there is no such constraint")

    def _core(self, number: int) -> _Counted:
        if not 0 <= number < len(self._counted):
            raise Rejected(f"there is no core {number}")
        return self._counted[number]

    def _count(self, core: _Counted, count: int) -> LiteralSum:
        """Define a literal: so many literals of a core hold, or more."""
        if count in core.counts or not 2 <= count <= len(core.literals):
            raise Rejected("a count is defined twice, or out of range")
        x = core.counts[count] = self._fresh(core.weight)
        self._effort.work(8 * ITEM * len(core.literals))
        most = len(core.literals) - count + 1
        return LiteralSum([*((-y, 1) for y in core.literals), (x, most)], most)

    def _forbid(self, cut: int, literals: Numbers) -> None:
        """A literal that costs as much as the gap to a cut fails in all that costs less."""
        (x,) = literals
        if self._lower + self._weight.get(-x, 0) < cut:
            raise Rejected(f"literal {-x} does not cost as much as the gap to the cut")
        self._cut = min(self._cut, cut)
        self._rules.add(literals)

    def learned(self, clause: Numbers, hints: Numbers) -> None:
        """Add a clause that follows from the constraints so far."""
        self._require_known(clause)
        self._rules.learn(clause, hints)

    def _require_known(self, literals: Numbers) -> None:
        if any(not 0 < abs(x) < self._next for x in literals):
            raise Rejected("there is no such literal")

    # --- bounds -----------------------------------------------------------------------------------

    def core(self, numbers: Numbers) -> None:
        """Raise the bound: one literal of a clause holds, and each of them costs something.

        What it costs that further literals hold is paid by counts of them.
        """
        weight, number = numbers
        clause = self._rules.clause(number)
        self._effort.work(4 * ITEM * len(clause))
        self._effort.keep(512)
        if not clause or len({*clause}) < len(clause):
            raise Rejected("a core has no literal, or one twice")
        self._pay(clause, weight)
        self._lower += weight
        if len(clause) > 1:
            self._counted.append(_Counted(clause, weight, {}))

    def group(self, numbers: Numbers, literals: Numbers, hints: Numbers) -> None:
        """Raise the bound: at most one literal holds, and the negation of each costs something."""
        (weight,) = numbers
        if len(literals) < 2 or len({*literals}) < len(literals):
            raise Rejected("a group has no two literals, or one twice")
        self._require_known(literals)
        self._effort.work(4 * ITEM * len(literals) ** 2)
        self._rules.require_apart(literals, hints)
        self._pay(tuple(-x for x in literals), weight)
        self._lower += weight * (len(literals) - 1)
        self._rules.add((*literals, self._fresh(weight)))

    def _pay(self, literals: Numbers, weight: int) -> None:
        if weight < 0 or any(self._weight.get(x, 0) < weight for x in literals):
            raise Rejected("a literal of a core costs less than the bound rises")
        for x in literals:
            self._weight[x] -= weight


class CoreSteps:
    """Checks the records of a core-guided search.

    Parameters
    ----------
    given : Given
        The model.
    """

    def __init__(self, given: Given) -> None:
        self._given = given
        self._proof: CoreProof | None = None

    def step(self, name: str, arrays: list[Any]) -> None:
        """Check one record by the method of its name."""
        if name not in CoreProof.STEPS or (self._proof is None and name != "booleans"):
            raise Rejected(f"{name} out of its place")
        if self._proof is None:
            given = self._given
            self._proof = CoreProof(given.model, given.flat(), given.exponent, given.effort)
        getattr(self._proof, name)(*arrays)

    def bound(self) -> Fraction:
        """The bound of all records; of the hard constraints alone, 1 if no labelling obeys them."""
        assert self._proof is not None
        if self._given.hard and self._proof.infeasible:
            return Fraction(1)
        return self._proof.bound()
