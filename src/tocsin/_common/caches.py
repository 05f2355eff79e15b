"""What an object works out when it is first asked for."""

from __future__ import annotations

from functools import cached_property


class Caching:
    """For classes with cached properties, which copies and pickles leave out: another thread may be filling them."""

    def __getstate__(self) -> dict[str, object]:
        state = self.__dict__.copy()  # in one go, whatever other threads do
        return {
            name: value
            for name, value in state.items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }
