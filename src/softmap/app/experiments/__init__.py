"""The paper's experiments: one module per figure, from settings to tidy tables."""
