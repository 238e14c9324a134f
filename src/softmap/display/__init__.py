"""What people see while a solver runs and when it has ended: lines, a bar, a table."""
