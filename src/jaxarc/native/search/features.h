// What is said of each cell: its neighbors, what it sees, its place, its object; as in features.py and objects.py.
#pragma once

#include <map>

#include "lists.h"

namespace jaxarc::search {

// Regions of an image, numbered from 1: of any color, of one color, of one color with color 0 too, parts that full lines
// leave, or rooms that the commonest color but 0 leaves. Those of one color are numbered color by color.
class Objects {
 public:
  struct Object : Region {
    std::array<int, kColors> counts{};  // cells of each color

    int height() const { return bottom - top + 1; }
    int width() const { return right - left + 1; }
    int num_colors() const { return kColors - static_cast<int>(std::count(counts.begin(), counts.end(), 0)); }
  };

  Objects(const Image& image, std::string_view kind) : image_(image) {
    const auto number = [&](bool has_diagonals, bool by_color, auto is_in) {
      all_.resize(static_cast<size_t>(label(image, has_diagonals, by_color, is_in, labels_)));
    };
    if (kind == "any") {
      number(true, false, [&](int i) { return image.cells[i] != 0; });
    } else if (kind == "parts") {
      const FullLines lines(image);
      const bool has_lines = lines.rows != 0 || lines.columns != 0;
      number(false, false, [&](int i) { return has_lines && !lines.has(i / image.width, i % image.width); });
    } else if (kind == "rooms") {
      const int walls = common_color(image);
      number(false, false, [&](int i) { return image.cells[i] != walls; });
    } else {
      number(kind == "one_color", true, [&](int i) { return kind == "regions" || image.cells[i] != 0; });
      renumber_by_color();
    }
    each_cell([&](int i, int r, int c) {
      Object& own = all_[labels_[i] - 1u];
      own.add(r, c);
      own.counts[image.cells[i]]++;
    });
  }

  const std::vector<Object>& all() const { return all_; }
  const Object& operator[](int place) const { return all_[labels_[place] - 1u]; }
  int label_at(int place) const { return labels_[place]; }
  int label_at(int r, int c) const {
    return r < 0 || c < 0 || r >= image_.height || c >= image_.width ? 0 : labels_[r * image_.width + c];
  }

  // Call `visit(place, row, column)` for each cell of an object.
  template <typename Visit>
  void each_cell(Visit visit) const {
    for (int i = 0; i < image_.size(); i++) {
      if (labels_[i] != 0) visit(i, i / image_.width, i % image_.width);
    }
  }

 private:
  void renumber_by_color() {
    std::vector<Cell> colors(all_.size());
    for (int i = 0; i < image_.size(); i++) {
      if (labels_[i] != 0) colors[labels_[i] - 1u] = image_.cells[i];
    }
    std::vector<uint16_t> order(all_.size()), renamed(all_.size() + 1, 0);
    std::iota(order.begin(), order.end(), uint16_t{0});
    std::stable_sort(order.begin(), order.end(), [&](uint16_t a, uint16_t b) { return colors[a] < colors[b]; });
    for (size_t place = 0; place < order.size(); place++) renamed[order[place] + 1u] = static_cast<uint16_t>(place + 1);
    for (int i = 0; i < image_.size(); i++) labels_[i] = renamed[labels_[i]];
  }

  const Image& image_;
  uint16_t labels_[kMostCells];
  std::vector<Object> all_;
};

// Writes the features of the cells of an image in the order of FEATURES, each as a row of bytes of at most 255.
class FeatureRows {
 public:
  FeatureRows(const Image& image, int64_t stride, uint8_t* rows) : image_(image), stride_(stride), row_(rows) {
    Cell rays[kMostCells];
    for (size_t s = 0; s < 8; s++) {
      const Step step = kSteps[s].step;
      ray(image, image.cells, step, rays);
      const Image seen = {image, rays};
      each([&](int i, int r, int c) { seen_[s][i] = seen.seen(r - step.down, c - step.right); });
    }
    mark_enclosed(image, is_enclosed_);
    uint16_t holes[kMostCells];
    label(image, false, false, [&](int i) { return is_enclosed_[i]; }, holes);
    for (int i = 0, known = 0; i < image.size(); i++) {
      if (holes[i] <= known) continue;
      known++;
      above_holes_.push_back(i - image.width);
    }
  }

