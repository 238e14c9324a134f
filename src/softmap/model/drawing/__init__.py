"""Images and graphs for pages, notebooks and terminals, made by numpy and the standard library."""
