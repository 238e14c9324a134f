"""The display of results: progress lines and bars, tables, the report page, plots."""
