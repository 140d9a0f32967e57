#include <algorithm>
#include <new>

#include "datasets/csv.h"
#include "datasets/dataset.h"
#include "datasets/picture_set.h"
#include "datasets/split.h"
#include "datasets/synthetic.h"
#include "datasets/text_set.h"
#include "profiling/base/failure.h"

namespace ws::data {
namespace {

struct Loader {
  std::string_view name;
  Dataset (*load)(const DataSpec& spec);
  Source source = Source::None;
  int64_t side = 0;  // of its square pictures; 0: no pictures
};

constexpr int64_t kUnknownSide = -1;

constexpr Loader kLoaders[] = {
    {"iris", load_iris},
    {"mnist", load_mnist, Source::None, 28},
    {"fashion-mnist", load_fashion_mnist, Source::None, 28},
    {"idx", load_idx_folder, Source::Folder, kUnknownSide},
    {"csv", load_csv, Source::File},
    {"line", make_line},
    {"blobs", make_blobs},
    {"spirals", make_spirals},
    {"circles", make_circles},
    {"xor", make_xor},
    {"cifar-10", load_cifar10, Source::Folder, 32},
    {"shapes", make_shapes, Source::None, kShapesSide},
    {"pictures", load_pictures, Source::Folder, kUnknownSide},
    {"austen", load_austen},
    {"text", load_text, Source::File},
    {"sentences", make_sentences},
};

const Loader* loader_named(std::string_view name) {
  const auto found = std::ranges::find(kLoaders, name, &Loader::name);
  return found == std::end(kLoaders) ? nullptr : found;
}

const Loader& find_loader(const std::string& name) {
  if (const Loader* loader = loader_named(name)) return *loader;
  std::string all;
  for (const Loader& loader : kLoaders) all += (all.empty() ? "" : ", ") + std::string(loader.name);
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
  const Loader* loader = loader_named(name);
  return loader ? loader->source : Source::None;
}

bool holds_pictures(std::string_view name) {
  const Loader* loader = loader_named(name);
  return loader && loader->side != 0;
}

int64_t side_of_pictures(const DataSpec& spec) {
  const Loader* loader = loader_named(spec.name);
  if (spec.name == "pictures") return spec.side;
  return loader ? std::max<int64_t>(0, loader->side) : 0;
}

Dataset load(const DataSpec& spec) {
  check_spec(spec);
  const Loader& loader = find_loader(spec.name);
  try {
    Dataset set = loader.load(spec);
    keep_first(set, spec.limit);
    if (spec.normalise) measure_channels(set);
    set.name = spec.name;
    return set;
  } catch (const std::bad_alloc&) {
    throw Failure("The data set " + spec.name + " does not fit into this machine's memory");
  }
}

}  // namespace ws::data