  void write() {
    write_neighbors();
    write_places();
    for (const char* kind : {"any", "one_color"}) write_objects(kind, true);
    for (const char* kind : {"one_color_4", "regions", "parts", "rooms"}) write_objects(kind, false);
  }

 private:
  template <typename Visit>
  void each(Visit visit) const {
    for (int r = 0, i = 0; r < image_.height; r++) {
      for (int c = 0; c < image_.width; c++) visit(i++, r, c);
    }
  }

  // Write a feature by the place, row and column of a cell.
  template <typename Value>
  void add(Value value) {
    each([&](int i, int r, int c) { row_[i] = static_cast<uint8_t>(std::min(static_cast<int>(value(i, r, c)), 255)); });
    row_ += stride_;
  }

  // The color of a neighbor, against a step; 10 outside of the image.
  int neighbor(int r, int c, size_t step) const {
    const int row = r - kSteps[step].step.down, column = c - kSteps[step].step.right;
    const bool is_inside = row >= 0 && column >= 0 && row < image_.height && column < image_.width;
    return is_inside ? image_.at(row, column) : 10;
  }

  // Sum a number of the first neighbors.
  template <typename Value>
  int sum(int r, int c, size_t neighbors, Value value) const {
    int total = 0;
    for (size_t step = 0; step < neighbors; step++) total += value(neighbor(r, c, step), step);
    return total;
  }

  void write_neighbors() {
    add([&](int i, int, int) { return image_.cells[i]; });
    add([&](int i, int, int) { return image_.cells[i] != 0; });
    for (size_t step = 0; step < 8; step++) add([&](int, int r, int c) { return neighbor(r, c, step); });
    for (size_t step = 0; step < 8; step++) add([&](int i, int, int) { return seen_[step][i]; });
    const auto is_colored = [](int color) { return color % 10 != 0; };
    add([&](int, int r, int c) { return sum(r, c, 8, [&](int color, size_t step) { return is_colored(color) << step; }); });
    for (size_t count : {4u, 8u}) {
      add([&](int, int r, int c) { return sum(r, c, count, [&](int color, size_t) { return is_colored(color); }); });
    }
    for (size_t count : {4u, 8u}) {
      add([&](int i, int r, int c) { return sum(r, c, count, [&](int color, size_t) { return color == image_.cells[i]; }); });
    }
    for (size_t count : {4u, 8u}) {
      add([&](int, int r, int c) {
        int most = 0;
        for (size_t step = 0; step < count; step++) most = std::max(most, neighbor(r, c, step) % 10);
        return most;
      });
    }
    for (size_t step : {2u, 0u}) {  // between left and right, up and down
      add([&](int i, int, int) { return seen_[step][i] == seen_[step + 1][i] ? seen_[step][i] : 0; });
    }
    write_space();
    write_nearest();
    write_holder();
    add([&](int i, int, int) {
      int count = 0;
      for (const auto& seen : seen_) count += seen[i] != 0;
      return count;
    });
  }

  // The area of the largest rectangle of color 0, two cells high and wide at least, that holds a cell; and whether no
  // other area is larger.
  void write_space() {
    int space[kMostCells] = {}, largest = 0;
    for (int top = 0; top < image_.height; top++) {
      uint32_t open = ~uint32_t{0};  // columns that are free from `top` on
      for (int bottom = top; bottom < image_.height && open != 0; bottom++) {
        for (int c = 0; c < image_.width; c++) open &= ~(uint32_t{image_.at(bottom, c) != 0} << c);
        for (int left = 0, right = 0; bottom > top && left < image_.width; left = right + 1) {
          for (right = left; right < image_.width && (open >> right & 1) != 0;) right++;
          const int area = (right - left) * (bottom - top + 1);
          if (right - left < 2) continue;
          largest = std::max(largest, area);
          for (int r = top; r <= bottom; r++) {
            for (int c = left; c < right; c++) space[r * image_.width + c] = std::max(space[r * image_.width + c], area);
          }
        }
      }
    }
    add([&](int i, int, int) { return space[i]; });
    add([&](int i, int, int) { return space[i] == largest && largest > 0; });
  }

