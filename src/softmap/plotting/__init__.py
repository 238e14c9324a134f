"""Pictures: the only place that knows matplotlib and pillow (the extra `plot`)."""

from softmap.plotting.charts import save_comparison, save_convergence
from softmap.plotting.images import load_image, save_image, save_labelling, save_matching

__all__ = [
    "load_image",
    "save_comparison",
    "save_convergence",
    "save_image",
    "save_labelling",
    "save_matching",
]
