"""A checker that stands alone: is what a result says true?

It takes the model and the numbers of a result, and recomputes everything that can be recomputed, in
plain numpy, with sums that lose nothing. It shares no code with the loops that found the result.
"""

from softmap.verification.checks import Report, Statement, Verdict, verify
from softmap.verification.proof import Checked, check_proof

__all__ = ["Checked", "Report", "Statement", "Verdict", "check_proof", "verify"]
