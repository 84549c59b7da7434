"""Reports of a run on functions: in a terminal, as JSON, and as a page."""
