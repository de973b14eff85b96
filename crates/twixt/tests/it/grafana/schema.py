"""Holds a dashboard on standard input to Grafana's own model, as its toolkit for Python has it."""

import enum, json, sys, typing
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

def unknown(written, known, path):
    """What was written and the model does not know."""
    if isinstance(written, dict) and isinstance(known, dict):
        for name, value in written.items():
            if name in known:
                yield from unknown(value, known[name], f'{path}.{name}')
            else:
                yield f'{path}.{name} is not known'
    elif isinstance(written, list) and isinstance(known, list) and len(written) == len(known):
        for place, pair in enumerate(zip(written, known)):
            yield from unknown(*pair, f'{path}[{place}]')
    elif written != known:
        yield f'{path} is {written!r}, not {known!r}'

def fits(value, kind):
    """Whether a value is of a type that the model names."""
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union:
        return any(fits(value, one) for one in of)
    if origin is list:
        return isinstance(value, list) and all(fits(one, of[0]) for one in value)
    if origin is typing.Literal:
        return value in of
    if origin is dict:
        return isinstance(value, dict)
    if not isinstance(kind, type):
        return True
    if issubclass(kind, enum.Enum):
        return value in [one.value for one in kind]
    return isinstance(value, (int, float)) if kind is float else isinstance(value, kind)

def misfits(thing, path):
    """Values of other types than the model's."""
    if isinstance(thing, list):
        for place, one in enumerate(thing):
            yield from misfits(one, f'{path}[{place}]')
    elif type(thing).__module__.startswith('grafana_foundation_sdk'):
        for name, kind in typing.get_type_hints(type(thing)).items():
            value = getattr(thing, name)
            if not fits(value, kind):
                yield f'{path}.{name} is {value!r}, not of {kind}'
            yield from misfits(value, f'{path}.{name}')

register_default_plugins()
written = json.load(sys.stdin)
model = Dashboard.from_json(written)
known = json.loads(JSONEncoder().encode(model))
for problem in [*unknown(written, known, ''), *misfits(model, '')]:
    print(problem)
