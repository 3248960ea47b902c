// Rules made of words: drawn at random, applied to the same scenes as others, and kept where they make a task.
//
// A rule is one to four words and a place: its answer is an image by itself, or stands in a grid of the input's size.
// What a rule does on fixed probe grids is its hash, so that two texts that do the same are one rule.
#pragma once

#include <unordered_map>

#include <algorithm>
#include "pieces.h"

namespace jaxarc::search {

constexpr size_t kMostWords = 4;
constexpr int kRulePairs = 4;
constexpr int kSceneTries = 64;          // grids of a task, to find four that differ
constexpr int kTaskTries = 4096;         // tasks, to find one with four such grids
constexpr int kCandidatesOfScenes = 64;  // rules that are tried on the same four scenes
constexpr int kLeastAnswers = 8;         // on probe grids; two rules that nearly never answer look the same
constexpr int kLengthWeights[kMostWords] = {1, 4, 8, 8};  // of one, two, three and four words

// Random numbers that depend on a key and their count alone, so that they are the same on every machine.
class Draws {
 public:
  explicit Draws(uint64_t key) : key_(key) {}

  // A number 0 .. count - 1.
  int below(size_t count) {
    const unsigned __int128 scaled = static_cast<unsigned __int128>(mixed(mixed(key_, ++drawn_), key_)) * count;
    return static_cast<int>(scaled >> 64);
  }

 private:
  uint64_t key_;
  uint64_t drawn_ = 0;
};

struct Rule {
  std::array<int32_t, kMostWords> words;  // kNone behind the last one
  bool is_placed = false;                 // in a grid of the input's size
  uint64_t hash = 0;
};

// An answer with its size; no rows where there is none.
struct Answer {
  int height = 0;
  int width = 0;
  Cell cells[kMostCells];

  uint64_t hash(uint64_t seed) const {
    const auto size = static_cast<uint64_t>(height * kLargest + width);
    return hash_of(cells, static_cast<size_t>(height * width), mixed(seed, size));
  }

  bool operator==(const Answer& other) const {
    return height == other.height && width == other.width && std::equal(cells, cells + height * width, other.cells);
  }
};

// Grids of tasks, from which scenes are drawn.
struct Sources {
  const Cell* cells;
  const int32_t* sizes;    // height and width of each grid
  const int64_t* first;    // its first cell
  const int32_t* members;  // task t has the grids members[t] .. members[t + 1] - 1
  size_t num_tasks;
};

class RuleMaker {
 public:
  // The words of the graph are declared; `functions[w]` numbers the function of word w, and is not falling.
  RuleMaker(Graph& graph, const Sources& sources, const int32_t* functions, int canvas, int64_t num_probes)
      : graph_(graph), sources_(sources), canvas_(canvas) {
    for (int32_t word = 0; word < graph.num_words(); word++) {
      if (word == 0 || functions[word] != functions[word - 1]) functions_.emplace_back();
      functions_.back().push_back(word);
    }
    Draws draws(0);  // of any seed the same
    probes_.resize(static_cast<size_t>(num_probes));
    for (Picture& probe : probes_) scene(draws, task(draws), nullptr, probe);
  }

  // Try rules; call `take(rule, scenes, answers)` for each that makes a task.
  template <typename Take>
  void make(uint64_t key, int64_t count, Take take) {
    Draws draws(key);
    std::array<Answer, kRulePairs> answers;
    for (int64_t candidate = 0; candidate < count; candidate++) {
      if (candidate % kCandidatesOfScenes == 0) {
        if (!draw_scenes(draws)) return;
        words_by_answer_.clear();
        put(scenes_);
      }
      Rule rule = drawn(draws);
      if (!makes_task(rule, answers) || has_idle_word(rule, answers)) continue;
      if (rule.words[1] != kNone && is_one_word(answers)) continue;
      if (find_hash(rule)) take(rule, scenes_, answers);
      put(scenes_);
    }
  }

