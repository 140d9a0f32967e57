#include "profiling/base/byte_reader.h"

#include <sys/stat.h>

#include "tests/datasets/bad_input.h"

namespace ws::data {
namespace {
using testing::AllOf;
using testing::HasSubstr;

std::string read_whole(const std::string& path) {
  ByteReader reader(path);
  return reader.read_text();
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919 % 1000) + ",";
  return text;
}

TEST(ByteReader, GivesTheSameBytesPlainAndPacked) {
  const TempFolder folder;
  const std::string text = long_text();
  EXPECT_EQ(read_whole(folder.write("plain", text)), text);
  EXPECT_EQ(read_whole(folder.write("packed", gzipped(text))), text);
}

TEST(ByteReader, ReadsSeveralPackedPiecesAsOne) {
  const TempFolder folder;
  EXPECT_EQ(read_whole(folder.write("two", gzipped("one ") + gzipped("two"))), "one two");
}

TEST(ByteReader, ReadsFromMemory) {
  const std::string packed = gzipped("hello");
  ByteReader reader("memory", {reinterpret_cast<const uint8_t*>(packed.data()), packed.size()});
  EXPECT_EQ(reader.read_text(), "hello");
  EXPECT_EQ(reader.offset(), 5u);
}

TEST(ByteReader, RefusesWhatIsNotAReadableFile) {
  const TempFolder folder;
  EXPECT_THAT(failure_of([&] { ByteReader r(folder.at("nowhere")); }),
              AllOf(HasSubstr("nowhere"), HasSubstr("No such file")));
  EXPECT_THAT(failure_of([&] { ByteReader r(folder.path()); }), HasSubstr("is a folder, not a file"));
  EXPECT_THAT(failure_of([&] { ByteReader r(folder.write("empty", "")); }), HasSubstr("is empty"));
  EXPECT_THAT(failure_of([&] { ByteReader r("/dev/zero"); }), HasSubstr("is not a regular file"));
  ASSERT_EQ(mkfifo(folder.at("pipe").c_str(), 0600), 0);
  EXPECT_THAT(failure_of([&] { ByteReader r(folder.at("pipe")); }), HasSubstr("is not a regular file"));
}

TEST(ByteReader, RefusesAFileWithoutPermission) {
  const TempFolder folder;
  const std::string path = folder.write("secret", "x");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  const bool root = geteuid() == 0;
  if (root && seteuid(65534) != 0) GTEST_SKIP() << "root reads every file and cannot become someone else here";
  const std::string sentence = failure_of([&] { ByteReader r(path); });
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_THAT(sentence, HasSubstr("Permission denied"));
}

TEST(ByteReader, NoticesAPackedFileCutOffAnywhere) {
  const TempFolder folder;
  const std::string packed = gzipped(long_text());
  for (size_t length : {size_t{2}, size_t{9}, size_t{12}, packed.size() / 2, packed.size() - 9, packed.size() - 1}) {
    const std::string path = folder.write("cut.gz", packed.substr(0, length));
    EXPECT_THAT(failure_of([&] { read_whole(path); }), AllOf(HasSubstr("cut.gz"), HasSubstr("cut off"))) << length;
  }
}

TEST(ByteReader, NoticesDamageInAPackedFile) {
  const TempFolder folder;
  std::string packed = gzipped(long_text());
  std::string checksum = packed;
  checksum[packed.size() - 6] ^= 1;
  EXPECT_THAT(failure_of([&] { read_whole(folder.write("sum.gz", checksum)); }),
              AllOf(HasSubstr("damaged"), HasSubstr("incorrect data check"), HasSubstr("at byte")));
  packed[packed.size() / 2] ^= 0x55;
  EXPECT_THAT(failure_of([&] { read_whole(folder.write("middle.gz", packed)); }), HasSubstr("damaged"));
  EXPECT_THAT(failure_of([&] { read_whole(folder.write("tail.gz", gzipped("abc") + "rubbish")); }),
              HasSubstr("something else behind the end"));
}

TEST(ByteReader, RefusesSizesBeyondTheMachine) {
  EXPECT_THAT(failure_of([] { check_memory(1e18, "The set"); }), AllOf(HasSubstr("The set"), HasSubstr("TiB")));
  EXPECT_NO_THROW(check_memory(1e6, "The set"));
}

TEST(ByteReader, CountsFromAHeaderAreNotBelieved) {
  const TempFolder folder;
  ByteReader reader(folder.write("short", std::string(1000, 'x')));
  EXPECT_THAT(failure_of([&] { reader.read_count(uint64_t{1} << 60, "values"); }),
              HasSubstr("at byte 0: the header promises 1152921504606846976 bytes of values, but the file holds only "
                        "1000"));
}

}  // namespace
}  // namespace ws::data
