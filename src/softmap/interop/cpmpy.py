"""A solver of CPMpy models that proves bounds; needs the package `cpmpy`.

`CPM_softmap(model).solve()` solves a `cpmpy.Model`; after `register()`, so does
`model.solve(solver="softmap")`. Constraints over few values become tables, whatever their form, and
so do the terms of the objective. `AllDifferent`, `Table`, clauses and linear sums over many
variables become the factors that softmap has for them. CPMpy decomposes all others.
"""

from __future__ import annotations

import math
import time
from typing import Any

import highspy  # noqa: F401 - before OR-tools, which loads another version of the same library
import numpy as np
from cpmpy.exceptions import NotSupportedError
from cpmpy.expressions.core import Expression
from cpmpy.expressions.variables import _BoolVarImpl
from cpmpy.solvers.solver_interface import ExitStatus, SolverInterface, SolverStatus
from cpmpy.solvers.utils import SolverLookup
from cpmpy.transformations.decompose_global import decompose_in_tree, decompose_objective
from cpmpy.transformations.flatten_model import flatten_constraint, flatten_objective
from cpmpy.transformations.get_variables import get_variables
from cpmpy.transformations.negation import push_down_negation
from cpmpy.transformations.normalize import toplevel_list
from cpmpy.transformations.reification import only_bv_reifies, only_implies, reify_rewrite
from cpmpy.transformations.safening import no_partial_functions, safen_objective

from softmap.errors import InfeasibleModel
from softmap.extend import LIMITS
from softmap.interop.cpmpy_factors import Translation, weighted_terms

__all__ = ["CPM_softmap", "register"]

PARTIAL = frozenset({"element", "nd_element", "div", "mod", "pow"})
SUMS = frozenset({"sum", "wsum"})
KEPT = frozenset({"alldifferent", "table"})