 private:
  // Draw first a function and then its arguments, as some have a hundred of them; the last word makes an image.
  Rule drawn(Draws& draws) {
    int place = draws.below(kLengthWeights[0] + kLengthWeights[1] + kLengthWeights[2] + kLengthWeights[3]);
    size_t length = 1;
    while (place >= kLengthWeights[length - 1]) place -= kLengthWeights[length++ - 1];
    Rule rule;
    rule.words.fill(kNone);
    rule.is_placed = draws.below(2) != 0;
    bool is_list = false;
    for (size_t i = 0; i < length;) {
      const std::vector<int32_t>& words = functions_[static_cast<size_t>(draws.below(functions_.size()))];
      const int32_t word = words[static_cast<size_t>(draws.below(words.size()))];
      if (!graph_.takes(word, is_list) || (i + 1 == length && graph_.makes_list(word, is_list))) continue;
      rule.words[i++] = word;
      is_list = graph_.makes_list(word, is_list);
    }
    return rule;
  }

  size_t task(Draws& draws) { return static_cast<size_t>(draws.below(sources_.num_tasks)); }

  // Draw an input of a task, turned or mirrored; its colors but 0 are exchanged if there is a table of them.
  void scene(Draws& draws, size_t task, const Cell* colors, Picture& picture) {
    const int32_t first = sources_.members[task];
    const auto grid = first + draws.below(static_cast<size_t>(sources_.members[task + 1] - first));
    const int height = sources_.sizes[2 * grid], width = sources_.sizes[2 * grid + 1];
    const Cell* cells = sources_.cells + sources_.first[grid];
    const int turn = draws.below(8);
    const bool is_turned = turn >= 4;
    static_cast<Box&>(picture) = {0, 0, is_turned ? width : height, is_turned ? height : width};
    draw(picture, [&](int r, int c) {
      if (is_turned) std::swap(r, c);
      const int row = (turn & 1) != 0 ? height - 1 - r : r, column = (turn & 2) != 0 ? width - 1 - c : c;
      const Cell cell = cells[row * width + column];
      return colors == nullptr ? cell : colors[cell];
    });
  }

  // Draw four different inputs of one task, in the same colors; false if no task has them.
  bool draw_scenes(Draws& draws) {
    for (int turn = 0; turn < kTaskTries; turn++) {
      Cell colors[kColors] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
      for (size_t i = kColors - 1; i > 1; i--) std::swap(colors[i], colors[1 + draws.below(i)]);
      const size_t chosen = task(draws);
      size_t found = 0;
      for (int tried = 0; tried < kSceneTries && found < kRulePairs; tried++) {
        Picture& own = scenes_[found];
        scene(draws, chosen, colors, own);
        found += std::none_of(scenes_.begin(), scenes_.begin() + found, [&](const Picture& other) {
          return static_cast<const Box&>(other) == own && std::equal(own.cells, own.cells + own.size(), other.cells);
        });
      }
      if (found == kRulePairs) return true;
    }
    return false;
  }

  // Let the graph hold nothing but some grids, whose numbers are 0, 1, ... if they differ.
  template <typename Pictures>
  void put(const Pictures& pictures) {
    graph_.forget();
    numbers_.clear();
    for (const Picture& picture : pictures) numbers_.push_back(graph_.images().add(picture.image()));
  }

  const Image& image(int32_t number) const { return graph_.images()[number]; }

  // Write what a rule answers to a grid of the graph; return whether it is a grid of the canvas.
  bool answer(const Rule& rule, int32_t input, Answer& answer) {
    answer.height = answer.width = 0;
    const int32_t number = graph_.made(rule.words.data(), kMostWords, input);
    if (number == kNone) return false;
    const Image& made = image(number);
    const Box& size = rule.is_placed ? image(input) : made;
    if (size.height > canvas_ || size.width > canvas_) return false;
    answer.height = size.height;
    answer.width = size.width;
    draw_on(made, !rule.is_placed, size.height, size.width, answer.cells);
    return true;
  }

