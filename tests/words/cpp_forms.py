"""Finds forms of C++ that read badly: two actions joined by a comma, and a conditional inside a conditional as an argument.

Reads tokens, not types, so a few harmless rare forms could be refused; there is none today.
"""
import re

TOKEN = re.compile(
    r"""(?P<skip>\s+ | //[^\n]* | /\*.*?\*/ | ^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
      | (?P<text>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)" | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+')
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\d(?:[\w.']|(?<=[eEpP])[+-])*)
      | (?P<sign>::|->|<<<|<<=|>>=|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|<<|.)""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
CLOSING = {"(": ")", "[": "]", "{": "}"}
NO_CALLS = {"if", "while", "for", "switch", "return", "catch", "case", "throw", "co_return", "co_yield", "decltype", "noexcept", "__attribute__"}
NO_ACTIONS = {"auto", "const", "constexpr", "static", "using", "struct", "enum", "class", "template", "union", "extern", "typename", "unsigned", "thread_local", "return", "throw"}


class Token:
    def __init__(self, text, is_name, line):
        self.text, self.is_name, self.line = text, is_name, line
        self.partner = None  # index of the bracket that belongs to it
        self.in_angles = False  # a comma between template arguments


def tokens_of(text):
    tokens, line = [], 1
    for match in TOKEN.finditer(text):
        if not match["skip"]:
            tokens.append(Token('""' if match["text"] else match[0], match["name"] is not None, line))
        line += match[0].count("\n")
    open_brackets = []
    for i, token in enumerate(tokens):
        if token.text in CLOSING:
            open_brackets.append(i)
        elif token.text in CLOSING.values() and open_brackets:
            token.partner = open_brackets.pop()
            tokens[token.partner].partner = i
    for i, token in enumerate(tokens):
        if token.text == "<" and i > 0 and (tokens[i - 1].is_name or "".join(t.text for t in tokens[i - 3 : i]) == "operator()"):
            mark_template_commas(tokens, i)
        elif token.text == "<<<":  # a launch of a kernel
            for inside in tokens[i : next((k for k in range(i, len(tokens) - 2) if all(t.text == ">" for t in tokens[k : k + 3])), i)]:
                inside.in_angles = True
    return tokens


def mark_template_commas(tokens, begin):
    commas, depth, i = [], 0, begin
    while i < len(tokens):
        text = tokens[i].text
        if text in CLOSING and tokens[i].partner:
            i = tokens[i].partner
        elif text == "<":
            depth += 1
        elif text == ">":
            depth -= 1
            if depth == 0:
                for comma in commas:
                    comma.in_angles = True
                return
        elif text == ",":
            commas.append(tokens[i])
        elif text in (";", "}", ")", "]", "&&", "||", "?"):
            return
        i += 1


def parts_between(tokens, begin, end, separator):
    """Lists of the indices of the tokens between begin and end, cut at the separator. Brackets inside are one token."""
    parts, i = [[]], begin
    while i < end:
        if tokens[i].text == separator and not tokens[i].in_angles:
            parts.append([])
        else:
            parts[-1].append(i)
            if tokens[i].text in CLOSING and tokens[i].partner:
                i = tokens[i].partner
        i += 1
    return parts


def statement_end(tokens, begin):
    i = begin
    while i < len(tokens) and tokens[i].text not in (";", ")", "}", "]"):
        i = (tokens[i].partner or i) + 1 if tokens[i].text in CLOSING else i + 1
    return i


def is_call(tokens, i):
    before = tokens[i - 1] if i > 0 else None
    return before is not None and (before.text not in NO_CALLS if before.is_name else before.text in (")", "]", ">"))


def is_action(tokens, part):
    """True if the statement acts: `a()`, `++a`, `a = b`. False if it declares, `int a, b`, or unfolds a pack, `(a, ...)`."""
    first = tokens[part[0]]
    if tokens[part[-1]].text == "." and tokens[part[-2]].text == ".":
        return False
    if first.text in ("++", "--", "*", "("):
        return True
    if not first.is_name or first.text in NO_ACTIONS:
        return False
    i = 0
    while i + 2 < len(part) and tokens[part[i]].is_name and tokens[part[i + 1]].text in ("::", ".", "->"):
        i += 2
    return i + 1 < len(part) and tokens[part[i + 1]].text in ("(", "[", "=", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "++", "--", ".", "->", "<<")


def nested(tokens, part):
    """True if a conditional stands inside another one, in the same brackets or in plain ones."""
    own = sum(tokens[i].text == "?" for i in part)
    inner = False
    for i in part:
        if tokens[i].text == "(" and tokens[i].partner and not is_call(tokens, i):
            inside = [k for each in parts_between(tokens, i + 1, tokens[i].partner, ",") for k in each]
            inner |= any(tokens[k].text == "?" for k in inside)
            if nested(tokens, inside):
                return True
    return own >= 2 or (own == 1 and inner)


def faults_of(tokens):
    for i, token in enumerate(tokens):
        if token.text in ("return", "throw", "co_return"):
            parts = parts_between(tokens, i + 1, statement_end(tokens, i + 1), ",")
            if len(parts) > 1:
                yield token, "two actions in one return"
        elif token.text == "{" and token.partner and tokens[token.partner].line == token.line:
            for part in parts_between(tokens, i + 1, token.partner, ";")[:-1]:
                if part and is_action(tokens, part) and len(parts_between(tokens, part[0], part[-1] + 1, ",")) > 1:
                    yield tokens[part[0]], "two actions joined by a comma"
        elif token.text == "(" and token.partner and i > 0:
            if is_call(tokens, i):
                for part in parts_between(tokens, i + 1, token.partner, ","):
                    if nested(tokens, part):
                        yield tokens[part[0]], "a conditional inside a conditional as an argument"
            elif tokens[i - 1].text not in ("for", "catch", "__attribute__", "decltype", "noexcept"):
                for part in parts_between(tokens, i + 1, token.partner, ";"):
                    if len(parts_between(tokens, part[0], part[-1] + 1, ",")) > 1 if part else False:
                        if is_action(tokens, part) or tokens[i - 1].text in ("&&", "||", "?", ":", "="):
                            yield tokens[part[0]], "two actions joined by a comma"
            if tokens[i - 1].text != "," and [t.text for t in tokens[i : i + 3]] == ["(", "void", ")"]:
                parts = parts_between(tokens, i, statement_end(tokens, i), ",")
                if len(parts) > 1:
                    yield token, "two actions joined by a comma"
