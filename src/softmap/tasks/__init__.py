"""What needs several runs: batches, the m best labellings, diverse ones, marginal MAP."""
