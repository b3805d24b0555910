"""Small templates, one construct each, and the variables that they read."""

VARIABLES = {
    "s": "Hello World", "t": "  a b\tc \n", "u": "Zürich ß ǆ 日本 😀", "e": "", "q": "it's \"x\" \\ <&>",
    "lines": "one\ntwo\r\n\nthree\x0bfour\n",
    "i": 7, "z": 0, "neg": -3, "f": 2.5, "big": 1e22, "tiny": 1.5e-7, "yes": True, "no": False,
    "nil": None,
    "xs": [3, 1, 2], "ys": ["b", "A", "c", "B"], "mixed": [1, "a", None, 2.0, True, [1], {"k": "v"}],
    "empty": [], "d": {"b": 1, "A": 2, "c": {"x": "y"}, "items": "shadowed"}, "nothing": {},
    "ms": [{"role": "user", "n": 2, "c": {"x": 1}}, {"role": "assistant", "n": 1},
           {"role": "user", "n": 3, "c": {"x": 0}}],
}

EXPRESSIONS = r"""
s[0] | s[-1] | s[99] | s[1:4] | s[::-1] | s[-3:] | s[:-1] | s[5:1:-2] | u[1] | u[::-1] | u[2:7] | u[-1]
xs[0] | xs[-1] | xs[5] | xs[1:] | xs[::2] | xs[::-1] | xs[-99:99] | xs['x'] | (1, 2, 3)[1:] | nil[1:]
d.b | d['b'] | d.items | d['items'] | d.zz | d['zz'] | d.c.x | d.zz.y | d['c']['x'] | d.pop | d.update('x')
nil.x | nil['x'] | i.x | missing.x | missing['x'] | missing | ms[0].role | ms.0.role | xs.append(4)
1 + 2 | 1 - 2 * 3 | 7 // 2 | -7 // 2 | 7 % 3 | -7 % 3 | 7 % -3 | 2 ** 10 | 2 ** -1 | 7 / 2 | 6 / 2 | 1 / 0
7.5 // 2 | -7.5 % 2 | -1.25 // -2 | 1.25 // -2 | 1e3 | 1.0 | 1e100 | 0x1F | 0b101 | 0o17 | 1_000 | -2 ** 2 | 2 ** 3 ** 2 | 1.5e-5
'a' + 'b' | 'a' ~ 1 ~ none ~ true | 'a' + 1 | 'ab' * 3 | 3 * 'ab' | [1] + [2] | [0] * 3 | (1,) + (2,) | [1] + (2,)
s + missing | s ~ missing | missing + 1 | 1 + 2 ~ 3 | 'a' 'b' | 1 + true | -true | +f | -s
1 < 2 | 1 < 2 < 3 | 1 < 3 < 2 | 1 == 1.0 | true == 1 | 'a' < 'b' | 'a' < 1 | [1, 2] < [1, 3] | none < 1 | 1 != 2
'ell' in s | 'x' not in s | 1 in xs | 'b' in d | none in mixed | 1 in s | missing in s | missing in xs | s in missing
true and 0 | 0 or 'x' | not 0 | not not 's' | 1 and 2 or 3 | none or missing | not missing | not 1 == 2
'a' if yes else 'b' | 'a' if no | ('a' if no) is defined | 1 if 0 else 2 if 0 else 3 | (1 if yes) + 1
[] | [1, [2, 'a'], none] | {} | {'a': 1, 'b': [1]} | {1: 2} | {'a': 1, 'a': 2} | {[1]: 2} | (1,) | (1, 2) | ()
u | q | mixed | d | ms | f | big | tiny | 100000.0 | 1e16 | 123456789.123 | [q] | [u] | [lines] | {'k': q}
s.upper() | s.lower() | s.title() | s.capitalize() | s.swapcase() | u.upper() | u.lower() | u.title() | u.capitalize()
t.strip() | t.lstrip() | t.rstrip() | s.strip('Hd') | s.lstrip('Hel') | s.rstrip('dl') | s.strip(none) | u.strip('Z😀 ')
s.split() | t.split() | s.split('o') | s.split('o', 1) | s.rsplit('o', 1) | s.rsplit(none, 1) | s.split(none, 1) | s.split('') | e.split() | e.split('x') | t.rsplit()
s.split('l')[-1] | s.split('zz')[0] | 'a,b,,c'.split(',') | 'aaa'.split('aa') | 'aaa'.rsplit('aa', 1) | ' a b c '.split(' ', 2) | ' a  b  c '.split(none, 1) | ' a  b  c '.rsplit(none, 1)
lines.splitlines() | lines.splitlines(true) | e.splitlines() | '\n'.splitlines() | 'a\u2028b\x1cc'.splitlines()
s.startswith('He') | s.startswith(('x', 'H')) | s.endswith('ld') | s.endswith(('a', 'd')) | s.startswith('W', 6) | s.startswith(1) | s.startswith('')
s.replace('l', 'L') | s.replace('l', 'L', 1) | s.replace('', '-') | s.replace('o', '') | u.replace('', '.') | s.replace('l') | s.replace(1, 2)
s.find('o') | s.rfind('o') | s.find('zz') | s.find('o', 5) | s.find('o', 5, 6) | s.find('') | s.index('W') | s.index('zz') | s.count('l') | s.count('') | u.find('本') | s.rfind('') | s.find('', 99) | s.rindex('o')
','.join(ys) | ','.join([]) | ','.join([1]) | ''.join('abc') | s.join(['1', '2']) | '-'.join(d)
s.removeprefix('Hello') | s.removesuffix('World') | s.removeprefix('x') | s.partition(' ') | s.rpartition('o') | s.partition('zz') | s.rpartition('zz')
'12'.isdigit() | 'a1'.isalnum() | 'ab'.isalpha() | ' '.isspace() | 'A'.isupper() | 'a b'.islower() | e.isdigit() | '²'.isdigit() | '²'.isdecimal() | 'é'.isalpha() | '½'.isnumeric() | u.isupper()
(s | escape)[0] | (s | escape) ~ 1 | '7'.zfill(3) | '-7'.zfill(4) | 'ab'.center(5) | 'ab'.center(6) | 'ab'.center(7, '*') | 'abc'.center(6) | 'ab'.ljust(4) ~ '|' | 'ab'.rjust(4) | 'ab'.rjust(4, '日')
'{} and {}'.format(1, 'x') | '{1}{0}'.format('a', 'b') | '{x}'.format(x=3) | '{{}}'.format() | '{}'.format() | '{!r}'.format('a') | '%s-%d' % ('a', 3) | '%s' % 'x' | '%05.1f|%-4s|%4s' % (2.25, 'a', 'b') | '%(k)s' % {'k': 1} | '%s' % missing | 'x' % missing | 'x' % [1] | 'x' % 1 | '%d' % 'x' | '%s %s' % ('a',) | '%%' % () | '%x %X %o' % (255, 255, 8) | '%+d % d' % (1, 2) | '%r' % ['a'] | '%.2s' % 'abc' | '%s' % [1]
d.keys() | d.values() | d.get('b') | d.get('zz') | d.get('zz', 5) | d.keys() | list | d.get('a', default=1) | nothing.items() | d.values() | list | (nothing.items() | list) | d.copy() | xs.index(2) | xs.count(1) | xs.index(9)
s.nosuch | s.nosuch() | nosuch() | nosuch(1) | s() | s.upper | raise_exception('no') | range(3) | range(2, 8, 3) | list(1) | range(5) | range(0) | range(3, 0, -1) | range(1, 2, 0) | range(1000000) | dict(a=1) | dict({'a': 1}, b=2) | dict([['a', 1]]) | dict(1)
strftime_now('%Y-%m-%d') | strftime_now('%d %b %Y, %A %H:%M:%S %j') | strftime_now('100%%') | strftime_now('%-d. %B')
""".replace("(nothing.items() | list)", "nothing.items()")

