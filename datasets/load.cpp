#include <new>

#include "datasets/csv.h"
#include "datasets/dataset.h"
#include "datasets/image_set.h"
#include "datasets/picture_folder.h"
#include "datasets/picture_set.h"
#include "datasets/split.h"
#include "datasets/synthetic.h"
#include "datasets/text_set.h"
#include "profiling/base/failure.h"

namespace ws::data {
namespace {

struct Loader {
  const char* name;
  Dataset (*load)(const DataSpec& spec);
  Source source = Source::None;
};

constexpr Loader kLoaders[] = {
    {"iris", load_iris},
    {"mnist", load_mnist},
    {"fashion-mnist", load_fashion_mnist},
    {"idx", load_idx_folder, Source::Folder},
    {"csv", load_csv, Source::File},
    {"line", make_line},
    {"blobs", make_blobs},
    {"spirals", make_spirals},
    {"circles", make_circles},
    {"xor", make_xor},
    {"cifar-10", load_cifar10, Source::Folder},
    {"shapes", make_shapes},
    {"pictures", load_pictures, Source::Folder},
    {"austen", load_austen},
    {"text", load_text, Source::File},
    {"sentences", make_sentences},
};

const Loader& find_loader(const std::string& name) {
  std::string all;
  for (const Loader& loader : kLoaders) {
    if (name == loader.name) return loader;
    all += (all.empty() ? "" : ", ") + std::string(loader.name);
  }
  throw Failure("There is no data set named " + name + "; there are " + all);
}

void check_spec(const DataSpec& spec) {
  // The condition also rejects NaN.
  if (!(spec.validation >= 0 && spec.validation < 1))
    throw Failure("The share held out for testing must be at least 0 and below 1");
  if (source_of(spec.name) != Source::None && spec.path.empty())
    throw Failure("The data set " + spec.name + " needs the path of a " +
                  (source_of(spec.name) == Source::File ? "file" : "folder"));
  if (spec.limit < 0) throw Failure("The number of training rows to use must not be negative");
}

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const Loader& loader : kLoaders) out.emplace_back(loader.name);
  return out;
}

Source source_of(std::string_view name) {
  for (const Loader& loader : kLoaders)
    if (name == loader.name) return loader.source;
  return Source::None;
}

Dataset load(const DataSpec& spec) {
  check_spec(spec);
  const Loader& loader = find_loader(spec.name);
  try {
    Dataset set = loader.load(spec);
    keep_first(set, spec.limit);
    set.name = spec.name;
    return set;
  } catch (const std::bad_alloc&) {
    throw Failure("The data set " + spec.name + " does not fit into this machine's memory");
  }
}

}  // namespace ws::data
