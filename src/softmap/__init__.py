"""MAP inference in discrete Markov random fields, with a proof of how good the answer is.

Submodules are imported on first use, so that ``import softmap`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"

if TYPE_CHECKING:
    from softmap import codes, generators, io, learn
    from softmap.app.vision import Picture, contrast_weights, denoise, segment, stereo
    from softmap.errors import (
        CheckpointError,
        CheckpointWarning,
        ConvergenceWarning,
        FormatError,
        InfeasibleModel,
        MissingExtra,
        ModelError,
        NotEnoughMemory,
        OptionError,
        ProofWarning,
        SoftmapError,
        WriteError,
    )
    from softmap.io import interop, read, write
    from softmap.learn.layer import soft_map
    from softmap.methods import transport
    from softmap.methods.base import METHODS
    from softmap.methods.marginals import SoftMarginals, exact_marginals, log_partition_bounds
    from softmap.model import (
        AllDifferent,
        AtMostOne,
        Cardinality,
        ExactlyOne,
        Linear,
        Max,
        Model,
        Or,
        Parity,
        Potts,
        Projection,
        SharedTables,
        Tables,
        TruncatedLinear,
        TruncatedQuadratic,
    )
    from softmap.relaxation import lp
    from softmap.relaxation.consistency import arc_consistency
    from softmap.relaxation.dual import SmoothedDual
    from softmap.scale import distributed
    from softmap.scale.many import solve_many
    from softmap.solving.batch import solve_batch
    from softmap.solving.certificate import certificate
    from softmap.solving.mbest import RankedLabelling, solve_mbest
    from softmap.solving.result import Result, load_result
    from softmap.solving.solve import iterate, resume, solve
    from softmap.solving.summed import MarginalMap, marginal_map
    from softmap.solving.trace import Snapshot, Status, Trace
    from softmap.verification import verify

# Module or package -> its public names, separated by blanks.
_NAMES = {
    "app.vision": "Picture contrast_weights denoise segment stereo",
    "errors": "CheckpointError CheckpointWarning ConvergenceWarning FormatError "
    "InfeasibleModel MissingExtra ModelError NotEnoughMemory OptionError "
    "ProofWarning SoftmapError WriteError",
    "io": "read write",
    "learn.layer": "soft_map",
    "methods.base": "METHODS",
    "methods.marginals": "SoftMarginals exact_marginals log_partition_bounds",
    "model": "AllDifferent AtMostOne Cardinality ExactlyOne Linear Max Model Or Parity Potts "
    "Projection SharedTables Tables TruncatedLinear TruncatedQuadratic",
    "relaxation.consistency": "arc_consistency",
    "relaxation.dual": "SmoothedDual",
    "scale.many": "solve_many",
    "solving.batch": "solve_batch",
    "solving.certificate": "certificate",
    "solving.mbest": "RankedLabelling solve_mbest",
    "solving.result": "Result load_result",
    "solving.solve": "iterate resume solve",
    "solving.summed": "MarginalMap marginal_map",
    "solving.trace": "Snapshot Status Trace",
    "verification": "verify",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

# Public name -> the module that it is.
_MODULES = {
    "codes": "codes",
    "distributed": "scale.distributed",
    "generators": "generators",
    "interop": "interop",
    "io": "io",
    "learn": "learn",
    "lp": "relaxation.lp",
    "plotting": "views.plotting",
    "transport": "methods.transport",
}

# What to use, and what users of other libraries look for.
_INSTEAD = {
    "softmap.read(path), or softmap.load_result(path)": "load open",
    "softmap.read(path)": "read_model load_model from_file",
    "softmap.write(model, path)": "save dump save_model",
    "softmap.solve(model)": "minimize minimise optimize infer inference map map_inference decode",
    "softmap.solve_mbest(model, m)": "mbest nbest sample",
    "softmap.Model": "MRF CRF FactorGraph GraphicalModel MarkovNetwork Problem",
    "softmap.Model.from_factors(labels, factors)": "CFN WCSP Factor Function",
    "softmap.Model.grid(costs, potential)": "grid Grid GridModel",
    "softmap.Model.from_qubo(Q) or from_ising(h, J)": "QUBO Ising BQM from_qubo from_ising",
    "softmap.interop.dimod.Sampler()": "Sampler SoftmapSampler",
    "softmap.exact_marginals(model, eta)": "marginals",
    "softmap.log_partition_bounds(model, eta)": "log_partition logz logZ log_z",
    "softmap.transport": "ot sinkhorn multimarginal barycenter barycentre",
    "softmap.codes.Decoder": "Decoder Matching BpOsdDecoder",
    "softmap.learn": "perturbed_map StructuredClassifier SoftMap",
    "softmap.generators": "potts_grid random_grid erdos_renyi",
    "softmap.Linear(variables, weights, high=k)": "AtMost AtMostK Knapsack",
    "softmap.AllDifferent(variables)": "AllDiff all_different Permutation linear_sum_assignment",
    "softmap.read('nug12.dat'), for problems of QAPLIB": "QAP quadratic_assignment",
}

__all__ = [
    "METHODS",
    "AllDifferent",
    "AtMostOne",
    "Cardinality",
    "CheckpointError",
    "CheckpointWarning",
    "ConvergenceWarning",
    "ExactlyOne",
    "FormatError",
    "InfeasibleModel",
    "Linear",
    "MarginalMap",
    "Max",
    "MissingExtra",
    "Model",
    "ModelError",
    "NotEnoughMemory",
    "OptionError",
    "Or",
    "Parity",
    "Picture",
    "Potts",
    "Projection",
    "ProofWarning",
    "RankedLabelling",
    "Result",
    "SharedTables",
    "SmoothedDual",
    "Snapshot",
    "SoftMarginals",
    "SoftmapError",
    "Status",
    "Tables",
    "Trace",
    "TruncatedLinear",
    "TruncatedQuadratic",
    "WriteError",
    "__version__",
    "arc_consistency",
    "certificate",
    "codes",
    "contrast_weights",
    "denoise",
    "distributed",
    "exact_marginals",
    "generators",
    "interop",
    "io",
    "iterate",
    "learn",
    "load_result",
    "log_partition_bounds",
    "lp",
    "marginal_map",
    "plotting",
    "read",
    "resume",
    "segment",
    "soft_map",
    "solve",
    "solve_batch",
    "solve_many",
    "solve_mbest",
    "stereo",
    "transport",
    "verify",
    "write",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value: object = import_module(f"softmap.{_MODULES[name]}")
    elif name in _HOME:
        value = getattr(import_module(f"softmap.{_HOME[name]}"), name)
    else:
        from softmap.hints import missing

        raise AttributeError(missing("module 'softmap'", name, _INSTEAD, __all__))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