FILTERS = r"""
s|upper || s|lower || s|title || s|capitalize || 'a-b (c) [d] <e> x.y'|title || u|title || u|upper || 7|upper || 'ÀÉ'|lower
t|trim || s|trim('Hd') || nil|trim || 7|trim || missing|trim || t|trim|length || u|trim('Z')
s|length || u|length || xs|length || d|length || 7|length || missing|length || nil|length || range(4)|length || xs|map('string')|length || s|count
xs|first || xs|last || s|first || empty|first || empty|last || d|first || ms|map(attribute='n')|first || ms|map(attribute='n')|last || missing|first || missing|last || u|last
xs|join || xs|join(', ') || ms|join(',', attribute='role') || ms|join(',', 'n') || s|join('-') || d|join || mixed|join('|') || missing|join || nil|join || xs|join(1)
s|replace('l', 'L') || s|replace('l', 'L', 1) || 123|replace(2, 9) || missing|replace('a', 'b') || s|replace('', '-') || xs|replace(',', ';')
missing|default('x') || e|default('x') || e|default('x', true) || nil|default('x') || nil|d('x', boolean=true) || d.zz|default([]) || missing|default || 0|default(1, true) || missing.x|default('x')
xs|list || s|list || d|list || 7|list || missing|list || d|items|list || missing|items|list || xs|items || d.items()|list || nil|items || (1, 2)|list || u|list
xs|map('string')|list || ys|map('upper')|join || ms|map(attribute='role')|list || ms|map(attribute='c.x')|list || ms|map(attribute='zz', default=0)|list || ms|map(attribute='c.x', default='-')|join || ys|map('replace', 'b', 'B')|join || xs|map('nosuch')|list || empty|map('upper')|list || xs|map|list || xs|map('default')|list || [[1, 2], [3]]|map('first')|list || [xs]|map('join', '-')|list || [[1, 2], [3]]|map(attribute=0)|list
xs|select|list || xs|select('odd')|list || xs|select('>', 1)|list || mixed|select('string')|list || mixed|reject('none')|list || [0, 1]|reject|list || xs|select('in', [1, 2])|list || xs|select('nosuch')|list || xs|select('divisibleby', 3)|list
ms|selectattr('role', 'equalto', 'user')|list || ms|selectattr('c')|list || ms|rejectattr('c')|list || ms|selectattr('n', 'gt', 1)|map(attribute='n')|list || ms|selectattr('role', '==', 'user')|list|length || ms|rejectattr('role', 'in', ['user'])|list || ms|selectattr('c.x', 'defined')|list || ms|selectattr|list || ms|selectattr('c.x')|list
s|tojson || u|tojson || q|tojson || d|tojson || d|tojson(indent=2) || mixed|tojson || mixed|tojson(indent=4) || f|tojson || big|tojson || nil|tojson || missing|tojson || empty|tojson(indent=2) || nothing|tojson(indent=2) || [[]]|tojson(indent=1) || lines|tojson || (1, 2)|tojson || range(2)|tojson || d|tojson(sort_keys=true) || d|tojson(separators=(',', ':')) || u|tojson(ensure_ascii=true) || {1: 2, none: 3, true: 4}|tojson || d|tojson(indent='--') || '\x7f\x01'|tojson || xs|tojson(indent=0) || d|tojson(nosuch=1) || {(1,): 2}|tojson || d.items()|tojson || d|items|tojson
'12'|int || '12.7'|int || 'x'|int || 'x'|int(5) || 2.9|int || -2.9|int || true|int || nil|int || '0x1f'|int(0, 16) || '1f'|int(base=16) || ' 7 '|int || '1_000'|int || missing|int || xs|int || '-3'|int || ''|int || '101'|int(base=2) || '1e3'|int || '+5'|int || '--5'|int
'1.5'|float || 'x'|float || '1e3'|float || 7|float || nil|float || 'inf'|float || 'x'|float(1.5) || ' -2.5 '|float || 'nan'|float || missing|float || '1_0.5'|float || '.5'|float || '5.'|float
7|string || nil|string || xs|string || missing|string || f|string || s|string|length || true|string
s|safe || s|escape|list || s|escape|first || ('<a>'|safe) + '<b>' || '<b>' + ('<a>'|safe) || ('<a>'|safe) ~ '<b>' || '<a>'|escape || '<a>'|e|e || '<a>'|e|forceescape || ('<a>'|safe).replace('a', '<') || ('<a>'|safe).upper() || ('<a>'|safe)|tojson || [('x'|safe)] || ('<a>'|safe)[0] ~ '>' || ('a b'|safe).split() || ('<'|safe).join(['<', '>']) || ('<a>'|safe) is string || ('<a>'|safe) == '<a>' || ('<a>'|safe)|length || 7|safe || ('<'|safe)|replace('<', '>') + '&' || ('<'|safe)|trim + '&' || ('&'|safe) * 2 || ('&'|safe) is escaped
'a\nb\n\nc'|indent || 'a\nb\n\nc'|indent(2, true) || 'a\nb\n\nc'|indent(2, blank=true) || lines|indent('> ') || 'a\n'|indent || 7|indent || missing|indent || 'a\nb'|indent(0) || e|indent(2, true) || 'a\nb'|indent(first=true)
xs|sort || ys|sort || ys|sort(case_sensitive=true) || ys|sort(reverse=true) || ms|sort(attribute='n')|map(attribute='n')|list || mixed|sort || d|sort || ms|sort(attribute='role,n')|map(attribute='n')|list || s|sort || [2.5, 1, true]|sort || [[2], [1]]|sort || ms|sort(true, attribute='role')|map(attribute='n')|list
ys|unique|list || [1, 1.0, true, 2]|unique|list || ['b', 'B']|unique(case_sensitive=true)|list || ms|unique(attribute='role')|map(attribute='n')|list || [[1]]|unique|list || s|unique|join || [(1, 2), (1, 2)]|unique|list
xs|reverse|list || s|reverse || d|reverse|list || u|reverse || 7|reverse || range(3)|reverse|list || xs|map('string')|reverse|list || xs|reverse || (xs|reverse)|length
xs|sum || ms|sum(attribute='n') || xs|sum(start=10) || ys|sum || [1.5, 2]|sum || empty|sum || [[1], [2]]|sum(start=[])
xs|min || xs|max || ys|min || ys|max || ms|min(attribute='n') || empty|min || mixed|max || ys|max(case_sensitive=true) || ms|max(attribute='n')
2.5|round || 3.5|round || 2.567|round(2) || 2.1|round(method='ceil') || 2.9|round(0, 'floor') || 7|round || 2.675|round(2) || -2.5|round || s|round || 2.5|round(1, 'x') || 1e300|round(2) || 42.55|round(1, 'floor')
-3|abs || neg|abs || f|abs || s|abs || (-2.5)|abs || -i|abs || true|abs
xs|batch(2)|list || xs|batch(2, 'x')|list || xs|slice(2)|list || xs|slice(2, 0)|list || range(7)|slice(3)|map('list')|list || empty|batch(2)|list || xs|batch(5, 0)|list
d|dictsort || d|dictsort(true) || {'a': 2, 'b': 1}|dictsort(by='value') || {'a': 2, 'b': 1}|dictsort(reverse=true) || xs|dictsort || {1: 2, 'a': 1}|dictsort || d|dictsort(by='x')
ms|groupby('role')|list || ms|groupby('role')|map(attribute='grouper')|list || ms|groupby('role')|map('first')|list || ms|groupby('zz', default='-')|list|length || (ms|groupby('role')|first).list|length || ['a', 'A']|groupby(0)|map('first')|list
s|center(20) || s|wordcount || 'a_b-c d'|wordcount || '%s-%s'|format(1, 'x') || '%(a)s'|format(a=1) || s|attr('upper') is callable || d|attr('b') || d|attr('get')('b') || s|nosuch || (s|nosuch) if no else 'never' || xs|first|string|upper ~ 'x' || -3|string || 'a' ~ 'b'|upper || 'a' + 'b'|upper || not 'x'|length == 2
"""

