"""Images and graphs for pages, notebooks and terminals, without other libraries than numpy."""
