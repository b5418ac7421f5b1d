"""The command line: arguments in, a report out."""
