"""What follows when the LP relaxation is solved and the MAP gap is open.

Four stages take turns of growing length: an exact search of the part where the relaxation is loose,
one of the whole model, a relaxation tightened by clusters, and a search for better labels. Each
looks at the best bound and labels so far and hands back what it found; none may claim a bound that
it has not proved.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from softmap.errors import InfeasibleModel
from softmap.labels import neighbourhoods
from softmap.labels.feasible import find_feasible
from softmap.search.exact import ExactResult, ExactSearch, FlatModel, flat_lam, flatten
from softmap.search.partial import PartialSearch
from softmap.solving.labelling import take_labels
from softmap.solving.proof import Proof, ProofKind
from softmap.solving.run import Run
from softmap.solving.trace import Snapshot, StageName, Status

__all__ = ["LaterStages"]

FIRST_TURN = 0.3  # seconds of the first turn of each stage, at least, where time is limited
PART = 0.03  # of the time limit in the first turn of each stage
FIRST_WORK = 200_000  # numbers sent in messages in the first turn, where none is
GROWTH = 2.0  # of turns
LONGEST = 40  # doublings of a turn, at most: more would leave the range of numbers
LEAD = 2  # doublings of the first turns where a search is known to succeed
EFFORT = 4  # rounds of turns that a run without any limit makes
BACKTRACKS = 50  # of a turn of the search, at least
FEW = 600  # nodes up to which a model is searched where no time is given
NEARLY = 3e-3  # or up to which relative gap
TABLES = 20  # table entries of dynamic programming per number of work
FRESH = 0.02  # part of the MAP gap by which λ must be better for a search to begin anew
PATIENT = 4  # fruitless turns that count: a stage sits out up to 2**PATIENT - 1 rounds
PATIENCE = 10.0  # seconds after which a turn of the search ends in any case
ENTRIES = 60_000_000  # table entries up to which a model is given to the exact search
EARLY = 6_000_000  # table entries up to which that may happen before the relaxation is solved:
# to begin a search takes about 0.3 µs for each of them
AT_MOST = 0.5  # of the time that is left, for what a stage takes to begin
CLUSTERED = 5_000_000  # node states up to which a model is tightened
LARGE = 300  # variables above which the loose part of a model is searched by itself
LOOSE = 0.3  # part of the variables up to which it may grow
TIGHT = 1e-10  # relative gap at which a search may stop


@dataclass
class Turn:
    """How long a stage may go on: until a moment, or for so much work where that is infinite."""

    deadline: float
    work: int

    @property
    def left(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(0.0, self.deadline - time.perf_counter())

    @property
    def timed(self) -> bool:
        """Whether time, not work, ends the turn."""
        return math.isfinite(self.deadline)

    @property
    def counted(self) -> int:
        """Work that the turn counts for: what it was granted, or nothing where time ends it."""
        return 0 if self.timed else self.work


class Stage(ABC):
    """One way to go on. `active` says whether it may still achieve something."""

    name: ClassVar[StageName]
    glances: ClassVar[float] = 0.0  # evaluations of the bound that its shortest turn may take

    def __init__(self, run: Run) -> None:
        self.run = run
        self.active = self.applies()
        self.turns = 0
        self.fruitless, self.waits = 0, 0  # turns without gain in a row, and rounds to sit out

    def due(self) -> bool:
        """Whether it takes part in this round: after fruitless turns it sits out ever more."""
        if not self.active or not self.fits():
            return False
        self.waits -= 1
        return self.waits < 0

    def take_turn(self, turn: Turn) -> None:
        """One turn, and whether anything came of it."""
        run = self.run
        before = run.bound, -run.search.energy
        self.take(turn)
        self.turns += 1
        gained = any(
            new > old for new, old in zip((run.bound, -run.search.energy), before, strict=True)
        )
        idle = turn.timed and not gained  # work is granted to all alike
        self.fruitless = min(self.fruitless + 1, PATIENT) if idle else 0
        self.waits = 2**self.fruitless - 1

    @abstractmethod
    def applies(self) -> bool:
        """Whether the model is of a kind and size that this stage can do something about."""

    def fits(self) -> bool:
        """Whether a turn would end well before the time limit, and leave others theirs."""
        run = self.run
        return self.glances * run.pace.expected("glance") <= AT_MOST * run.left

    @abstractmethod
    def take(self, turn: Turn) -> None:
        """Go on for one turn; tell the run what was found."""


class Search(Stage):
    """Exact branch and bound over the model, from λ and the best labels; turns continue it."""

    name = StageName.SEARCH
    glances = 300.0

    def applies(self) -> bool:
        self._flat: FlatModel | None = None
        self._search: ExactSearch | None = None
        self._bound = -math.inf  # of the λ it started from, or of its root
        model = self.run.model
        tied = model.edges[:, 0] >= model.num_variables
        pairs = np.diff(model.edge_offset)[~tied].sum() if model.m else 0
        self.entries = int(pairs) + model.unary.size
        return self.entries <= ENTRIES

    def take(self, turn: Turn) -> None:
        run = self.run
        if not turn.timed and not self._promising():
            return
        known = run.search.labels if math.isfinite(run.search.energy) else None
        found = self._current(turn).go_on(
            incumbent=known,
            time_limit=turn.left if turn.timed else PATIENCE,
            end=min(run.left - run.pace.expected("end"), 1e9),
            backtrack_limit=-1 if turn.timed else max(BACKTRACKS, turn.work // run.model.n),
        )
        run.spend(turn.counted)
        if found.infeasible:
            raise InfeasibleModel(
                "no labelling has finite cost: an exact search over all variables found none", None
            )
        self._report(found)

    def forget(self) -> None:
        """Begin anew with the next turn: a run that is stored and resumed must do the same."""
        self._search = None

    def _current(self, turn: Turn) -> ExactSearch:
        """The search that goes on; a new one where λ has become much better."""
        run = self.run
        bound, rest = run.judge.bound, run.search.energy - run.bound
        better = not bound - self._bound <= FRESH * rest
        if self._search is None or better:
            if self._flat is None:
                self._flat = flatten(run.model)
            self._bound = bound
            self._search = ExactSearch(
                self._flat,
                incumbent=run.search.labels if math.isfinite(run.search.energy) else None,
                lam=flat_lam(run.model, run.judge.lam),
                relative_gap=min(TIGHT, run.options.gap),
                dp_limit=1e9 if turn.timed else float(TABLES * turn.work),
                seconds=min(run.left, 1e9),
            )
        return self._search

    def _promising(self) -> bool:
        """Whether a search without a clock is short enough: few nodes, or a small gap."""
        return self.run.model.n <= FEW or self.run.gaps()[1] <= NEARLY

    def _report(self, found: ExactResult) -> None:
        run = self.run
        if found.labels is not None:
            run.keep_labels(found.labels)
        proof = Proof(ProofKind.SEARCH, nodes=found.nodes)
        run.keep_bound(found.lower_bound, proof)
        self._bound = max(self._bound, found.root_bound)
        self.active = not found.complete


class Partial(Stage):
    """Exact search of the part of a large model where λ does not decide the labels."""

    name = StageName.SEARCH
    glances = 10.0

    def applies(self) -> bool:
        self._search: PartialSearch | None = None
        model = self.run.model
        return model.n > LARGE and model.m > 0 and not len(model.auxiliaries)

    def take(self, turn: Turn) -> None:
        run = self.run
        if not math.isfinite(run.search.energy):
            return
        search, largest = self._current(), int(LOOSE * run.model.n)
        if search.size > largest:
            return
        found = search.go_on(
            time_limit=turn.left if turn.timed else PATIENCE,
            backtrack_limit=-1 if turn.timed else max(BACKTRACKS, turn.work // run.model.n),
            largest=largest,
        )
        run.spend(turn.counted)
        run.keep_labels(found.labels)
        run.keep_bound(found.bound, Proof(ProofKind.SEARCH, nodes=found.nodes))
        self.active = not found.complete

    def _current(self) -> PartialSearch:
        """The search that goes on, or a new one where that starts from a smaller part."""
        run, old = self.run, self._search
        lam, labels = run.judge.lam, run.search.labels
        if old is None or run.search.energy < old.energy:
            new = PartialSearch(run.model, lam, labels)
            self._search = new if old is None or new.size < old.size else old
        assert self._search is not None
        return self._search


class Tighten(Stage):
    """The relaxation tightened by clusters, with labels from its marginals."""

    name = StageName.TIGHTEN
    glances = 200.0

    def applies(self) -> bool:
        return self.run.model.m > 0 and self.run.model.unary.size <= CLUSTERED

    def take(self, turn: Turn) -> None:
        run = self.run
        if not math.isfinite(run.search.energy):
            return
        if not hasattr(self, "_stage"):
            from softmap.tightening.stage import Stage as Tightening  # many runs end before

            lam, labels = run.judge.lam, run.search.labels
            self._stage = Tightening(run.model, lam, labels, threads=run.threads)
            if run.warm is not None:
                run.warm.adopt(self._stage)
        stage = self._stage
        stage.best.keep(run.search.labels, run.search.energy)
        before = stage.work
        messages = turn.work // max(1, int(stage.tight.model.num_labels.mean()))
        end = time.perf_counter() + run.left - run.pace.expected("end")
        more = stage.go_on(turn=turn.deadline, end=end, work=before + messages, gap=run.options.gap)
        run.spend(stage.work - before)
        best = stage.best
        run.keep_labels(best.labels)
        if len(best.tight.clusters):
            scopes = tuple(best.tight.clusters)
            proof = Proof(ProofKind.TIGHTENED, scopes, best.lam, beliefs=best.beliefs)
            run.keep_bound(best.bound, proof)
        self.active = more


class Improve(Stage):
    """Large neighbourhoods of the best labels, solved exactly; a feasible start where none is."""

    name = StageName.LABELS
    glances = 2.0

    def applies(self) -> bool:
        self._turns = 0
        return True

    def take(self, turn: Turn) -> None:
        run = self.run
        if not math.isfinite(run.search.energy):
            self._begin(turn)
        if math.isfinite(run.search.energy):
            self._turns += 1
            found = neighbourhoods(
                run.model, run.search.labels, seconds=turn.left, work=turn.work,
                seed=run.options.seed + self._turns, gap=run.search.energy - run.bound,
            )  # fmt: skip
            run.keep_labels(found)
        run.spend(turn.counted)

    def _begin(self, turn: Turn) -> None:
        """Look for any labelling that obeys the hard constraints, or prove that there is none."""
        run = self.run
        nodes = run.judge.point.node_marginals() if run.judge.point else None
        labels = find_feasible(run.model, nodes, seconds=turn.left, work=turn.work)
        if labels is not None:
            run.keep_labels(labels)


class LaterStages:
    """The stages of one run, in turns."""

    def __init__(self, run: Run) -> None:
        self.run = run
        kinds: tuple[type[Stage], ...] = (Partial, Search, Tighten, Improve)
        if run.options.goal == "labels":
            kinds = (Improve, Tighten)
        self.stages = [kind(run) for kind in kinds]
        self.round = 0
        # where a search has proved the optimum of a similar model, its first turns are longer
        self.lead = LEAD if run.warm is not None and run.warm.searched else 0

    def interlude(self) -> Snapshot | None:
        """A short turn of the search while the relaxation is still being solved."""
        search = next((s for s in self.stages if isinstance(s, Search) and s.active), None)
        if self.run.closed() or search is None or search.entries > EARLY or not search.fits():
            return None
        if take_labels(self.run) and self.run.closed():  # a search needs the best there are
            return self.run.note(StageName.LABELS)
        before = self.run.later_work
        search.take(self._turn(search))
        if self.run.options.time_limit is None:
            search.forget()
        self.run.later_work = before  # the limit is for the relaxation until that has ended
        return self.run.note(search.name)

    def __iter__(self) -> Generator[Snapshot, None, Status]:
        """Take turns until the gap is closed, a limit is reached or nothing is left to try."""
        run = self.run
        while True:
            if not any(stage.active and stage.fits() for stage in self.stages):
                return run.limit() or Status.TIME_LIMIT
            due = [stage for stage in self.stages if stage.due() and not self._too_early(stage)]
            for stage in due:
                stage.take_turn(self._turn(stage))
                yield run.note(stage.name)
                if status := run.closed(labels_only=True) or run.limit():
                    return status
            if not due:
                continue  # all sit out
            provers = [s for s in self.stages if not isinstance(s, Improve)]
            if self._proofless() and not any(s.active for s in provers):
                return Status.EXHAUSTED
            self.round += 1
            if self._unlimited() and (self.round >= EFFORT or self._as_good_as_before()):
                return Status.EFFORT

    def _proofless(self) -> bool:
        """Whether no stage that could close the gap is left, and labels had their chance."""
        return self.round >= 2 and self.run.options.time_limit is None

    def _too_early(self, stage: Stage) -> bool:
        """Whether a warm run tries something else first: better labels, or a search."""
        if self.round > 0 or isinstance(stage, Improve):
            return False
        enough = self._unlimited() and self._as_good_as_before()
        return enough or (self.lead > 0 and isinstance(stage, Tighten))

    def _as_good_as_before(self) -> bool:
        """Whether the gap is no larger than that of the result the run began from."""
        return self.run.warm is not None and self.run.warm.enough(self.run)

    def _unlimited(self) -> bool:
        options = self.run.options
        limited = options.time_limit is not None or options.max_work is not None
        return not limited and options.goal != "optimal"

    def _turn(self, stage: Stage) -> Turn:
        """How long the next turn of a stage may be: longer with each that it has had."""
        run, scale = self.run, GROWTH ** min(stage.turns + self.lead, LONGEST)
        work, limit, most = int(FIRST_WORK * scale), run.options.time_limit, run.options.max_work
        if most is not None:
            work = max(1, min(work, most - run.work))
        if limit is None:
            return Turn(math.inf, work)
        seconds = min(max(FIRST_TURN, PART * limit) * scale, max(0.0, run.left))
        return Turn(time.perf_counter() + seconds, 1 << 62)
