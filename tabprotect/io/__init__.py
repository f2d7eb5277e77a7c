"""Files: JJ, τ-ARGUS tables, microdata and a-priori information, cells as CSV or Parquet, and the JSON form of tables and results."""
