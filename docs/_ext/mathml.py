"""Formulas as MathML, which browsers set themselves: no script, nothing fetched from elsewhere."""

from docutils import nodes
from docutils.utils.math import latex2mathml


def render(tex: str, *, block: bool) -> str:
    """A formula in TeX as MathML."""
    return latex2mathml.tex2mathml(tex.strip(), as_block=block)


def visit_inline(writer: object, node: nodes.math) -> None:
    """Write a formula in the text."""
    writer.body.append(render(node.astext(), block=False))
    raise nodes.SkipNode


def visit_block(writer: object, node: nodes.math_block) -> None:
    """Write a formula of its own, which scrolls where the window is narrow."""
    writer.body.append(f'<div class="formula">{render(node.astext(), block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: object) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
