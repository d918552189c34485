"""Pickles, JSON and other formats with hooks in Python."""

import copy
import io
import json
import pickle
import struct


class Reduced:
    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        return rebuild, (self.value,), {"extra": 1}

    def __setstate__(self, state):
        self.extra = state["extra"]


class Stateful:
    def __init__(self):
        self.kept, self.dropped = 1, object

    def __getstate__(self):
        return {"kept": self.kept}


class Copied:
    def __deepcopy__(self, memo):
        return rebuild(2)


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        return "here" if value is SINGLE else None


class Unpickler(pickle.Unpickler):
    def persistent_load(self, identity):
        return SINGLE

    def find_class(self, module, name):
        return super().find_class(module, name)


class Encoder(json.JSONEncoder):
    def default(self, value):
        return {"value": value.value} if isinstance(value, Reduced) else super().default(value)


SINGLE = ["single"]


def rebuild(value):
    return Reduced(value)


def decoded(pairs):
    return dict(pairs)


def main():
    # The classes are found by the name of their module, from any location of this source.
    for python_version in (pickle._dumps, pickle.dumps):
        data = python_version([Reduced(3), Stateful()])
        reduced, stateful = pickle.loads(data)
        assert (reduced.value, reduced.extra, stateful.kept) == (3, 1, 1)
    buffer = io.BytesIO()
    Pickler(buffer).dump([SINGLE, Reduced(1)])
    buffer.seek(0)
    assert Unpickler(buffer).load()[0] is SINGLE
    text = json.dumps({"a": Reduced(1), "b": [1, 2.5, None]}, cls=Encoder, indent=1)
    assert json.loads(text, object_pairs_hook=decoded)["a"] == {"value": 1}
    assert json.loads("[1.5]", parse_float=lambda number: number) == ["1.5"]
    try:
        json.dumps(object(), cls=Encoder)
    except TypeError:
        pass
    assert copy.deepcopy([Copied(), Reduced(4)])[1].value == 4
    assert [number for (number,) in struct.iter_unpack("<h", struct.pack("<2h", 1, 2))] == [1, 2]
