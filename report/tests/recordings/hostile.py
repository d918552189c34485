"""Records calls whose names, files, threads and spans try to escape from the page that shows them."""

import sys
import threading

import stackweave

TEXTS = [
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=2>",
    "javascript:window.pwned=3",
    "${window.pwned=4}{{window.pwned=5}}",
    "\"onmouseover=window.pwned=6 x='",
    "<!--<script>",
    "]]><svg/onload=window.pwned=7>",
    "&lt;script&gt;",
    "bidi \u202e reversed \u2066 isolated",
    "control \x00\x01\x1b[31m\x7f\n\r\t\u2028 end",
    "\U0001f600 e\u0301 \ud83d",
    "__proto__",
    "constructor",
    "x" * 5000,
]


def function_of(text):
    """Returns a function with this name, in a file of this name."""

    def template(again, depth):
        return sum(range(200)) if depth == 0 else again(again, depth - 1)

    code = template.__code__.replace(co_name=text, co_filename=f"{text}/{text}.py")
    if hasattr(code, "co_qualname"):
        code = code.replace(co_qualname=text)
    return type(template)(code, globals(), text)


def call_all():
    for text in TEXTS:
        try:
            function = function_of(text)
        except (ValueError, UnicodeError):  # not every Python takes each of them
            continue
        function(function, 3)


def main():
    call_all()
    for text in TEXTS:
        readable = text.encode("utf-8", "replace").decode().replace("\x00", "")
        with stackweave.span(readable, file=readable):
            threading.Thread(target=call_all, name=readable).start()
        stackweave.instant(readable)
        stackweave.counter(readable, 1)


if __name__ == "__main__":
    main()
    print(len(sys.argv))
