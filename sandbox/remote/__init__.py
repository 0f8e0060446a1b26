"""Sandboxes on another machine: a server over any backend, and a client that is a backend itself."""
