"""The randomised methods of the paper."""
