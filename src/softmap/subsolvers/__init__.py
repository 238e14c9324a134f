"""What finds labels or proves bounds: a room each, with `make`, `plan` and the call.

The rooms do not know each other; `registry` lists them in the order in which they are asked.
"""
