"""Code for Vulkan devices: the target kind ``vulkan`` and the code generator ``spirv``."""
