"""Reading image configurations from the registries they come from (OCI distribution), when the operator wants it.

The configuration says which CUDA an image holds where its tag does not, or lies. It is a help, never a need: whatever
goes wrong here leaves the image to its tag.
"""

from service.registry.settings import RegistrySettings

__all__ = ["RegistrySettings"]
