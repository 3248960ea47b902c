// The functions of the library, for ctypes: a graph by its address, and arrays of the caller.
#include "features.h"
#include "growth.h"
#include "rules.h"
#include "tables.h"

using namespace jaxarc::search;

namespace {

constexpr int64_t kStackNumbers = 32;

Graph& graph_at(void* address) { return *static_cast<Graph*>(address); }

// Write the cells of stacks, and 32 numbers of each: its cost, unforeseen demonstrations, layers, and of each layer its
// state, or the color - 256, whether it covers all cells, and whether it is placed. Return how many stacks there are.
int64_t write(const Pieces& pieces, const std::vector<Stack>& stacks, int64_t* numbers, Cell* cells) {
  for (const Stack& stack : stacks) {
    int64_t* next = numbers;
    for (int64_t number : {stack.cost, stack.unforeseen, static_cast<int64_t>(stack.chosen.size())}) *next++ = number;
    for (size_t layer = 0; layer < stack.chosen.size(); layer++) {
      const Piece& piece = pieces.piece(stack.chosen[layer]);
      *next++ = piece.state == kNone ? piece.color - 256 : piece.state;
      *next++ = pieces.is_solid(stack.chosen[layer]);
      *next++ = stack.are_placed[layer];
    }
    numbers += kStackNumbers;
    cells = std::copy(stack.cells.begin(), stack.cells.end(), cells);
  }
  return static_cast<int64_t>(stacks.size());
}

}  // namespace

