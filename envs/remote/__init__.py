"""An environment on a server, and its client."""
