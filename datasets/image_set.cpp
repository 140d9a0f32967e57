#include "datasets/image_set.h"

#include <algorithm>
#include <filesystem>
#include <future>

#include "datasets/idx.h"
#include "datasets/locate.h"
#include "datasets/split.h"
#include "profiling/failure.h"

namespace ws::data {
namespace {
namespace fs = std::filesystem;

struct Part {
  Split split;
  int64_t features = 0, width = 0, height = 0;
  std::string images_file;
};

// The first of the usual spellings that exists; empty when none does.
std::string find_file(const fs::path& folder, const std::string& part, const std::string& kind, int dimensions) {
  const std::string rank = "idx" + std::to_string(dimensions) + "-ubyte";
  for (const char* joint : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      const fs::path path = folder / (part + "-" + kind + joint + rank + ending);
      std::error_code unreadable;
      if (fs::exists(path, unreadable)) return path.string();
    }
  }
  return {};
}

// Image sizes for a (rows, height, width) array; other shapes are plain rows of features.
void take_shape(const IdxHeader& images, Part& part) {
  part.features = images.values_per_row();
  if (images.sizes.size() != 3) return;
  part.height = images.sizes[1];
  part.width = images.sizes[2];
}

std::vector<int32_t> read_labels(const std::string& path, int64_t classes) {
  ByteReader reader(path);
  return read_idx_labels(reader, classes);
}

Part read_part(const std::string& images_file, const std::string& labels_file, int64_t classes, int64_t limit) {
  Part part{.images_file = images_file};
  part.split.labels = read_labels(labels_file, classes);
  ByteReader reader(images_file);
  const IdxHeader images = read_idx_header(reader);
  const int64_t labels = static_cast<int64_t>(part.split.labels.size());
  if (labels != images.rows())
    reader.fail(4, "holds " + std::to_string(images.rows()) + " images, but " + labels_file + " holds " +
                       std::to_string(labels) + " labels");
  take_shape(images, part);
  part.split.rows = limit > 0 ? std::min(limit, labels) : labels;
  part.split.labels.resize(static_cast<size_t>(part.split.rows));
  part.split.x = read_idx_floats(reader, images, part.split.rows);
  return part;
}

void check_same_shape(const Part& train, const Part& test) {
  if (test.features == train.features) return;
  throw Failure(test.images_file + ": at byte 8: its images have " + std::to_string(test.features) +
                " values, but those of " + train.images_file + " have " + std::to_string(train.features));
}

std::vector<std::string> digits(int64_t classes) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

Dataset join(Part train, Part test, int64_t classes) {
  Dataset set;
  set.features = train.features;
  set.image_width = train.width;
  set.image_height = train.height;
  set.outputs = classes;
  set.class_names = digits(classes);
  set.train = std::move(train.split);
  set.test = std::move(test.split);
  return set;
}

// How many classes the training labels have, before a limit cuts rows off.
int64_t classes_in(const std::string& labels_file) {
  const std::vector<int32_t> labels = read_labels(labels_file, 0);
  return 1 + *std::max_element(labels.begin(), labels.end());
}

}  // namespace

Dataset load_image_folder(const std::string& folder, int64_t classes, int64_t limit) {
  const std::string images = find_file(folder, "train", "images", 3);
  const std::string labels = find_file(folder, "train", "labels", 1);
  if (images.empty() || labels.empty())
    throw Failure(folder + ": holds no train-" + (images.empty() ? "images-idx3-ubyte" : "labels-idx1-ubyte") +
                  " file, plain or .gz");
  std::string test_part = "t10k";
  if (find_file(folder, test_part, "images", 3).empty()) test_part = "test";
  const std::string test_images = find_file(folder, test_part, "images", 3);
  const std::string test_labels = find_file(folder, test_part, "labels", 1);
  if (test_images.empty() != test_labels.empty())
    throw Failure(folder + ": of " + test_part + "-images and " + test_part + "-labels only one is there");
  if (classes == 0) classes = classes_in(labels);

  std::future<Part> test;
  if (!test_images.empty())
    test = std::async(std::launch::async, read_part, test_images, test_labels, classes, 0);
  else
    limit = 0;  // the rows to hold out are still among these
  Part train = read_part(images, labels, classes, limit);
  Part test_read = test.valid() ? test.get() : Part{};
  if (!test_images.empty()) check_same_shape(train, test_read);
  return join(std::move(train), std::move(test_read), classes);
}

Dataset load_mnist(const DataSpec& spec) {
  Dataset set = load_image_folder(locate("mnist"), 10, spec.limit);
  set.origin = "MNIST, handwritten digits by LeCun, Cortes and Burges; the 10,000 test images are the test part.";
  return set;
}

Dataset load_fashion_mnist(const DataSpec& spec) {
  const std::string installed = "/usr/share/datasets/fashion-mnist";
  std::error_code unreadable;
  if (!fs::exists(installed, unreadable))
    throw Failure("Fashion-MNIST is not on this machine: `apt install dataset-fashion-mnist` puts it into " +
                  installed);
  Dataset set = load_image_folder(installed, 10, spec.limit);
  set.class_names = {"T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Boot"};
  set.origin = "Fashion-MNIST, articles of clothing by Zalando Research; the 10,000 test images are the test part.";
  return set;
}

Dataset load_idx_folder(const DataSpec& spec) {
  if (spec.path.empty()) throw Failure("The data set idx needs the path of a folder with IDX files");
  Dataset set = load_image_folder(spec.path, 0, spec.limit);
  if (set.test.rows == 0) hold_out(set, spec.validation, spec.seed);
  set.origin = "The IDX files in " + spec.path + ".";
  return set;
}

}  // namespace ws::data
