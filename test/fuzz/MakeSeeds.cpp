// Small right checkpoints of every form, and chat templates, for the fuzz targets to start from.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "test/runtime/checkpoint/FileBuilders.h"

using namespace strata;
using test::Bytes;
using test::GgufBuilder;

namespace {

class SeedFolder {
public:
  explicit SeedFolder(const std::filesystem::path &path) : path_(path) {
    std::filesystem::create_directories(path);
  }
  void add(std::string_view bytes) {
    std::ofstream(path_ / std::to_string(count_++), std::ios::binary) << bytes;
  }

private:
  std::filesystem::path path_;
  int count_ = 0;
};

std::string zeros(size_t count) { return std::string(count, '\0'); }

void writeGguf(SeedFolder folder) {
  GgufBuilder model;
  model.string("general.architecture", "llama").u32("general.alignment", 32);
  model.numbers<float>("a.list", 6, {1, 2}).boolean("a.flag", true);
  model.pair("split.no", 2, Bytes().put<uint16_t>(0).str());
  model.tensor("a", {2, 3}, 0, zeros(24)).tensor("b", {32, 2}, 8, zeros(68));
  folder.add(model.build());

  GgufBuilder bytePairs;
  bytePairs.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", "qwen2");
  bytePairs.strings("tokenizer.ggml.tokens", {"H", "e", "l", "o", "He", "ll", "<s>", "\u0120"});
  bytePairs.numbers<int32_t>("tokenizer.ggml.token_type", 5, {1, 1, 1, 1, 1, 1, 3, 1});
  bytePairs.strings("tokenizer.ggml.merges", {"H e", "l l"});
  bytePairs.u32("tokenizer.ggml.bos_token_id", 6).u32("tokenizer.ggml.eos_token_id", 6);
  bytePairs.boolean("tokenizer.ggml.add_bos_token", true);
  folder.add(bytePairs.build());

  for (const char *kind : {"llama", "t5"}) {
    GgufBuilder pieces;
    pieces.string("tokenizer.ggml.model", kind);
    pieces.strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "<0x0A>", "\u2581", "a", "\u2581a"});
    pieces.numbers<float>("tokenizer.ggml.scores", 6, {0, 0, 0, -1, -2, -3});
    pieces.numbers<int32_t>("tokenizer.ggml.token_type", 5, {2, 3, 6, 1, 1, 1});
    pieces.u32("tokenizer.ggml.unknown_token_id", 0);
    if (kind[0] == 't') // a double array of one unit, and one text
      pieces.array("tokenizer.ggml.precompiled_charsmap", 0, 10,
                   Bytes().put<uint32_t>(4).put<uint32_t>(0).text("b").put<uint8_t>(0).str());
    folder.add(pieces.build());
  }
}

void writeSafetensors(SeedFolder folder) {
  folder.add(test::safetensors(R"({"__metadata__":{"format":"pt"},)"
                               R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                               R"("b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]}}   )",
                               zeros(10)));
  folder.add(
      test::safetensors(R"({"x":{"dtype":"F8_E4M3","shape":[0,3],"data_offsets":[0,0]}})", ""));
  folder.add("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
}

