#include "datasets/idx.h"

#include <bit>

#include "datasets/dataset.h"
#include "tests/datasets/bad_input.h"

namespace ws::data {
namespace {
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> floats_of(const std::string& bytes, int64_t rows = 1000) {
  PackedReader reader("file", {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  const IdxHeader header = read_idx_header(reader);
  return read_idx_floats(reader, header, rows);
}

std::vector<int32_t> labels_of(const std::string& bytes, int64_t classes) {
  PackedReader reader("file", {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  return read_idx_labels(reader, classes);
}

TEST(Idx, ReadsEveryValueType) {
  EXPECT_THAT(floats_of(idx_bytes(8, {3}, {0, 51, '\xff'})), ElementsAre(0.0f, 51.0f * (1.0f / 255), 1.0f));
  EXPECT_THAT(floats_of(idx_bytes(9, {2}, {5, '\xfe'})), ElementsAre(5.0f, -2.0f));
  EXPECT_THAT(floats_of(idx_bytes(0x0b, {2}, {1, 2, '\xff', '\xff'})), ElementsAre(258.0f, -1.0f));
  EXPECT_THAT(floats_of(idx_bytes(0x0c, {1}, {'\xff', '\xff', '\xff', '\xfd'})), ElementsAre(-3.0f));
  EXPECT_THAT(floats_of(idx_bytes(0x0d, {1}, big_endian(std::bit_cast<uint32_t>(2.5f)))), ElementsAre(2.5f));
  const uint64_t half = std::bit_cast<uint64_t>(-0.5);
  const std::string words = big_endian(static_cast<uint32_t>(half >> 32)) + big_endian(static_cast<uint32_t>(half));
  EXPECT_THAT(floats_of(idx_bytes(0x0e, {1}, words)), ElementsAre(-0.5f));
}

TEST(Idx, KeepsTheFirstRowsButChecksAll) {
  const std::string bytes = idx_bytes(8, {3, 2}, {0, 0, '\xff', '\xff', 0, 0});
  EXPECT_THAT(floats_of(bytes, 2), ElementsAre(0.0f, 0.0f, 1.0f, 1.0f));
  EXPECT_THAT(failure_of([&] { floats_of(bytes.substr(0, bytes.size() - 1), 1); }), HasSubstr("only"));
}

TEST(Idx, RefusesAWrongMagicNumber) {
  EXPECT_THAT(failure_of([] { floats_of("PK\x03\x04 something"); }),
              AllOf(HasSubstr("at byte 0"), HasSubstr("0x504B0304"), HasSubstr("not an IDX file")));
  EXPECT_THAT(failure_of([] { floats_of(idx_bytes(7, {1}, "x")); }), HasSubstr("not an IDX file"));
  EXPECT_THAT(failure_of([] { floats_of(idx_bytes(8, {}, "x")); }), HasSubstr("not an IDX file"));
  EXPECT_THAT(failure_of([] { floats_of(idx_bytes(8, {1, 1, 1, 1, 1}, "x")); }), HasSubstr("not an IDX file"));
  EXPECT_THAT(failure_of([] { floats_of("ab"); }), HasSubstr("expected 4 bytes of IDX magic number, found only 2"));
}

TEST(Idx, RefusesAFileThatUnpacksToAThousandTimesItsSize) {
  const std::string zeros = gzipped(idx_bytes(8, {20'000, 1000}, std::string(20'000'000, '\0')));
  EXPECT_LT(zeros.size(), 30'000u);
  EXPECT_THAT(failure_of([&] { floats_of(zeros); }), HasSubstr("promises 20000000 bytes of values, more than such a file can hold"));
  const std::string fewer = gzipped(idx_bytes(8, {16'000, 1000}, std::string(16'000'000, '\0')));
  EXPECT_EQ(floats_of(fewer, 3).size(), 3000u);
}

TEST(Idx, RefusesSizesTheFileDoesNotHold) {
  EXPECT_THAT(failure_of([] { floats_of(idx_bytes(8, {5}, "abc")); }),
              AllOf(HasSubstr("at byte 8"), HasSubstr("promises 5 bytes"), HasSubstr("holds only 3")));
  EXPECT_THAT(failure_of([] { floats_of(idx_bytes(8, {2}, "abc")); }),
              AllOf(HasSubstr("at byte 10"), HasSubstr("more values than the header says")));
  EXPECT_THAT(failure_of([] {
                floats_of(idx_bytes(8, {0, 3}, ""));
              }),
              AllOf(HasSubstr("at byte 4"), HasSubstr("zero")));
  EXPECT_THAT(failure_of([] {
                floats_of(idx_bytes(8, {60000, 28, 28}, "abc"));
              }),
              HasSubstr("promises 47040000 bytes of values, more than such a file can hold"));
  const uint32_t most = 0xffffffff;
  EXPECT_THAT(failure_of([&] {
                floats_of(idx_bytes(8, {most, most, most}, "abc"));
              }),
              AllOf(HasSubstr("at byte 12"), HasSubstr("impossibly large")));
  EXPECT_THAT(failure_of([] { floats_of(idx_bytes(8, {5, 5}, "").substr(0, 9)); }), HasSubstr("of a size"));
}

// A packed file may claim much; what it claims must not be allocated before it has arrived.
TEST(Idx, APackedFileCannotClaimWhatItDoesNotHold) {
  const std::string honest(100'000, 'x');
  const std::string lying = gzipped(idx_bytes(8, {200'000}, honest));
  EXPECT_THAT(failure_of([&] { floats_of(lying); }), HasSubstr("more than such a file can hold"));
  const std::string slightly = gzipped(idx_bytes(8, {100'001}, honest));
  EXPECT_THAT(failure_of([&] { floats_of(slightly, 200'000); }), HasSubstr("the file holds only"));
  EXPECT_THAT(failure_of([&] { floats_of(gzipped(idx_bytes(8, {4'000'000'000}, honest))); }),
              HasSubstr("more than such a file can hold"));
}

TEST(Idx, RefusesValuesThatAreNotNumbers) {
  const std::string nan = big_endian(0x7fc00000);
  EXPECT_THAT(failure_of([&] { floats_of(idx_bytes(0x0d, {2}, big_endian(0) + nan)); }),
              AllOf(HasSubstr("at byte 12"), HasSubstr("not a finite number")));
}

TEST(Idx, ChecksLabels) {
  EXPECT_THAT(labels_of(idx_bytes(8, {3}, {0, 9, 4}), 10), ElementsAre(0, 9, 4));
  EXPECT_THAT(failure_of([] {
                labels_of(idx_bytes(8, {3}, {0, 10, 4}), 10);
              }),
              AllOf(HasSubstr("at byte 9"), HasSubstr("row 2 has the label 10"), HasSubstr("from 0 to 9")));
  EXPECT_THAT(failure_of([] { labels_of(idx_bytes(9, {1}, {'\xff'}), 0); }), HasSubstr("label -1"));
  const std::string half = big_endian(std::bit_cast<uint32_t>(0.5f));
  EXPECT_THAT(failure_of([&] { labels_of(idx_bytes(0x0d, {1}, half), 0); }), HasSubstr("label 0.5"));
  EXPECT_THAT(failure_of([] { labels_of(idx_bytes(0x0c, {1}, big_endian(2'000'000'000)), 0); }),
              HasSubstr("label 2e+09"));
  EXPECT_THAT(failure_of([] { labels_of(idx_bytes(8, {1, 2}, "ab"), 0); }), HasSubstr("not one label"));
}

class IdxFolder : public testing::Test {
 protected:
  // Twelve 2 x 2 images in three classes, plain.
  void write_train() {
    folder_.write("train-images-idx3-ubyte", idx_bytes(8, {12, 2, 2}, std::string(48, '\x33')));
    folder_.write("train-labels-idx1-ubyte", idx_bytes(8, {12}, {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
  }
  void write_test(const std::string& labels) {
    const uint32_t rows = static_cast<uint32_t>(labels.size());
    folder_.write("t10k-images-idx3-ubyte.gz", gzipped(idx_bytes(8, {rows, 2, 2}, std::string(4 * rows, '\x33'))));
    folder_.write("t10k-labels-idx1-ubyte.gz", gzipped(idx_bytes(8, {rows}, labels)));
  }
  DataSpec spec() const { return {.name = "idx", .path = folder_.path(), .validation = 0.25}; }
  TempFolder folder_;
};

TEST_F(IdxFolder, TakesItsOwnTestPart) {
  write_train();
  write_test({0, 2});
  const Dataset set = load(spec());
  EXPECT_EQ(set.train.rows, 12);
  EXPECT_EQ(set.test.rows, 2);
  EXPECT_EQ(set.features, 4);
  EXPECT_EQ(set.image_width, 2);
  EXPECT_EQ(set.outputs, 3);
  EXPECT_THAT(set.test.labels, ElementsAre(0, 2));
  EXPECT_EQ(set.train.x.size(), 48u);
  EXPECT_FLOAT_EQ(set.train.x[0], 0.2f);
}

TEST_F(IdxFolder, HoldsRowsOutWhenThereIsNoTestPart) {
  write_train();
  const Dataset set = load(spec());
  EXPECT_EQ(set.train.rows, 9);
  EXPECT_THAT(set.test.labels, testing::UnorderedElementsAre(0, 1, 2));
}

TEST_F(IdxFolder, UsesTheFirstRowsWhenAskedTo) {
  write_train();
  write_test({0, 2});
  DataSpec few = spec();
  few.limit = 2;
  const Dataset set = load(few);
  EXPECT_EQ(set.train.rows, 2);
  EXPECT_EQ(set.train.x.size(), 8u);
  EXPECT_EQ(set.train.labels.size(), 2u);
  EXPECT_EQ(set.outputs, 3) << "classes are counted over all rows";
  EXPECT_EQ(set.test.rows, 2);
}

TEST_F(IdxFolder, NamesWhatDoesNotFitTogether) {
  EXPECT_THAT(failure_of([&] { load(spec()); }), HasSubstr("holds no train-images-idx3-ubyte"));
  write_train();
  write_test({0, 3});
  EXPECT_THAT(failure_of([&] { load(spec()); }), AllOf(HasSubstr("t10k-labels"), HasSubstr("from 0 to 2")));
  folder_.write("t10k-labels-idx1-ubyte.gz", gzipped(idx_bytes(8, {3}, {0, 1, 2})));
  EXPECT_THAT(failure_of([&] { load(spec()); }), AllOf(HasSubstr("holds 2 images"), HasSubstr("holds 3 labels")));
  write_test({0, 1});
  folder_.write("t10k-images-idx3-ubyte.gz", gzipped(idx_bytes(8, {2, 1, 2}, "abcd")));
  EXPECT_THAT(failure_of([&] { load(spec()); }), HasSubstr("have 2 values, but those of"));
  std::filesystem::remove(folder_.at("t10k-labels-idx1-ubyte.gz"));
  EXPECT_THAT(failure_of([&] { load(spec()); }), HasSubstr("only one is there"));
}

TEST_F(IdxFolder, TakesNamesThatSayWhatTheyHold) {
  const std::string images = idx_bytes(8, {6, 2, 2}, std::string(24, '\x33')),
                    labels = idx_bytes(8, {6}, {0, 1, 2, 0, 1, 2});
  folder_.write("emnist-letters-train-images-idx3-ubyte.gz", gzipped(images));
  folder_.write("emnist-letters-train-labels-idx1-ubyte.gz", gzipped(labels));
  folder_.write("emnist-letters-test-images-idx3-ubyte.gz", gzipped(images));
  folder_.write("emnist-letters-test-labels-idx1-ubyte.gz", gzipped(labels));
  folder_.write("emnist-letters-mapping.txt", "1 65 97");
  folder_.write("train-images.png", "no IDX file by its name");
  EXPECT_EQ(load(spec()).test.rows, 6);
  folder_.write("emnist-letters-train-images-idx3-ubyte", images);  // unpacked beside itself
  EXPECT_EQ(load(spec()).train.rows, 6);
}

TEST_F(IdxFolder, TakesRowsOfNumbersAndPicturesInColour) {
  folder_.write("Train_Labels.idx1", idx_bytes(8, {6}, {0, 1, 2, 0, 1, 2}));
  const std::string flat = folder_.write("Train_Images.idx2-float", idx_bytes(0x0d, {6, 2}, std::string(48, '\0')));
  EXPECT_EQ(load(spec()).features, 2);
  std::filesystem::remove(flat);
  folder_.write("Train_Images.idx4", idx_bytes(8, {6, 3, 2, 2}, std::string(72, '\x33')));
  EXPECT_EQ(load(spec()).features, 12);
}

TEST_F(IdxFolder, AsksWhichOfTwoIsMeant) {
  write_train();
  folder_.write("letters-train-labels-idx1-ubyte", idx_bytes(8, {12}, std::string(12, '\0')));
  EXPECT_THAT(failure_of([&] { load(spec()); }),
              AllOf(HasSubstr("both letters-train-labels-idx1-ubyte and train-labels-idx1-ubyte"),
                    HasSubstr("could be the train labels")));
}

TEST_F(IdxFolder, NeedsAPath) {
  EXPECT_THAT(failure_of([] { load({.name = "idx"}); }), HasSubstr("needs the path of a folder"));
  EXPECT_THAT(failure_of([] { load({.name = "idx", .path = "/nowhere"}); }), HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace ws::data
