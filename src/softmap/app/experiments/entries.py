"""The methods in the figures: the paper's, ours, and one's own."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from softmap.errors import OptionError
from softmap.methods.base import Algorithm, make
from softmap.paper import methods as paper
from softmap.paper.settled import Settled

# The two forms of the accelerated algorithms.
FORMS = ("printed", "proved")
SETTLED = "-settled"  # the end of the form of a method that settles
OWN = "own"


@dataclass(frozen=True)
class Method:
    """A method in a figure.

    Attributes
    ----------
    method : str
        Family: emp, smp, bcd; or momentum, anneal (and their star versions); or module:class.
    form : str
        standard, printed or proved, the last two also with "-settled"; fixed or annealed for sweep
        methods; own for a class of the user.
    """

    method: str
    form: str

    @property
    def label(self) -> str:
        """The name in a legend."""
        if self.form in ("fixed", "annealed"):
            kind = "stars" if self.method.endswith("-star") else "chains"
            return f"{kind}, momentum, {'η annealed' if self.steered else 'η fixed'}"
        if self.form == OWN:
            own = own_class(self.method)
            return str(vars(own).get("name", own.__name__))
        name = self.method.upper()
        if self.form == "standard":
            return name
        words = f"Accel-{name}, as {self.form.removesuffix(SETTLED)}"
        return f"{words}, settled" if self.settled else words

    @property
    def steered(self) -> bool:
        """Whether the method anneals η by the verdicts of checks."""
        return self.form == "annealed"

    @property
    def settled(self) -> bool:
        """Whether the last tenth of the updates is plain."""
        return self.form.endswith(SETTLED)

    @property
    def sweeping(self) -> bool:
        """Whether a step is a pass over the whole graph."""
        if self.form == OWN:
            return own_class(self.method).sweeping
        return self.form in ("fixed", "annealed")

    @property
    def stars(self) -> bool:
        """Whether an update changes a whole star."""
        return self.method == "smp"

    def make(self, eta: float, updates: int = 1) -> Algorithm:
        """Return the algorithm, on one thread; an annealed one chooses its η itself.

        Parameters
        ----------
        eta : float
            Inverse temperature η.
        updates : int, default 1
            Number of updates of the run, for methods that settle.
        """
        if self.form == OWN:
            return own_class(self.method).configured(eta, 1)
        if self.sweeping:
            name = self.method.replace("momentum", "anneal")
            return make(name, eta=None if self.steered else eta, threads=1)
        if self.settled:
            fast = Method(self.method, self.form.removesuffix(SETTLED)).make(eta)
            assert isinstance(fast, paper.Accelerated)
            return Settled(fast, updates)
        names = {"standard": "{}", "proved": "accel-{}", "printed": "accel-{}-printed"}
        if self.form not in names:
            raise OptionError(f"unknown form {self.form!r}")
        return make(names[self.form].format(self.method), eta=eta)


PAPER = tuple(
    Method(method, form) for method in ("emp", "smp", "bcd") for form in ("standard", *FORMS)
)


def solvers() -> tuple[Method, ...]:
    """Return the sweep methods: passes with momentum at fixed η, and annealed."""
    kinds = ("anneal", "anneal-star")
    fixed = [Method(kind.replace("anneal", "momentum"), "fixed") for kind in kinds]
    return (*fixed, *(Method(kind, "annealed") for kind in kinds))


def own_method(place: str) -> Method:
    """Return the entry of a class of the user, given as module:class; the class is imported."""
    own_class(place)
    return Method(place, OWN)


def own_class(place: str) -> type[Algorithm]:
    """Import a subclass of `Algorithm`, given as module:class, also from the current folder."""
    module, colon, name = place.partition(":")
    if not (module and colon and name):
        raise OptionError(f"--with {place}: expected module:Class, as in mymethods:Mine")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), name, None)
    except ImportError as error:
        raise OptionError(f"--with {place}: cannot import {module!r} ({error})") from error
    if found is None:
        raise OptionError(f"--with {place}: module {module!r} has no {name!r}")
    if not (isinstance(found, type) and issubclass(found, Algorithm)):
        raise OptionError(
            f"--with {place}: {name!r} is not a subclass of softmap.methods.base.Algorithm"
        )
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        raise OptionError(f"--with {place}: {name!r} has no {', '.join(missing)}")
    method: type[Algorithm] = found
    return method