  // The distance of the nearest colored cell in steps to four or eight neighbors, and its color if it is the only one.
  void write_nearest() {
    int distance[2][kMostCells];
    Cell color[2][kMostCells];
    bool has_both[2][kMostCells] = {};
    for (size_t k = 0; k < 2; k++) {
      for (int i = 0; i < image_.size(); i++) {
        color[k][i] = image_.cells[i];
        distance[k][i] = color[k][i] != 0 ? 0 : 255;
      }
      bool is_new = true;
      for (int reach = 1; is_new; reach++) {
        is_new = false;
        each([&](int i, int r, int c) {
          for (size_t step = 0; step < 4 + 4 * k && distance[k][i] >= reach; step++) {
            if (neighbor(r, c, step) > 9) continue;
            const int near = i - kSteps[step].step.down * image_.width - kSteps[step].step.right;
            if (distance[k][near] != reach - 1) continue;
            has_both[k][i] |= has_both[k][near] || (distance[k][i] == reach && color[k][i] != color[k][near]);
            color[k][i] = std::max(color[k][i], color[k][near]);
            distance[k][i] = reach;
            is_new = true;
          }
        });
      }
    }
    for (const auto& own : distance) add([&](int i, int, int) { return own[i]; });
    for (const auto& own : distance) add([&](int i, int, int) { return own[i] % 2; });
    for (size_t k = 0; k < 2; k++) add([&](int i, int, int) { return has_both[k][i] ? Cell{0} : color[k][i]; });
  }

  // The color of the smallest box of another object that a cell is in.
  void write_holder() {
    const Objects objects(image_, "one_color");
    std::vector<size_t> order(objects.all().size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto area = [&](size_t one) { return objects.all()[one].height() * objects.all()[one].width(); };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return area(a) > area(b); });
    int holder[kMostCells] = {};
    for (size_t one : order) {
      const Objects::Object& own = objects.all()[one];
      const auto color = std::max_element(own.counts.begin(), own.counts.end()) - own.counts.begin();
      for (int r = own.top; r <= own.bottom; r++) {
        for (int c = own.left; c <= own.right; c++) {
          if (objects.label_at(r, c) != static_cast<int>(one) + 1) holder[r * image_.width + c] = static_cast<int>(color);
        }
      }
    }
    add([&](int i, int, int) { return holder[i]; });
  }

  void write_places() {
    const int height = image_.height, width = image_.width;
    std::vector<Counts> in_row(static_cast<size_t>(height)), in_column(static_cast<size_t>(width));
    std::vector<int> first_in_row(in_row.size(), 0), first_in_column(in_column.size(), 0);  // from 1
    each([&](int i, int r, int c) {
      const auto row = static_cast<size_t>(r), column = static_cast<size_t>(c);
      in_row[row][image_.cells[i]]++;
      in_column[column][image_.cells[i]]++;
      if (image_.cells[i] != 0 && first_in_row[row] == 0) first_in_row[row] = c + 1;
      if (image_.cells[i] != 0 && first_in_column[column] == 0) first_in_column[column] = r + 1;
    });
    const auto add_by_row = [&](auto value) { add([&](int, int r, int) { return value(static_cast<size_t>(r)); }); };
    const auto add_by_column = [&](auto value) { add([&](int, int, int c) { return value(static_cast<size_t>(c)); }); };
    add_by_row([&](size_t r) { return first_in_row[r]; });
    add_by_column([&](size_t c) { return first_in_column[c]; });
    add_by_row([&](size_t r) { return common_of(in_row[r]); });
    add_by_column([&](size_t c) { return common_of(in_column[c]); });
    add([&](int i, int, int) { return is_enclosed_[i]; });
    for (size_t by : {2u, 3u}) add_by_row([&](size_t r) { return r % by; });
    for (size_t by : {2u, 3u}) add_by_column([&](size_t c) { return c % by; });
    add([&](int, int, int c) { return (width - 1 - c) % 2; });
    add([&](int, int r, int) { return (height - 1 - r) % 2; });
    for (int by : {2, 3}) add([&](int, int r, int c) { return (r + c) % by; });
    add([&](int, int r, int c) { return (r - c + 3 * width) % 3; });
    const auto edge = [&](int r, int c) { return std::min({r, c, height - 1 - r, width - 1 - c}); };
    add([&](int, int r, int c) { return edge(r, c); });
    add([&](int, int r, int c) { return edge(r, c) % 2; });
    add([&](int, int r, int) { return image_.at(r, 0); });
    add([&](int, int, int c) { return image_.at(0, c); });
    add([&](int, int r, int) { return image_.at(r, width - 1); });
    add([&](int, int, int c) { return image_.at(height - 1, c); });
    add_by_column([&](size_t c) { return height - in_column[c][0]; });
    add_by_row([&](size_t r) { return width - in_row[r][0]; });
    add_by_column([&](size_t c) { return in_column[c][0] == 0; });
    add_by_row([&](size_t r) { return in_row[r][0] == 0; });
    const Counts counts = counts_of(image_);
    add([&](int i, int, int) {  // colors by count, of equals the lowest, and 0 last
      int rank = 0;
      const int own = image_.cells[i];
      for (int color = 1; color < kColors; color++) {
        rank += own == 0 || counts[color] > counts[own] || (counts[color] == counts[own] && color < own);
      }
      return rank;
    });
    add([&, common = common_of(counts)](int, int, int) { return common; });
    add([&, count = colors_by_count(counts).size()](int, int, int) { return count; });
  }

