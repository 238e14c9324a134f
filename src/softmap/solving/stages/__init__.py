"""The subsolvers of a run: one file each, with `make`, `plan` and the call (`..subsolver`).

The relaxation (`passes`) with the labels decoded from it (`decode`) stands in the middle. Before
it come stages that run once: exact methods for models of one kind, and first labels. After it, or
in turns with it, come exact search, tightening, and searches for better labels (`order`).
"""
