"""The relaxation tightened by clusters of variables."""