extern "C" {

void* jaxarc_search_new(int32_t frame, int32_t num_inputs) { return new Graph(frame, num_inputs); }

void jaxarc_search_delete(void* graph) { delete static_cast<Graph*>(graph); }

int64_t jaxarc_search_num_bytes(void* graph) { return graph_at(graph).num_bytes(); }

int64_t jaxarc_search_num_states(void* graph) { return graph_at(graph).num_states(); }

// Add images that stand at the top left of frames; numbers[i] is that of image i. Boxes are row, column, height, width.
void jaxarc_search_add(void* graph, int64_t count, int32_t frame, const Cell* cells, const int32_t* boxes,
                       int64_t* numbers) {
  Picture picture;
  for (int64_t i = 0; i < count; i++) {
    const int32_t* box = boxes + 4 * i;
    const Cell* own = cells + i * frame * frame;
    static_cast<Box&>(picture) = {box[0], box[1], box[2], box[3]};
    draw(picture, [&](int r, int c) { return own[r * frame + c]; });
    numbers[i] = graph_at(graph).images().add(picture.image());
  }
}

// Copy images to the top left of frames that hold 0, as far as they fit.
void jaxarc_search_images(void* graph, int64_t count, const int64_t* numbers, int32_t frame, Cell* cells,
                          int32_t* boxes) {
  for (int64_t i = 0; i < count; i++) {
    const Image& image = graph_at(graph).images()[static_cast<int32_t>(numbers[i])];
    const int32_t box[4] = {image.row, image.column, image.height, image.width};
    std::copy_n(box, 4, boxes + 4 * i);
    const int width = std::min(image.width, frame);
    for (int r = 0; r < std::min(image.height, frame); r++) {
      std::memcpy(cells + (i * frame + r) * frame, image.cells + r * image.width, static_cast<size_t>(width));
    }
  }
}

void jaxarc_search_sizes(void* graph, int64_t count, const int64_t* numbers, int32_t* heights, int32_t* widths) {
  for (int64_t i = 0; i < count; i++) {
    const Image& image = graph_at(graph).images()[static_cast<int32_t>(numbers[i])];
    heights[i] = image.height;
    widths[i] = image.width;
  }
}

int32_t jaxarc_search_declare(void* graph, const char* name, const char* first, const char* second, int32_t cost,
                              int32_t keeps_alone) {
  return graph_at(graph).declare(name, first, second, cost, keeps_alone != 0);
}

void jaxarc_search_start(void* graph, const int32_t* numbers) { graph_at(graph).start(numbers); }

// Write the cost up to which states are known, how many words were applied, and whether there are too many states;
// return whether the time ended before the cost was reached.
int32_t jaxarc_search_expand(void* graph, int32_t cost, int64_t max_states, int64_t max_bytes, double seconds,
                             int64_t* progress) {
  Graph& own = graph_at(graph);
  own.expand(cost, {max_states, max_bytes, seconds});
  *progress++ = own.cost();
  *progress++ = own.num_applied();
  *progress = own.is_full();
  return own.is_late();
}

int64_t jaxarc_search_num_image_states(void* graph) { return graph_at(graph).num_image_states(); }

// Write the states of one image for each input, their images and their costs.
void jaxarc_search_image_states(void* graph, int32_t num_inputs, int64_t* states, int64_t* numbers, int64_t* costs) {
  graph_at(graph).each_image_state([&](int32_t state, const int32_t* own, int cost) {
    *states++ = state;
    numbers = std::copy_n(own, num_inputs, numbers);
    *costs++ = cost;
  });
}

// Write the words that lead to a state, the last one first; return how many there are.
int32_t jaxarc_search_program(void* graph, int32_t state, int32_t room, int32_t* words) {
  int32_t count = 0;
  for (; graph_at(graph).word(state) != kNone && count < room; state = graph_at(graph).parent(state)) {
    words[count++] = graph_at(graph).word(state);
  }
  return count;
}

// Draw states on the canvases of all outputs, one after the other in a row of `num_cells`; sizes are height and width.
void jaxarc_search_draw(void* graph, int64_t count, int32_t num_inputs, const int64_t* numbers, const int32_t* sizes,
                        int64_t num_cells, Cell* cells) {
  for (int64_t i = 0; i < count; i++) {
    draw_state(graph_at(graph).images(), numbers + i * num_inputs, num_inputs, sizes, cells + i * num_cells);
  }
}

// Write the features of the cells of some images: a row of all cells for each feature.
void jaxarc_search_features(void* graph, int64_t count, const int64_t* numbers, int64_t num_cells, uint8_t* rows) {
  for (int64_t i = 0; i < count; i++) {
    const Image& image = graph_at(graph).images()[static_cast<int32_t>(numbers[i])];
    FeatureRows(image, num_cells, rows).write();
    rows += image.size();
  }
}

// All pieces for one canvas; they stand as long as no state is added to the graph.
void* jaxarc_search_new_pieces(void* graph, int32_t num_inputs, const int32_t* sizes, int64_t target_size,
                               const Cell* target) {
  return new Pieces(graph_at(graph), num_inputs, sizes, target, target_size);
}

void jaxarc_search_delete_pieces(void* pieces) { delete static_cast<Pieces*>(pieces); }

int64_t jaxarc_search_exact_pieces(void* pieces, int64_t most, int64_t* numbers, Cell* cells) {
  const Pieces& own = *static_cast<Pieces*>(pieces);
  return write(own, own.exact(most), numbers, cells);
}

int64_t jaxarc_search_nearest_pieces(void* pieces, int64_t most, int64_t* numbers, Cell* cells) {
  const Pieces& own = *static_cast<Pieces*>(pieces);
  return write(own, own.nearest(most), numbers, cells);
}

int64_t jaxarc_search_stacks(void* pieces, int64_t num_starts, int64_t* numbers, Cell* cells, const uint8_t* shown,
                             int64_t most_layers, double seconds) {
  const Pieces& own = *static_cast<Pieces*>(pieces);
  return write(own, own.stacks(shown, num_starts, most_layers, seconds), numbers, cells);
}

// Number the values of each source: 0 5 5 3 are the codes 0 2 2 1. Write also how many values there are, and whether no
// source before says the same, by its values if they are colors, and else by their codes.
void jaxarc_search_number_values(int64_t count, int64_t num_cells, const uint8_t* values, const uint8_t* are_colors,
                                 uint8_t* codes, int64_t* num_values, uint8_t* are_new) {
  HashIndex known;
  for (int64_t k = 0; k < count; k++, values += num_cells, codes += num_cells) {
    uint8_t code_of[256] = {};
    for (int64_t i = 0; i < num_cells; i++) code_of[values[i]] = 1;
    uint8_t next = 0;
    for (uint8_t& code : code_of) code = code != 0 ? next++ : 0;
    for (int64_t i = 0; i < num_cells; i++) codes[i] = code_of[values[i]];
    num_values[k] = num_cells == 0 ? 0 : codes[std::max_element(codes, codes + num_cells) - codes] + 1;
    are_new[k] = known.number(hash_of(are_colors[k] != 0 ? values : codes, static_cast<size_t>(num_cells), 0)).second;
  }
}

// Write four sources, that which is copied, -1 for none, and the cost of each table, as far as there is room; return how
// many there are.
int64_t jaxarc_search_tables(const TableTask* task, int64_t num_pairs, const int64_t* pairs, double seconds,
                             int64_t room, int32_t* found) {
  std::vector<RightTable> tables = right_tables(*task, num_pairs, pairs, seconds);
  for (size_t i = 0; i < tables.size() && static_cast<int64_t>(i) < room; i++) {
    found = std::copy_n(tables[i].chosen.data(), 4, found);
    *found++ = tables[i].copied;
    *found++ = tables[i].cost;
  }
  return static_cast<int64_t>(tables.size());
}

// Return the cost of a table of up to four sources, -1 for none.
int32_t jaxarc_search_table_cost(const TableTask* task, const int32_t* chosen) {
  return TableCheck(*task).cost({chosen[0], chosen[1], chosen[2], chosen[3]});
}

// Write the faults of tables with one more source, for each source whose table is not too large.
void jaxarc_search_faults(int64_t num_sources, const uint8_t* codes, const int64_t* num_values, const int64_t* rows,
                          int64_t num_rows, const int64_t* colors, const int64_t* pairs, const double* weights,
                          const uint8_t* are_copied, int64_t count, int64_t num_pairs, int64_t num_colors,
                          int64_t most_rows, double* found) {
  const VotingCells cells = {codes,   num_values, rows,  num_rows,  colors,    pairs,
                             weights, are_copied, count, num_pairs, num_colors};
  std::vector<double> votes;
  for (int64_t source = 0; source < num_sources; source++) {
    if (num_values[source] * num_rows <= most_rows) found[source] = faults(cells, source, votes);
  }
}

// Find rules that make each input its output; write their neighbors, color and new color, and return how many there are.
int64_t jaxarc_search_growth(int64_t num_pairs, const int32_t* sizes, const Cell* inputs, const Cell* outputs,
                             int32_t mirrors, int32_t places, uint64_t* found) {
  std::vector<GrowthGrid> before, after;
  for (int64_t k = 0; k < num_pairs; k++) {
    const int height = sizes[2 * k], width = sizes[2 * k + 1];
    before.emplace_back(height, width, inputs);
    after.emplace_back(height, width, outputs);
    inputs += height * width;
    outputs += height * width;
  }
  std::vector<GrowthRule> rules;
  if (!GrowthLearner(mirrors, places).learn(before, after, rules)) return 0;
  for (const GrowthRule& rule : rules) {
    *found++ = rule.places;
    *found++ = static_cast<uint64_t>(rule.own);
    *found++ = static_cast<uint64_t>(rule.color);
  }
  return static_cast<int64_t>(rules.size());
}

// Try batches of rules on scenes of the given tasks. Write of each that makes a task its hash, words and place, the sizes
// of its inputs and answers in turn, and their cells one after the other; return how many there are.
int64_t jaxarc_search_rules(void* graph, const int32_t* functions, int32_t canvas, int64_t num_probes,
                            int64_t num_tasks, const int32_t* members, const int32_t* sizes, const int64_t* first,
                            const Cell* cells, uint64_t key, int64_t num_batches, int64_t count,
                            uint64_t* hashes, int32_t* words, int32_t* found_sizes, Cell* found_cells) {
  const Sources sources = {cells, sizes, first, members, static_cast<size_t>(num_tasks)};
  RuleMaker maker(graph_at(graph), sources, functions, canvas, num_probes);
  const uint64_t* begin = hashes;
  const auto take = [&](const Rule& rule, const auto& scenes, const auto& answers) {
    *hashes++ = rule.hash;
    words = std::copy(rule.words.begin(), rule.words.end(), words);
    *words++ = rule.is_placed;
    for (size_t i = 0; i < kRulePairs; i++) {
      const Picture& input = scenes[i];
      for (int side : {input.height, input.width, answers[i].height, answers[i].width}) *found_sizes++ = side;
      found_cells = std::copy_n(input.cells, input.size(), found_cells);
      found_cells = std::copy_n(answers[i].cells, answers[i].height * answers[i].width, found_cells);
    }
  };
  for (int64_t batch = 0; batch < num_batches; batch++) maker.make(key + static_cast<uint64_t>(batch), count, take);
  return hashes - begin;
}

}  // extern "C"
