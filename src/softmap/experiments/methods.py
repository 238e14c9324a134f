"""The methods of the figures: how they are called, drawn apart, and made."""

from __future__ import annotations

from dataclasses import dataclass

from softmap.algorithms.base import Algorithm
from softmap.algorithms.paper import methods as paper
from softmap.algorithms.registry import make
from softmap.errors import OptionError

__all__ = ["FORMS", "PAPER", "AccelBCDPrinted", "Method", "solvers"]

# The two readings of the accelerated algorithms.
FORMS = ("printed", "proved")


class AccelBCDPrinted(paper.AccelBCD):
    """Accelerated block-coordinate descent in the scheme that Algorithm 2 prints."""

    name = "accel-bcd-printed"
    printed = True


@dataclass(frozen=True)
class Method:
    """One line of a figure.

    Attributes
    ----------
    method : str
        Family: emp, smp, bcd; or momentum, anneal (and their star versions).
    form : str
        standard, printed or proved; fixed or annealed for methods that pass over the whole graph.
    """

    method: str
    form: str

    @property
    def label(self) -> str:
        """As a legend has it."""
        if self.form in ("fixed", "annealed"):
            kind = "stars" if self.method.endswith("-star") else "chains"
            return f"{kind}, momentum, {'η annealed' if self.steered else 'η fixed'}"
        name = self.method.upper()
        return name if self.form == "standard" else f"Accel-{name}, as {self.form}"

    @property
    def steered(self) -> bool:
        """Whether it changes η by what the judge finds."""
        return self.form == "annealed"

    @property
    def sweeping(self) -> bool:
        """Whether a step is a pass over the whole graph."""
        return self.form in ("fixed", "annealed")

    @property
    def stars(self) -> bool:
        """Whether an update takes a whole star."""
        return self.method == "smp"

    def make(self, eta: float) -> Algorithm:
        """The algorithm, on one thread; an annealed one chooses its η itself."""
        if self.sweeping:
            name = self.method.replace("momentum", "anneal")
            return make(name, eta=None if self.steered else eta, threads=1)
        if (self.method, self.form) == ("bcd", "printed"):
            printed: Algorithm = AccelBCDPrinted(eta)
            return printed
        names = {"standard": "{}", "proved": "accel-{}", "printed": "accel-{}-printed"}
        if self.form not in names:
            raise OptionError(f"unknown form {self.form!r}")
        return make(names[self.form].format(self.method), eta=eta)


PAPER = tuple(
    Method(method, form) for method in ("emp", "smp", "bcd") for form in ("standard", *FORMS)
)


def solvers() -> tuple[Method, ...]:
    """Momentum over passes at a fixed η, and annealed, for every kind of pass there is."""
    kinds = ("anneal", "anneal-star")
    fixed = [Method(kind.replace("anneal", "momentum"), "fixed") for kind in kinds]
    return (*fixed, *(Method(kind, "annealed") for kind in kinds))
