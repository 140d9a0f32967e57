#include <cmath>
#include <cstdlib>

#include "datasets/csv.h"
#include "datasets/picture_set.h"
#include "datasets/locate.h"
#include "tests/datasets/bad_input.h"

namespace ws::data {
namespace {
using testing::HasSubstr;

// FNV-1a of the values as bytes, so that the whole of a set is pinned by one number.
uint64_t fingerprint(const std::vector<float>& x) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (float value : x) hash = (hash ^ static_cast<uint8_t>(std::lround(value * 255.0f))) * 0x100000001b3u;
  return hash;
}

// The means that Fisher's paper gives for each species, in centimetres.
TEST(Iris, HasTheMeansOfThePaper) {
  PackedReader reader(locate("iris/iris.csv"));
  const Dataset set = to_dataset(read_csv(reader), "species");
  ASSERT_EQ(set.train.rows, 150);
  EXPECT_THAT(set.class_names, testing::ElementsAre("setosa", "versicolor", "virginica"));
  const double means[3][4] = {{5.006, 3.428, 1.462, 0.246}, {5.936, 2.770, 4.260, 1.326}, {6.588, 2.974, 5.552, 2.026}};
  double sums[3][4] = {};
  for (size_t r = 0; r < 150; ++r)
    for (size_t c = 0; c < 4; ++c) sums[set.train.labels[r]][c] += set.train.x[4 * r + c];
  for (size_t k = 0; k < 3; ++k)
    for (size_t c = 0; c < 4; ++c) EXPECT_NEAR(sums[k][c] / 50, means[k][c], 1e-5);
  // Rows 35 and 38, where many copies differ from the paper.
  EXPECT_FLOAT_EQ(set.train.x[4 * 34 + 3], 0.2f);
  EXPECT_FLOAT_EQ(set.train.x[4 * 37 + 1], 3.6f);
  EXPECT_FLOAT_EQ(set.train.x[4 * 37 + 2], 1.4f);
}

TEST(Iris, IsSplitEvenlyAndStandardised) {
  const Dataset set = load({.name = "iris", .validation = 0.2});
  EXPECT_EQ(set.train.rows, 120);
  EXPECT_EQ(set.test.rows, 30);
  for (int label = 0; label < 3; ++label)
    EXPECT_EQ(std::count(set.test.labels.begin(), set.test.labels.end(), label), 10);
  for (size_t c = 0; c < 4; ++c) {
    double sum = 0, squares = 0;
    for (size_t r = 0; r < 120; ++r) {
      sum += set.train.x[4 * r + c];
      squares += std::pow(set.train.x[4 * r + c], 2);
    }
    EXPECT_NEAR(sum / 120, 0, 1e-5);
    EXPECT_NEAR(squares / 120, 1, 1e-5);
  }
}

TEST(Mnist, IsTheWholeSet) {
  const Dataset set = load({.name = "mnist"});
  EXPECT_EQ(set.train.rows, 60'000);
  EXPECT_EQ(set.test.rows, 10'000);
  EXPECT_EQ(set.features, 784);
  EXPECT_EQ(set.image_width, 28);
  EXPECT_EQ(set.image_height, 28);
  EXPECT_EQ(set.outputs, 10);
  EXPECT_THAT(std::vector<int32_t>(set.train.labels.begin(), set.train.labels.begin() + 5),
              testing::ElementsAre(5, 0, 4, 1, 9));
  EXPECT_THAT(std::vector<int32_t>(set.test.labels.begin(), set.test.labels.begin() + 5),
              testing::ElementsAre(7, 2, 1, 0, 4));
  double sum = 0;
  for (float x : set.train.x) sum += x;
  EXPECT_NEAR(sum / (60'000.0 * 784), 0.1307, 1e-4) << "the well-known mean of the training images";
  EXPECT_EQ(fingerprint(set.test.x), 0x8614c3e55764d65fu);
}

TEST(Mnist, GivesItsFirstRowsWhenAskedTo) {
  const Dataset few = load({.name = "mnist", .limit = 100});
  EXPECT_EQ(few.train.rows, 100);
  EXPECT_EQ(few.train.x.size(), 78'400u);
  EXPECT_EQ(few.test.rows, 10'000);
}

TEST(FashionMnist, LoadsOrReportsHowToGetIt) {
  if (std::filesystem::exists("/usr/share/datasets/fashion-mnist")) {
    const Dataset set = load({.name = "fashion-mnist"});
    EXPECT_EQ(set.train.rows, 60'000);
    EXPECT_EQ(set.class_names.at(9), "Boot");
  } else {
    EXPECT_THAT(failure_of([] { load({.name = "fashion-mnist"}); }), HasSubstr("apt install dataset-fashion-mnist"));
  }
}

TEST(Locate, AFolderNamedInTheEnvironmentComesFirst) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.at("iris"));
  folder.write("iris/iris.csv", "x,species\n1,a\n2,b\n3,a\n4,b\n");
  ASSERT_EQ(setenv("WARPSIGHT_DATA", folder.path().c_str(), 1), 0);
  const std::string found = locate("iris/iris.csv");
  const std::string elsewhere = locate("mnist/SHA256SUMS");
  const std::string sentence = failure_of([] { locate("cifar"); });
  unsetenv("WARPSIGHT_DATA");
  EXPECT_EQ(found, folder.at("iris/iris.csv"));
  EXPECT_EQ(elsewhere, std::string(WARPSIGHT_SOURCE_DIR) + "/datasets/mnist/SHA256SUMS");
  EXPECT_THAT(sentence,
              testing::AllOf(HasSubstr("cifar was not found in " + folder.path()), HasSubstr("WARPSIGHT_DATA")));
  EXPECT_THAT(sentence, HasSubstr("share/warpsight/datasets"));
}

}  // namespace
}  // namespace ws::data
