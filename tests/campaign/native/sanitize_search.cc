// Random grids through all words, lists, pieces, features and tables of the search, for the sanitizers: `make sanitize`.
#include <cstdio>
#include <cstdlib>
#include <random>

#include "search/features.h"
#include "search/growth.h"
#include "search/rules.h"
#include "search/tables.h"

using namespace jaxarc::search;

namespace {

std::mt19937 random_bits(1);

int below(int limit) { return static_cast<int>(random_bits() % static_cast<unsigned>(limit)); }

Picture random_grid(int frame) {
  Picture grid;
  static_cast<Box&>(grid) = {0, 0, 1 + below(frame), 1 + below(frame)};
  const int colors = 1 + below(4), density = 1 + below(10);
  for (int i = 0; i < grid.size(); i++) grid.cells[i] = static_cast<Cell>(below(10) < density ? below(colors + 1) : 0);
  return grid;
}

// A word with arguments that some word may have: a direction, a mirror image, a feature or two numbers.
void declare_random(Graph& graph) {
  const char* const texts[] = {"up",   "down",    "right",     "cross", "star", "rows",  "columns", "falling", "diagonals",
                               "both", "all",     "half_turn", "turn_90", "top", "left", "first",   "most",    "least",
                               "xor",  "not_most", "common",   "left_right", "1", "2",   "0"};
  const char* const splits[] = {"colors", "objects", "one_color_objects_4", "frames", "windows", "ground", "rows",
                                "cells_of_grid", "cropped_colors", "2_above", "3_beside"};
  const int kind = below(3);
  if (kind == 0) {
    graph.declare("split", splits[below(std::size(splits))], "", 1, below(2) == 0);
    return;
  }
  if (kind == 1) {
    const auto name = kListWords[1 + below(std::size(kListWords) - 1)].first;
    const bool is_item = name == "item";
    const std::string feature(kFeatures[below(std::size(kFeatures))]);
    graph.declare(name, is_item ? "1" : texts[below(std::size(texts))], feature, 1, below(2) == 0);
    return;
  }
  const auto name = kKernels[below(std::size(kKernels))].name;
  const bool has_direction = name == "gravity" || name == "continue_lines";
  const bool has_numbers = name == "upscale" || name == "tile" || name == "mirror_tile" || name == "pad";
  graph.declare(name, has_direction ? "up" : has_numbers ? "2" : texts[below(std::size(texts))], "2", 1, false);
}

void play(int round) {
  const int frame = round % 10 == 0 ? kLargest : 3 + below(12), num_inputs = 1 + below(3);
  Graph graph(frame, num_inputs);
  std::vector<int32_t> inputs;
  std::vector<int32_t> sizes;
  std::vector<Cell> target;
  for (int p = 0; p < num_inputs; p++) {
    inputs.push_back(graph.images().add(random_grid(frame).image()));
    const Picture output = random_grid(frame);
    sizes.insert(sizes.end(), {output.height, output.width});
    target.insert(target.end(), output.cells, output.cells + output.size());
  }
  constexpr int kWords = 24;
  for (int word = 0; word < kWords; word++) declare_random(graph);
  graph.start(inputs.data());
  const Limits limits = {1000 + below(1000), 20000, 60};
  for (int cost = 1; cost <= 3; cost++) graph.expand(cost, limits);
  const Pieces pieces(graph, num_inputs, sizes.data(), target.data(), static_cast<int64_t>(target.size()));
  std::vector<uint8_t> shown(static_cast<size_t>(num_inputs), 1);
  shown[0] = below(2) == 0;
  pieces.exact(6);
  pieces.nearest(2);
  pieces.stacks(shown.data(), 1 + below(8), 6, 60);
}

// Tables of all features of random grids, of which the last one is asked.
void tabulate(int round) {
  const int frame = round % 10 == 0 ? kLargest : 1 + below(12);
  const Picture grid = random_grid(frame), other = random_grid(frame);
  constexpr int64_t kFeatureRows = 270;
  const int64_t count = grid.size(), asked = other.size();
  std::vector<uint8_t> values(static_cast<size_t>(kFeatureRows * count)), asked_values(static_cast<size_t>(kFeatureRows * asked));
  const Image image = grid.image(), asked_image = other.image();
  FeatureRows(image, count, values.data()).write();
  FeatureRows(asked_image, asked, asked_values.data()).write();
  std::vector<uint8_t> colors(static_cast<size_t>(count)), pairs(colors.size(), 0), have_colors(kFeatureRows, 1);
  for (uint8_t& color : colors) color = static_cast<uint8_t>(below(3));
  const std::vector<int64_t> num_values(kFeatureRows, 256), costs(kFeatureRows, 2), counts(colors.size(), 1);
  const TableTask task = {values.data(), values.data(), asked_values.data(), colors.data(), pairs.data(), num_values.data(),
                          costs.data(), counts.data(), have_colors.data(), kFeatureRows, count, asked, 6000, 1, 10, 10, 4};
  std::vector<int64_t> sample(2000);
  for (int64_t& cell : sample) cell = below(static_cast<int>(count));
  right_tables(task, 1000, sample.data(), 60);
}

// Rules that draw on, learned from random grids and from what a random rule makes of them.
void grow(int round) {
  GrowthLearner learner(round % 6, round % 4 == 0 ? kNear : kPlaces);
  std::vector<GrowthGrid> inputs, outputs;
  const int tested = 4 * below(kPlaces);
  const uint64_t places = (~uint64_t{0} ^ uint64_t{15} << tested) | static_cast<uint64_t>(1 + below(2)) << tested;
  const GrowthRule rule = {places, 0, 3};
  for (int k = 1 + below(3); k > 0; k--) {
    const Picture grid = random_grid(round % 10 == 0 ? kLargest : 3 + below(9));
    inputs.emplace_back(grid.height, grid.width, grid.cells);
    outputs.push_back(inputs.back());
    learner.run({rule}, outputs.back(), nullptr, 0);
    if (below(4) == 0) outputs.back()[GrowthGrid::place(0, 0)] = static_cast<Cell>(below(kColors));
  }
  std::vector<GrowthRule> rules;
  learner.learn(inputs, outputs, rules);
}

// Rules of random words on random grids of a few tasks.
void draw_rules(int round) {
  const int canvas = round % 10 == 0 ? kLargest : 1 + below(12);
  Graph graph(kLargest, 1);
  graph.declare("crop", "", "", 2, false);
  graph.declare("item", "1", "", 1, false);  // ends a list
  std::vector<int32_t> functions = {0, 1};
  for (int word = 0; word < 30; word++) {
    declare_random(graph);
    functions.push_back(functions.back() + below(2));
  }
  std::vector<Cell> cells;
  std::vector<int32_t> sizes, members = {0};
  std::vector<int64_t> first;
  for (int task = 1 + below(4); task > 0; task--) {
    const int count = 1 + below(4);
    for (int i = 0; i < count; i++) {
      const Picture grid = random_grid(canvas);
      first.push_back(static_cast<int64_t>(cells.size()));
      sizes.insert(sizes.end(), {grid.height, grid.width});
      cells.insert(cells.end(), grid.cells, grid.cells + grid.size());
    }
    members.push_back(members.back() + count);
  }
  const Sources sources = {cells.data(), sizes.data(), first.data(), members.data(), members.size() - 1};
  int64_t num_cells = 0;
  RuleMaker(graph, sources, functions.data(), canvas, 16)
      .make(static_cast<uint64_t>(round), 200, [&](const Rule&, const auto&, const auto& answers) {
        for (const Answer& one : answers) num_cells += one.height * one.width;
      });
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 2000;
  for (int round = 0; round < rounds; round++) {
    play(round);
    if (round % 10 < 2) grow(round);
    if (round % 10 < 2) tabulate(round);
    if (round % 10 < 2) draw_rules(round);
  }
  std::printf("%d random searches\n", rounds);
}
