// Words that split an image into a list, and the features by which images of a list are chosen, as in lists.py.
#pragma once

#include "marks.h"

namespace jaxarc::search {

constexpr int kListLength = 16;    // images of a list at most
constexpr int kSmallestFrame = 8;  // cells

// The number of cells of a region and its box, of cells in reading order.
struct Region {
  int cells = 0;
  int top = kLargest, left = kLargest, bottom = -1, right = -1;

  void add(int r, int c) {
    cells++;
    top = std::min(top, r);
    bottom = r;
    left = std::min(left, c);
    right = std::max(right, c);
  }
};

// Numbers the regions of an image, and gives each as a cropped part, in reading order of their first cells.
class Regions {
 public:
  Regions(const Image& image, bool has_diagonals, bool by_color) : image_(image) {
    count_ = label(image, has_diagonals, by_color, [&](int i) { return image.cells[i] != 0; }, labels_);
  }

  // The parts of at least so many cells; none where there are more than a list holds.
  template <typename Take>
  void parts(int least, Take take) const {
    std::vector<Region> regions(static_cast<size_t>(count_));
    for (int i = 0; i < image_.size(); i++) {
      if (labels_[i] != 0) regions[labels_[i] - 1u].add(i / image_.width, i % image_.width);
    }
    int kept = 0;
    for (const Region& region : regions) kept += region.cells >= least;
    if (kept > kListLength) return;
    Picture part;
    for (size_t number = 0; number < regions.size(); number++) {
      const Region& region = regions[number];
      if (region.cells < least) continue;
      const int height = region.bottom - region.top + 1, width = region.right - region.left + 1;
      static_cast<Box&>(part) = {image_.row + region.top, image_.column + region.left, height, width};
      draw(part, [&](int r, int c) {
        const int place = (r + region.top) * image_.width + c + region.left;
        return labels_[place] == number + 1 ? image_.cells[place] : Cell{0};
      });
      take(part);
    }
  }

