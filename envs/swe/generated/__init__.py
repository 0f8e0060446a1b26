"""Repositories made from seeds: the offline tasks of `swe-v1`."""
