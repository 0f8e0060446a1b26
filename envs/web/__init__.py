"""`web-v1`: reach a goal on a web site through a browser; judged by the state of the server."""
