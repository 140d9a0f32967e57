#include "datasets/picture_set.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <filesystem>

#include "datasets/picture_file.h"
#include "tests/datasets/bad_input.h"

namespace ws::data {
namespace {
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Every pixel has one colour; `channels` 1: a grey file, 4: with a transparent colour.
std::string png(int width, int height, std::vector<uint8_t> colour) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width), image.height = static_cast<png_uint_32>(height);
  image.format = colour.size() == 1 ? PNG_FORMAT_GRAY : colour.size() == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  std::vector<uint8_t> values;
  for (int pixel = 0; pixel < width * height; ++pixel) values.insert(values.end(), colour.begin(), colour.end());
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string bytes(size, '\0');
  EXPECT_TRUE(png_image_write_to_memory(&image, bytes.data(), &size, 0, values.data(), 0, nullptr)) << image.message;
  bytes.resize(size);
  return bytes;
}

std::string jpeg(int width, int height, std::vector<uint8_t> colour) {
  const tjhandle encoder = tjInitCompress();
  std::vector<uint8_t> values;
  for (int pixel = 0; pixel < width * height; ++pixel) values.insert(values.end(), colour.begin(), colour.end());
  unsigned char* packed = nullptr;
  unsigned long size = 0;
  const bool grey = colour.size() == 1;
  EXPECT_EQ(tjCompress2(encoder, values.data(), width, 0, height, grey ? TJPF_GRAY : TJPF_RGB, &packed, &size,
                        grey ? TJSAMP_GRAY : TJSAMP_444, 95, 0),
            0);
  std::string bytes(reinterpret_cast<char*>(packed), size);
  tjFree(packed);
  tjDestroy(encoder);
  return bytes;
}

class PictureFolder : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(folder_.at(name)).parent_path());
    folder_.write(name, bytes);
  }
  DataSpec spec(int64_t side = 0, bool skip = false) const {
    return {.name = "pictures", .path = folder_.path(), .validation = 0, .side = side, .skip_broken = skip};
  }
  std::string sentence(const DataSpec& spec) const {
    return failure_of([&] { load(spec); });
  }
  TempFolder folder_;
};

TEST_F(PictureFolder, ReadsPngAndJpegInBothColours) {
  put("red.png", png(3, 2, {255, 0, 51}));
  const Picture red = read_picture(folder_.at("red.png"));
  EXPECT_EQ(red.width, 3);
  EXPECT_EQ(red.height, 2);
  EXPECT_EQ(red.channels, 3);
  EXPECT_THAT(std::vector<uint8_t>(red.values.begin(), red.values.begin() + 3), ElementsAre(255, 0, 51));
  put("grey.png", png(1, 1, {77}));
  EXPECT_THAT(read_picture(folder_.at("grey.png")).values, ElementsAre(77));
  put("photo.jpg", jpeg(8, 8, {200, 100, 50}));
  const Picture photo = read_picture(folder_.at("photo.jpg"));
  ASSERT_EQ(photo.values.size(), 192u);
  EXPECT_NEAR(photo.values[0], 200, 3);
  EXPECT_NEAR(photo.values[2], 50, 3);
  put("scan.jpg", jpeg(8, 8, {90}));
  EXPECT_EQ(read_picture(folder_.at("scan.jpg")).channels, 1);
}

TEST_F(PictureFolder, TransparentPixelsLieOnWhite) {
  put("glass.png", png(1, 1, {0, 0, 0, 0}));
  EXPECT_THAT(read_picture(folder_.at("glass.png")).values, ElementsAre(255, 255, 255));
}

TEST(Square, IsTheMiddleAndEachPixelIsTheMeanOfItsArea) {
  const Picture wide{4, 2, 1, {9, 10, 30, 9, 9, 20, 40, 9}};
  EXPECT_THAT(square(wide, 1).values, ElementsAre(25));
  EXPECT_THAT(square(wide, 2).values, ElementsAre(10, 30, 20, 40));
  EXPECT_THAT(square(wide, 4).values, ElementsAre(10, 10, 30, 30, 10, 10, 30, 30, 20, 20, 40, 40, 20, 20, 40, 40));
  const Picture three{
      3, 3, 1, {0, 90, 0, 90, 180, 90, 0, 90, 0}};  // a pixel covers 1.5 by 1.5: (0 + 45 + 45 + 45) / 2.25
  EXPECT_THAT(square(three, 2).values, ElementsAre(60, 60, 60, 60));
}

