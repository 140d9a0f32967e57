#include "profiling/base/byte_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/failure_text.h"

namespace ws {
namespace {
using testing::HasSubstr;

template <class Work>
std::string failure_of(const Work& work) { return test::failure_text(work, "nothing failed"); }

TEST(ByteReader, GivesBackWhatWasWritten) {
  ByteWriter out;
  out.value(uint32_t{7});
  out.text("weights");
  out.list(std::vector<float>{1.5f, -2});
  for (const uint64_t number : {uint64_t{0}, uint64_t{127}, uint64_t{128}, std::numeric_limits<uint64_t>::max()})
    out.varint(number);
  for (const int64_t number : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) out.signed_varint(number);
  ByteReader in(out.bytes(), "test");
  EXPECT_EQ(in.value<uint32_t>("number"), 7u);
  EXPECT_EQ(in.text("name"), "weights");
  EXPECT_EQ(in.list<float>("floats"), (std::vector<float>{1.5f, -2}));
  for (const uint64_t number : {uint64_t{0}, uint64_t{127}, uint64_t{128}, std::numeric_limits<uint64_t>::max()})
    EXPECT_EQ(in.varint("number"), number);
  for (const int64_t number : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()})
    EXPECT_EQ(in.signed_varint("number"), number);
  in.expect_end();
}

TEST(ByteReader, RefusesLengthsBeyondTheEnd) {
  ByteWriter out;
  out.value(uint64_t{1} << 62);
  for (const auto& read :
       {+[](ByteReader& in) { in.list<double>("doubles"); }, +[](ByteReader& in) { in.text("a name"); },
        +[](ByteReader& in) { in.each(1, "tracks", [] {}); }}) {
    ByteReader in(out.bytes(), "a.file");
    const std::string sentence = failure_of([&] { read(in); });
    EXPECT_THAT(sentence, HasSubstr("a.file: claims more "));
    EXPECT_THAT(sentence, HasSubstr("(byte 8)"));
  }
  ByteReader in(out.bytes(), "a.file");
  EXPECT_THAT(failure_of([&] { in.raw(9, "the mark"); }), HasSubstr("ends inside the mark (byte 0)"));
  EXPECT_THAT(failure_of([&] { in.expect_end(); }), HasSubstr("something behind its end"));
}

TEST(ByteReader, RefusesNumbersThatDoNotEnd) {
  const std::string open(3, '\xff'), endless(20, '\xff');
  ByteReader cut(open, "a block"), longer(endless, "a block");
  EXPECT_THAT(failure_of([&] { cut.varint("a column"); }), HasSubstr("ends inside a column (byte 3)"));
  EXPECT_THAT(failure_of([&] { longer.varint("a column"); }), HasSubstr("too long"));
}

}  // namespace
}  // namespace ws
