"""The family `search-v1`: multi-hop questions over a corpus, and a server for corpora."""
