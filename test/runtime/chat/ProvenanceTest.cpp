// What the template wrote and what its input did, through everything that can happen to a string.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/runtime/chat/Rendering.h"

using namespace strata;
using namespace strata::test;

namespace {

const Json variables = {
    {"s", "Abc Def"}, {"t", "  <|x|>  "}, {"xs", {"p", "q"}}, {"d", {{"key", "value"}}}, {"n", 5}};

std::string marked(std::string_view source) { return render(source, variables); }

TEST(Provenance, DataAndLiteralsAreTheTemplates) {
  EXPECT_EQ(marked("<|a|>{{ '<|b|>' }}"), "<|a|><|b|>");
}

TEST(Provenance, InputStaysInputThroughConcatenation) {
  EXPECT_EQ(marked("{{ '<|' + s + '|>' }}"), "<|⟨Abc Def⟩|>");
  EXPECT_EQ(marked("{{ '<|' ~ s ~ n ~ '|>' }}"), "<|⟨Abc Def5⟩|>");
  EXPECT_EQ(marked("{{ s * 2 ~ 'a' * 2 }}"), "⟨Abc DefAbc Def⟩aa");
}

TEST(Provenance, InputStaysInputThroughFilters) {
  EXPECT_EQ(marked("[{{ t | trim }}]"), "[⟨<|x|>⟩]");
  EXPECT_EQ(marked("{{ ('x' + s) | upper }}"), "X⟨ABC DEF⟩");
  EXPECT_EQ(marked("{{ s | replace('b', '<|b|>') }}"), "⟨A⟩<|b|>⟨c Def⟩");
  EXPECT_EQ(marked("{{ '<|b|>' | replace('b', s) }}"), "<|⟨Abc Def⟩|>");
  EXPECT_EQ(marked("{{ ('a\n' + s) | indent(2) }}"), "a\n  ⟨Abc Def⟩");
  EXPECT_EQ(marked("{{ s | tojson }}"), "⟨\"Abc Def\"⟩");
  EXPECT_EQ(marked("{{ {'k': '<|b|>'} | tojson }}"), "⟨{\"k\": \"<|b|>\"}⟩");
  EXPECT_EQ(marked("{{ missing | default(s) ~ missing | default('b') }}"), "⟨Abc Def⟩b");
  EXPECT_EQ(marked("{{ ['a', s] | join('-') }}"), "a-⟨Abc Def⟩");
  EXPECT_EQ(marked("{{ ('a' ~ s) | reverse }}"), "⟨feD cbA⟩a");
  EXPECT_EQ(marked("{{ (s ~ '&') | escape }}"), "⟨Abc Def⟩&amp;");
  EXPECT_EQ(marked("{{ 'a%s' | format(s) }}{{ '{}b'.format(s) }}"), "a⟨Abc DefAbc Def⟩b");
}

TEST(Provenance, InputStaysInputThroughSlicesAndMethods) {
  EXPECT_EQ(marked("{{ ('ab' + s)[1:4] }}"), "b⟨Ab⟩");
  EXPECT_EQ(marked("{{ ('ab' + s)[::-1] }}"), "⟨feD cbA⟩ba");
  EXPECT_EQ(marked("{{ ('a ' + s + ' b').split() | join(',') }}"), "a,⟨Abc⟩,⟨Def⟩,b");
  EXPECT_EQ(marked("{{ ('a' + s).split('b')[0] }}"), "a⟨A⟩");
  EXPECT_EQ(marked("{{ s[0] }}{{ 'a'.join(xs) }}"), "⟨Ap⟩a⟨q⟩");
}

TEST(Provenance, NamesAndKeysOfTheInputAreInput) {
  EXPECT_EQ(marked("{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}"), "⟨key⟩=⟨value⟩");
  EXPECT_EQ(marked("{% for c in s[:2] %}{{ c }},{% endfor %}"), "⟨A⟩,⟨b⟩,");
  EXPECT_EQ(marked("{{ {'Abc Def': '<|x|>'}[s] }}"), "<|x|>");
}

TEST(Provenance, SurvivesMacrosBlocksAndNamespaces) {
  EXPECT_EQ(marked("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(s) | upper }}"), "<⟨ABC DEF⟩>");
  EXPECT_EQ(marked("{% set b %}<{{ s }}>{% endset %}{{ b[1:3] }}"), "⟨Ab⟩");
  EXPECT_EQ(marked("{% set ns = namespace(x='') %}{% set ns.x = ns.x ~ '<' ~ s %}{{ ns.x }}"),
            "<⟨Abc Def⟩");
  EXPECT_EQ(marked("{% filter lower %}X{{ s }}{% endfilter %}"), "x⟨abc def⟩");
}

TEST(Provenance, NumbersAndContainersCountAsInput) {
  EXPECT_EQ(marked("{{ 5 }}{{ ['<|x|>'] }}"), "⟨5['<|x|>']⟩");
}

TEST(Provenance, TemplateTextsAreTheTemplates) {
  chat::RenderOptions options;
  options.templateTexts = {{"bos_token", "<s>"}};
  EXPECT_EQ(render("{{ bos_token + s }}", variables, options), "<s>⟨Abc Def⟩");
}

TEST(Provenance, SpansAreNeverEmptyAndAlternate) {
  auto spans = renderSpans("{{ '' }}{{ s }}{{ '' }}{{ s }}a{{ 'b' }}", variables);
  ASSERT_TRUE(spans.isOk());
  ASSERT_EQ(spans->size(), 2u);
  EXPECT_EQ((*spans)[0].text, "Abc DefAbc Def");
  EXPECT_FALSE((*spans)[0].fromTemplate);
  EXPECT_EQ((*spans)[1].text, "ab");
  EXPECT_TRUE((*spans)[1].fromTemplate);
}

} // namespace
