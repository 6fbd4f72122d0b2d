"""Exceptions. Everything that Ironbloom raises on its own account is an `Error`."""

from __future__ import annotations


class Error(Exception):
    """Any error of Ironbloom."""


class Refused(Error):
    """The filter or index does not do that. Nothing has changed."""


class Full(Refused):
    """There is no room for the key. Every key before it is still there."""


class Mismatch(Refused, ValueError):
    """Two filters that differ in kind, shape or hash cannot be combined."""


class OutOfBounds(Refused, IndexError):
    """An integer outside the bounds of a bitmap."""


class InvalidParameter(Error, ValueError):
    """A capacity, a rate or another number that no filter can have."""


class InvalidKey(Error, TypeError):
    """A value that is not a key, or not one of this filter."""


class UnknownName(Error, KeyError):
    """A column, an attribute or a table of this name is not there."""

    __str__ = Exception.__str__  # that of a KeyError is the quoted name


class InvalidColumn(Error, ValueError):
    """A column or table of another library that cannot be read to its end."""


class InvalidCondition(Error, ValueError):
    """A condition that cannot be parsed, or does not fit the table."""


class DamagedFile(Error, ValueError):
    """Bytes that are not a complete filter, index or table, as they were written."""


class TableChanged(Error):
    """A table is missing or has changed since it was indexed."""


class Overtaken(Error):
    """Another process has changed the index meanwhile. Nothing was written."""


# Tracebacks and pickles name them as users do.
for _error in list(vars().values()):
    if isinstance(_error, type) and issubclass(_error, Error):
        _error.__module__ = "ironbloom"
