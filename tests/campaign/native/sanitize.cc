// Random steps of random batches through the kernels, to be compiled with sanitizers: `make sanitize`; and for other
// systems, under emulators: `make emulate`. What came out of all steps ends as one number, the same for every compiler.
//
// Every array has exactly the bytes that a batch needs, so the address sanitizer sees a read or a write beyond it. What
// comes out has to be a canvas again; whether it is the right one is for test_fuzz_operations.py to say.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "draw.h"
#include "edit_batch.h"
#include "reset.h"
#include "step.h"

using namespace jaxarc;

namespace {

constexpr int kSteps = 60;  // of each batch
constexpr int kPairs = 3;
constexpr uint64_t kPrime = 1099511628211;

std::mt19937 random_bits;
uint64_t hash = 0;  // of what came out of every step

int draw(int low, int high) { return low + static_cast<int>(random_bits() % (high - low + 1)); }

template <typename T>
std::unique_ptr<T[]> room(int64_t count) {
  return std::unique_ptr<T[]>(new T[count]);
}

// Fills a grid with an active area of random size; returns the size.
Shape draw_grid(Cell* grid, Shape shape) {
  const Shape size = {draw(1, shape.height), draw(1, shape.width)};
  const int last_color = draw(0, 1) ? 9 : 1;  // with two colors, floods reach far
  for (int cell = 0; cell < shape.cells(); cell++) {
    const bool is_active = cell / shape.width < size.height && cell % shape.width < size.width;
    grid[cell] = static_cast<Cell>(is_active ? draw(0, last_color) : kPadding);
  }
  return size;
}

void require(bool holds, const char* rule, int operation, Shape shape) {
  if (holds) return;
  std::fprintf(stderr, "operation %d on %d x %d: %s\n", operation, shape.height, shape.width, rule);
  std::exit(1);
}

void require_area(const Cell* grid, int height, int width, int operation, Shape shape) {
  hash = (hash ^ (height << 16 | width << 8 | (operation & 255))) * kPrime;
  for (int cell = 0; cell < shape.cells(); cell++) hash = (hash ^ (grid[cell] & 255)) * kPrime;
  require(height >= 0 && height <= shape.height && width >= 0 && width <= shape.width, "the size is that of no canvas",
          operation, shape);
  for (int cell = 0; cell < shape.cells(); cell++) {
    const bool is_active = cell / shape.width < height && cell % shape.width < width;
    require(grid[cell] <= 9 && (is_active ? grid[cell] >= 0 : grid[cell] == kPadding),
            "a cell is not padding outside the active area, or no color inside", operation, shape);
  }
}

void play(int64_t size, Shape shape, bool has_masks, bool has_colors) {
  const int64_t cells = shape.cells();
  const auto grids = room<Cell>(size * cells);
  const auto clipboards = room<Cell>(size * cells);
  const auto targets = room<Cell>(size * cells);
  const auto sizes = room<int8_t>(size * kSizes);
  const auto kept_boxes = room<int8_t>(size * 4);
  const auto kept_words = room<uint32_t>(size * shape.width);
  const auto operations = room<int32_t>(size);
  const auto boxes = room<int32_t>(size * 4);
  const auto masks = room<uint8_t>(size * cells);
  const auto rows = room<int32_t>(size);
  const auto colors = room<Cell>(size * kColors);
  const auto inputs = room<Cell>(kPairs * cells);
  const auto outputs = room<Cell>(kPairs * cells);
  const auto matches = room<int32_t>(size);
  std::memset(clipboards.get(), kPadding, size * cells);
  for (int64_t i = 0; i < size; i++) {
    const Shape active = draw_grid(grids.get() + i * cells, shape);
    const Shape target = draw_grid(targets.get() + i * cells, shape);
    set_size(sizes.get() + i * kSizes, kHeight, active.height, active.width);
    set_size(sizes.get() + i * kSizes, kTargetHeight, target.height, target.width);
    set_size(sizes.get() + i * kSizes, kClipboardHeight, 0, 0);
    for (int color = 0; color < kColors; color++) colors[i * kColors + color] = static_cast<Cell>(draw(0, 9));
  }
  for (int pair = 0; pair < kPairs; pair++) {
    draw_grid(inputs.get() + pair * cells, shape);
    draw_grid(outputs.get() + pair * cells, shape);
  }
  Batch batch = {};
  batch.size = size;
  batch.shape = shape;
  batch.canvas = {grids.get(), clipboards.get(), targets.get(), sizes.get()};
  batch.kept_boxes = has_masks ? nullptr : kept_boxes.get();
  batch.kept_words = has_masks ? kept_words.get() : nullptr;
  batch.operations = operations.get();
  batch.boxes = has_masks ? nullptr : boxes.get();
  batch.masks = has_masks ? masks.get() : nullptr;
  batch.rows = rows.get();
  batch.colors = has_colors ? colors.get() : nullptr;
  batch.inputs = inputs.get();
  batch.outputs = outputs.get();
  batch.num_pairs = kPairs;
  batch.matches = matches.get();
  for (int step = 0; step < kSteps; step++) {
    for (int64_t i = 0; i < size; i++) {
      operations[i] = draw(kNoOperation, kLastOperation);
      rows[i] = draw(-1, kPairs);  // one beyond each end
      const Box box = {draw(0, shape.height - 1), draw(0, shape.width - 1), draw(0, shape.height - 1),
                       draw(0, shape.width - 1)};
      // A quarter of the selections is one cell, as a flood needs it, and some boxes are empty.
      const bool is_single = draw(0, 3) == 0;
      const int32_t corners[] = {box.top, box.left, is_single ? box.top : box.bottom, is_single ? box.left : box.right};
      std::memcpy(boxes.get() + 4 * i, corners, sizeof corners);
      const int share = draw(0, 4);
      for (int64_t cell = 0; cell < cells; cell++) {
        masks[i * cells + cell] = is_single ? cell == box.top * shape.width + box.left : draw(0, 3) < share;
      }
    }
    edit_batch(batch);
    for (int64_t i = 0; i < size; i++) {
      const int8_t* const has = sizes.get() + i * kSizes;
      require_area(grids.get() + i * cells, has[kHeight], has[kWidth], operations[i], shape);
      require_area(targets.get() + i * cells, has[kTargetHeight], has[kTargetWidth], operations[i], shape);
      const int most = smaller(has[kHeight], has[kTargetHeight]) * smaller(has[kWidth], has[kTargetWidth]);
      require(matches[i] >= 0 && matches[i] <= most, "more cells match than both have", operations[i], shape);
    }
  }
}

// Whole episodes: actions of which some are invalid, steps, and a reset of what has ended.
void play_episodes(int64_t size, Shape shape, bool has_masks, bool is_box) {
  constexpr int kStored = 5;  // a task of 1 + 1 pairs, and one of 2 + 1
  const int64_t cells = shape.cells();
  const int64_t capacity = draw(0, 3);
  const int64_t record_bytes = 3 + (has_masks ? (shape.height + 7) / 8 * shape.width : is_box ? 4 : 2);
  const auto inputs = room<Cell>(kStored * cells);
  const auto outputs = room<Cell>(kStored * cells);
  for (int pair = 0; pair < kStored; pair++) {
    draw_grid(inputs.get() + pair * cells, shape);
    draw_grid(outputs.get() + pair * cells, shape);
  }
  const int32_t first_pair[] = {0, 2}, num_train[] = {1, 2}, num_test[] = {1, 1}, one_pair = draw(-1, 3);
  const float sums[] = {0.25f, 1.0f};
  const auto mode = static_cast<Mode>(draw(kTrain, kTrials));
  Tasks tasks = {inputs.get(), outputs.get(), kStored, first_pair, num_train, num_test, sums, 2,
                 draw(0, 1) ? &one_pair : nullptr, mode, draw(0, 1) == 0, draw(0, 1) == 0};

  const auto grids = room<Cell>(size * cells);
  const auto clipboards = room<Cell>(size * cells);
  const auto targets = room<Cell>(size * cells);
  const auto sizes = room<int8_t>(size * kSizes);
  const auto kept_boxes = room<int8_t>(size * 4);
  const auto kept_words = room<uint32_t>(size * shape.width);
  const auto counts = room<int32_t>(size * kCounts);
  const auto similarities = room<float>(size);
  const auto endings = room<uint8_t>(size * 2);
  const auto records = room<uint8_t>(size * capacity * record_bytes);
  const auto keys = room<uint32_t>(size * 2);
  const auto need = room<uint8_t>(size);
  const auto operations = room<int32_t>(size);
  const auto masks = room<uint8_t>(size * cells);
  const auto first_rows = room<int32_t>(size);
  const auto pair_counts = room<int32_t>(size);
  const auto num_open = room<int32_t>(size);
  const auto orders = room<int8_t>(size * 2);
  const auto facts = room<int32_t>(size);
  std::unique_ptr<int32_t[]> corners[4];
  for (auto& corner : corners) corner = room<int32_t>(size);
  for (int64_t i = 0; i < 2 * size; i++) keys[i] = static_cast<uint32_t>(random_bits());
  for (int64_t i = 0; i < kCounts * size; i++) counts[i] = draw(0, 1);
  std::memset(need.get(), 1, size);

  Steps steps = {};
  steps.edit.size = size;
  steps.edit.shape = shape;
  steps.edit.canvas = {grids.get(), clipboards.get(), targets.get(), sizes.get()};
  steps.edit.kept_boxes = has_masks ? nullptr : kept_boxes.get();
  steps.edit.kept_words = has_masks ? kept_words.get() : nullptr;
  steps.edit.masks = has_masks ? masks.get() : nullptr;
  steps.edit.inputs = inputs.get();
  steps.edit.outputs = outputs.get();
  steps.edit.num_pairs = kStored;
  steps.counts = counts.get();
  steps.similarities = similarities.get();
  steps.endings = endings.get();
  steps.keys = keys.get();
  steps.records = records.get();
  steps.capacity = capacity;
  steps.record_bytes = record_bytes;
  steps.operations = operations.get();
  for (int i = 0; i < 4; i++) steps.corners[i] = corners[i].get();
  steps.first_rows = first_rows.get();
  steps.pair_counts = pair_counts.get();
  steps.num_open = mode == kTrials ? num_open.get() : nullptr;
  steps.orders = draw(0, 1) ? orders.get() : nullptr;
  steps.order_length = 2;
  steps.facts = facts.get();
  // In half of the batches one call steps and resets.
  const bool is_one_call = draw(0, 1) == 0;
  const auto similarities_before = room<float>(size);
  const auto ended_similarities = room<float>(size);
  const auto ended_counts = room<int32_t>(size * kCounts);
  const auto ended_grids = room<Cell>(size * cells);
  const auto shown = room<Cell>(size * cells);
  const Ended ended = {ended_similarities.get(), ended_counts.get(), shown.get(), ended_grids.get(), draw(0, 1) == 0};
  if (is_one_call) {
    steps.tasks = &tasks;
    steps.orders = nullptr;
    steps.similarities_before = similarities_before.get();
    reset_rows(steps, tasks, need.get());
  }
  const Rules rules = {~uint64_t{0}, draw(0, 1) == 0, draw(0, 1) == 0, draw(0, 1) == 0, draw(0, 1) == 0,
                       mode == kTest, draw(1, 3), draw(1, 9)};
  const int32_t ids[] = {kFill, kMoveUp, kCopy, kPaste, kSubmit, kNextDemoPair, kFirstUnsolvedTestPair};
  const Choices choices(ids, 7, shape);
  const auto action_keys = room<uint32_t>(size * 2);
  for (int step = 0; step < kSteps; step++) {
    if (!is_one_call) reset_rows(steps, tasks, need.get());
    for (int64_t i = 0; i < 2 * size; i++) action_keys[i] = static_cast<uint32_t>(random_bits());
    if (has_masks) {
      draw_masks(action_keys.get(), size, choices, operations.get(), masks.get());
    } else {
      const Drawn drawn = {operations.get(),
                           {corners[0].get(), corners[1].get(), corners[2].get(), corners[3].get()}};
      draw_corners(action_keys.get(), size, choices, drawn, is_box);
    }
    for (int64_t i = 0; i < size; i++) {
      const int64_t task = counts[i * kCounts + kTaskIndex];
      require(task == 0 || task == 1, "the task is none of both", -1, shape);
      first_rows[i] = first_pair[task] + (mode == kTest ? num_train[task] : 0);
      pair_counts[i] = mode == kTrain ? num_train[task] : mode == kTest ? num_test[task] : num_train[task] + num_test[task];
      num_open[i] = num_train[task];
      orders[2 * i] = static_cast<int8_t>(draw(0, 1));
      orders[2 * i + 1] = static_cast<int8_t>(1 - orders[2 * i]);
      // A quarter of the actions may be anything, out of range too.
      const bool is_any = draw(0, 3) == 0;
      if (is_any) operations[i] = draw(-2, kLastOperation + 2);
      for (int corner = 0; corner < 4; corner++) {
        if (is_any) corners[corner][i] = draw(-2, kMaxSide + 1);
        else if (!is_box && corner >= 2) corners[corner][i] = corners[corner - 2][i];
      }
    }
    if (is_one_call) {
      const int64_t first = draw(0, static_cast<int>(size));
      step_and_reset_part(steps, rules, ended, 0, first);
      step_and_reset_part(steps, rules, ended, first, size - first);
      require(std::memcmp(shown.get(), grids.get(), size * cells) == 0, "another grid is shown", -1, shape);
    } else {
      step_batch(steps, rules, [](int64_t, int) {});
    }
    for (int64_t i = 0; i < size; i++) {
      const int8_t* const has = sizes.get() + i * kSizes;
      require_area(grids.get() + i * cells, has[kHeight], has[kWidth], operations[i], shape);
      require_area(targets.get() + i * cells, has[kTargetHeight], has[kTargetWidth], operations[i], shape);
      require(similarities[i] >= 0 && similarities[i] <= 1, "the similarity is no share", operations[i], shape);
      require(counts[i * kCounts + kStepCount] <= rules.max_steps, "the episode is too long", operations[i], shape);
      need[i] = endings[2 * i] || endings[2 * i + 1];
      uint32_t similarity;
      std::memcpy(&similarity, &similarities[i], sizeof similarity);
      hash = (hash ^ similarity ^ keys[2 * i]) * kPrime;
    }
  }
  // Keys, of one and of several numbers.
  const auto numbers = room<int32_t>(size);
  for (int64_t i = 0; i < size; i++) numbers[i] = static_cast<int32_t>(i);
  const uint32_t key[] = {1, 2};
  fold_in(key, numbers.get(), size, action_keys.get());
  for (int64_t i = 0; i < size; i++) {
    const Words2 words = threefry(Words2{1, 2}, static_cast<uint32_t>(i));
    require(words.first == action_keys[2 * i] && words.second == action_keys[2 * i + 1], "a key is wrong", -1, shape);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int num_batches = argc > 1 ? std::atoi(argv[1]) : 10000;
  int64_t steps = 0;
  for (int batch = 0; batch < num_batches; batch++) {
    random_bits.seed(batch);
    const bool is_small = draw(0, 1) == 0;
    const Shape shape = {draw(1, is_small ? 6 : kMaxSide), draw(1, is_small ? 6 : kMaxSide)};
    const int64_t size = draw(0, 2) == 0 ? 1 : draw(0, 12);
    const bool is[] = {draw(0, 1) == 0, draw(0, 1) == 0, draw(0, 1) == 0, draw(0, 1) == 0};
    play(size, shape, is[0], is[1]);
    play_episodes(size, shape, is[2], is[3]);
    steps += 2 * size * kSteps;
  }
  std::printf("%lld steps in %d batches, hash %016llx\n", static_cast<long long>(steps), num_batches,
              static_cast<unsigned long long>(hash));
  return 0;
}
