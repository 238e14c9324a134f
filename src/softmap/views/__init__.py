"""A result as people see it: lines, a bar, a table, a page, pictures. Needs numbers only."""
