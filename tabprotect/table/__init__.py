"""The model of a table: hierarchies, cells and relations, and how they are made from data."""
