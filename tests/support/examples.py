"""How many examples a law is tried on: all of them with the profile `random` (`make soak`), a quarter every day."""

from hypothesis import settings

RANDOM = "random"


def examples(full: int) -> int:
    """`full`, or a quarter of it; asked when a test module is imported, after the profile is chosen."""
    return full if settings.get_current_profile_name() == RANDOM else full // 4
