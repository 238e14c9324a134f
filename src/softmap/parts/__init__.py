"""One model cut into parts, and the run over them.

The variables are partitioned into *parts*, and every process owns some parts. The order of a pass
depends on the parts but not on the number of processes.
"""
