"""The runtime for Vulkan devices."""