TESTS = r"""
defined undefined none boolean true false integer float number string mapping sequence iterable callable
""".split()

TESTED = ["s", "e", "i", "z", "f", "yes", "no", "nil", "xs", "d", "missing", "d.zz", "(1, 2)", "range(3)", "d.items()",
          "xs|map('string')", "raise_exception", "namespace()", "s.upper", "'1'|int"]

OTHER = r"""
i is odd | i is even | 7 is divisibleby 7 | 7 is divisibleby(2) | f is odd | s is odd | missing is odd | yes is odd | -3 is odd
1 is eq 1 | 1 is equalto(1.0) | 'a' is ne 'b' | 3 is gt 2 | 3 is greaterthan 3 | 3 is ge 3 | 2 is lt 3 | 2 is le 1 | 2 is lessthan 3 | 'a' is lt 1
1 is in [1, 2] | 'l' is in s | 3 is not in xs | 'b' is in d | 1 is sameas 1 | none is sameas none | true is sameas 1 | 's' is lower | 'S' is upper | 7 is lower | s is not none | not s is none | s is string and s is not mapping
s is nosuch | (s is nosuch) if no else 'x' | 'upper' is filter | 'nosuch' is filter | 'odd' is test | s is defined and s is none | s is defined or missing.x | missing is defined and missing.x | d.b is defined | d is mapping and d.c is mapping
""" 

