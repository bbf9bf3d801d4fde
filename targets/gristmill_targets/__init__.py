"""Data of device families: one TOML file a family."""
