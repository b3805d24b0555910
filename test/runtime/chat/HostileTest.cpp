// Templates that want to crash, hang or fill memory get an error that names the limit, in little
// time. Processor time is measured: other programs take the rest.
#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/chat/Rendering.h"

using namespace strata;
using namespace strata::test;
using testing::HasSubstr;

namespace {

std::string repeated(std::string_view text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i)
    out += text;
  return out;
}

// Debug builds and sanitizers are slower than what people run.
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr double maxSeconds = 1;
#else
constexpr double maxSeconds = 20;
#endif

std::string renderInTime(std::string_view source, const Json &variables = Json::object()) {
  std::clock_t begin = std::clock();
  std::string text = render(source, variables);
  EXPECT_LT(double(std::clock() - begin) / CLOCKS_PER_SEC, maxSeconds)
      << source.substr(0, 200) << " took too long";
  return text;
}

#define EXPECT_LIMIT(source, words) EXPECT_THAT(renderInTime(source), HasSubstr(words))

/// `open` 100,000 times, `inner`, and every `close`.
std::string nested(std::string_view open, std::string_view inner, std::string_view close) {
  return repeated(open, 100'000) + std::string(inner) + repeated(close, 100'000);
}

TEST(Hostile, DeepNesting) {
  EXPECT_LIMIT("{{ " + nested("(", "1", ")") + " }}", "nested deeper than");
  EXPECT_LIMIT("{{ " + nested("[", "1", "]") + " }}", "nested deeper than");
  EXPECT_LIMIT("{{ " + nested("{1: ", "1", "}") + " }}", "nested deeper than");
  EXPECT_LIMIT("{{ " + repeated("- ", 100'000) + "1 }}", "nested deeper than");
  EXPECT_LIMIT("{{ " + repeated("not ", 100'000) + "1 }}", "nested deeper than");
  EXPECT_LIMIT("{{ " + repeated("1 if ", 100'000) + "1 }}", "chat template, line 1");
  EXPECT_LIMIT("{{ " + repeated("1 if 1 else ", 100'000) + "1 }}", "nested deeper than");
  EXPECT_LIMIT("{{ 1" + repeated(" + 1", 100'000) + " }}", "inside each other");
  EXPECT_LIMIT("{{ x" + repeated(".x", 100'000) + " }}", "inside each other");
  EXPECT_LIMIT("{{ x" + repeated("|list", 100'000) + " }}", "inside each other");
  EXPECT_LIMIT("{{ x" + repeated("()", 100'000) + " }}", "inside each other");
  EXPECT_LIMIT("{{ x" + repeated(" is defined", 100'000) + " }}", "chat template, line 1");
  EXPECT_LIMIT(repeated("{% if 1 %}", 100'000), "nested deeper than");
  EXPECT_LIMIT(repeated("{% for x in y %}", 100'000), "nested deeper than");
  EXPECT_LIMIT("{% set " + nested("(", "x", ")") + " = 1 %}", "nested deeper than");
  EXPECT_LIMIT("{% for " + nested("(", "x", ")") + " in y %}", "nested deeper than");
}

TEST(Hostile, DeepInput) {
  Json deep = 1;
  for (int i = 0; i < 200; ++i)
    deep = Json::array({deep});
  EXPECT_THAT(render("{{ x }}", {{"x", deep}}), HasSubstr("nested deeper than 100"));
}

TEST(Hostile, DeepValues) {
  EXPECT_LIMIT("{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}"
               "{% endfor %}",
               "lists nested deeper than 100");
  EXPECT_LIMIT("{% set ns = namespace(x={}) %}{% for i in range(100000) %}"
               "{% set ns.x = {'a': ns.x} %}{% endfor %}",
               "dicts nested deeper than 100");
}

TEST(Hostile, LongLoops) {
  std::string nested;
  for (int i = 0; i < 6; ++i)
    nested += "{% for x in range(100000) %}";
  nested += "{{ 1 }}" + repeated("{% endfor %}", 6);
  EXPECT_LIMIT(nested, "steps");
  EXPECT_LIMIT("{{ range(100001) }}", "range: it has 100001 items; at most 100000");
  EXPECT_LIMIT("{{ range(-9223372036854775807, 9223372036854775807) }}", "range: it has");
  EXPECT_LIMIT("{% for x in range(100000) %}{% for y in range(100000) if no %}{% endfor %}"
               "{% endfor %}",
               "steps");
  EXPECT_LIMIT("{% set r = range(100000) | list %}{% for x in r %}{% if r == r[:] %}{% endif %}"
               "{% endfor %}",
               "the template");
  EXPECT_LIMIT("{% set r = range(100000) | list %}{% for x in r %}{% if 0.5 in r %}{% endif %}"
               "{% endfor %}",
               "steps");
}

TEST(Hostile, EndlessRecursion) {
  EXPECT_LIMIT("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
               "a macro may call itself for ever");
  EXPECT_LIMIT(
      "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
      "nested deeper than");
  EXPECT_LIMIT("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "nested deeper than");
  EXPECT_LIMIT("{% macro m(x=m()) %}{% endmacro %}{{ m() }}", "nested deeper than");
  EXPECT_LIMIT("{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
               "nested deeper than");
  EXPECT_LIMIT("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}"
               "{{ m(40) }}",
               "steps");
  EXPECT_LIMIT("{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
               "nested deeper than");
}

TEST(Hostile, DoubledStringsAndLists) {
  const std::string loop = "{% set ns = namespace(s='0123456789') %}{% for i in range(64) %}";
  EXPECT_LIMIT(loop + "{% set ns.s = ns.s + ns.s %}{% endfor %}", "makes a string of");
  EXPECT_LIMIT(loop + "{% set ns.s = ns.s ~ ns.s %}{% endfor %}", "makes a string of");
  EXPECT_LIMIT(loop + "{% set ns.s = ns.s | replace('0', ns.s) %}{% endfor %}",
               "makes a string of");
  EXPECT_LIMIT(loop + "{% set ns.s = [ns.s, ns.s] | join(ns.s) %}{% endfor %}",
               "makes a string of");
  EXPECT_LIMIT(loop + "{% set ns.s = ns.s | tojson | tojson %}{% endfor %}{{ ns.s | length }}", "");
  EXPECT_LIMIT(loop + "{{ ns.s * 1000000 }}{% endfor %}", "makes a string of");
  EXPECT_LIMIT("{% set ns = namespace(l=[1]) %}{% for i in range(64) %}{% set ns.l = ns.l + ns.l %}"
               "{% endfor %}",
               "the template");
  EXPECT_LIMIT(
      "{% set ns = namespace(l=[1]) %}{% for i in range(64) %}{% set ns.l = [ns.l, ns.l] %}"
      "{% endfor %}{{ ns.l }}",
      "steps");
  EXPECT_LIMIT(
      "{% set ns = namespace(l=[1]) %}{% for i in range(64) %}{% set ns.l = [ns.l, ns.l] %}"
      "{% endfor %}{{ ns.l | tojson }}",
      "steps");
  EXPECT_LIMIT(
      "{% set ns = namespace(l=(1,)) %}{% for i in range(64) %}{% set ns.l = (ns.l, ns.l) %}"
      "{% endfor %}{{ {ns.l: 1} }}",
      "steps");
  EXPECT_LIMIT(
      "{% set ns = namespace(l=(1,)) %}{% for i in range(64) %}{% set ns.l = (ns.l, ns.l) %}"
      "{% endfor %}{{ ns.l == (ns.l[0], ns.l[1]) }}",
      "steps");
  EXPECT_LIMIT("{{ [0] * 1000000000000 }}", "the template");
  EXPECT_LIMIT("{{ 'a' * 9223372036854775807 }}", "makes a string of");
  EXPECT_LIMIT("{{ 'a' | center(9223372036854775807) }}", "makes a string of");
  EXPECT_LIMIT("{{ 'a' | indent(9223372036854775807) }}", "makes a string of");
  EXPECT_LIMIT("{{ [1] | batch(9223372036854775807, 0) | list }}", "steps");
  EXPECT_LIMIT("{{ [1] | slice(9223372036854775807) | list }}", "steps");
  EXPECT_LIMIT("{{ [1] | tojson(indent=1000000000) }}", "at most 64");
  EXPECT_LIMIT("{{ '%1000000000d' % 1 }}", "beyond 1000");
}

TEST(Hostile, OutputWithoutEnd) {
  EXPECT_LIMIT("{% set s = 'x' * 1000000 %}{% for i in range(100000) %}{{ s }}{% endfor %}",
               "makes a string of");
}

TEST(Hostile, SearchesAreLinear) {
  const std::string texts = "{% set s = 'a' * 1000000 %}{% set p = 'a' * 499999 + 'b' %}";
  EXPECT_EQ(renderInTime(texts + "{{ p in s }}{{ s.find(p) }}{{ s.rfind(p) }}{{ s.count(p) }}"
                                 "{{ s.split(p) | length }}{{ s.replace(p, '') | length }}"),
            "⟨False-1-1011000000⟩");
}

TEST(Hostile, ReferencesThatGoRound) {
  EXPECT_LIMIT("{% set ns = namespace() %}{% set ns.x = ns %}", "inside a namespace");
  EXPECT_LIMIT("{% set ns = namespace() %}{% set ns.x = [ns] %}", "inside a namespace");
  EXPECT_LIMIT("{% set ns = namespace() %}{% macro m() %}{{ ns }}{% endmacro %}{% set ns.x = m %}",
               "inside a namespace");
  EXPECT_LIMIT("{% set ns = namespace() %}{% for x in [1] %}{% set ns.x = loop %}{% endfor %}",
               "inside a namespace");
}

TEST(Hostile, NumbersAtTheEdge) {
  EXPECT_LIMIT("{{ 9223372036854775807 + 1 }}", "beyond 64 bits");
  EXPECT_LIMIT("{{ -9223372036854775807 - 2 }}", "beyond 64 bits");
  EXPECT_LIMIT("{{ (-9223372036854775807 - 1) // -1 }}", "beyond 64 bits");
  EXPECT_EQ(renderInTime("{{ (-9223372036854775807 - 1) % -1 }}"), "⟨0⟩");
  EXPECT_LIMIT("{{ 10 ** 100 }}", "beyond 64 bits");
  EXPECT_LIMIT("{{ 99999999999999999999 }}", "does not fit 64 bits");
  EXPECT_LIMIT("{{ -(-9223372036854775807 - 1) }}", "beyond 64 bits");
  EXPECT_EQ(renderInTime("{{ 'abc'[::-9223372036854775807 - 1] }}"), "c");
  EXPECT_EQ(renderInTime("{{ 'abc'[-9223372036854775807 - 1:9223372036854775807] }}"), "abc");
}

TEST(Hostile, ErrorsNameTheirLine) {
  EXPECT_THAT(render("a\n\n{{ nosuch() }}"), HasSubstr("line 3: 'nosuch' is undefined"));
  EXPECT_THAT(render("\n{{ 1 | nosuch }}"), HasSubstr("line 2: the filter 'nosuch' is not known"));
  EXPECT_THAT(render("\n{{ 1 is nosuch }}"), HasSubstr("line 2: the test 'nosuch' is not known"));
  EXPECT_THAT(render("{% if 1 %}\n{{ 1 | nosuch }}{% endif %}"),
              HasSubstr("line 2: unknown filter"));
  EXPECT_THAT(render("\n\n\n{% include 'x' %}"), HasSubstr("line 4: the tag 'include'"));
  EXPECT_THAT(render("{% for x in y %}\n{{ x }}"), HasSubstr("{% endfor %} is missing"));
  EXPECT_THAT(render("{{ lipsum() }}"),
              HasSubstr("line 1: the function 'lipsum' is not supported"));
  EXPECT_THAT(render("\n{{ raise_exception('no ' ~ 'way') }}"),
              HasSubstr("line 2: the template refuses the messages: no way"));
  EXPECT_EQ(renderSpans("{{ raise_exception('x') }}", Json::object()).status().code(),
            StatusCode::InvalidArgument);
}

} // namespace