STATEMENTS = [
    "{% set s %}<{{ s }}>{% endset %}{{ s }}",
    "{{ s }}{% set s %}<{{ s }}>{% endset %}{{ s }}",
    "{% for x in xs %}{{ i }}{% endfor %}{% set i = 1 %}{{ i }}",
    "{% macro m() %}{{ s }}{% endmacro %}{{ m() }}{% set s = 1 %}{{ m() }}",
    "{% if yes %}{% for x in xs %}{{ s }}{% endfor %}{% set s = 1 %}{% endif %}{{ s }}",
    "{% macro m(a, b=a, c=d) %}{{ a }}{{ b }}{{ c }}{% set d = 1 %}{% endmacro %}{{ m(1) }}{% set d = 2 %}{{ m(3) }}",
    "{% if s %}a{% elif z %}b{% else %}c{% endif %}",
    "{% if z %}a{% elif i %}b{% else %}c{% endif %}",
    "{% if z %}a{% elif e %}b{% else %}c{% endif %}",
    "{% for x in xs %}{{ x }}{% endfor %}",
    "{% for x in empty %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in xs %}{% continue %}{% else %}all skipped{% endfor %}",
    "{% for x in xs %}{% break %}{% else %}broken at once{% endfor %}",
    "{% for x in xs %}{{ x }}{% if loop.index == 2 %}{% break %}{% endif %}{% else %}no{% endfor %}",
    "{% for x in xs if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {{ loop.last }};{% endfor %}",
    "{% for x in xs if x > 9 %}{{ x }}{% else %}none{% endfor %}",
    "{% set ns = namespace(f=0) %}{% for x in xs if not ns.f %}{{ x }}{% set ns.f = 1 %}{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d|items %}{{ k }}={{ v }}{{ loop.length }};{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}{% for c in s %}{{ c }}.{% endfor %}{% for c in u %}{{ c }}.{% endfor %}",
    "{% for a, b in [[1, 2], (3, 4)] %}{{ a }}{{ b }}{% endfor %}",
    "{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}",
    "{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for x in missing %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in nil %}{{ x }}{% endfor %}", "{% for x in 7 %}{{ x }}{% endfor %}",
    "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}",
    "{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}",
    "{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{{ loop.previtem is defined }}{% endfor %}",
    "{% for x in xs %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{% endfor %}",
    "{% for x in xs %}{{ loop.nosuch }}{{ loop['index'] }}{{ loop.cycle() }}{% endfor %}",
    "{% for x in xs %}{% for y in xs %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}{{ loop }}",
    "{% for x in xs %}{% set outer = loop %}{% for y in xs %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for x in [[1, [2]], [3]] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}@{{ loop.depth }}{% endif %}{% endfor %}",
    "{% for x in xs %}{{ loop(xs) }}{% endfor %}",
    "{% set x = 1 %}{% for y in xs %}{{ x }}{% set x = x + y %}{{ x }};{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% if yes %}{% set new = 2 %}{% endif %}{{ new }}{% if no %}{% set s = 1 %}{% endif %}{{ s }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}", "{% set a, b = 1 %}", "{% set a, b = xs %}",
    "{% set ns = namespace(a=1, b='x') %}{% for x in xs %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.zz }}{{ ns['a'] }}",
    "{% set ns = namespace() %}{% set ns.list = [] %}{% for x in xs %}{% set ns.list = ns.list + [x] %}{% endfor %}{{ ns.list }}",
    "{% set d.b = 1 %}", "{% set nosuch.b = 1 %}", "{% set ns = namespace({'a': 1}) %}{{ ns.a }}", "{% set true = 1 %}",
    "{% set x %}a{{ s }}{% set inner = 1 %}{% endset %}{{ x }}{{ inner }}", "{% set x | upper | replace('A', '-') %}aba{% endset %}{{ x }}",
    "{% set ns = namespace() %}{% set ns.x %}text{% endset %}{{ ns.x }}",
    "{% for x in xs %}{% set y %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endset %}[{{ y }}]{% endfor %}",
    "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}", "{% with a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{% endwith %}",
    "{% filter upper %}a{{ s }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}aXa{% endfilter %}", "{% filter nosuch %}a{% endfilter %}",
    "{% macro m(a, b=2, c='x') %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(c=9, a=8) }}{{ m() }}{{ m(1, 2, 3) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(a=2) }}{{ m.name }}{{ m is callable }}", "{% macro m(a, b=1, c) %}{% endmacro %}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(5) }}{{ m(5, 6) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}{{ m() }}",
    "{% macro m(a) %}{{ a }}{{ varargs|length }}{% endmacro %}{{ m(1, *[2, 3]) }}{{ m(*[1]) }}{{ m(**{'a': 4}) }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}",
    "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}b{{ later }}{% endmacro %}{% set later = 'L' %}{{ a() }}",
    "{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 5 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}{% set x = 2 %}{{ m() }}",
    "{% for x in xs %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}{{ m is defined }}",
    "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}in{{ s }}{% endcall %}",
    "{% macro m() %}<{{ caller(1, 2) }}>{% endmacro %}{% call(a, b=5) m() %}{{ a }}{{ b }}{% endcall %}",
    "{% macro m() %}{% if caller %}yes{{ caller() }}{% else %}no{% endif %}{% endmacro %}{{ m() }}{% call m() %}x{% endcall %}",
    "{% macro m() %}x{% endmacro %}{% call m() %}in{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% set v = 1 %}{% call m() %}{{ v }}{% set v = 2 %}{{ v }}{% endcall %}{{ v }}",
    "{% call s() %}{% endcall %}", "{% call s %}{% endcall %}",
    "{% generation %}{% set g = 1 %}{{ g }}{% endgeneration %}{{ g }}", "{% for x in xs %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}",
    "{% raw %}{{ x }}{% if %}{# #}{% endraw %}", "{% raw %}{% endraw %}", "a{# c #}b", "{# {{ x }} {% if %} #}x", "{#- a -#}", "{##}",
    "{% print 1, 'a' %}", "{% print s %}", "{% break %}", "{% continue %}", "{% nosuch %}", "{% endif %}", "{% if x %}", "{% for x in xs %}{% endif %}",
    "{{", "{{ }}", "{{ 1 +", "{{ 'a }}", "{% if %}{% endif %}", "{# open", "{% raw %}open", "{{ 1 ! 2 }}", "{{ (1 }}", "{{ 1) }}", "{{ [1, 2 }}",
    "{{ {'a': 1 }}", "{{ {'a': {'b': 1}}.a.b }}", "{{ {'a': 1}['a'] }}", "{{ a. }}", "{{ a.'x' }}", "{{ 1 2 }}", "{{ x | }}", "{{ x is }}", "{{ f(a=1, 2) }}", "{{ f(a=1, a=2) }}",
    "{{ x[1, 2] }}", "{{ xs[::0] }}", "{{ xs['a':] }}", "{{ 1 is defined is none }}", "{% for x in xs recursive if x %}{% endfor %}",
    "{% for x in xs: %}{{ x }}{% endfor %}", "{% if s: %}x{% endif %}", "{% set x = %}", "{% for in xs %}{% endfor %}", "{% for x xs %}{% endfor %}", "{% macro %}{% endmacro %}",
    "{{ xs[-1] if xs else 'x' }}{{ '%s' if 1 }}", "{{- s -}}", "{{+ i +}}", "{{ -1 }}{{- 1 }}{{ - 1 }}", "{% set x = 'a' if no %}{{ x }}", "{% set x = (xs|length > 2) and 'long' %}{{ x }}",
    "{% set g = xs|map('string') %}{{ g|list }}{{ g|list }}", "{% set g = xs|select('odd') %}{{ g|first }}{{ g|list }}", "{% set g = d.items() %}{{ g|list }}{{ g|list }}",
    "{{ 'a\\nb\\t\\x41\\u00e9\\'\\\"\\\\\\q\\101' }}", "{{ '\\ud800' }}", "{{ '\\x4' }}", "{{ \"a'b\" ~ 'c\"d' }}", "{{ 'multi\nline' }}",
    "{{ bos_token }}{{ eos_token }}{{ bos_token + s }}", "{{ namespace(a=1).a }}{{ namespace }}"[:23], "{{ 9223372036854775807 }}", "{{ loop }}{{ self is defined }}"[:10],
    "{% include 'x' %}", "{% set x = 1 -%}  y", "{% if 1 in xs and not 9 in xs %}ok{% endif %}", "{{ ms | map(attribute='role') | unique | join(',') }}",
    "{{ {'a': xs, **{}} }}", "{{ dict(**d) }}", "{{ xs if xs is iterable and xs is not string and xs is not mapping else [xs] }}",
    "{%- for m in ms -%}{{ m.role }}{%- if not loop.last %}, {% endif -%}{%- endfor -%}",
    "{% set s = s | trim %}{{ s }}", "{% for s in xs %}{{ s }}{% endfor %}{{ s }}", "{{ ms[1:] | map(attribute='n') | list + [9] }}", "{{ xs == [3, 1, 2] }}{{ d == {'b': 1} }}{{ (1, 2) == [1, 2] }}",
]