TEST_F(PictureFolder, FoldersAreClassesAndTheTestFolderIsTheTestPart) {
  put("train/dog/a.png", png(2, 2, {255, 255, 255}));
  put("train/cat/b.PNG", png(2, 2, {0, 0, 0}));
  put("train/cat/notes.txt", "no picture");
  put("train/.hidden/c.png", png(2, 2, {0, 0, 0}));
  put("val/dog/d.jpeg", jpeg(2, 2, {255, 255, 255}));
  const Dataset set = load(spec());
  EXPECT_THAT(set.class_names, ElementsAre("cat", "dog"));
  EXPECT_EQ(set.train.rows, 2);
  EXPECT_EQ(set.features, 12);
  for (size_t row = 0; row < 2; ++row)
    EXPECT_FLOAT_EQ(set.train.x[12 * row], static_cast<float>(set.train.labels[row]));
  EXPECT_THAT(set.test.labels, ElementsAre(1));
  EXPECT_NEAR(set.test.x[0], 1, 0.02);
}

TEST_F(PictureFolder, WithoutATestFolderRowsAreHeldOut) {
  for (int i = 0; i < 10; ++i)
    put("a/" + std::to_string(i) + ".png", png(2, 2, {10})), put("b/" + std::to_string(i) + ".png", png(2, 2, {20}));
  DataSpec half = spec();
  half.validation = 0.5;
  const Dataset set = load(half);
  EXPECT_EQ(set.image_channels, 1);
  EXPECT_EQ(set.train.rows, 10);
  EXPECT_EQ(std::ranges::count(set.test.labels, 0), 5);
}

TEST_F(PictureFolder, GreyPicturesAmongColouredOnesBecomeColoured) {
  put("a/x.png", png(2, 2, {51}));
  put("b/y.png", png(2, 2, {1, 2, 3}));
  const Dataset set = load(spec());
  EXPECT_EQ(set.features, 12);
  EXPECT_THAT(set.note, HasSubstr("1 grey pictures became coloured"));
}

TEST_F(PictureFolder, DifferentSizesNeedASide) {
  put("a/x.png", png(4, 2, {51}));
  put("b/y.png", png(6, 6, {1}));
  EXPECT_THAT(sentence(spec()), AllOf(HasSubstr("a/x.png is 4 × 2, but b/y.png is 6 × 6"), HasSubstr("choose a side")));
  EXPECT_EQ(load(spec(3)).features, 9);
}

TEST_F(PictureFolder, BrokenFilesAreNamedCountedAndLeftOutOnRequest) {
  for (const char* name : {"a/1.png", "a/2.png", "b/1.png", "b/2.png"}) put(name, png(2, 2, {51}));
  put("a/text.png", "hello");
  put("a/empty.jpg", "");
  put("b/cut.png", png(64, 64, {1, 2, 3}).substr(0, 60));
  put("b/cut.jpg", jpeg(64, 64, {1, 2, 3}).substr(0, 500));
  EXPECT_THAT(
      sentence(spec()),
      AllOf(
          HasSubstr("4 of 8 files cannot be used: a/empty.jpg is empty; a/text.png is no PNG or JPEG file; b/cut.jpg "),
          HasSubstr("…"), HasSubstr("leave out broken files")));
  const Dataset set = load(spec(0, true));
  EXPECT_EQ(set.train.rows, 4);
  EXPECT_THAT(set.note, HasSubstr("4 of 8 files cannot be used"));
}

TEST_F(PictureFolder, WrongFoldersGetASentence) {
  EXPECT_THAT(sentence({.name = "pictures", .path = folder_.at("nowhere")}), HasSubstr("there is no such folder"));
  EXPECT_THAT(sentence(spec()), HasSubstr("holds no folder"));
  put("a/x.png", png(2, 2, {51}));
  EXPECT_THAT(sentence(spec()), HasSubstr("holds one folder; put the pictures of each class"));
  put("b/y.txt", "none");
  EXPECT_THAT(sentence(spec()), HasSubstr("b: this class holds no PNG or JPEG files"));
  put("train/a/x.png", png(2, 2, {51}));
  put("train/b/x.png", png(2, 2, {51}));
  put("test/c/x.png", png(2, 2, {51}));
  EXPECT_THAT(sentence(spec()), HasSubstr("test/c: there is no training class of this name"));
}

TEST_F(PictureFolder, AHugeSizeInASmallFileIsRefused) {
  std::string claims = png(1, 1, {1});
  claims.replace(16, 8, std::string("\x00\x01\x00\x00\x00\x01\x00\x00", 8));  // 65536 by 65536
  put("a/x.png", claims);
  EXPECT_THAT(failure_of([&] { read_picture(folder_.at("a/x.png")); }), testing::Not(testing::IsEmpty()));
}

}  // namespace
}  // namespace ws::data
