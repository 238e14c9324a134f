"""An independent checker of results and of proof files.

The checker takes the model and the numbers of a result. It recomputes every statement that can be
recomputed, in plain numpy with exact sums, and shares no code with the solvers.
"""

from softmap.verification.checks import verify
from softmap.verification.export import export_model, integer_model
from softmap.verification.proof import Checked, check_proof
from softmap.verification.report import Report, Statement, Verdict

__all__ = [
    "Checked",
    "Report",
    "Statement",
    "Verdict",
    "check_proof",
    "export_model",
    "integer_model",
    "verify",
]
