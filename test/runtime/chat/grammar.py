"""Random small templates over what the renderer supports.

Most expressions have operands of types that fit, since one error ends a template; a few take any
operand, so that errors are compared as well. The variables are those of constructs.py."""

WILD = 0.015  # How often an expression takes operands of any type.


class Grammar:
    def __init__(self, random):
        self.random = random
        self.in_loop = 0
        self.bound = []  # Names that loops, macros and with have bound here, of any type.

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, probability):
        return self.random.random() < probability

    # Statements

    def template(self):
        return self.statements(3) + self.pick("", "\n", " \n", "\n\n")

    def space(self):
        return self.pick("", "", "", " ", "\n", "  \n  ", "\t", "x", " y ", "\nz\n ")

    def tag(self, body):
        return (self.pick("{% ", "{% ", "{%- ", "{%+ ") + body
                + self.pick(" %}", " %}", " -%}", " +%}"))

    def statements(self, depth, *bound, loop=0):
        """A body in which the names of `bound` may be used."""
        self.bound.extend(bound)
        self.in_loop += loop
        body = "".join(self.space() + self.statement(depth) for _ in range(self.random.randint(1, 3)))
        self.in_loop -= loop
        del self.bound[len(self.bound) - len(bound):]
        return body

    def statement(self, depth):
        if depth == 0:
            return self.output(1)
        return self.pick(*[self.print] * 5, self.condition, self.loop, self.loop, self.assignment,
                         self.block, self.macro, self.filtered, self.binding, self.other)(depth)

    def print(self, depth):
        return self.output(3)

    def output(self, depth):
        return self.pick("{{ ", "{{ ", "{{- ") + self.anything(depth) + self.pick(" }}", " }}", " -}}")

    def condition(self, depth):
        body = self.tag(f"if {self.truth(2)}") + self.statements(depth - 1)
        if self.chance(0.3):
            body += self.tag(f"elif {self.truth(1)}") + self.statements(depth - 1)
        if self.chance(0.5):
            body += self.tag("else") + self.statements(depth - 1)
        return body + self.tag("endif")

    def loop(self, depth):
        names, items = self.pick(("v", self.list(2)), ("v", self.text(1)), ("v", self.dict(1)),
                                 ("k, w", self.dict(1) + ".items()"), ("v", "range(3)"))
        bound = names.split(", ")
        condition = f" if {self.truth(1)}" if self.chance(0.2) else ""
        control = ""
        if self.chance(0.3):
            control = (self.tag("if loop.index == 2") + self.tag(self.pick("break", "continue"))
                       + self.tag("endif"))
        body = control + self.statements(depth - 1, *bound, loop=1)
        if self.chance(0.3):
            body += self.tag("else") + self.statements(0)
        return self.tag(f"for {names} in {items}{condition}") + body + self.tag("endfor")

    def assignment(self, depth):
        name, value = self.pick(("a", self.anything), ("b", self.anything), ("s", self.text), ("i", self.number),
                                ("xs", self.list), ("d", self.dict))
        return self.tag(f"set {name} = {value(3)}")

    def block(self, depth):
        chain = self.pick("", "", " | upper", " | trim", " | replace('a', 'b')")
        return self.tag(f"set {self.pick('a', 's')}{chain}") + self.statements(depth - 1) + self.tag("endset")

    def macro(self, depth):
        name = self.pick("m", "n")
        loops, self.in_loop = self.in_loop, 0
        body = self.statements(depth - 1, "p", "r")
        self.in_loop = loops
        caller = self.chance(0.3)
        body = (self.tag(f"macro {name}(p, r={self.anything(1)})") + body + "{{ p ~ r }}"
                + ("{{ caller(p) }}" if caller else "") + self.tag("endmacro"))
        arguments = self.anything(1) if self.chance(0.5) else f"r={self.anything(1)}"
        if caller:
            return body + self.tag(f"call(q) {name}({arguments})") + self.output(1) + self.tag("endcall")
        return body + "{{ %s(%s) }}" % (name, arguments)

    def filtered(self, depth):
        chain = self.pick("upper", "trim", "title", "length", "indent(2)", "replace(' ', '_')")
        return self.tag(f"filter {chain}") + self.statements(depth - 1) + self.tag("endfilter")

    def binding(self, depth):
        return self.tag(f"with q = {self.anything(2)}") + self.statements(depth - 1, "q") + self.tag("endwith")

    def other(self, depth):
        loops, self.in_loop = self.in_loop, 0
        body = self.statements(depth - 1)
        self.in_loop = loops
        return self.pick(
            "{# c #}", "{#- c -#}", "{% raw %}{{ r }}{% endraw %}",
            "{% set ns = namespace(a=0) %}{% for x in xs %}{% set ns.a = ns.a + loop.index %}{% endfor %}{{ ns.a }}",
            "{% for x in [1, [2, [3]]] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}"
            "{{ loop.depth }}{% endif %}{% endfor %}",
            "{% generation %}" + body + "{% endgeneration %}")

    # Expressions

    def anything(self, depth):
        if self.chance(0.15):
            return self.pick("nil", "missing", "a", "b", "d.zz", "s.zz", *self.bound,
                             *(["loop.previtem", "loop.nextitem"] if self.in_loop else []))
        return self.pick(self.text, self.text, self.number, self.list, self.dict, self.truth)(depth)

    def wild(self, depth):
        value, other = self.anything(depth - 1), self.anything(depth - 1)
        return self.pick(
            f"({value} {self.pick('+', '-', '*', '//', '%', '~', '<', '>=', 'in')} {other})",
            f"({value} | {self.pick('upper', 'first', 'last', 'join', 'list', 'sort', 'abs', 'sum', 'int')})",
            f"({value}).{self.pick('strip()', 'split()', 'join(ys)', 'items()', 'get(1)', 'b', 'b.c', 'b()')}",
            f"({value})[{other}]", f"(-{value})")

    def expression(self, depth, atoms, *compounds):
        """One of `atoms`, or what one of `compounds`, which are functions, gives."""
        if depth > 0 and self.chance(WILD):
            return self.wild(depth)
        if depth <= 0 or self.chance(0.25):
            return self.pick(*atoms)
        return self.pick(*compounds)()

    def text(self, depth):
        def text():
            return self.text(depth - 1)

        return self.expression(
            depth,
            ["s", "t", "u", "e", "q", "lines", "'x'", "'a b'", "' '", "''", "ms[0].role", "d.c.x", "ys[0]"],
            lambda: f"({text()} {self.pick('~', '+')} {text()})",
            lambda: f"({self.anything(depth - 1)} ~ {self.anything(depth - 1)})",
            lambda: f"({text()} * 2)",
            lambda: f"({text()} | {self.text_filter()})",
            lambda: f"({self.anything(depth - 1)} | {self.pick('string', 'tojson', 'trim', 'upper', 'escape')})",
            lambda: f"({self.list(depth - 1)} | join{self.pick('', '(s)', '(2)', '(e)')})",
            lambda: f"({text()}).{self.text_method()}",
            lambda: f"({text()})[{self.pick('1:', ':-1', '::-1', '::2', '-2:', '1:3', ':0')}]",
            lambda: f"({text()} if {self.truth(depth - 1)} else {text()})",
            lambda: "'%s-%s' % (" + self.anything(depth - 1) + ", " + self.anything(depth - 1) + ")",
            lambda: f"({self.list(depth - 1)} | tojson(indent={self.pick('0', '2', 'none')}))")

    def text_filter(self):
        return self.pick("upper", "lower", "title", "capitalize", "trim", "trim('H')", "replace('a', 'b')",
                         "replace('l', '', 1)", "reverse", "indent", "indent(2, true)", "center(9)", "escape",
                         "safe", "tojson", "tojson(ensure_ascii=true)", "string", "default('D', true)")

    def text_method(self):
        return self.pick("strip()", "lstrip()", "rstrip()", "strip('x ')", "upper()", "lower()", "title()",
                         "capitalize()", "swapcase()", "replace('l', '')", "replace('l', 'L', 1)", "zfill(6)",
                         "removeprefix('H')", "removesuffix('d')", "split('l')[0]", "split('o')[-1]", "partition('l')[2]",
                         "rpartition('l')[0]", "join(ys)", "center(9, '*')", "ljust(8)", "rjust(8)")

    def number(self, depth):
        def number():
            return self.number(depth - 1)

        atoms = ["i", "z", "neg", "f", "1", "2", "-1", "0", "1.5", "ms[0].n", "d.b", "true"]
        if self.in_loop:
            atoms += ["loop.index", "loop.index0", "loop.length", "loop.revindex"]
        return self.expression(
            depth, atoms,
            lambda: f"({number()} {self.pick('+', '-', '*')} {number()})",
            lambda: f"({number()} {self.pick('//', '%', '/')} {self.pick('2', '3', '-2', '1.5', '7')})",
            lambda: f"({self.pick(self.text, self.list, self.dict)(depth - 1)} | {self.pick('length', 'count')})",
            lambda: f"({number()} | {self.pick('int', 'float', 'abs', 'round', 'round(1)', 'default(3)')})",
            lambda: f"({self.anything(depth - 1)} | string | int(7))",
            lambda: f"({self.text(depth - 1)}).{self.pick('find', 'rfind', 'count')}('l')",
            lambda: f"([{number()}, {number()}] | {self.pick('sum', 'max', 'min', 'first', 'last', 'sort | first')})",
            lambda: f"({self.text(depth - 1)} | wordcount)",
            lambda: f"(-{number()})")

    def list(self, depth):
        def list():
            return self.list(depth - 1)

        return self.expression(
            depth, ["xs", "ys", "mixed", "ms", "empty", "[1, 2]", "['b', 'a', 'b']", "[[1], []]", "ms[1:]"],
            lambda: f"[{self.anything(depth - 1)}, {self.anything(depth - 1)}]",
            lambda: f"({list()} + {list()})",
            lambda: f"({list()} * 2)",
            lambda: f"({self.pick(self.list, self.text, self.dict)(depth - 1)} | list)",
            lambda: f"({list()} | {self.list_filter()} | list)",
            lambda: f"({self.pick('xs', 'ys', 'ms')} | {self.sorting()} | list)",
            lambda: f"(ms | {self.selection()} | list)",
            lambda: f"({self.text(depth - 1)}).{self.pick('split()', 'splitlines()', 'split(e ~ 1)', 'rsplit(none, 1)')}",
            lambda: f"({list()})[{self.pick('1:', ':-1', '::-1', '::2', '-2:', '1:3', ':0')}]",
            lambda: f"({self.dict(depth - 1)} | {self.pick('items | list', 'dictsort', 'list', 'dictsort(true)')})",
            lambda: f"(({self.dict(depth - 1)}).{self.pick('keys', 'values', 'items')}() | list)",
            lambda: f"({list()} if {self.truth(depth - 1)} else {list()})",
            lambda: f"(range({self.pick('3', '1, 4', '5, 0, -2')}) | list)")

    def list_filter(self):
        return self.pick("reverse", "map('string')", "map('tojson')", "select", "reject", "select('string')",
                         "select('mapping')", "reject('none')", "select('defined')", "batch(2)", "batch(2, 'x')",
                         "slice(2)", "map('default', 'D')", "rejectattr('n', 'defined')", "select('in', mixed)")

    def sorting(self):
        return self.pick("map('string') | sort", "map('string') | sort(reverse=true)", "map('string') | unique",
                         "map('string') | map('upper')")

    def selection(self):
        return self.pick("map(attribute='role')", "map(attribute='c.x', default='none')", "sort(attribute='n')",
                         "selectattr('role', 'equalto', 'user')", "rejectattr('c')", "selectattr('n', 'gt', 1)",
                         "groupby('role')", "unique(attribute='role')", "sort(attribute='role,n')",
                         "map(attribute='c') | map('default', {}, true)", "selectattr('c.x', 'defined')")

    def dict(self, depth):
        def value():
            return self.anything(depth - 1)

        return self.expression(
            depth, ["d", "nothing", "ms[0]", "d.c", "{'k': 1}", "{}"],
            lambda: f"{{{self.text(0)}: {value()}, 'k': {value()}}}",
            lambda: f"dict(a={value()}, b={value()})",
            lambda: f"({self.dict(depth - 1)} if {self.truth(depth - 1)} else {self.dict(depth - 1)})")

    def truth(self, depth):
        def truth():
            return self.truth(depth - 1)

        atoms = ["yes", "no", "true", "false", "d.zz is defined"]
        if self.in_loop:
            atoms += ["loop.first", "loop.last", "loop.changed(i)"]
        return self.expression(
            depth, atoms,
            lambda: f"({self.number(depth - 1)} {self.comparison()} {self.number(depth - 1)})",
            lambda: f"({self.text(depth - 1)} {self.comparison()} {self.text(depth - 1)})",
            lambda: f"({self.anything(depth - 1)} {self.pick('==', '!=')} {self.anything(depth - 1)})",
            lambda: f"({self.text(depth - 1)} {self.pick('in', 'not in')} {self.text(depth - 1)})",
            lambda: f"({self.anything(depth - 1)} {self.pick('in', 'not in')} {self.list(depth - 1)})",
            lambda: f"({self.text(depth - 1)} {self.pick('in', 'not in')} {self.dict(depth - 1)})",
            lambda: f"({truth()} {self.pick('and', 'or')} {truth()})",
            lambda: f"(not {truth()})",
            lambda: f"({self.anything(depth - 1)} is {self.pick('', 'not ')}{self.test()})",
            lambda: f"({self.number(depth - 1)} is {self.pick('gt 1', 'le 2', 'number', 'ne 0')})",
            lambda: f"({self.text(depth - 1)}).{self.pick('startswith', 'endswith')}({self.text(0)})",
            lambda: f"({self.text(depth - 1)}).{self.pick('isdigit', 'isalpha', 'isupper', 'isspace')}()")

    def comparison(self):
        return self.pick("==", "!=", "<", "<=", ">", ">=")

    def test(self):
        return self.pick("defined", "undefined", "string", "mapping", "iterable", "sequence", "none", "true", "false",
                         "number", "boolean", "integer", "float", "eq 1", "in mixed", "callable", "sameas none")