  void write_objects(std::string_view kind, bool has_sights) {
    using Object = Objects::Object;
    const Objects objects(image_, kind);
    const std::vector<Object>& all = objects.all();
    using Values = std::vector<int>;  // of all objects
    const auto add_values = [&](const Values& values) {
      add([&](int i, int, int) { return objects.label_at(i) == 0 ? 0 : values[objects.label_at(i) - 1u]; });
    };
    const auto of_all = [&](auto value) {
      Values values;
      for (const Object& one : all) values.push_back(static_cast<int>(value(one)));
      return values;
    };
    const auto add_each = [&](auto value) { add_values(of_all(value)); };
    const auto add_cells = [&](auto value) {
      add([&](int i, int r, int c) { return objects.label_at(i) == 0 ? 0 : value(objects[i], r, c); });
    };
    const auto ranked = [&](auto value) {  // equal values share a rank: 5 9 9 2 gives 2 3 3 1
      Values values = of_all(value), sorted = values;
      std::sort(sorted.begin(), sorted.end());
      sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
      for (int& one : values) one = 1 + static_cast<int>(std::lower_bound(sorted.begin(), sorted.end(), one) - sorted.begin());
      return values;
    };
    const auto add_number_of_equals = [&](const std::vector<uint64_t>& values) {
      std::map<uint64_t, int> counts;
      for (uint64_t one : values) counts[one]++;
      Values found;
      for (uint64_t one : values) found.push_back(counts[one]);
      add_values(found);
    };
    // A number of each object, which a cell of it may make larger.
    const auto add_largest = [&](auto value) {
      Values found(all.size(), 0);
      objects.each_cell([&](int i, int r, int c) {
        int& own = found[objects.label_at(i) - 1u];
        own = std::max(own, value(i, r, c));
      });
      add_values(found);
    };
    const auto size = [](const Object& one) { return one.cells; };
    const auto add_whether_first = [&](Values ranks) {
      for (int& rank : ranks) rank = std::min(rank, 2);
      add_values(ranks);
    };
    const Values ranks = ranked([](const Object& one) { return -one.cells; }), ranks_up = ranked(size);

    add_each(size);
    add_each([](const Object& one) { return one.height(); });
    add_each([](const Object& one) { return one.width(); });
    add_values(ranks);
    add_values(ranks_up);
    add_whether_first(ranks);
    add_whether_first(ranks_up);
    std::vector<uint64_t> shapes(all.size(), 0), sizes;
    std::vector<std::array<bool, 2>> is_symmetric(all.size(), {true, true});
    objects.each_cell([&](int i, int r, int c) {
      const int label = objects.label_at(i);
      const Object& own = objects[i];
      uint64_t& shape = shapes[label - 1u];
      shape = mixed(shape, static_cast<uint64_t>((r - own.top) * kLargest + c - own.left));
      is_symmetric[label - 1u][0] &= objects.label_at(r, own.left + own.right - c) == label;
      is_symmetric[label - 1u][1] &= objects.label_at(own.top + own.bottom - r, c) == label;
    });
    add_number_of_equals(shapes);
    add_each([&](const Object&) { return all.size(); });
    add_each([&](const Object& one) {
      return 1 + (one.top == 0 || one.left == 0 || one.bottom == image_.height - 1 || one.right == image_.width - 1);
    });
    Values holes(all.size(), 1);
    for (int place : above_holes_) {
      if (objects.label_at(place) != 0) holes[objects.label_at(place) - 1u]++;
    }
    add_values(holes);
    add_each([](const Object& one) { return 1 + (one.height() == one.width()); });
    add_each([](const Object& one) { return 1 + (one.cells == one.height() * one.width()); });
    add_each([](const Object& one) { return 2 + (one.width() > one.height()) - (one.width() < one.height()); });
    add_each([](const Object& one) { return 1 + one.cells % 2; });
    add_values(ranked([](const Object& one) { return one.top; }));
    add_values(ranked([](const Object& one) { return one.left; }));
    add_cells([](const Object& own, int r, int) { return 1 + r - own.top; });
    add_cells([](const Object& own, int, int c) { return 1 + c - own.left; });
    add_cells([](const Object& own, int r, int c) {
      return 1 + std::min({r - own.top, c - own.left, own.bottom - r, own.right - c});
    });
    const auto is_plainer = [](const Object& a, const Object& b) { return a.num_colors() < b.num_colors(); };
    const auto model = std::max_element(all.begin(), all.end(), is_plainer);  // of equals the first
    add_cells([&](const Object& own, int r, int c) {
      const int down = r - own.top, right = c - own.left;
      const bool is_within = down < model->height() && right < model->width();
      return is_within ? image_.at(model->top + down, model->left + right) : 0;
    });
    add_cells([](const Object& own, int r, int) { return 1 + own.bottom - r; });
    add_cells([](const Object& own, int, int c) { return 1 + own.right - c; });
    for (const Object& one : all) sizes.push_back(static_cast<uint64_t>(one.cells));
    add_number_of_equals(sizes);
    add_values(ranked([](const Object& one) { return -one.height() * one.width(); }));

    add_each([](const Object& one) {  // the rarest color that it has
      const auto is_rarer = [](int a, int b) { return a != 0 && (b == 0 || a < b); };
      return std::min_element(one.counts.begin(), one.counts.end(), is_rarer) - one.counts.begin();
    });
    add_each([](const Object& one) { return std::max_element(one.counts.begin(), one.counts.end()) - one.counts.begin(); });
    add_each([](const Object& one) {
      return one.cells == one.counts[0] ? 0 : std::max_element(one.counts.begin() + 1, one.counts.end()) - one.counts.begin();
    });
    add_each([](const Object& one) { return one.num_colors(); });
    add_each([](const Object& one) { return one.cells - one.counts[0]; });
    add_values(ranked([](const Object& one) { return one.counts[0] - one.cells; }));
    Values symmetric;
    for (const auto& [in_columns, in_rows] : is_symmetric) symmetric.push_back(1 + (in_columns || in_rows));
    add_values(symmetric);
    add_largest([&](int i, int r, int c) {  // the highest color of another object beside it
      int color = 0;
      for (size_t s = 0; s < 4; s++) {
        const int row = r - kSteps[s].step.down, column = c - kSteps[s].step.right;
        if (objects.label_at(row, column) != objects.label_at(i)) color = std::max<int>(color, image_.seen(row, column));
      }
      return color;
    });
    for (size_t s = 0; s < 4 && has_sights; s++) {  // the highest color that the cells at one side see
      add_largest([&](int i, int r, int c) {
        const bool looks = objects.label_at(r - kSteps[s].step.down, c - kSteps[s].step.right) != objects.label_at(i);
        return looks ? int{seen_[s][i]} : 0;
      });
    }
  }

  const Image& image_;
  int64_t stride_;  // from a row to the next one
  uint8_t* row_;
  Cell seen_[8][kMostCells];  // the first color that a cell sees against each step
  bool is_enclosed_[kMostCells];
  std::vector<int> above_holes_;  // the cell above the first one of each hole
};

}  // namespace jaxarc::search
