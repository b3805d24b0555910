// Problem files are typed by people: each mistake is named with its line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/pack/ProblemFile.h"

namespace strata::pack {
namespace {

using testing::HasSubstr;

std::string errorOf(std::string_view text) {
  Result<ProblemFile> file = parseProblem(text, "p.csv");
  EXPECT_FALSE(file.isOk());
  if (file.isOk())
    return "";
  EXPECT_EQ(file.status().code(), StatusCode::InvalidData);
  return file.status().toString();
}

TEST(ProblemFile, ColumnsInAnyOrder) {
  Result<ProblemFile> file =
      parseProblem("size,note, upper ,id,lower\r\n64,x,3,a,-1\r\n\r\n8,,9,b,3", "p.csv");
  ASSERT_TRUE(file.isOk()) << file.status().toString();
  EXPECT_EQ(file->ids, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(file->buffers.size(), 2u);
  EXPECT_EQ(file->buffers[0].lower, -1);
  EXPECT_EQ(file->buffers[0].upper, 3);
  EXPECT_EQ(file->buffers[0].size, 64);
  EXPECT_EQ(file->buffers[1].lower, 3);
}

TEST(ProblemFile, HeaderAloneIsAnEmptyProblem) {
  Result<ProblemFile> file = parseProblem("id,lower,upper,size\n", "p.csv");
  ASSERT_TRUE(file.isOk());
  EXPECT_TRUE(file->buffers.empty());
}

TEST(ProblemFile, BadHeaders) {
  EXPECT_THAT(errorOf(""), HasSubstr("the file is empty"));
  EXPECT_THAT(errorOf("id,lower,upper\n"), HasSubstr("p.csv:1: column 'size' is missing"));
  EXPECT_THAT(errorOf("id,lower,upper,size,lower\n"),
              HasSubstr("p.csv:1: column 'lower' is named twice"));
}

TEST(ProblemFile, BadLines) {
  auto errorOfLine = [](std::string_view line) {
    return errorOf("id,lower,upper,size\na,0,1,1\n" + std::string(line) + "\n");
  };
  EXPECT_THAT(errorOfLine("b,4,4,1"), HasSubstr("p.csv:3: buffer 'b' lives in [4, 4)"));
  EXPECT_THAT(errorOfLine("b,5,4,1"), HasSubstr("p.csv:3: buffer 'b' lives in [5, 4)"));
  EXPECT_THAT(errorOfLine("b,0,1,-7"), HasSubstr("p.csv:3: buffer 'b' has size -7"));
  EXPECT_THAT(errorOfLine("b,0,1,0"), HasSubstr("p.csv:3: buffer 'b' has size 0"));
  EXPECT_THAT(errorOfLine("a,0,1,1"), HasSubstr("p.csv:3: id 'a' stands already in line 2"));
  EXPECT_THAT(errorOfLine(",0,1,1"), HasSubstr("p.csv:3: the id is empty"));
  EXPECT_THAT(errorOfLine("b,0,1"), HasSubstr("p.csv:3: 3 fields, but the header names 4"));
  EXPECT_THAT(errorOfLine("b,0,1,1,1"), HasSubstr("p.csv:3: 5 fields"));
  EXPECT_THAT(errorOfLine("b,0,1,1.5"), HasSubstr("p.csv:3: size '1.5' is not a whole number"));
  EXPECT_THAT(errorOfLine("b,0,x,1"), HasSubstr("p.csv:3: upper 'x' is not a whole number"));
  EXPECT_THAT(errorOfLine("b,0,,1"), HasSubstr("p.csv:3: upper '' is not a whole number"));
  EXPECT_THAT(errorOfLine("b,0,1,9223372036854775808"), HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(errorOfLine("b,0,1,9223372036854775807"),
              HasSubstr("p.csv:3: the sizes up to buffer 'b' add up to more than 2^63 - 1"));
}

TEST(ProblemFile, HostileBytesAreNotRepeated) {
  std::string error = errorOf("id,lower,upper,size\na,0,1,\x1b[2J" + std::string(5000, '9') + "\n");
  EXPECT_EQ(error.find('\x1b'), std::string::npos);
  EXPECT_LT(error.size(), 200u);
}

TEST(ProblemFile, AbsentFile) {
  Result<ProblemFile> file = readProblem("no/such/problem.csv");
  ASSERT_FALSE(file.isOk());
  EXPECT_EQ(file.status().code(), StatusCode::NotFound);
}

} // namespace
} // namespace strata::pack
