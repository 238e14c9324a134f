"""Codes: words of bits that obey parities, decoded with a proof."""

from softmap.codes.parity import Decoded, ParityCode

__all__ = ["Decoded", "ParityCode"]
