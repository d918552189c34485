"""Functions that call themselves, directly and through others."""


def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def is_even(number):
    return True if number == 0 else is_odd(number - 1)


def is_odd(number):
    return False if number == 0 else is_even(number - 1)


def ackermann(first, second):
    if first == 0:
        return second + 1
    if second == 0:
        return ackermann(first - 1, 1)
    return ackermann(first - 1, ackermann(first, second - 1))


def hanoi(count, source, target, spare, moves):
    if count:
        hanoi(count - 1, source, spare, target, moves)
        moves.append((source, target))
        hanoi(count - 1, spare, target, source, moves)


def through_others(depth):
    def inner():
        return through_others(depth - 1)

    return max([inner], key=lambda function: function()) if depth else 0


def main():
    assert fibonacci(11) == 89
    assert is_even(40) and not is_odd(40)
    assert ackermann(2, 3) == 9
    moves = []
    hanoi(5, "a", "b", "c", moves)
    assert len(moves) == 31
    through_others(6)
