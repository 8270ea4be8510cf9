#!/usr/bin/env python3
"""Writes acceptance.json: which texts xgrammar accepts, the grammar library of
vLLM, for Lark grammars, left-recursive EBNF and structural tags. An answer of
null is a grammar that it refuses.

Run with the Python of a vLLM 0.32 (xgrammar 0.2.8):
    python acceptance.py > acceptance.json
"""
import json

import xgrammar

INFO = xgrammar.TokenizerInfo([bytes([i]) for i in range(256)] + [b"</s>"], vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256])
COMPILER = xgrammar.GrammarCompiler(INFO)
CASES = []


def accepts(grammar, text):
    matcher = xgrammar.GrammarMatcher(grammar)
    return all(matcher.accept_token(c) for c in text.encode()) and matcher.accept_token(256)


def case(kind, source, *texts):
    try:
        if kind == "lark":
            grammar = COMPILER.compile_lark(source)
        elif kind == "ebnf":
            grammar = COMPILER.compile_grammar(source)
        else:
            grammar = COMPILER.compile_structural_tag(source)
        answers = {t: accepts(grammar, t) for t in texts}
    except (RuntimeError, ValueError):
        answers = None
    CASES.append({"kind": kind, "source": source, "answers": answers})


def lark(source, *texts):
    case("lark", source, *texts)


def tag(format, *texts):
    case("tag", json.dumps({"type": "structural_tag", "format": format}), *texts)