void writeTokenizerJson(SeedFolder folder) {
  folder.add(R"({"normalizer":null,
    "pre_tokenizer":{"type":"Sequence","pretokenizers":[
      {"type":"Split","pattern":{"Regex":"\\p{N}"},"behavior":"Isolated","invert":false},
      {"type":"ByteLevel","add_prefix_space":false,"use_regex":true}]},
    "post_processor":{"type":"TemplateProcessing","single":[
      {"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}]},
    "added_tokens":[{"id":7,"content":"<s>","special":true,"lstrip":true,"single_word":true}],
    "model":{"type":"BPE","vocab":{"H":0,"e":1,"l":2,"o":3,"He":4,"ll":5,"\u0120":6},
      "merges":["H e",["l","l"]],"ignore_merges":true},
    "config":{"bos_token":"<s>","add_bos_token":true}})");
  folder.add(R"({"normalizer":{"type":"Sequence","normalizers":[
      {"type":"Prepend","prepend":"\u2581"},
      {"type":"Replace","pattern":{"String":" "},"content":"\u2581"}]},
    "added_tokens":[{"id":0,"content":"<unk>","special":true}],
    "model":{"type":"BPE","unk_token":"<unk>","byte_fallback":true,
      "vocab":{"<unk>":0,"<0x0A>":1,"a":2,"b":3,"ab":4},"merges":["a b"]}})");
  folder.add(R"({"normalizer":{"type":"Sequence","normalizers":[
      {"type":"Strip","strip_left":true,"strip_right":true},{"type":"NFKC"},
      {"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "},
      {"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAABiAA=="}]},
    "pre_tokenizer":{"type":"Metaspace","replacement":"\u2581","prepend_scheme":"first","split":true},
    "added_tokens":[{"id":0,"content":"<unk>","special":true}],
    "model":{"type":"Unigram","unk_id":0,"byte_fallback":false,
      "vocab":[["<unk>",0.0],["\u2581",-1.0],["a",-2.5],["\u2581H",-3.0]]}})");
}

void writeChatTemplates(SeedFolder folder) {
  folder.add(
      "{% for message in messages %}{{ '<|' + message['role'] + '|>\n' + (message.content or "
      "'') | trim ~ eos_token }}{% endfor %}{%- if add_generation_prompt -%}A{%- endif -%}");
  folder.add(R"({%- macro show(m, depth=1, *rest) -%}
    {%- if m is mapping %}{% for k, v in m | dictsort %}{{ k ~ ': ' }}{{ show(v, depth + 1) }}{% endfor %}
    {%- elif m is sequence and m is not string %}{{ m | map('string') | join(', ') | upper }}
    {%- else %}{{ m | tojson(indent=2) }}{% endif %}{%- endmacro %}
    {% for m in messages if m.role != 'tool' %}{{ loop.index0 ~ loop.last }}{{ show(m) }}{% endfor %})");
  folder.add(R"({% set ns = namespace(n=0, found=false, s='') %}{% for m in messages[::-1] %}
    {% if loop.first %}{% continue %}{% endif %}{% set ns.n = ns.n + 1 %}{% set ns.s = m.role ~ ns.s %}
    {% if ns.n > 2 %}{% break %}{% endif %}{% else %}none{% endfor %}{{ ns.s.split('s')[-1].strip() }}
    {{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list | length }}
    {{ '%s-%05.1f' % ('a', 2.5) }}{{ '{0:>5}'.format(ns.n) if false else ns.n ** 2 // 3 }})");
  folder.add(
      R"({% call(x) wrap(1) %}{{ x }}{% endcall %}{% macro wrap(y) %}{{ caller(y) }}{% endmacro %}
    {% filter replace('a', 'b') | title %}{% raw %}{{ a }}{% endraw %}{% endfilter %}{# c #}
    {% set t %}{% generation %}x{% endgeneration %}{% endset %}{% with a = 1, b = [1, 2] %}{{ a in b }}{% endwith %}
    {% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is iterable else x * 2 }}{% endfor %}
    {{ messages | groupby('role') | first | last | batch(2, 'x') | list | unique | sort(reverse=true) }}
    {{ strftime_now('%d %b %Y') }}{{ tools | tojson }}{{ raise_exception('no') if not messages }})");
  folder.add("{{ messages[1].content[0].text[1:-1].replace('x', 'y', 1).rsplit(' ', 1) | reverse | "
             "list }}{{ 'a' 'b' | indent(2, true) | center(9) | wordcount }}{{ dict(a=1).items() | "
             "list | sum(start=()) }}{{ -2.5 | round(1, 'floor') | int | abs }}");
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: MakeSeeds FOLDER\n");
    return 1;
  }
  std::filesystem::path folder = argv[1];
  writeGguf(SeedFolder(folder / "GgufFuzz"));
  writeSafetensors(SeedFolder(folder / "SafetensorsFuzz"));
  writeTokenizerJson(SeedFolder(folder / "TokenizerJsonFuzz"));
  writeChatTemplates(SeedFolder(folder / "ChatTemplateFuzz"));
}
