"""How the documentation is built: `make docs`."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]
os.environ.setdefault("MPLBACKEND", "Agg")

import softmap  # noqa: E402

project = "softmap"
author = copyright = "softmap developers"
release = version = softmap.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax is shipped with the pages
    "pages",
]
root_doc = "index"
exclude_patterns = [
    "_build",
    "reproduction/template.md",
    "reproduction/readings-template.md",
    "reproduction/beyond-template.md",
    "theory/open-questions-template.md",
    "benchmarks/README.md",
    "examples",
]

# Pages are Markdown; docstrings are numpydoc with code between single backticks.
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
# longer signatures have one parameter per line
maximum_signature_line_length = 60
autodoc_default_options = {"members": True}

# The page of the reproduction comes with its tables; a tree without them builds all the same.
suppress_warnings = ["toc.empty_glob"]

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    # the network is shown where PyTorch is
    "ignore_pattern": r"__init__\.py" if find_spec("torch") else r"__init__\.py|plot_network\.py",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 60,
    "thumbnail_size": (480, 300),
    "reset_modules": ("matplotlib", "pages.legible_text"),
    "within_subsection_order": "pages.GalleryOrder",
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_title = f"softmap {release}"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