  // Whether all answers are grids of several colors that differ from their inputs and from one another.
  bool makes_task(const Rule& rule, std::array<Answer, kRulePairs>& answers) {
    for (size_t i = 0; i < kRulePairs; i++) {
      if (!answer(rule, numbers_[i], answers[i])) return false;
      const Answer& own = answers[i];
      const Cell* end = own.cells + own.height * own.width;
      if (std::all_of(own.cells, end, [&](Cell cell) { return cell == own.cells[0]; })) return false;
      const Picture& input = scenes_[i];
      const bool is_as_large = own.height == input.height && own.width == input.width;
      if (is_as_large && std::equal(own.cells, end, input.cells)) return false;
      if (std::find(answers.begin(), answers.begin() + i, own) != answers.begin() + i) return false;
    }
    return true;
  }

  // Whether a rule answers the scenes from one on with some answers.
  bool makes(const Rule& rule, const std::array<Answer, kRulePairs>& answers, size_t first) {
    Answer own;
    for (size_t i = first; i < kRulePairs; i++) {
      if (!answer(rule, numbers_[i], own) || !(own == answers[i])) return false;
    }
    return true;
  }

  // Whether the program makes the same answers without one of its words.
  bool has_idle_word(const Rule& rule, const std::array<Answer, kRulePairs>& answers) {
    for (size_t left_out = 0; left_out < kMostWords && rule.words[left_out] != kNone; left_out++) {
      Rule shorter = rule;
      std::copy(rule.words.begin() + left_out + 1, rule.words.end(), shorter.words.begin() + left_out);
      shorter.words.back() = kNone;
      if (makes_image(shorter) && makes(shorter, answers, 0)) return true;
    }
    return false;
  }

  // Whether each word takes what the one before it makes, and the last one makes an image.
  bool makes_image(const Rule& rule) const {
    bool is_list = false;
    for (int32_t word : rule.words) {
      if (word == kNone) break;
      if (!graph_.takes(word, is_list)) return false;
      is_list = graph_.makes_list(word, is_list);
    }
    return !is_list && rule.words[0] != kNone;
  }

  // Whether a single word makes the answers: of those that make the first one.
  bool is_one_word(const std::array<Answer, kRulePairs>& answers) {
    if (words_by_answer_.empty()) find_words_by_answer();
    const auto [first, last] = words_by_answer_.equal_range(answers[0].hash(0));
    return std::any_of(first, last, [&](const auto& found) { return makes(found.second, answers, 1); });
  }

  void find_words_by_answer() {
    Answer own;
    Rule rule;
    rule.words.fill(kNone);
    for (rule.words[0] = 0; rule.words[0] < graph_.num_words(); rule.words[0]++) {
      if (!makes_image(rule)) continue;
      for (bool is_placed : {false, true}) {
        rule.is_placed = is_placed;
        if (answer(rule, numbers_[0], own)) words_by_answer_.emplace(own.hash(0), rule);
      }
    }
  }

  // Find the hash of what a rule does on the probe grids; false where it answers too few of them.
  bool find_hash(Rule& rule) {
    put(probes_);
    int num_answers = 0;
    Answer own;
    for (int32_t probe : numbers_) {
      num_answers += answer(rule, probe, own);
      rule.hash = own.hash(rule.hash);
    }
    return num_answers >= kLeastAnswers;
  }

  Graph& graph_;
  Sources sources_;
  int canvas_;
  std::vector<std::vector<int32_t>> functions_;  // the words of each
  std::vector<Picture> probes_;
  std::array<Picture, kRulePairs> scenes_;
  std::vector<int32_t> numbers_;                          // of the grids that the graph holds
  std::unordered_multimap<uint64_t, Rule> words_by_answer_;  // of one word each, by the hash of the first answer
};

}  // namespace jaxarc::search
