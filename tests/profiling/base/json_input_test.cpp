#include "profiling/base/json_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "profiling/base/failure.h"
#include "profiling/base/json_fields.h"
#include "tests/support/failure_text.h"

namespace ws {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string refusal(const std::function<void()>& work) { return test::failure_text(work); }

TEST(JsonInput, DepthIsRefusedBeforeAnythingIsBuilt) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 300'000; ++i) text += open;
    EXPECT_THAT(refusal([&] { parse_json(text, "x.json"); }), HasSubstr("x.json: nested too deep"));
    EXPECT_TRUE(parse_json_or_null(text).is_null());
  }
  std::string deep = std::string(64, '[') + std::string(64, ']');
  EXPECT_NO_THROW(parse_json(deep, "x"));
  EXPECT_THROW(parse_json('[' + deep + ']', "x"), Failure);
  EXPECT_NO_THROW(parse_json('"' + std::string(1000, '[') + "\\\"" + std::string(1000, '[') + '"', "x")) << "in a text";
}

TEST(JsonInput, SizeAndSyntaxAreRefusedInASentence) {
  EXPECT_THAT(refusal([] { parse_json(std::string(17 << 20, ' '), "x"); }), HasSubstr("x: larger than 16 MiB"));
  EXPECT_EQ(refusal([] { parse_json("{\"a\": }", "x"); }), "x: not valid JSON at byte 7");
  EXPECT_THAT(refusal([] { parse_json("[1e999]", "x"); }), HasSubstr("numbers must be finite"));
  EXPECT_THAT(refusal([] { read_json("/dev/zero"); }), HasSubstr("/dev/zero: larger than"));
  EXPECT_THAT(refusal([] { read_json("/none.json"); }), HasSubstr("cannot be opened"));
  EXPECT_THAT(refusal([] { read_json("/tmp"); }), HasSubstr("is a folder"));
}

TEST(JsonInput, WrongTypesAndSizesNameThePath) {
  const json object = json::parse(R"({"a": {"b": [1, -1, "x", 1e300, 2.5, null]}, "t": "text", "n": -1})");
  const JsonInput input(object, "top");
  const auto items = input.at("a").at("b").items();
  EXPECT_EQ(items[0].whole(0), 1);
  EXPECT_EQ(refusal([&] { items[1].whole(0, 0); }),
            "top.a.b[1]: expected a whole number from 0 to 9000000000000000, got -1");
  EXPECT_EQ(refusal([&] { items[2].number(0); }), "top.a.b[2]: expected a number, got \"x\"");
  EXPECT_THAT(refusal([&] { items[3].whole(0, 1, 1000); }), HasSubstr("top.a.b[3]: expected a whole number from 1 to 1000"));
  EXPECT_THAT(refusal([&] { items[4].whole(0); }), HasSubstr("got 2.5"));
  EXPECT_THAT(refusal([&] { items[5].text(); }), HasSubstr("top.a.b[5]: expected text, got null"));
  EXPECT_THAT(refusal([&] { input.at("t").at("x"); }), HasSubstr("top.t: expected an object, got \"text\""));
  EXPECT_THAT(refusal([&] { input.at("t").items(); }), HasSubstr("top.t: expected a list"));
  EXPECT_THAT(refusal([&] { input.at("t").flag(true); }), HasSubstr("top.t: expected true or false"));
  EXPECT_THAT(refusal([&] { input.at("n").number(0, 0, 1); }), HasSubstr("top.n: expected a number from 0 to 1, got -1"));
  EXPECT_EQ(refusal([&] { input.required("missing"); }), "top.missing: is missing");
  EXPECT_EQ(input.at("missing").at("deeper").text("fallback"), "fallback");
}

struct Copied {
  std::string name;
  int64_t first = 0, last = 0;
};

void list(JsonFields& f, Copied& c) {
  f("name", c.name);
  f.numbers("range", {&c.first, &c.last});
}

TEST(JsonFields, OneListWritesAndReads) {
  const json file = written(Copied{"a", 3, 7}, list);
  EXPECT_EQ(file.dump(), R"({"name":"a","range":[3,7]})");
  const auto back = read_from<Copied>(JsonInput(file, "file"), list);
  EXPECT_EQ(back.name, "a");
  EXPECT_EQ(back.first + 10 * back.last, 73);
  const json longer = {{"range", {1, 2, 3}}};
  EXPECT_THAT(refusal([&] { read_from<Copied>(JsonInput(longer, "file"), list); }), HasSubstr("file.range: expected 2 whole numbers"));
}

}  // namespace
}  // namespace ws
