"""Generators, which continue and end in each possible way."""


def count(limit):
    for number in range(limit):
        yield number


def echo():
    received = None
    while True:
        try:
            received = yield received
        except ValueError as error:
            received = str(error)


def guarded(log):
    try:
        yield 1
        yield 2
    finally:
        log.append(cleaned(len(log)))


def cleaned(number):
    return f"cleaned {number}"


def failing():
    yield 1
    raise KeyError("by itself")


def returning():
    yield 1
    return "value"


def delegating():
    value = yield from returning()
    yield from count(3)
    try:
        yield from failing()
    except KeyError:
        yield value


def stubborn():
    try:
        yield 1
    except GeneratorExit:
        yield 2


def flatten(tree):
    for branch in tree:
        if isinstance(branch, list):
            yield from flatten(branch)
        else:
            yield branch


def sends():
    generator = echo()
    next(generator)
    assert generator.send("x") == "x"
    assert generator.throw(ValueError("thrown")) == "thrown"
    try:
        generator.throw(KeyError("out"))
    except KeyError:
        pass
    try:
        next(generator)
    except StopIteration:
        pass


def ends():
    log = []
    for step in range(4):
        generator = guarded(log)
        for _ in range(step):
            next(generator, None)
        if step == 1:
            generator.close()
        elif step == 2:
            del generator
    unstarted = guarded(log)
    unstarted.close()
    other = guarded(log)
    try:
        other.throw(KeyError("at once"))
    except KeyError:
        pass
    assert len(log) == 3, log


def refusals():
    generator = stubborn()
    next(generator)
    try:
        generator.close()
    except RuntimeError:
        pass
    generator.close()


def interleaved():
    first, second = count(4), count(6)
    while next(first, None) is not None:
        next(second)
    return list(second)


def main():
    assert sum(count(20)) == 190
    assert list(delegating()) == [1, 0, 1, 2, 1, "value"]
    assert list(flatten([1, [2, [3, [4]]], [[5]]])) == [1, 2, 3, 4, 5]
    sends()
    ends()
    refusals()
    assert interleaved() == [4, 5]
    assert dict(zip(count(3), (letter for letter in "abc"))) == {0: "a", 1: "b", 2: "c"}
