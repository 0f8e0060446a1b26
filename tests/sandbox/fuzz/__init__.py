"""Fuzzing of what reads bytes from a sandbox: targets, seeds, mutation, and a run guided by coverage.

    python -m tests.sandbox.fuzz.guided TARGET SECONDS   # needs `pip install atheris`
    python -m tests.sandbox.fuzz.seeds                   # writes the seeds anew

`corpus/TARGET` beside this folder holds the seeds, what a run found, and inputs that reached more code.
"""
