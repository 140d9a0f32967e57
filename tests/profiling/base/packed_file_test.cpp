#include "profiling/base/packed_file.h"

#include <sys/stat.h>

#include "profiling/base/budget.h"
#include "tests/datasets/bad_input.h"

namespace ws::data {
namespace {
using testing::AllOf;
using testing::HasSubstr;

std::string read_whole(const std::string& path) {
  PackedReader reader(path);
  return reader.read_text();
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919 % 1000) + ",";
  return text;
}

TEST(PackedReader, GivesTheSameBytesPlainAndPacked) {
  const TempFolder folder;
  const std::string text = long_text();
  EXPECT_EQ(read_whole(folder.write("plain", text)), text);
  EXPECT_EQ(read_whole(folder.write("packed", gzipped(text))), text);
}

TEST(PackedReader, ReadsSeveralPackedPiecesAsOne) {
  const TempFolder folder;
  EXPECT_EQ(read_whole(folder.write("two", gzipped("one ") + gzipped("two"))), "one two");
}

TEST(PackedReader, ReadsFromMemory) {
  const std::string packed = gzipped("hello");
  PackedReader reader("memory", {reinterpret_cast<const uint8_t*>(packed.data()), packed.size()});
  EXPECT_EQ(reader.read_text(), "hello");
  EXPECT_EQ(reader.offset(), 5u);
}

TEST(PackedReader, RefusesWhatIsNotAReadableFile) {
  const TempFolder folder;
  EXPECT_THAT(failure_of([&] { PackedReader r(folder.at("nowhere")); }),
              AllOf(HasSubstr("nowhere"), HasSubstr("No such file")));
  EXPECT_THAT(failure_of([&] { PackedReader r(folder.path()); }), HasSubstr("is a folder, not a file"));
  EXPECT_THAT(failure_of([&] { PackedReader r(folder.write("empty", "")); }), HasSubstr("is empty"));
  EXPECT_THAT(failure_of([&] { PackedReader r("/dev/zero"); }), HasSubstr("is not a regular file"));
  ASSERT_EQ(mkfifo(folder.at("pipe").c_str(), 0600), 0);
  EXPECT_THAT(failure_of([&] { PackedReader r(folder.at("pipe")); }), HasSubstr("is not a regular file"));
}

TEST(PackedReader, RefusesAFileWithoutPermission) {
  const TempFolder folder;
  const std::string path = folder.write("secret", "x");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  const bool root = geteuid() == 0;
  if (root && seteuid(65534) != 0) GTEST_SKIP() << "root reads every file and cannot become someone else here";
  const std::string sentence = failure_of([&] { PackedReader r(path); });
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_THAT(sentence, HasSubstr("Permission denied"));
}

TEST(PackedReader, NoticesAPackedFileCutOffAnywhere) {
  const TempFolder folder;
  const std::string packed = gzipped(long_text());
  for (size_t length : {size_t{2}, size_t{9}, size_t{12}, packed.size() / 2, packed.size() - 9, packed.size() - 1}) {
    const std::string path = folder.write("cut.gz", packed.substr(0, length));
    EXPECT_THAT(failure_of([&] { read_whole(path); }), AllOf(HasSubstr("cut.gz"), HasSubstr("cut off"))) << length;
  }
}

TEST(PackedReader, NoticesDamageInAPackedFile) {
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

TEST(PackedStream, EndsWhereTheTroubleIs) {
  const TempFolder folder;
  const std::string text = long_text();
  const auto read = [&](const std::string& bytes, uint64_t most, std::string& problem) {
    PackedStream buffer(folder.write("stream", bytes), most);
    std::istream in(&buffer);
    std::string all(std::istreambuf_iterator<char>(in), {});
    problem = buffer.problem();
    return all;
  };
  std::string problem;
  EXPECT_EQ(read(gzipped(text), text.size(), problem), text);
  EXPECT_EQ(problem, "");
  EXPECT_LT(read(gzipped(text), text.size() / 2, problem).size(), text.size());
  EXPECT_THAT(problem, HasSubstr("unpacks to more"));
  const std::string packed = gzipped(text);
  read(packed.substr(0, packed.size() / 2), text.size(), problem);
  EXPECT_THAT(problem, HasSubstr("cut off"));
}

TEST(PackedWriter, PacksByTheNameOfTheFile) {
  const TempFolder folder;
  const std::string text = long_text();
  for (const char* name : {"a.json", "a.json.gz"}) {
    PackedWriter out(folder.at(name));
    for (int i = 0; i < 5; ++i) out.put(text);
    out.close();
    EXPECT_EQ(read_whole(folder.at(name)), text + text + text + text + text);
  }
  EXPECT_GT(std::filesystem::file_size(folder.at("a.json")), 2 * std::filesystem::file_size(folder.at("a.json.gz")));
  EXPECT_THAT(failure_of([&] { PackedWriter out(folder.at("no/folder")); }), HasSubstr("Cannot write"));
}

TEST(PackedReader, RefusesSizesBeyondTheMachine) {
  EXPECT_THAT(failure_of([] { check_memory(1e18, "The set"); }), AllOf(HasSubstr("The set"), HasSubstr("TiB")));
  EXPECT_NO_THROW(check_memory(1e6, "The set"));
}

TEST(PackedReader, KeepsToTheMemoryLimit) {
  const TempFolder folder;
  const std::string path = folder.write("long", std::string(4 << 20, 'x'));
  set_memory_limit(1 << 20);
  const std::string text = failure_of([&] { read_whole(path); });
  const std::string count = failure_of([&] { PackedReader(path).read_count(4 << 20, "values"); });
  set_memory_limit(0);
  EXPECT_THAT(text, HasSubstr("--limit allows more"));
  EXPECT_THAT(count, HasSubstr("--limit allows more"));
}

TEST(PackedReader, CountsFromAHeaderAreNotBelieved) {
  const TempFolder folder;
  PackedReader reader(folder.write("short", std::string(1000, 'x')));
  EXPECT_THAT(failure_of([&] { reader.read_count(uint64_t{1} << 60, "values"); }),
              HasSubstr("at byte 0: the header promises 1152921504606846976 bytes of values, but the file holds only "
                        "1000"));
}

TEST(PackedReader, ASmallFileDoesNotBecomeAHugeText) {
  const TempFolder folder;
  const std::string path = folder.write("bomb", gzipped(std::string(30u << 20, ' ')));
  EXPECT_THAT(failure_of([&] { read_whole(path); }), HasSubstr("unpacks to more than such a file can hold"));
}

}  // namespace
}  // namespace ws::data
