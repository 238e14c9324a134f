"""MAP inference in Markov random fields; a proof of how far the answer can be from the optimum.

Submodules are imported on first use, so that ``import softmap`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.3.0.dev0"

if TYPE_CHECKING:  # type checkers take `a as a` for public, where __all__ is computed
    from softmap import codes as codes
    from softmap import generators as generators
    from softmap import interop as interop
    from softmap import io as io
    from softmap import learn as learn
    from softmap import paper as paper
    from softmap import transport as transport
    from softmap.app.vision import Picture as Picture
    from softmap.app.vision import contrast_weights as contrast_weights
    from softmap.app.vision import denoise as denoise
    from softmap.app.vision import segment as segment
    from softmap.app.vision import stereo as stereo
    from softmap.drive.solve import iterate as iterate
    from softmap.drive.solve import resume as resume
    from softmap.drive.solve import solve as solve
    from softmap.drive.stored import load_result as load_result
    from softmap.errors import CheckpointError as CheckpointError
    from softmap.errors import CheckpointWarning as CheckpointWarning
    from softmap.errors import ConvergenceWarning as ConvergenceWarning
    from softmap.errors import FormatError as FormatError
    from softmap.errors import FormatWarning as FormatWarning
    from softmap.errors import InfeasibleModel as InfeasibleModel
    from softmap.errors import MissingExtra as MissingExtra
    from softmap.errors import ModelError as ModelError
    from softmap.errors import NotEnoughMemory as NotEnoughMemory
    from softmap.errors import OptionError as OptionError
    from softmap.errors import ProofWarning as ProofWarning
    from softmap.errors import SoftmapError as SoftmapError
    from softmap.errors import StageWarning as StageWarning
    from softmap.errors import WriteError as WriteError
    from softmap.io import read as read
    from softmap.io import write as write
    from softmap.learn.layer import soft_map as soft_map
    from softmap.methods.base import METHODS as METHODS
    from softmap.methods.marginals import SoftMarginals as SoftMarginals
    from softmap.methods.marginals import exact_marginals as exact_marginals
    from softmap.methods.marginals import log_partition_bounds as log_partition_bounds
    from softmap.model import AllDifferent as AllDifferent
    from softmap.model import AtMostOne as AtMostOne
    from softmap.model import Cardinality as Cardinality
    from softmap.model import ExactlyOne as ExactlyOne
    from softmap.model import Linear as Linear
    from softmap.model import Max as Max
    from softmap.model import Model as Model
    from softmap.model import Or as Or
    from softmap.model import Parity as Parity
    from softmap.model import Potts as Potts
    from softmap.model import Projection as Projection
    from softmap.model import SharedTables as SharedTables
    from softmap.model import Tables as Tables
    from softmap.model import TruncatedLinear as TruncatedLinear
    from softmap.model import TruncatedQuadratic as TruncatedQuadratic
    from softmap.relaxation import lp as lp
    from softmap.relaxation.consistency import arc_consistency as arc_consistency
    from softmap.relaxation.dual import SmoothedDual as SmoothedDual
    from softmap.run.certificate import certificate as certificate
    from softmap.run.result import Result as Result
    from softmap.run.trace import Snapshot as Snapshot
    from softmap.run.trace import Status as Status
    from softmap.run.trace import Trace as Trace
    from softmap.scale import distributed as distributed
    from softmap.scale.many import solve_many as solve_many
    from softmap.tasks.batch import solve_batch as solve_batch
    from softmap.tasks.mbest import RankedLabelling as RankedLabelling
    from softmap.tasks.mbest import solve_mbest as solve_mbest
    from softmap.tasks.summed import MarginalMap as MarginalMap
    from softmap.tasks.summed import marginal_map as marginal_map
    from softmap.verification import verify as verify
    from softmap.views import plotting as plotting

# Module or package -> its public names, separated by blanks.
_NAMES = {
    "app.vision": "Picture contrast_weights denoise segment stereo",
    "errors": "CheckpointError CheckpointWarning ConvergenceWarning FormatError "
    "FormatWarning InfeasibleModel MissingExtra ModelError NotEnoughMemory OptionError "
    "ProofWarning SoftmapError StageWarning WriteError",
    "io": "read write",
    "learn.layer": "soft_map",
    "methods.base": "METHODS",
    "methods.marginals": "SoftMarginals exact_marginals log_partition_bounds",
    "model": "AllDifferent AtMostOne Cardinality ExactlyOne Linear Max Model Or Parity Potts "
    "Projection SharedTables Tables TruncatedLinear TruncatedQuadratic",
    "relaxation.consistency": "arc_consistency",
    "relaxation.dual": "SmoothedDual",
    "scale.many": "solve_many",
    "tasks.batch": "solve_batch",
    "run.certificate": "certificate",
    "tasks.mbest": "RankedLabelling solve_mbest",
    "run.result": "Result",
    "drive.solve": "iterate resume solve",
    "drive.stored": "load_result",
    "tasks.summed": "MarginalMap marginal_map",
    "run.trace": "Snapshot Status Trace",
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
    "paper": "paper",
    "plotting": "views.plotting",
    "transport": "transport",
}

# What to use, and what users of other libraries look for.
_INSTEAD = {
    "softmap.read(path), or softmap.load_result(path)": "load open",
    "softmap.read(path)": "read_model load_model from_file from_uai from_wcsp",
    "softmap.write(model, path)": "save dump save_model",
    "softmap.solve(model)": "minimize minimise optimize infer inference map map_inference decode",
    "softmap.solve_mbest(model, m), which returns the m best labellings": "mbest nbest",
    "softmap.exact_marginals(model, eta), or solve_mbest(model, m)": "sample gibbs",
    "softmap.interop.mpe(network, evidence), or softmap.solve(model)": "mpe map_query",
    "softmap.interop.from_dimod(bqm)": "from_bqm from_cqm from_dqm from_dimod",
    "softmap.Model": "MRF CRF FactorGraph GraphicalModel MarkovNetwork Problem",
    "softmap.Model.from_factors(labels, factors)": "CFN WCSP Factor Function from_factors",
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

__all__ = sorted([*_HOME, *_MODULES, "__version__"])


def __getattr__(name: str) -> object:
    from softmap.clock import importing

    if name in _MODULES:
        value: object = import_module(f"softmap.{_MODULES[name]}")
    elif name in _HOME:
        with importing():
            value = getattr(import_module(f"softmap.{_HOME[name]}"), name)
    else:
        from softmap.hints import missing

        raise AttributeError(missing("module 'softmap'", name, _INSTEAD, __all__))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
