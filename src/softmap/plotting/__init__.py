"""Pictures: the only place that knows matplotlib and pillow (the extra `plot`)."""

from softmap.plotting.charts import save_comparison, save_convergence
from softmap.plotting.images import load_image, save_image, save_labelling, save_matching
from softmap.plotting.results import result_figure

__all__ = [
    "load_image",
    "result_figure",
    "save_comparison",
    "save_convergence",
    "save_image",
    "save_labelling",
    "save_matching",
]
