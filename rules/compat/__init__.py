"""CUDA, driver, GPU and image compatibility."""
