"""Shared by scripts/run-rps, report, gates, profile, soak and the checks. Python 3.9+, standard library only."""
