"""One call each for what pictures are labelled for: segments, less noise, depth."""

from softmap.vision.depth import stereo
from softmap.vision.noise import denoise
from softmap.vision.picture import Picture
from softmap.vision.regions import segment

__all__ = ["Picture", "denoise", "segment", "stereo"]
