"""`Decoder` for sinter, stim's tool for Monte Carlo runs; needs the package `sinter`.

`sinter collect --decoders softmap --custom_decoders_module_function
"softmap.codes.sinter:decoders" ...` decodes the shots of circuits; `sinter.collect` takes
`custom_decoders=softmap.codes.sinter.decoders()`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sinter

from softmap.codes.checks import Bytes
from softmap.codes.decoder import Decoder

AT_ONCE = 1024  # shots whose words are in memory at a time


class SinterDecoder(sinter.Decoder):  # type: ignore[misc, unused-ignore]
    """The decoder that sinter sends to its worker processes."""

    def compile_decoder_for_dem(self, *, dem: Any) -> CompiledSinterDecoder:
        return CompiledSinterDecoder(Decoder(dem))


class CompiledSinterDecoder(sinter.CompiledDecoder):  # type: ignore[misc, unused-ignore]
    """A `Decoder` of one detector error model that takes and returns packed bits.

    Parameters
    ----------
    decoder : Decoder
    """

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder

    def decode_shots_bit_packed(self, *, bit_packed_detection_event_data: Bytes) -> Bytes:
        """Return the observables that the most likely errors of each shot flip, packed.

        Parameters
        ----------
        bit_packed_detection_event_data : uint8[shots, ceil(detectors / 8)]
        """
        packed, decoder = bit_packed_detection_event_data, self.decoder
        flips = np.zeros((len(packed), decoder.num_observables), np.uint8)
        for first in range(0, len(packed), AT_ONCE):
            own = slice(first, first + AT_ONCE)
            shots = np.unpackbits(packed[own], axis=1, count=decoder.num_checks, bitorder="little")
            # sinter runs one process per core
            flips[own] = decoder.decode_batch(shots, threads=1).observables
        return np.packbits(flips, axis=1, bitorder="little")


def decoders() -> dict[str, SinterDecoder]:
    """Return the decoders for `--custom_decoders_module_function`, by name."""
    return {"softmap": SinterDecoder()}
