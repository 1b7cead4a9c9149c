"""torchtitan: TOML syntax, settled values, pipeline stages, named architectures."""
