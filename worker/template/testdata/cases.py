"""The templates and variables of vectors.py, all written for this test."""

MESSAGES = [
    {"role": "system", "content": "You are terse."},
    {"role": "user", "content": "  What is 2+2?\nShow \"why\".  "},
    {"role": "assistant", "content": "<think>\nadd\n</think>\n\nFour.", "reasoning_content": None},
    {"role": "user", "content": "Grüße, 世界! 🚂 <b>&'x'</b>"},
]

TOOLS = [{
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather at a place: \"now\" & later.\nLine two <é>",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "City"},
                "days": {"type": "integer", "default": 3, "minimum": 1.0, "maximum": 1e16},
                "unit": {"type": "string", "enum": ["C", "F", None, True]},
                "list": {"type": "array", "items": {"type": "number"}},
            },
            "required": ["place"],
        },
    },
}]

CALLS = [
    {"role": "user", "content": "Weather in Köln?"},
    {"role": "assistant", "content": "", "tool_calls": [
        {"type": "function", "id": "call_1", "function": {"name": "get_weather", "arguments": {"place": "Köln", "days": 2, "f": 0.1}}},
        {"type": "function", "id": "call_2", "function": {"name": "get_weather", "arguments": "{\"place\": \"Bonn\"}"}},
    ]},
    {"role": "tool", "content": "{\"t\": 21}", "tool_call_id": "call_1"},
    {"role": "tool", "content": "{\"t\": 19}", "tool_call_id": "call_2"},
    {"role": "assistant", "content": "21 and 19."},
    {"role": "user", "content": "Thanks"},
]

