#include "datasets/picture_set.h"

#include "tests/datasets/bad_input.h"

namespace ws::data {
namespace {
using testing::HasSubstr;

// A picture of one grey level for each channel.
std::string cifar_record(int label, unsigned char red, unsigned char green, unsigned char blue) {
  std::string bytes(1, static_cast<char>(label));
  for (unsigned char value : {red, green, blue}) bytes += std::string(1024, static_cast<char>(value));
  return bytes;
}

TEST(Cifar, PlanesBecomePixelsWithThreeChannels) {
  const TempFolder folder;
  std::string first = cifar_record(3, 255, 0, 51);
  first[1 + 33] = 0;  // red of the pixel in row 1, column 1
  folder.write("data_batch_1.bin", first + cifar_record(9, 0, 255, 0));
  folder.write("data_batch_2.bin", cifar_record(0, 0, 0, 255));
  folder.write("test_batch.bin", cifar_record(1, 1, 1, 1));
  const Dataset set = load({.name = "cifar-10", .path = folder.path()});
  ASSERT_EQ(set.train.rows, 3);
  EXPECT_EQ(set.test.rows, 1);
  EXPECT_EQ(set.train.labels, (std::vector<int32_t>{3, 9, 0}));
  EXPECT_EQ(set.image_channels, 3);
  EXPECT_FLOAT_EQ(set.train.x[0], 1);
  EXPECT_FLOAT_EQ(set.train.x[2], 0.2f);
  EXPECT_FLOAT_EQ(set.train.x[33 * 3], 0);
  EXPECT_FLOAT_EQ(set.train.x[3072 + 1], 1);
  EXPECT_EQ(load({.name = "cifar-10", .path = folder.path(), .limit = 2}).train.rows, 2);
}

TEST(Cifar, BadFilesGetASentence) {
  const TempFolder folder;
  EXPECT_THAT(failure_of([&] { load({.name = "cifar-10", .path = folder.path()}); }), HasSubstr("holds no data_batch_1.bin"));
  folder.write("data_batch_1.bin", cifar_record(3, 1, 2, 3) + cifar_record(10, 1, 2, 3));
  EXPECT_THAT(failure_of([&] { load({.name = "cifar-10", .path = folder.path()}); }), HasSubstr("at byte 3073: the label is 10"));
  folder.write("data_batch_1.bin", cifar_record(3, 1, 2, 3).substr(0, 2000));
  EXPECT_THAT(failure_of([&] { load({.name = "cifar-10", .path = folder.path()}); }), HasSubstr("at byte 0: a picture is cut short"));
}

TEST(Shapes, ArePicturesOfEveryClassAndDependOnTheSeedOnly) {
  const DataSpec spec{.name = "shapes", .points = 200, .noise = 0.05, .validation = 0.25};
  const Dataset set = load(spec), again = load(spec);
  EXPECT_EQ(set.train.rows, 150);
  EXPECT_EQ(set.test.rows, 50);
  EXPECT_EQ(set.train.x, again.train.x);
  EXPECT_EQ(std::count(set.train.labels.begin(), set.train.labels.end(), 4), 15);
  const auto [least, most] = std::minmax_element(set.train.x.begin(), set.train.x.end());
  EXPECT_GE(*least, 0);
  EXPECT_LE(*most, 1);
  EXPECT_GT(*most, 0.5);
}

}  // namespace
}  // namespace ws::data
