#include "datasets/picture_set.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <future>
#include <optional>
#include <string_view>

#include "datasets/idx.h"
#include "datasets/locate.h"
#include "datasets/split.h"
#include "profiling/base/failure.h"

namespace ws::data {
namespace {
namespace fs = std::filesystem;

struct Part {
  Split split;
  int64_t features = 0, width = 0, height = 0;
  std::string images_file;
};

// What the name of an IDX file shows: "emnist-letters-train-images-idx3-ubyte.gz" holds training images.
struct FileName {
  std::string part, kind;  // "train" or "test", "images" or "labels"
};

bool is_letter(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }

// True if the name has the word as a whole: "latest" is not "test".
bool has_word(std::string_view name, std::string_view word) {
  for (size_t at = name.find(word); at != name.npos; at = name.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_letter(name[at - 1])) && (end == name.size() || !is_letter(name[end]))) return true;
  }
  return false;
}

// True for "-idx3-ubyte.gz", ".idx1": a rank, and one word at most behind it.
bool is_idx(std::string_view name) {
  if (name.ends_with(".gz")) name.remove_suffix(3);
  const auto is_one_of = [](char c, std::string_view of) { return of.find(c) != of.npos; };
  const auto in_word = [](char c) { return is_letter(c) || std::isdigit(static_cast<unsigned char>(c)); };
  for (size_t at = name.find("idx", 1); at != name.npos; at = name.find("idx", at + 1)) {
    const std::string_view rest = name.substr(at + 3);
    if (!is_one_of(name[at - 1], "-._") || rest.empty() || !is_one_of(rest[0], "1234")) continue;
    if (rest.size() == 1) return true;
    if (rest.size() > 2 && is_one_of(rest[1], "-_") && std::ranges::all_of(rest.substr(2), in_word)) return true;
  }
  return false;
}

std::optional<FileName> read_name(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!is_idx(name)) return {};
  const auto has = [&name](const char* word) { return has_word(name, word); };
  const bool train = has("train") || has("training"), test = has("t10k") || has("test");
  const bool images = has("image") || has("images"), labels = has("label") || has("labels");
  if (train == test || images == labels) return {};
  return FileName{train ? "train" : "test", images ? "images" : "labels"};
}

// If a file exists both packed and unpacked, drops the packed one.
void keep_unpacked(std::vector<std::string>& files) {
  std::erase_if(files, [&](const std::string& file) {
    return file.ends_with(".gz") && std::ranges::count(files, file.substr(0, file.size() - 3)) > 0;
  });
}

// Returns the folder's file of that kind, or an empty string if there is none. Throws Failure if there are two.
std::string find_file(const fs::path& folder, const std::string& part, const std::string& kind) {
  std::vector<std::string> found;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    const auto name = read_name(entry.path().filename().string());
    if (name && name->part == part && name->kind == kind) found.push_back(entry.path().string());
  }
  std::ranges::sort(found);
  keep_unpacked(found);
  if (found.size() > 1)
    throw Failure(folder.string() + ": both " + fs::path(found[0]).filename().string() + " and " +
                  fs::path(found[1]).filename().string() + " could be the " + part + " " + kind +
                  "; leave one of them in the folder");
  return found.empty() ? std::string() : found[0];
}

// Takes the image size from a (rows, height, width) array. Other shapes are plain rows of features.
void take_shape(const IdxHeader& images, Part& part) {
  part.features = images.values_per_row();
  if (images.sizes.size() != 3) return;
  part.height = images.sizes[1];
  part.width = images.sizes[2];
}

std::vector<int32_t> read_labels(const std::string& path, int64_t classes) {
  PackedReader reader(path);
  return read_idx_labels(reader, classes);
}

Part read_part(const std::string& images_file, const std::string& labels_file, int64_t classes, int64_t limit) {
  Part part{.images_file = images_file};
  part.split.labels = read_labels(labels_file, classes);
  PackedReader reader(images_file);
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

// Returns the number of classes in all training labels; a row limit has no effect here.
int64_t classes_in(const std::string& labels_file) {
  const std::vector<int32_t> labels = read_labels(labels_file, 0);
  return 1 + *std::max_element(labels.begin(), labels.end());
}

}  // namespace

Dataset load_image_folder(const std::string& folder, int64_t classes, int64_t limit) {
  const std::string images = find_file(folder, "train", "images"), labels = find_file(folder, "train", "labels");
  if (std::error_code none; !std::filesystem::is_directory(folder, none))
    throw Failure(folder + ": there is no such folder.");
  if (images.empty() || labels.empty())
    throw Failure(folder + ": holds no train-" + (images.empty() ? "images-idx3-ubyte" : "labels-idx1-ubyte") +
                  " file or one of such a name, plain or .gz");
  const std::string test_images = find_file(folder, "test", "images"),
                    test_labels = find_file(folder, "test", "labels");
  if (test_images.empty() != test_labels.empty())
    throw Failure(folder + ": of the test images and the test labels only one is there: " +
                  fs::path(test_images + test_labels).filename().string());
  if (classes == 0) classes = classes_in(labels);

  std::future<Part> test;
  if (!test_images.empty())
    test = std::async(std::launch::async, read_part, test_images, test_labels, classes, 0);
  else
    limit = 0;  // the rows to hold out are still among the training rows
  Part train = read_part(images, labels, classes, limit);
  Part test_read = test.valid() ? test.get() : Part{};
  if (!test_images.empty()) check_same_shape(train, test_read);
  return join(std::move(train), std::move(test_read), classes);
}

Dataset load_mnist(const DataSpec& spec) {
  Dataset set = load_image_folder(locate("mnist"), 10, spec.limit);
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
  return set;
}

Dataset load_idx_folder(const DataSpec& spec) {
  Dataset set = load_image_folder(spec.path, 0, spec.limit);
  if (set.test.rows == 0) hold_out(set, spec.validation, spec.seed);
  return set;
}

}  // namespace ws::data