CONSTRUCTS = (
    ["{{ " + e.strip() + " }}" for line in EXPRESSIONS.strip().splitlines() for e in line.split(" | ")]
    + ["{{ " + e.strip() + " }}" for line in FILTERS.strip().splitlines() for e in line.split(" || ")]
    + ["{{ " + e.strip() + " }}" for line in OTHER.strip().splitlines() for e in line.split(" | ")]
    + ["{{ " + value + " is " + test + " }}{{ " + value + " is not " + test + " }}"
       for value in TESTED for test in TESTS]
    + STATEMENTS)

_INNER = ["", "a", " a ", "\na\n", "  \n  a  \n  ", "\n\n"]
_TAGS = [("{% if s %}", "{% endif %}"), ("{%- if s %}", "{% endif -%}"), ("{% if s -%}", "{%- endif %}"),
         ("{%+ if s %}", "{%+ endif %}"), ("{% if s +%}", "{% endif +%}"), ("{%- if s -%}", "{%- endif -%}"),
         ("{% raw %}", "{% endraw %}"), ("{%- raw -%}", "{%- endraw -%}"), ("{%+ raw %}", "{%+ endraw +%}")]
_ALONE = ["{{ s }}", "{{- s }}", "{{ s -}}", "{{- s -}}", "{{+ i }}", "{# c #}", "{#- c #}", "{# c -#}", "{#+ c +#}",
          "{% set x = 1 %}", "{%- set x = 1 -%}", "{%+ set x = 1 +%}", "{# a\nb #}"]
_AROUND = ["", "x", " ", "\n", "  \n  ", "\t", "x \n\t", "\u00a0", "\n\n\n", "\r\n "]

WHITESPACE = (
    [before + begin + inner + end + after for begin, end in _TAGS for inner in _INNER
     for before, after in (("", ""), ("x\n  ", "\n  y"), ("  ", "  "), ("x ", " y\n"), ("\n", "\n\n"))]
    + [before + tag + after for tag in _ALONE for before in _AROUND for after in _AROUND]
    + ["a\n", "a\n\n", "\n", "", "a\r\n", "a\rb\r\nc", "a\n{# c #}\n", "{{ s }}\n\n", "  {% if s %}\n  {% if s %}\n  x\n  {% endif %}\n  {% endif %}\n"])
