"""Values as text that says everything, as common/canonical.rs writes them, too."""

import datetime
import decimal
import math
import struct

UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1)


def canonical(value):
    """Everything that a value is, without tabs, commas and semicolons."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"i{value}"
    if isinstance(value, float):
        return "nan" if math.isnan(value) else "f" + struct.pack(">d", value).hex()
    if isinstance(value, decimal.Decimal):
        sign, digits, exponent = value.as_tuple()
        number = int("".join(map(str, digits))) * (-1 if sign else 1)
        if number == 0:
            return "d0/0"
        while number % 10 == 0:
            number, exponent = number // 10, exponent + 1
        return f"d{number}/{-exponent}"
    if isinstance(value, str):
        return "t" + value.encode().hex()
    if isinstance(value, bytes):
        return "b" + value.hex()
    if isinstance(value, datetime.datetime):
        naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        since = naive - EPOCH
        return f"m{((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000}"
    if isinstance(value, datetime.date):
        return f"y{(value - EPOCH.date()).days}"
    raise TypeError(type(value))
