"""The paper "Accelerated Message Passing for Entropy-Regularized MAP Inference", and what followed.

`theory` has the constants of its theorems, `rates` those of the theorems that go beyond it.
"""
