"""`sql-v1`: answer questions about generated SQLite databases."""
