"""The application: the command line, pictures, and the experiments of the paper."""
