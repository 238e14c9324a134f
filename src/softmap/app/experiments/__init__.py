"""The paper's experiments, from settings to tables, figures and claims."""