def lark_cases():
    lark('start: "ab"', "ab", "a", "abc")
    lark('?start: a | b\na: "x"+\nb: "y"~2..3 -> al\n', "x", "xxx", "y", "yy", "yyy", "yyyy")
    lark('start: WORD ("," WORD)*\nWORD: /[a-z]+/\n%ignore " "', "a,b", " a , b ", "a b", "ab", "a , b ")
    lark('start: WORD NUM\nWORD: LETTER+\nNUM: DIGIT+\n%import common.LETTER\n%import common (DIGIT, WS)\n%ignore WS', "a1", "ab 12", " ab 12", "a b1")
    texts = ["", "1", "12", "-1", "+3", "1.", ".5", "1.5e3", "e5", "1e-2", "a", "Z", "g", "F", "ab", "a_1", "_", "1a", " ", "\t", "\n", "\r", "\r\n", "\n\n", "\f",
             '"a"', '"a\\"b"', '"a', '"a\nb"', "# x", "// x", "//x\n", "/* a * b */", "/* a", "/***/", "-- x", "--", "#"]
    for name in ("DIGIT HEXDIGIT INT SIGNED_INT DECIMAL _EXP FLOAT SIGNED_FLOAT NUMBER SIGNED_NUMBER ESCAPED_STRING LCASE_LETTER UCASE_LETTER LETTER "
                 "WORD CNAME WS_INLINE WS CR LF NEWLINE SH_COMMENT CPP_COMMENT C_COMMENT SQL_COMMENT _STRING_INNER NOTHING").split():
        lark(f"%import common.{name}\nstart: {name}", *texts)
    lark('start: ["a"] "b"i', "b", "aB", "A")
    lark('start: "a".."f"~3', "abc", "abz", "ab")
    lark('start: "a"{2,3} "b"{2} "c"{,2} "d"{1,}', "aabbd", "aaabbccddd", "abbd", "aabbcccd", "aabb")
    lark('start: /a.b/s /x/i /[a-z]{2}/', "a\nbXqq", "axbxq", "aébxqq")
    for source in ('start: a\na.2: "x"', 'start: x{"a"}\nx{t}: t', "%declare X\nstart: X", "%import foo.X\nstart: X", 'begin: "a"', "start: a", 'start: "a"\nstart: "b"',
                   'START: "a"', '_start: "a"', "start: 'a'", 'start: A\nA: b\nb: "x"', "start: <tool>", "start: @x", 'start: A & B\nA: "a"\nB: "b"', '%extend a: "x"\nstart: a\na: "b"',
                   'start: "a"?? ', "start: /a/m", "start: /a/x", "start: /(?=a)a/", 'start: \n  "a"\n  "b"', 'start: "a" |\n "b"', 'start: "a"*~2', 'start: "é"i', 'start: "a"..',
                   'start: (\n "a"\n | "b"\n)', '%grammar_options {"x": true}\nstart: "a"', 'start: "\\x41"', 'start: "a\tb"', 'start: "a" ; ', 'start:: "a"', 'start: %json {"type":"obj"}',
                   'start: "a"~3..2', 'start: "a"{3,2}', 'start: "a"~1..', 'start: "ab".."c"', 'start: "b".."a"', 'start: A\nA: A "x" | "y"', '%ignore start\nstart: "a"', 'start: "a" %ignore " "',
                   '1a: "x"\nstart: "a"', "start: /[/]/", "start: /a", 'start: "a', 'start: ("a"', 'start: "a")', "%import common.WS\n%import common.WS\nstart: WS", '%import common.INT\nINT: "x"\nstart: INT',
                   'start: "a"+*', '!?start: "a"', "", "   ", "start", "x" * 20, 'start: "a"\nunused: nowhere', 'start: %lark { start: "a"', "start: %lark { a: \"b\" }", "start: ]"):
        lark(source)
    lark("%import common.INT -> N\nstart: N", "12", "x")
    lark('start: %json {"type":"integer"} "x"\n%ignore " "', "1x", "1 x", "x")
    lark('start: "a" \n  | "b" // note\n  | "c" # note\n', "a", "b", "c", "d")
    lark('start: ""', "", "a")
    lark("start: ", "", "a")
    lark('start: "a" | ', "a", "")
    lark('start: "(" start ")" | "x"', "((x))", "x", "(x")
    lark('start: start "a" | "b"', "b", "baa", "a")
    lark('start: a "x" | "c"\na: start | "d"', "c", "cx", "dx", "dxx", "d", "x")
    lark('start: start start | "b"', "bb", "b", "")
    lark('start: start? "a"', "a", "aaa", "")
    lark('start: (start "a")* "b"', "b", "bab", "babbab", "ab")
    lark('start: a\na: b "1" | "p"\nb: c "2" | "q"\nc: a "3" | "r"', "p", "q1", "r21", "p321", "r21321", "p1")
    lark('?start: sum\n?sum: product | sum "+" product -> add | sum "-" product -> sub\n?product: atom | product "*" atom\n'
         '?atom: NUMBER | "-" atom | "(" sum ")"\n%import common.NUMBER\n%import common.WS_INLINE\n%ignore WS_INLINE', "1", "1 + 2*(3-4)", "1+", "-1", "2.5*-(1)", "(1")
    lark('!start: "a"', "a")
    lark('start: _a _A\n_a: "x"\n_A: "y"', "xy", "x")
    lark('start: "\\n\\u00e9\\t\\"\\/" ', '\né\t"/', "n")
    lark('start: A\nA: B "x"\nB: /b+/', "bbx", "x")
    lark('start: (A|B)* \nA: "a"\nB: "b"\n%ignore /\\s+/', "a b a", " a", "ab ", "  ", "")
    lark('start: "a" "b"\n%ignore " "\n%ignore "#"', "a b", "a #b", " #a##b# ", "ab##  ")
    lark('%ignore A | B\nA: " "\nB: "#"\nstart: "x" "y"', "x#y", "xy ", "x-y")
    lark('%ignore "a" "b"\nstart: "x" "y"', "xaby", "xay", "xabababy")
    lark('start: a b\na: "x"?\nb: a "y"\n%ignore " "', " y", "x y", "x x y ", "y")
    lark('%grammar_options {"allow_initial_skip": true}\nstart: "a"\n%ignore " "', " a", "a ", "b")
    lark('%grammar_options {"allow_initial_skip": false}\nstart: "a"\n%ignore " "', " a", "a ")
    lark('start: ("a"+)*', "aaa", "", "b")
    lark('start: /a\\/b/ /^c$/', "a/bc")
    lark('start: /a*/ "b"', "aab", "b", "a")
    lark("start: //", "", "a")
    lark('start: "a" -> x | "b" -> y', "a", "b", "ab")
    lark('start: ["a"]~2', "", "aa", "a", "aaa")
    lark('start: "ab"i+', "aBAB", "a")
    lark('start: "a".."é"', "b", "ß", "A")
    lark("start: /a.b/", "a\nb", "axb")
    lark("start: /\\d\\w\\s/", "1a ", "1é ", "1_\t")
    lark('start: %lark { start: b+\n b: "z" } b "x"\nb: "y"', "zzyx", "zzx", "zyyx")
    lark('// c\n# d\nstart: "#" "//" // x', "#//")
    lark('start: rule-a "b"\nrule-a: "x"', "xb")
    lark('start: A\nA: ("x" | /y+/)~2', "xyy", "xx", "x")
    lark('start: a\na: "x" | b\nb: "(" a ")"\r\n', "((x))", "(x")
    case("ebnf", 'root ::= root "a" | "b"', "b", "baa", "a")
    case("ebnf", 'root ::= e\ne ::= e "+" t | t\nt ::= [0-9] | "(" e ")"', "1+2", "(1+2)+3", "1+", "+1")
    case("ebnf", 'root ::= x root | "b"\nx ::= "q"', "b", "qqb", "q")


