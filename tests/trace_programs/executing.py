"""Code that is created while the program runs."""

import types

SOURCE = """
def made(value):
    return inner(value) + 1

def inner(value):
    return value * 2

result = made(4)
"""


def compiled():
    namespace = {}
    exec(compile(SOURCE, "<made>", "exec"), namespace)
    assert namespace["result"] == 9
    return namespace["made"]


def renamed(function):
    qualified = {"co_qualname": "renamed"} if hasattr(function.__code__, "co_qualname") else {}
    code = function.__code__.replace(co_name="renamed", **qualified)
    return types.FunctionType(code, function.__globals__)


def nested(depth):
    """Runs code objects with different files: cProfile does not merge those of one file, line and name."""
    code = compile("nested(depth - 1) + 1", f"<depth {depth}>", "eval")
    return eval(code, globals(), {"depth": depth}) if depth else 0


def main():
    made = compiled()
    assert made(1) == 3 and renamed(made)(2) == 5
    assert compiled()(1) == 3
    assert nested(4) == 4
    assert eval("(lambda value: value + one)(1)", {"one": 1}) == 2
    assert eval(compile("[value for value in range(3)]", "<expression>", "eval")) == [0, 1, 2]
    namespace = {}
    exec("class Made:\n    def method(self):\n        return 7\n", namespace)
    assert namespace["Made"]().method() == 7
    try:
        exec("def broken():\n    raise KeyError('x')\nbroken()")
    except KeyError:
        pass
    try:
        compile("not python at all", "<bad>", "exec")
    except SyntaxError:
        pass