CHATML = """{%- for message in messages %}{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""

# Written for this test in the manner of templates with tools and thinking.
TOOLFUL = r"""
{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- "# Tools\n\n<tools>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</tools><|im_end|>\n" }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- set ns = namespace(last_user=messages|length - 1, searching=true) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last_user = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_user and (loop.last or (not loop.last and reasoning)) %}
            {{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\n' }}
                {%- endif %}
                {%- if call.function %}
                    {%- set call = call.function %}
                {%- endif %}
                {{- '<tool_call>\n{"name": "' + call.name + '", "arguments": ' }}
                {%- if call.arguments is string %}
                    {{- call.arguments }}
                {%- else %}
                    {{- call.arguments | tojson }}
                {%- endif %}
                {{- '}\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' ~ content ~ '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}
"""

# In the manner of templates that insist on alternation and date the prompt.
STRICT = r"""{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] | trim %}{% else %}{% set loop_messages = messages %}{% set system_message = '' %}{% endif %}
{% if not date_string is defined %}
    {% set date_string = strftime_now("%d %b %Y, %-I:%M %p (%A, %j)") %}
{% endif %}
Today: {{ date_string }}
{% for message in loop_messages %}
    {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{ raise_exception('Roles must alternate: ' ~ message.role ~ ' at ' ~ loop.index) }}
    {% endif %}
    {% if loop.first and system_message %}{% set content = '<<SYS>>\n' + system_message + '\n<</SYS>>\n\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}
    {% if message['role'] == 'user' %}
[INST] {{ content | trim }} [/INST]
    {% elif message['role'] == 'assistant' %} {% generation %} {{ content | trim }} {% endgeneration %}{{ eos_token }}
    {% endif %}
{% endfor %}
tail
"""

MACROS = r"""
{%- macro type_of(spec, depth=0) -%}
  {%- if spec.type == "array" -%}{{ type_of(spec['items'], depth + 1) }}[]
  {%- elif spec.type == "object" -%}{ {%- for k, v in spec.properties|dictsort -%}{{ k }}{{ "" if k in spec.required else "?" }}: {{ type_of(v, depth=depth+1) }}{% if not loop.last %}, {% endif %}{%- endfor -%} }
  {%- elif spec.enum is defined -%}{{ spec.enum | map('string') | join(' | ') }}
  {%- else -%}{{ {"string": "str", "integer": "int", "number": "float"}.get(spec.type, "any") }}{{ "@" ~ depth if depth > 1 }}
  {%- endif -%}
{%- endmacro -%}
{%- for tool in tools %}
{{ tool.function.name }}({{ type_of(tool.function.parameters) }}) -> {{ caller is defined }}
{% endfor -%}
{% macro wrap(tag, n=1) %}<{{ tag }}>{{ caller(n) }}</{{ tag }}>{{ varargs }}{{ kwargs }}{% endmacro %}
{% call(x) wrap("b", 7, 8, 9, z=1) %}inner {{ x * 2 }}{% endcall %}
{% filter upper %}shout {{ messages[0].role }}{% endfilter %}
{% set block %}one
two{% endset %}{{ block | indent(4, first=true) }}
{% set b2 | trim | upper %}  spaced  {% endset %}[{{ b2 }}]
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}
"""

WHITESPACE = [
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n",
    "a\n  {%+ if true %}\n  b\n  {%+ endif +%}\nc\n\n",
    "  {% if true %}x{% endif %}  \n  {# note #}  \ny",
    "a {#- gone -#}  b\n{# keep #}\nc",
    "  {{ 1 }}\n  {{- 2 }}  {{ 3 -}}  \n 4",
    "{% raw %}{{ x }} {% if %}{% endraw %}!\n  {% raw -%}  a  {%- endraw %}  z",
    "a\r\nb\rc\n\n",
    "{% for i in [1,2] -%}\n  {{ i }}\n{%- endfor %}\n",
    "{% for i in [1,2] %}\n  {{ i }}\n{% endfor %}\nend",
    "{%- if true -%}\n\n x \n\n{%- endif -%}\n",
    "x{% set a = 1 %}\n\ny{{ a }}\n\nz",
    "\t {% set a = 1 %} \t\nb",
    "{{ '{{' }}{{ \"%}\" }}{{ '}}' }}",
    "a\n   {%- set x = 1 %}\n   b {{ x }}",
    "q{% if true %}\n{% endif %}\n   {% if true %}w{% endif %}",
    "{# multi\nline #}\n  after\n    {# two #}{# three #}\nend",
    "a{{ 1 }}\nb{{ 2 }}\n\n",
    "{% if true %}   {% if true %}deep{% endif %}{% endif %}",
    "{% if true %}\n   {% if true %}deep{% endif %}{% endif %}",
]

EXPRESSIONS = r"""
1 + 2 * 3 - 4 // 3 ** 2 % 5
7 / 2
-7 // 2
-7 % 3
7.5 // 2
2 ** 10
2 ** -1
1e3
1.5e-7
123456789012345680.0
0.1 + 0.2
1_000 + 1
-2 ** 2
10 - 3 - 2
not 1 == 2
1 < 2 < 3
1 < 3 > 2 != 4
'a' < 'b'
[1, 2] < [1, 3]
1 == 1.0
true == 1
none == false
'x' in 'axb'
3 not in [1, 2]
'k' in {'k': 1}
1 if false
(1 if false) is undefined
1 if true else 2
'' or 'default'
0 and 5
'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1, 'b'] ~ {'c': 2}
"tab\t nl\n q\" u\u00e9 x\x41 keep\d"
'it\'s'
'a' 'b' "c"
[1, 2.0, 'x', none, true, [], {}, (), (1,), (1, 2)]
{'a': 1, 'b': {'c': "it's"}, 3: "q\"q'"}
"\x00\x1b\x7f\u00a0\u200b\\"|list
['a\nb\\', "'"]
messages[0].role
messages[-1]['content'][:6]
messages[0]['nope'] is undefined
messages[0].nope
messages[9] is defined
missing
missing is defined
missing.x
missing['x']
missing + 1
missing | default('d')
'' | default('d', true)
none | default('d')
missing | length
missing | upper
missing | trim
missing ~ 'x'
missing | tojson
[1,2,3,4,5][1:3]
[1,2,3,4,5][::-1]
[1,2,3,4,5][::2]
[1,2,3,4,5][-2:]
[1,2,3,4,5][:-1]
[1,2,3,4,5][4:1:-2]
[1,2,3][10:]
'héllo wörld'[1:5]
'héllo'[::-1]
'héllo'[1]
'héllo'[-1]
'abc'[5] is undefined
(1, 2, 3)[1]
{'a': 1}['a']
{'a': 1}.a
{'items': 1}['items']
{'items': 1}.items is callable
{'a': 1, 'b': 2}.items() | list
{'a': 1, 'b': 2}.keys() | list
{'a': 1, 'b': 2}.values() | list
{'a': 1}.get('b', 'no')
{'a': 1}.get('b')
{'a': 1} | length
{'a': 1, 'b': 2} | items | list
{'b': 1, 'a': 2, 'C': 3} | dictsort
{'b': 1, 'a': 2} | dictsort(by='value', reverse=true)
{'a': 1} == {'a': 1.0}
dict(a=1, b='x')
dict([('k', 'v')], z=1)
range(5) | list
range(2, 10, 3) | list
range(5, 0, -2) | list
range(3) | length
'%s is %d or %05.2f and %r%%' % ('x', 3, 2.5, 'q')
'%(a)s-%(b)s' % {'a': 1, 'b': 'z'}
'%x %X %o %e %g' % (255, 255, 8, 12345.678, 0.0001)
'%5s|%-5s|' % ('a', 'b')
'%s' % none
"%s %s" | format('a', 1)
'{} and {}'.format(1, 'b')
'{0}{1}{0}'.format('a', 'b')
'{x:>5}|{y:<4}|{z:^6}|{n:,}|{f:.2f}|{p:.1%}|{q:03d}'.format(x='a', y='b', z='c', n=1234567, f=3.14159, p=0.256, q=7)
'{{}} {}'.format(1)
'{a.b} {a[b]}'.format(a={'b': 2})
'  x y  '.strip()
'xxaxx'.strip('x')
'xxaxx'.lstrip('x')
'xxaxx'.rstrip('x')
'a,b,,c'.split(',')
'a,b,,c'.split(',', 1)
'a,b,,c'.rsplit(',', 1)
' a  b c '.split()
' a  b c  '.split(none, 1)
' a  b c  '.rsplit(none, 1)
''.split()
''.split(',')
'a\nb\r\nc\x0bd\u2028e'.splitlines()
'a\nb\n'.splitlines(true)
'a-b-c'.partition('-')
'a-b-c'.rpartition('-')
'abc'.partition('x')
'hello'.replace('l', 'L')
'hello'.replace('l', 'L', 1)
'abc'.replace('', '-')
'hello'.find('l')
'hello'.rfind('l')
'hello'.find('z')
'hello'.index('e')
'hello'.index('z')
'hello'.count('l')
'hello'.startswith('he')
'hello'.endswith(('lo', 'x'))
'Hello World'.upper()
'Hello World'.lower()
'hello wORLD'.title()
"they're bill's"|title
"they're bill's".title()
'hello wORLD'.capitalize()
'hello-wORLD (foo) bar'|title
'Hello'.swapcase()
'12'.isdigit()
'1²'.isnumeric()
'ab'.isalpha()
'ab1'.isalnum()
' '.isspace()
'AB'.isupper()
'ab'.islower()
''.isalpha()
'7'.zfill(3)
'-7'.zfill(4)
'a'.ljust(3, '.') ~ 'a'.rjust(3, '.') ~ 'ab'.center(5, '.')
'pre-x'.removeprefix('pre-')
'x.txt'.removesuffix('.txt')
', '.join(['a', 'b'])
', '.join([1, 2])
[3, 1, 2] | sort
['b', 'A', 'c'] | sort
['b', 'A', 'c'] | sort(case_sensitive=true)
[3, 1, 2] | sort(reverse=true)
messages | sort(attribute='content') | map(attribute='role') | list
messages | map(attribute='role') | unique | list
messages | selectattr('role', 'equalto', 'user') | list | length
messages | selectattr('role', '==', 'user') | list | length
messages | rejectattr('role', 'in', ['user', 'system']) | map(attribute='role') | join(',')
messages | selectattr('reasoning_content', 'defined') | list | length
messages | selectattr('reasoning_content') | list | length
messages | map(attribute='nope', default='?') | join
messages | groupby('role') | map(attribute='grouper') | list
[1, 2, 3, 4] | select('odd') | list
[1, 2, 3, 4] | reject('divisibleby', 2) | list
[0, 1, '', 'a'] | select | list
['a', 'b'] | map('upper') | join('-')
['a', 'b'] | map('replace', 'a', 'z') | list
[1, 2, 3] | sum
[{'v': 1}, {'v': 2}] | sum(attribute='v', start=10)
[1, 5, 3] | max
[1, 5, 3] | min
['b', 'A'] | min
[] | max is undefined
[1, 2, 3] | first
[1, 2, 3] | last
[] | first is undefined
'abc' | first
'abc' | last
'abc' | reverse
[1, 2] | reverse | list
'abc' | list
'abc' | length
[1,2,3,4,5] | batch(2) | list
[1,2,3,4,5] | batch(2, 'x') | list
[1,2,3,4,5] | slice(2) | list
[1,2,3,4,5] | slice(3, 'x') | list
[1, 2] | join
[1, 2] | join(', ')
messages | join('|', attribute='role')
'x' | string
1 | string ~ 2
'12' | int
'12.7' | int
'abc' | int
'abc' | int(7)
'0x1F' | int(base=16)
3.9 | int
-3.9 | int
true | int
'1.5' | float
'x' | float
'x' | float(2.5)
-5 | abs
(-5) | abs
-5.5 | abs
2.5 | round
3.5 | round
2.567 | round(2)
2.561 | round(2, 'ceil')
2.569 | round(2, 'floor')
42 | round
1234 | round(-2)
'  a b  ' | trim
'xax' | trim('x')
'hello' | upper | lower | capitalize
'a b c' | wordcount
'<a href="x">&\'</a>' | escape
'a b/c?d=é' | urlencode
'one\ntwo\n\nthree' | indent
'one\ntwo\n\nthree' | indent(2, true)
'one\ntwo\n\nthree' | indent('> ', blank=true)
'one\n' | indent
'foo bar baz qux' | truncate(9)
'foo bar baz qux' | truncate(9, true)
'foo bar baz qux' | truncate(11)
'foo bar baz qux' | truncate(11, false, '…', 0)
'abc' | center(9)
'abc' | replace('b', 'x')
'aaa' | replace('a', 'b', 2)
123 | replace('2', 'x')
{'a': 1} | attr('keys') is callable
[1, 'é', "q\"", none, true, 1.0, 1e20, 1.5e-9, -0.0, "</x>&'"] | tojson
{'b': [1, {'c': []}], 'a': {}} | tojson
{'b': [1, {'c': []}], 'a': {}} | tojson(indent=2)
{'b': 1, 'a': 2} | tojson(sort_keys=true)
{'b': 1, 'a': [1, 2]} | tojson(separators=(',', ':'))
'é🚂\u2028\x7f' | tojson(ensure_ascii=true)
'é🚂\u2028\x7f\x00\x1f\b\f' | tojson
{1: 2, none: 3, true: 4, 1.5: 5} | tojson
(1, 2) | tojson
tools | tojson
tools | tojson(indent=4)
tools[0].function.parameters
tools[0].function.parameters.properties.keys() | list
1 is number and 1.0 is float and 1 is integer and true is boolean
true is integer
true is number
'a' is string
[] is sequence
'a' is sequence
{} is mapping
{} is sequence
[] is mapping
none is none
none is not none
3 is odd and 4 is even
6 is divisibleby 3
6 is divisibleby(4)
3 is eq 3 and 3 is ne 4 and 3 is lt 4 and 3 is ge 3
3 is in [1, 3]
'A' is upper and 'a' is lower
[] is iterable
1 is iterable
range is callable
none is sameas none
1 is sameas true
false is false and true is true
'upper' is filter and 'odd' is test
not missing is defined
1 + 1 is odd
[1, 2] + [3]
(1,) + (2,)
'ab' * 3
3 * 'ab'
[0] * 3
'a' * 0
'a' * -1
'a' + 1
1 + 'a'
[] + 'a'
{} + {}
1 / 0
1 // 0
1 % 0
none.x
none + 'a'
[1].append(2)
{'a': 1}.update({'b': 2})
{'a': 1}.pop('a')
''.__class__
[].__class__.__base__
messages.__len__()
raise_exception('stop: ' ~ messages[0].role)
strftime_now('%Y-%m-%d %H:%M:%S')
strftime_now('%d %B %Y %y %-d %e %I %p %a %b %j %U %W %w %u %%')
namespace(a=1).a
namespace(a=1).b is undefined
undefined_function()
messages()
'x'()
true and none
[1, 2, 3] | nofilter
1 is nosuchtest
[x for x in [1]]
{'a'}
'unclosed
1 +
foo bar
loop
'😀é' | length
"it's " | safe + "<b> it's"
("<" | safe) ~ ">" ~ ("&" | e) ~ '"'
("<" | safe | upper) + "<"
("a'b" | safe)[1:] + "'"
("<" | safe) | replace("<", ">") + "<"
"<" | e | e
"<" | escape | forceescape
"x" + ("'" | safe) + "'"
none | selectattr('a') | list
none | map('upper') | list
missing | select | list
{'a': 1}[missing] is defined
'ß' | upper
'İ' | lower | length
'ǆ' | capitalize
1 in [true]
1.0 in [1]
'a' in []
none in [none]
[] == ()
[1] != [1]
'a' == 1
{} == []
9223372036854775807
1 < 'a'
[1, 'a'] | sort
none < 1
1 == none
-(-3)
+3
not not 1
1 or missing.x
0 or ''
(1, 2)
(1)
()
1, 2
[1, 2,]
{'a': 1,}
messages | length > 2 and messages[1].role == 'user'
messages[1].content | trim | length
messages[0]["role"].upper() ~ messages|length
messages|map(attribute='content')|map('length')|list
tools|map(attribute='function.name')|list
tools|map(attribute='function.parameters.required.0')|list
messages | tojson | length
messages[0] == messages[0] | tojson
messages[3].content | tojson
messages[3].content | upper
(messages | last).content[-3:]
"a" if messages else "b"
'ΑΣ ΣΑΣ' | lower
'ﬁx' | upper ~ 'ǆ'.upper()
cycler('a', 'b').next()
joiner(',') is callable
"%s" % ("a",)
"%d" % 3.7
"%d" % "x"
"%s %s" % ("a",)
"%s" % ("a", "b")
""".strip("\n").split("\n")

STATEMENTS = [
    "{% for x in [1,2,3] %}{{ loop.index }}/{{ loop.length }}{{ loop.first }}{{ loop.last }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a','b') }} {% endfor %}",
    "{% for x in [] %}x{% else %}empty{% endfor %}",
    "{% for x in [1,2,3,4] if x is even %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% else %}none{% endfor %}",
    "{% for x in [1,3] if x is even %}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in {'a': 1, 'b': 2} | items %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in {'a': 1, 'b': 2} %}{{ k }}{% endfor %}",
    "{% for c in 'héy' %}[{{ c }}]{% endfor %}",
    "{% for a, b in [[1, 2], [3, 4]] %}{{ a + b }} {% endfor %}",
    "{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}",
    "{% for x in missing %}x{% else %}e{% endfor %}",
    "{% for x in none %}x{% endfor %}",
    "{% for x in 3 %}x{% endfor %}",
    "{% for x in [1,2,3,4] %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in [1,2] %}{% for y in [1,2,3] %}{% if y == 2 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}",
    "{% set x = 1 %}{% for i in [1,2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}",
    "{% set ns = namespace(x=1) %}{% for i in [1,2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a + ns.b }}{% set ns.c = [] %}{{ ns.c }}",
    "{% set d = {} %}{% set d.x = 1 %}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set a, b = [1, 2, 3] %}",
    "{% set a = 1, 2 %}{{ a }}",
    "{% if 1 %}{% set y = 5 %}{% endif %}{{ y }}",
    "{% for i in [1] %}{% set z = 5 %}{% endfor %}{{ z is defined }}",
    "{% if 0 %}a{% elif 1 %}b{% else %}c{% endif %}",
    "{% if 0 %}a{% elif '' %}b{% else %}c{% endif %}",
    "{% for node in [{'n': 1, 'c': [{'n': 2, 'c': []}, {'n': 3, 'c': [{'n': 4}]}]}] recursive %}{{ node.n }}@{{ loop.depth }}{% if node.c %}({{ loop(node.c) }}){% endif %}{% endfor %}",
    "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=3) }} {{ m(b=5, a=4) }} {{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}",
    "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}",
    "{% set x = 'outer' %}{% macro m() %}{{ x }}{% set x = 'inner' %}{{ x }}{% endmacro %}{{ m() }}{{ x }}",
    "{% macro m() %}{{ later }}{% endmacro %}{% set later = 'now' %}{{ m() }}",
    "{% macro m() %}{{ varargs|length }}{{ kwargs }}{% endmacro %}{{ m(1, 2, k=3) }}",
    "{% macro m(x) %}  {{ x }}  {% endmacro %}[{{ m(1) | trim }}]{{ m(2)|length }}{{ m.name }}",
    "{% macro list_of(items) %}{% for i in items %}<{{ caller(i) }}>{% endfor %}{% endmacro %}{% call(i) list_of([1,2]) %}{{ i }}!{% endcall %}",
    "{% macro m(*args) %}{% endmacro %}",
    "{% macro m(a=1, b) %}{% endmacro %}",
    "{% set f %}a{{ 1 }}b{% endset %}{{ f }}{{ f|length }}",
    "{% filter replace('a', 'b') | upper %}banana{% endfilter %}",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}",
    "{% with a=1, b=a %}{{ b }}{% endwith %}",
    "{% generation %}gen {{ 1 }}{% set g = 1 %}{% endgeneration %}{{ g is defined }}",
    "{% for x in [3,3,4] %}{{ loop.changed(x) }}{% endfor %}",
    "{% set j = joiner('; ') %}{% for x in [1,2] %}{{ j() }}{{ x }}{% endfor %}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}",
    "{% include 'x' %}",
    "{% if 0 %}{{ 1 | nofilter }}{{ 1 is notest }}{% endif %}ok",
    "{% if 1 %}{{ 1 | nofilter }}{% endif %}ok",
    "{% for x in [] %}{{ 1 | nofilter }}{% endfor %}ok",
    "{% unknown %}",
    "{% if 1 %}",
    "{% endif %}",
    "{% for x in [1] %}",
    "{{ 1 ",
    "{# open",
    "{% break %}",
    "{{ (1 }}",
    "{{ [1)] }}",
    "{% set %}",
    "{% for in x %}{% endfor %}",
    "{% raw %}never",
    "{{ messages | selectattr('role') }}"[:0] + "{% if messages | selectattr('role', 'equalto', 'nobody') %}generators are true{% endif %}",
    "{% for g in messages | groupby('role') %}{{ g.grouper }}:{{ g.list | length }} {% endfor %}{% for role, ms in messages | groupby('role') %}{{ role }}{{ ms | length }}{% endfor %}",
    "{% set m = messages | list %}{% set m = m + [{'role': 'x'}] %}{{ m | length }}{{ messages | length }}",
    "{% for message in messages %}{{ message.content if message.content is string else message.content[0].text }}{{ '\\n' if not loop.last }}{% endfor %}",
    "{% for i in range(3) %}{{ i }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{{ messages[0].content.split(' ')[0] | lower }}{{ ' ' }}{{ (messages[0].content.split(' ') | last).rstrip('.') }}",
    "{% set x = messages|map(attribute='role')|list %}{{ x.index('assistant') }}{{ x.count('user') }}",
    "{%- set tool_text = namespace(t='') %}{%- for t in tools %}{%- set tool_text.t = tool_text.t ~ '<|tool|>' ~ (t.function | tojson) %}{%- endfor %}{{- tool_text.t }}",
    "{{ {'a': 1, **{'b': 2}} }}",
    "{{ dict(**{'b': 2}) }}{{ range(*[1, 3]) | list }}",
    "{% set a = [] %}{% if not a %}falsy{% endif %}{% if a is not defined or a | length == 0 %}!{% endif %}",
    "{{ 'x' if false }}|{{ ('x' if false) | default('y') }}",
    "{% for m in messages if m.role != 'system' %}{{ loop.index }}{{ m.role }} {% endfor %}",
    "{% for x in [1,2,3] %}{% if loop.first %}F{% elif loop.last %}L{% else %}M{% endif %}{% endfor %}",
    "{% macro outer() %}{% macro inner() %}in{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}",
    "{% for a in [1,2] %}{% macro m() %}{{ a }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% set content %}{% for p in ['a', 'b'] %}{{ p }}{% endfor %}{% endset %}{{ content }}",
]


def all_cases():
    base = {"messages": MESSAGES, "tools": TOOLS, "bos_token": "<s>", "eos_token": "</s>"}
    for add in (True, False):
        yield CHATML, {"messages": MESSAGES, "add_generation_prompt": add}
    for variables in (
            {"messages": MESSAGES, "add_generation_prompt": True},
            {"messages": MESSAGES[1:], "add_generation_prompt": True, "enable_thinking": False},
            {"messages": CALLS, "tools": TOOLS, "add_generation_prompt": True},
            {"messages": CALLS[:4], "tools": TOOLS, "add_generation_prompt": False},
            {"messages": MESSAGES[:3], "tools": None}):
        yield TOOLFUL, variables
    yield STRICT, base
    yield STRICT, {**base, "messages": MESSAGES[1:], "date_string": "today"}
    yield STRICT, {**base, "messages": MESSAGES[2:]}
    yield MACROS, base
    for t in WHITESPACE:
        yield t, {}
    for e in EXPRESSIONS:
        yield "{{ " + e + " }}", base
    for s in STATEMENTS:
        yield s, base
