#include "models/ConfigReader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata {
namespace {

using nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;

const std::vector<std::string> nothingAccepted;

TEST(ConfigReader, ReadsWhatIsThere) {
  ordered_json json = {{"width", 64}, {"epsilon", 1e-5}, {"kind", "silu"}, {"tied", true}};
  ConfigReader config(json, nothingAccepted);
  EXPECT_EQ(config.integer("width", {1, 100}), 64);
  EXPECT_EQ(config.number("epsilon"), 1e-5);
  EXPECT_EQ(config.string("kind"), "silu");
  EXPECT_EQ(config.optionalBoolean("tied"), true);
  EXPECT_TRUE(config.finish().isOk());
}

TEST(ConfigReader, WholeNumbersAreNumbers) {
  ordered_json json = {{"theta", 10000}};
  ConfigReader config(json, nothingAccepted);
  EXPECT_EQ(config.number("theta"), 10000.0);
  EXPECT_TRUE(config.finish().isOk());
}

TEST(ConfigReader, NullIsAbsent) {
  ordered_json json = {{"window", nullptr}, {"width", nullptr}};
  ConfigReader config(json, nothingAccepted);
  EXPECT_EQ(config.optionalInteger("window", {1, 100}), std::nullopt);
  EXPECT_FALSE(config.has("window"));
  EXPECT_TRUE(config.states("window"));
  EXPECT_FALSE(config.states("elsewhere"));
  EXPECT_TRUE(config.status().isOk());
  EXPECT_EQ(config.integer("width", {7, 100}), 7); // in range, so that the caller can go on
  EXPECT_EQ(config.status().code(), StatusCode::InvalidData);
  EXPECT_THAT(config.status().message(), HasSubstr("no key 'width'"));
}

struct BadInteger {
  ordered_json value;
  const char *shown;
};
class IntegerOutOfRange : public testing::TestWithParam<BadInteger> {};

TEST_P(IntegerOutOfRange, IsRefusedWithBothNumbers) {
  ordered_json json = {{"width", GetParam().value}};
  ConfigReader config(json, nothingAccepted);
  EXPECT_EQ(config.integer("width", {1, 1024}), 1);
  EXPECT_EQ(config.finish().code(), StatusCode::InvalidData);
  EXPECT_THAT(config.finish().message(),
              AllOf(HasSubstr("'width'"), HasSubstr(GetParam().shown), HasSubstr("1 to 1024")));
}

INSTANTIATE_TEST_SUITE_P(Values, IntegerOutOfRange,
                         testing::Values(BadInteger{0, "is 0"}, BadInteger{-64, "is -64"},
                                         BadInteger{1025, "is 1025"},
                                         BadInteger{uint64_t{1} << 63, "is 9223372036854775808"},
                                         BadInteger{64.0, "is 64.0"}, BadInteger{true, "is true"},
                                         BadInteger{"64", "is \"64\""},
                                         BadInteger{ordered_json::array({64}), "is "}));

TEST(ConfigReader, NumbersHaveBounds) {
  ordered_json json = {{"factor", -1.0}, {"name", "small"}};
  ConfigReader below(json, nothingAccepted);
  EXPECT_EQ(below.number("factor", {1.0, 8.0}), 1.0);
  EXPECT_THAT(below.status().message(), AllOf(HasSubstr("is -1"), HasSubstr("1 to 8")));
  ConfigReader kind(json, nothingAccepted);
  kind.number("name");
  EXPECT_THAT(kind.status().message(), HasSubstr("must be a number"));
}

TEST(ConfigReader, TheFirstErrorStays) {
  ordered_json json = {{"a", "x"}, {"b", "y"}};
  ConfigReader config(json, nothingAccepted);
  config.integer("a", {0, 1});
  config.integer("b", {0, 1});
  EXPECT_THAT(config.finish().message(), HasSubstr("'a'"));
}

TEST(ConfigReader, UnreadKeysAreRefusedByName) {
  ordered_json json = {{"width", 64}, {"logit_scale", 2.0}, {"attention_sink", 4}};
  ConfigReader config(json, nothingAccepted);
  config.integer("width", {1, 100});
  Status status = config.finish();
  EXPECT_EQ(status.code(), StatusCode::Unimplemented);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("'logit_scale'"), HasSubstr("'attention_sink'"),
                    HasSubstr("--ignore-config logit_scale"), testing::Not(HasSubstr("width"))));
}

TEST(ConfigReader, SilentKeysPass) {
  ordered_json json = {
      {"a", nullptr}, {"b", false}, {"_comment", "x"}, {"seen", 1}, {"vendor.x", 1}};
  ConfigReader config(json, nothingAccepted);
  config.ignore({"seen", "vendor.*"});
  EXPECT_TRUE(config.finish().isOk());
}

TEST(ConfigReader, ZeroIsNotSilent) {
  ordered_json json = {{"softcap", 0}};
  EXPECT_FALSE(ConfigReader(json, nothingAccepted).finish().isOk());
}

TEST(ConfigReader, NestedKeysHaveTheirPath) {
  ordered_json json = {{"rope", {{"type", "linear"}, {"mystery", 1}}}};
  ConfigReader config(json, nothingAccepted);
  ConfigReader *rope = config.object("rope");
  ASSERT_NE(rope, nullptr);
  EXPECT_EQ(rope->string("type"), "linear");
  EXPECT_THAT(config.finish().message(), HasSubstr("'rope.mystery'"));

  const std::vector<std::string> accepted = {"rope.mystery"};
  ConfigReader lenient(json, accepted);
  lenient.object("rope")->string("type");
  EXPECT_TRUE(lenient.finish().isOk());
}

TEST(ConfigReader, AnErrorInsideIsTheWhole) {
  ordered_json json = {{"rope", {{"factor", "eight"}}}};
  ConfigReader config(json, nothingAccepted);
  config.object("rope")->number("factor");
  EXPECT_THAT(config.status().message(), HasSubstr("'rope.factor'"));
}

TEST(ConfigReader, AnObjectThatIsNone) {
  ordered_json json = {{"rope", 3}};
  ConfigReader config(json, nothingAccepted);
  EXPECT_EQ(config.object("rope"), nullptr);
  EXPECT_EQ(config.object("absent"), nullptr);
  EXPECT_THAT(config.status().message(), HasSubstr("must be an object"));
}

TEST(ConfigReader, UnknownValuesAreRefusedByName) {
  ordered_json json = {{"hidden_act", "gelu_new"}};
  ConfigReader config(json, nothingAccepted);
  config.refuse("hidden_act", config.string("hidden_act"), "silu");
  EXPECT_EQ(config.status().code(), StatusCode::Unimplemented);
  EXPECT_THAT(config.status().message(), AllOf(HasSubstr("gelu_new"), HasSubstr("known: silu")));
}

} // namespace
} // namespace strata