class CPM_softmap(SolverInterface):  # type: ignore[misc, unused-ignore]
    """CPMpy's interface to `softmap.solve`.

    Parameters
    ----------
    cpm_model : cpmpy.Model, optional
        The model whose constraints and objective are added.
    subsolver : None
        There are no subsolvers.

    Attributes
    ----------
    result : softmap.Result or None
        The result of the last `solve`; None if the model is infeasible.
    """

    supported_global_constraints = KEPT
    supported_reified_global_constraints: frozenset[str] = frozenset()

    def __init__(self, cpm_model: Any = None, subsolver: None = None) -> None:
        self.result: Any = None
        self._translation = Translation()
        self._objective: Any = None
        self._costs: list[Any] = []
        super().__init__(name="softmap", cpm_model=cpm_model, subsolver=subsolver)

    @staticmethod
    def supported() -> bool:
        """Return True: the module cannot be imported without softmap."""
        return True

    @classmethod
    def version(cls) -> str:
        """Return the version of softmap."""
        import softmap

        return softmap.__version__

    @property
    def native_model(self) -> Any:
        """The `softmap.Model` of the constraints and the objective added so far."""
        return self._translation.model(self._costs)

    def solver_var(self, cpm_var: Any) -> Any:
        """Return the variable of `native_model` for a variable; other values are returned as is."""
        return self._translation.variable(cpm_var) if hasattr(cpm_var, "lb") else cpm_var

    def transform(self, cpm_expr: Any) -> list[Any]:
        """Return a list of constraints, without conjunctions."""
        return toplevel_list(cpm_expr)

    def add(self, cpm_expr: Any) -> CPM_softmap:
        """Add constraints."""
        get_variables(cpm_expr, collect=self.user_vars)
        self._post(self.transform(cpm_expr))
        return self

    __add__ = add

    def _post(self, constraints: list[Any]) -> None:
        for con in constraints:
            if not self._translation.post(con):
                self._post_larger(con)

    def _post_larger(self, con: Any) -> None:
        """Add a constraint that is neither a small table nor one of softmap's factors."""
        if self._translation.tabulated(con, LIMITS.table_states):
            return
        simpler = self._simpler(con)
        if len(simpler) != 1 or str(simpler[0]) != str(con):
            self._post(simpler)
        elif not self._translation.tabulated(con, LIMITS.listed_states):
            raise NotSupportedError(f"softmap: no factor and no table of acceptable size for {con}")

    def _simpler(self, con: Any) -> list[Any]:
        """Let CPMpy decompose partial functions and global constraints, else flatten."""
        total = no_partial_functions([con], safen_toplevel=PARTIAL)
        found = decompose_in_tree(push_down_negation(total), supported=KEPT, csemap=self._csemap)
        if len(found) != 1 or str(found[0]) != str(con):
            return found
        flat = flatten_constraint(found, csemap=self._csemap)
        flat = reify_rewrite(flat, supported=SUMS, csemap=self._csemap)
        flat = only_implies(only_bv_reifies(flat, csemap=self._csemap), csemap=self._csemap)
        if len(flat) == 1 and con.name in KEPT and str(flat[0]) == str(con):
            return decompose_in_tree(flat, csemap=self._csemap)
        return flat

    def objective(self, expr: Any, minimize: bool) -> None:
        """Set the objective; a term over few values becomes a table of costs."""
        if not isinstance(expr, Expression):
            expr = np.int64(0) + expr
        get_variables(expr, collect=self.user_vars)
        self._objective, self._costs = (expr, 1 if minimize else -1), []
        for weight, term in weighted_terms(expr, self._objective[1]):
            self._cost(weight, term)

    def _cost(self, weight: float, term: Any) -> None:
        found = self._translation.table(term, LIMITS.table_states)
        if found is not None:
            costs = weight * np.asarray(found[1], dtype=np.float64)
            self._costs.append((tuple(found[0]), np.where(np.isnan(costs), np.inf, costs)))
            return
        total, first = safen_objective(term)
        simpler, second = decompose_objective(total, supported=KEPT, csemap=self._csemap)
        flat, third = flatten_objective(simpler, csemap=self._csemap)
        self._post(self.transform([*first, *second, *third]))
        if str(flat) == str(term):
            raise NotSupportedError(f"softmap: no table of acceptable size for {term}")
        for factor, part in weighted_terms(flat, weight):
            self._cost(factor, part)

    def has_objective(self) -> bool:
        """Return whether there is an objective."""
        return self._objective is not None

    def solve(self, time_limit: float | None = None, display: Any = None, **options: Any) -> bool:
        """Solve the model and set the values of its variables.

        Parameters
        ----------
        time_limit : float, optional
            Stop after this many seconds. No limit by default.
        display : expression, list of expressions or function, optional
            Printed or called at each better solution.
        **options
            Other options of `softmap.solve`.

        Returns
        -------
        bool
            Whether a solution was found.
        """
        import softmap

        if time_limit is not None and time_limit <= 0:
            raise ValueError(f"time_limit must be positive, not {time_limit}")
        self.solver_vars(list(self.user_vars))
        begin, self.cpm_status = time.monotonic(), SolverStatus(self.name)
        best = math.inf

        def watch(snapshot: Any) -> bool:
            nonlocal best
            if display is not None and snapshot.energy < best:
                best = snapshot.energy
                self._set_values(snapshot.labels)
                self.print_display(display)
            return self._is_open(snapshot)

        run: dict[str, Any] = {"goal": "optimal", "on_snapshot": watch} | options
        try:
            model = self.native_model
            if time_limit is not None:  # the model is made within the limit, too
                run["time_limit"] = max(time_limit - (time.monotonic() - begin), 0.01)
            self.result = softmap.solve(model, **run)
            self.cpm_status.exitstatus = self._exit_status()
        except InfeasibleModel:
            self.result, self.cpm_status.exitstatus = None, ExitStatus.UNSATISFIABLE
        self.cpm_status.solve_time = self.cpm_status.runtime = time.monotonic() - begin
        found = bool(self._solve_return(self.cpm_status))
        self._set_values(self.result.labels if found else None)
        if found and self.result.energy < best:
            self.print_display(display)
        return found

    def _is_open(self, snapshot: Any) -> bool:
        """Whether a better value of the objective is possible: its values are whole numbers."""
        gap = snapshot.energy - snapshot.bound
        return not (self._whole() and gap < 1.0 - 1e-6 * max(1.0, abs(snapshot.energy)))

    def _whole(self) -> bool:
        return all(bool((costs == np.round(costs)).all()) for _, costs in self._costs)

    def _exit_status(self) -> Any:
        if not self.result.found:
            return ExitStatus.UNKNOWN
        if not self.has_objective():
            return ExitStatus.FEASIBLE
        status, result = self.result.status, self.result
        proved = status.name == "OPTIMAL" or (status.name == "GAP" and not self._whole())
        return ExitStatus.OPTIMAL if proved or not self._is_open(result) else ExitStatus.FEASIBLE

    def _set_values(self, labels: Any) -> None:
        """Set the values of all variables, or clear them if there are no labels."""
        self.objective_value_ = None
        for var in self.user_vars:
            if labels is None:
                var.clear()
                continue
            node = self._translation.variable(var)
            value = int(self._translation.labels(node)[labels[node]])
            var._value = bool(value) if isinstance(var, _BoolVarImpl) else value
        if labels is not None and self.has_objective():
            expr = self._objective[0]
            self.objective_value_ = expr.value() if isinstance(expr, Expression) else expr

    def objective_bound(self) -> float | None:
        """Return the proved bound on the objective; None before `solve` or without an objective."""
        if self.result is None or not self.has_objective():
            return None
        return float(self._objective[1] * self.result.bound)


def register() -> None:
    """Add "softmap" to the solvers that CPMpy finds by name."""
    known = SolverLookup.base_solvers
    if "softmap" not in dict(known()):
        SolverLookup.base_solvers = classmethod(lambda _: [*known(), ("softmap", CPM_softmap)])
