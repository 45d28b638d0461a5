"""Property tests have no deadline for a single example: the machine may be shared."""

from hypothesis import settings

settings.register_profile("evalsite", deadline=None)
settings.load_profile("evalsite")
