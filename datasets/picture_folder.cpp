#include "datasets/picture_set.h"

#include <algorithm>
#include <filesystem>

#include "profiling/base/in_parallel.h"
#include "datasets/picture_file.h"
#include "datasets/split.h"
#include "profiling/base/failure.h"
#include "profiling/base/packed_file.h"

namespace ws::data {
namespace {
namespace fs = std::filesystem;

struct File {
  fs::path path;
  int32_t label = 0;
  bool test = false;
  Picture picture;     // once it is decoded
  std::string reason;  // why it cannot be decoded
};

struct Folder {
  fs::path root;
  std::vector<std::string> classes;
  std::vector<File> files;
  std::string name(const File& file) const { return fs::relative(file.path, root).string(); }
};

bool is_folder(const fs::path& path) {
  std::error_code none;
  return fs::is_directory(path, none);
}

template <class Wanted>
std::vector<fs::path> entries(const fs::path& folder, const Wanted& wanted) {
  std::vector<fs::path> found;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable))
    if (!entry.path().filename().string().starts_with('.') && wanted(entry.path())) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& path : entries(folder, is_folder)) names.push_back(path.filename().string());
  return names;
}

void add_files(const fs::path& part, bool test, Folder& folder) {
  for (const std::string& name : folders_in(part)) {
    const auto found = std::ranges::find(folder.classes, name);
    if (found == folder.classes.end())
      throw Failure((part / name).string() + ": there is no training class of this name");
    const std::vector<fs::path> paths =
        entries(part / name, [](const fs::path& path) { return is_picture_name(path.string()); });
    if (paths.empty() && !test) throw Failure((part / name).string() + ": this class holds no PNG or JPEG files");
    for (const fs::path& path : paths)
      folder.files.push_back({path, static_cast<int32_t>(found - folder.classes.begin()), test, {}, {}});
  }
}

Folder find_files(const std::string& path) {
  if (!is_folder(path)) throw Failure(path + ": there is no such folder.");
  Folder folder{path, {}, {}};
  const bool parts = is_folder(folder.root / "train");
  const fs::path train = parts ? folder.root / "train" : folder.root;
  folder.classes = folders_in(train);
  if (folder.classes.size() < 2)
    throw Failure(train.string() + ": holds " + (folder.classes.empty() ? "no folder" : "one folder") +
                  "; put the pictures of each class into a folder of its own");
  add_files(train, false, folder);
  for (const char* name : {"test", "val", "valid", "validation"})
    if (parts && is_folder(folder.root / name)) {
      add_files(folder.root / name, true, folder);
      break;
    }
  return folder;
}

void decode(File& file, int64_t side) try {
  file.picture = read_picture(file.path.string());
  if (side > 0) file.picture = square(file.picture, side);
} catch (const Failure& problem) {
  file.reason = problem.what();
}

// Decodes the first file alone: its size says how much memory all files need.
void decode_all(std::vector<File>& files, int64_t side, const std::string& folder) {
  decode(files.front(), side);
  const auto bytes = static_cast<double>(files.front().picture.values.size()) * (1 + sizeof(float));
  check_memory(bytes * static_cast<double>(files.size()), folder);
  in_parallel(static_cast<int64_t>(files.size()) - 1, 8, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) decode(files[static_cast<size_t>(1 + i)], side);
  });
}

std::string broken_text(const Folder& folder) {
  constexpr size_t most = 3;
  std::string text;
  size_t broken = 0;
  for (const File& file : folder.files)
    if (!file.reason.empty() && ++broken <= most)
      text += (text.empty() ? "" : "; ") + folder.name(file) + " " + file.reason;
  if (broken == 0) return {};
  return std::to_string(broken) + " of " + std::to_string(folder.files.size()) + " files cannot be used: " + text +
         (broken > most ? "; …" : "");
}

void check_sizes(const Folder& folder) {
  const auto size = [](const File& file) {
    return std::to_string(file.picture.width) + " × " + std::to_string(file.picture.height);
  };
  const File& first = folder.files.front();
  for (const File& file : folder.files)
    if (size(file) != size(first))
      throw Failure(folder.root.string() + ": " + folder.name(first) + " is " + size(first) + ", but " +
                    folder.name(file) + " is " + size(file) +
                    "; choose a side, and each picture becomes a square of that size");
}

// Takes the pictures of one part out of the files.
Split take_part(std::vector<File>& files, bool test, int64_t channels) {
  Split split;
  for (File& file : files) {
    if (file.test != test) continue;
    const Picture picture = channels == 3 ? coloured(std::move(file.picture)) : std::move(file.picture);
    split.labels.push_back(file.label);
    for (const uint8_t value : picture.values) split.x.push_back(static_cast<float>(value) / 255.0f);
    ++split.rows;
  }
  return split;
}

}  // namespace

Dataset load_pictures(const DataSpec& spec) {
  Folder folder = find_files(spec.path);
  decode_all(folder.files, spec.side, spec.path);
  const std::string broken = broken_text(folder);
  if (!broken.empty() && !spec.skip_broken)
    throw Failure(spec.path + ": " + broken + ". Remove them, or choose \"leave out broken files\" (data.skip_broken=true)");
  std::erase_if(folder.files, [](const File& file) { return !file.reason.empty(); });
  if (std::ranges::count(folder.files, false, &File::test) < 2)
    throw Failure(spec.path + ": fewer than two training files can be read");
  check_sizes(folder);

  const auto grey = std::ranges::count_if(folder.files, [](const File& file) { return file.picture.channels == 1; });
  const bool all_grey = grey == std::ssize(folder.files);
  Dataset set;
  set.image_width = folder.files.front().picture.width;
  set.image_height = folder.files.front().picture.height;
  set.image_channels = all_grey ? 1 : 3;
  set.features = set.image_width * set.image_height * set.image_channels;
  set.outputs = std::ssize(folder.classes);
  set.class_names = folder.classes;
  const Split test = take_part(folder.files, true, set.image_channels);
  set.train = take_part(folder.files, false, set.image_channels);
  hold_out(set, test.rows > 0 ? 0 : spec.validation, spec.seed);  // shuffles in both cases
  if (test.rows > 0) set.test = test;
  if (!broken.empty()) set.note = broken + ". They are left out. ";
  if (grey > 0 && !all_grey) set.note += std::to_string(grey) + " grey pictures became coloured.";
  return set;
}

}  // namespace ws::data
