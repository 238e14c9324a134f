"""Functions for images: segmentation, denoising, stereo."""

from softmap.app.vision.depth import stereo
from softmap.app.vision.noise import denoise
from softmap.app.vision.picture import Picture
from softmap.app.vision.regions import contrast_weights, segment

__all__ = ["Picture", "contrast_weights", "denoise", "segment", "stereo"]
