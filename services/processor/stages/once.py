"""A property computed when first asked for."""

from collections.abc import Callable
from typing import Generic, TypeVar, overload

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class once(Generic[Owner, Value]):  # noqa: N801 (read as a decorator)
    """functools.cached_property without its lock, which until Python 3.12 costs a microsecond a property."""

    def __init__(self, compute: Callable[[Owner], Value]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Owner]) -> "once[Owner, Value]": ...
    @overload
    def __get__(self, instance: Owner, owner: type[Owner]) -> Value: ...
    def __get__(self, instance: Owner | None, owner: type[Owner]) -> "once[Owner, Value] | Value":
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
