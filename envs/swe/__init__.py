"""The environment family `swe`: repair a repository in a sandbox."""