INTEGER = {"type": "json_schema", "json_schema": {"type": "integer"}}
ANY = {"type": "any_text"}


def const(value):
    return {"type": "const_string", "value": value}


def tagged(begin, content, end):
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def many(kind, **fields):
    tags = [tagged("<f1>", INTEGER, "</f>"), tagged("<f2>", const("x"), "</f>")]
    return {"type": kind, "tags": tags, **fields}


def tag_cases():
    tag(const("ab"), "ab", "a")
    tag(const(""), "", "a")
    tag(const(5))
    tag(INTEGER, "12", "x")
    tag({"type": "json_schema", "json_schema": True}, "1", "x")
    tag({"type": "json_schema", "json_schema": {"type": "string"}, "style": "json", "any_order": False, "max_whitespace_cnt": 1}, '"a"', "a")
    tag({"type": "json_schema", "json_schema": {"type": "string"}, "style": "foo"})
    tag({"type": "json_schema", "json_schema": {"type": "nope"}})
    tag({"type": "json_schema"})
    tag({"type": "what"})
    tag(ANY, "", "abc", "é\n")
    tag({**ANY, "excludes": ["ab", "q"]}, "a", "xaby", "aab", "ba", "q")
    tag({**ANY, "max_chars": 3}, "", "aaa", "ééé", "aaaa")
    tag({**ANY, "max_chars": 3, "excludes": ["ab"]}, "aaa", "aab", "aaaa")
    tag({"type": "regex", "pattern": "[a-z]+"}, "abc", "")
    tag({"type": "regex", "pattern": "("})
    tag({"type": "grammar", "grammar": 'root ::= "a" x\nx ::= "b" | root'}, "ab", "aab", "a")
    tag({"type": "grammar", "grammar": 'start: "a"'})
    tag({"type": "sequence", "elements": [const("a"), ANY, const("z")]}, "az", "abcz", "azz", "ab")
    tag({"type": "sequence", "elements": []})
    tag({"type": "or", "elements": []})
    tag({"type": "or", "elements": [const("a"), INTEGER]}, "a", "7", "b")
    tag(tagged("<a>", INTEGER, "</a>"), "<a>1</a>", "<a>1")
    tag(tagged("<a>", ANY, "</a>"), "<a>x</a>", "<a>x</a></a>", "<a></a", "<a></</a>")
    tag(tagged("<a>", ANY, ["</a>", "</b>"]), "<a>x</b>", "<a>x</a></b>")
    tag(tagged("<a>", ANY, ""))
    tag(tagged("<a>", INTEGER, []))
    tag(tagged("", INTEGER, ""), "1")
    tag(tagged("<a>", INTEGER, ["", ";"]), "<a>1", "<a>1;", "<a>1;;")
    tag(tagged("<a>", {"type": "or", "elements": [ANY, const("x")]}, "</a>"), "<a>q</a>", "<a>x</a>", "<a></a></a>")
    tag(tagged("<a>", {"type": "sequence", "elements": [ANY, const("k")]}, "</a>"), "<a>qk</a>", "<a></a>k</a>", "<a>kk</a>")
    texts = ["", "abc", "<f1>1</f>", "a<f1>1</f>b<f2>x</f>", "a<f3>", "<f1>1</f>b", "a<", "<f1>1</f><f2>x</f>", "a<f1>1</f>", "a<f1>1", "a<<f2>x</f>", "<f1>1</f>,<f2>x</f>", "<f1>1</f>,"]
    for options in ({}, {"at_least_one": True}, {"stop_after_first": True}, {"at_least_one": True, "stop_after_first": True}):
        tag(many("triggered_tags", triggers=["<f"], **options), *texts)
        tag(many("tags_with_separator", separator=",", **options), *texts)
    tag(many("tags_with_separator", separator=""), *texts)
    tag(many("triggered_tags", triggers=["<f1", "<f2"], excludes=["b", "cc"]), *texts)
    tag(many("triggered_tags", triggers=["<f"], excludes=[""]))
    tag(many("triggered_tags", triggers=[""]))
    tag(many("triggered_tags", triggers=[]))
    tag(many("triggered_tags", triggers=["<g"]))
    tag(many("triggered_tags", triggers=["<f", "<f1"]))
    tag({"type": "triggered_tags", "triggers": ["<f"], "tags": []})
    tag({"type": "tags_with_separator", "separator": ",", "tags": []})
    tag({"type": "triggered_tags", "triggers": ["aa"], "tags": [tagged("aa", INTEGER, "x")]}, "aaa1x", "aa1x", "a", "baa1xa")
    tag({"type": "triggered_tags", "triggers": ["<f"], "tags": [tagged("<f>", INTEGER, "x"), tagged("<f>", const("q"), "x")]}, "<f>1x", "<f>qx", "<f>x")
    tag(tagged("<t>", {"type": "triggered_tags", "triggers": ["<f"], "tags": [tagged("<f>", INTEGER, "</f>")]}, "</t>"),
        "<t>a<f>1</f>b</t>", "<t>a</t>", "<t><f>1</f></t>", "<t></t></t>")
    tag({"type": "sequence", "elements": [tagged("<think>", ANY, "</think>"), many("triggered_tags", triggers=["<f"])]}, "<think>x</think>a<f1>1</f>b", "<think>x", "<f1>1</f>")
    for kind in ("optional", "plus", "star"):
        tag({"type": kind, "content": const("a")}, "", "a", "aa")
    tag({"type": "star", "content": ANY}, "ab", "")
    tag({"type": "repeat", "min": 1, "max": 2, "content": const("a")}, "", "a", "aa", "aaa")
    tag({"type": "repeat", "min": 1, "max": -1, "content": const("a")}, "", "aaaa")
    tag({"type": "repeat", "min": 0, "max": 0, "content": const("a")}, "", "a")
    tag({"type": "repeat", "min": 3, "max": 2, "content": const("a")})
    tag({"type": "repeat", "min": -1, "max": 2, "content": const("a")})
    tag({"type": "repeat", "max": 2, "content": const("a")})
    rules = [["<f>", INTEGER], ["<g>", const("x")]]
    tag({"type": "dispatch", "rules": rules}, "", "a<f>12 b<g>xq", "a<f>q", "<f>12")
    tag({"type": "dispatch", "rules": rules, "loop": False}, "", "a<f>12", "a<f>1 ", "a")
    tag({"type": "dispatch", "rules": rules, "excludes": ["</t>"]}, "a</t>", "a", "a<f>1b")
    tag({"type": "dispatch", "rules": []})
    tag(tagged("<t>", {"type": "dispatch", "rules": rules}, "</t>"), "<t>a<f>1</t>", "<t>a</t>", "<t></t>", "<t>a")
    for source in ("{", "[]", "{}", '{"type": "x", "format": {"type": "any_text"}}', '{"type": "structural_tag"}'):
        case("tag", source)
    case("tag", '{"format": {"type": "const_string", "value": "a", "extra": 1}, "more": 2}', "a", "b")


lark_cases()
tag_cases()
print("[\n" + ",\n".join(json.dumps(c) for c in CASES) + "\n]")
