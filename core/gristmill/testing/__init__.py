"""What Gristmill ships for testing kernels, plugins and itself."""