 private:
  const Image& image_;
  uint16_t labels_[kMostCells];
  int count_;
};

template <typename Take>
void split_colors(const Image& image, bool is_cropped, Take take) {
  Picture part;
  for (int color : colors_by_count(counts_of(image))) {
    const auto matches = [&](Cell cell) { return cell == color; };
    recolor(image, part, [&](Cell cell) { return cell == color ? cell : 0; });
    if (!is_cropped) {
      take(part);
      continue;
    }
    Picture cut;
    window(part.image(), box_of(image, matches), kLargest, cut);
    take(cut);
  }
}

// The box of each object of one color with all that is in it; a frame has no other color at its edge.
template <typename Take>
void split_windows(const Image& image, bool is_framed, Take take) {
  Picture found;
  Regions(image, !is_framed, true).parts(is_framed ? kSmallestFrame : 1, [&](Picture& part) {
    if (part.height <= 2 || part.width <= 2) return;
    window(image, {part.row - image.row, part.column - image.column, part.height, part.width}, kLargest, found);
    bool differs = false, differs_at_edge = false;
    for (int r = 0; r < part.height; r++) {
      for (int c = 0; c < part.width; c++) {
        if (found.at(r, c) == part.at(r, c)) continue;
        differs = true;
        differs_at_edge |= is_edge(part, r, c);
      }
    }
    if (is_framed ? !differs_at_edge : differs) take(found);
  });
}

template <typename Take>
void split_ground(const Image& image, Take take) {
  Picture ground;
  recolor(image, ground, [](Cell cell) { return cell == 0; });
  const Image open = ground.image();
  Regions(open, false, false).parts(1, take);
}

template <typename Take>
void split_lines(const Image& image, bool are_rows, Take take) {
  const int size = are_rows ? image.height : image.width;
  if (size > kListLength) return;
  Picture part;
  for (int place = 0; place < size; place++) {
    window(image, are_rows ? Box{place, 0, 1, image.width} : Box{0, place, image.height, 1}, kLargest, part);
    take(part);
  }
}

// Equal parts, with a line between them or without.
template <typename Take>
void split_equal(const Image& image, int count, bool are_above, Take take) {
  const int size = are_above ? image.height : image.width;
  const int gap = size % count == 0 ? 0 : 1;
  const int rest = size - gap * (count - 1);
  if (rest % count != 0 || rest < count) return;
  Picture part;
  for (int place = 0; place < count; place++) {
    const int length = rest / count, start = place * (length + gap);
    window(image, are_above ? Box{start, 0, length, image.width} : Box{0, start, image.height, length}, kLargest, part);
    take(part);
  }
}

struct Run {
  int start;
  int length;
};

// The runs of places that are not marked: of `0 0 1 0` those at 0 of two and at 3 of one.
inline std::vector<Run> open_runs(uint32_t marked, int size) {
  std::vector<Run> runs;
  for (int place = 0; place < size; place++) {
    if (marked >> place & 1) continue;
    if (place == 0 || (marked >> (place - 1) & 1) != 0) runs.push_back({place, 0});
    runs.back().length++;
  }
  return runs;
}

// Cut along rows and columns of one color from edge to edge, of the highest color that divides the image into a list.
template <typename Take>
void split_grid(const Image& image, Take take) {
  const Counts counts = counts_of(image);
  std::vector<Run> best_rows, best_columns;
  for (int color = 0; color < kColors; color++) {
    if (counts[color] == 0 || counts[color] == image.size()) continue;
    uint32_t rows = 0, columns = (uint32_t{1} << image.width) - 1;
    for (int r = 0; r < image.height; r++) {
      uint32_t here = 0;
      for (int c = 0; c < image.width; c++) here |= uint32_t{image.at(r, c) == color} << c;
      rows |= uint32_t{here == (uint32_t{1} << image.width) - 1} << r;
      columns &= here;
    }
    if (rows == 0 && columns == 0) continue;
    const std::vector<Run> row_runs = open_runs(rows, image.height), column_runs = open_runs(columns, image.width);
    const size_t count = row_runs.size() * column_runs.size();
    if (count <= 1 || count > kListLength) continue;
    best_rows = row_runs;
    best_columns = column_runs;
  }
  Picture part;
  for (const Run& rows : best_rows) {
    for (const Run& columns : best_columns) {
      window(image, {rows.start, columns.start, rows.length, columns.length}, kLargest, part);
      take(part);
    }
  }
}

// Give the parts of an image by the name of a split; false if there is none of that name.
template <typename Take>
bool split(const Image& image, std::string_view name, Take take) {
  const auto regions = [&](bool has_diagonals, bool by_color) {
    Regions(image, has_diagonals, by_color).parts(1, take);
    return true;
  };
  if (name == "colors" || name == "cropped_colors") return split_colors(image, name != "colors", take), true;
  if (name == "objects") return regions(true, false);
  if (name == "objects_4") return regions(false, false);
  if (name == "one_color_objects") return regions(true, true);
  if (name == "one_color_objects_4") return regions(false, true);
  if (name == "frames" || name == "windows") return split_windows(image, name == "frames", take), true;
  if (name == "ground") return split_ground(image, take), true;
  if (name == "rows" || name == "columns") return split_lines(image, name == "rows", take), true;
  if (name == "cells_of_grid") return split_grid(image, take), true;
  if (name.size() > 2 && name[0] >= '2' && name[0] <= '4' && name[1] == '_') {
    return split_equal(image, name[0] - '0', name.substr(2) == "above", take), true;
  }
  return false;
}

// How many cells differ from their mirror image, of the better of both flips.
inline int symmetry_faults(const Image& image) {
  int over_rows = 0, over_columns = 0;
  for (int r = 0; r < image.height; r++) {
    for (int c = 0; c < image.width; c++) {
      over_rows += image.at(r, c) != image.at(image.height - 1 - r, c);
      over_columns += image.at(r, c) != image.at(r, image.width - 1 - c);
    }
  }
  return std::min(over_rows, over_columns);
}

// Numbers of an image by which lists are ordered, and at the end those by which images are equal.
constexpr std::string_view kFeatures[] = {"cells", "area",     "ground",  "colors", "row",  "column",  "height", "width",
                                          "symmetry", "regions", "rarest", "color",  "size", "picture", "shape"};

inline int64_t feature(const Image& image, std::string_view name) {
  if (name == "area") return image.size();
  if (name == "row") return image.row;
  if (name == "column") return image.column;
  if (name == "height") return image.height;
  if (name == "width") return image.width;
  if (name == "symmetry") return -symmetry_faults(image);
  if (name == "regions") {
    uint16_t labels[kMostCells];
    return label(image, false, false, [&](int i) { return image.cells[i] == 0; }, labels);
  }
  const uint64_t size = static_cast<uint64_t>(image.height) << 32 | static_cast<uint64_t>(image.width);
  if (name == "size") return static_cast<int64_t>(size);
  if (name == "picture") return static_cast<int64_t>(hash_of(image.cells, static_cast<size_t>(image.size()), size));
  if (name == "shape") {
    Cell shape[kMostCells];
    for (int i = 0; i < image.size(); i++) shape[i] = image.cells[i] != 0;
    return static_cast<int64_t>(hash_of(shape, static_cast<size_t>(image.size()), size));
  }
  const Counts counts = counts_of(image);
  const int colored = image.size() - counts[0];
  if (name == "cells") return colored;
  if (name == "ground") return counts[0];
  if (name == "color") return common_of(counts);
  if (name == "colors") return static_cast<int64_t>(colors_by_count(counts).size());
  return colored - 2 * counts[common_of(counts)] * (colored > 0);  // "rarest"
}

// Put the images of a list upon one another at their positions; the result has their common box.
inline bool stack(const std::vector<Image>& images, bool is_first_on_top, int frame, Picture& out) {
  if (images.empty()) return false;
  int top = images[0].row, left = images[0].column;
  int bottom = top + images[0].height, right = left + images[0].width;
  for (const Image& image : images) {
    top = std::min(top, image.row);
    left = std::min(left, image.column);
    bottom = std::max(bottom, image.row + image.height);
    right = std::max(right, image.column + image.width);
  }
  if (bottom - top > frame || right - left > frame) return false;
  static_cast<Box&>(out) = {top, left, bottom - top, right - left};
  std::memset(out.cells, 0, static_cast<size_t>(out.size()));
  for (size_t layer = 0; layer < images.size(); layer++) {
    const Image& image = images[is_first_on_top ? layer : images.size() - 1 - layer];
    for (int r = 0; r < image.height; r++) {
      for (int c = 0; c < image.width; c++) {
        Cell& cell = out.at(image.row - top + r, image.column - left + c);
        if (cell == 0) cell = image.at(r, c);
      }
    }
  }
  return true;
}

inline bool join(std::vector<Image> images, bool in_rows, int frame, Picture& out) {
  int place = 0;
  for (Image& image : images) {
    image.row = in_rows ? place : 0;
    image.column = in_rows ? 0 : place;
    place += in_rows ? image.height : image.width;
  }
  return stack(images, true, frame, out);
}

// Compare two images of one size cell by cell; the result has the color of the first, or 1.
inline bool compare(const Image& first, const Image& second, std::string_view kind, Picture& out) {
  if (first.height != second.height || first.width != second.width) return false;
  static_cast<Box&>(out) = {0, 0, first.height, first.width};
  for (int i = 0; i < first.size(); i++) {
    const Cell a = first.cells[i], b = second.cells[i];
    Cell cell = 0;
    if (kind == "and") cell = b != 0 ? a : 0;
    if (kind == "xor") cell = a == 0 ? b : b == 0 ? a : Cell{0};
    if (kind == "nor") cell = a == 0 && b == 0;
    if (kind == "first_only") cell = b == 0 ? a : Cell{0};
    out.cells[i] = cell;
  }
  return true;
}

}  // namespace jaxarc::search
