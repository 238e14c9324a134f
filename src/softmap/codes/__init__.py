"""Decoders of parity-check codes, without a `Model`: one object decodes many words or syndromes."""

from softmap.codes.decoder import Decoder
from softmap.codes.parity import Decoded, ParityCode

__all__ = ["Decoded", "Decoder", "ParityCode"]
