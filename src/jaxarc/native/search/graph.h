// The states of a search and the words that make them; graph.py calls them, and words.py says what words there are.
//
// A state is, for each input, a list of at most 16 images by number, or one image. What a word makes of an image is
// computed once and looked up afterwards: of 150 words on 60,000 states most images have been seen.
#pragma once

#include <chrono>
#include <map>

#include "lists.h"
#include "symmetry.h"

namespace jaxarc::search {

constexpr int32_t kUnknown = -2;
constexpr int64_t kChunk = 4096;           // states between two looks at how many there are
constexpr int64_t kPartCells = 2'000'000;  // of images between two looks at the clock

struct NamedKernel {
  std::string_view name;
  Kernel kernel;
};

constexpr NamedKernel kKernels[] = {
    {"keep_color", keep_color}, {"drop_color", drop_color}, {"paint", paint}, {"keep_commonest", keep_commonest},
    {"keep_rarest", keep_rarest}, {"drop_commonest", drop_commonest}, {"crop", crop},
    {"crop_to_color", crop_to_color}, {"peel", peel}, {"surround", surround}, {"box", fill_box}, {"invert", invert},
    {"fill_ground", fill_ground}, {"to_origin", to_origin}, {"to_center", to_center}, {"move", move},
    {"rigid", rigid}, {"shift", shift}, {"trail", trail}, {"pad_to", pad_to}, {"pad", pad}, {"half", half},
    {"upscale", upscale}, {"upscale_by_colors", upscale_by_colors}, {"tile", tile}, {"mirror_tile", mirror_tile},
    {"downscale", downscale}, {"drop_empty_lines", drop_empty_lines}, {"drop_repeated_lines", drop_repeated_lines},
    {"kronecker", kronecker}, {"colors_by_count", column_of_colors}, {"bars", bars},
    {"exchange_colors", exchange_colors}, {"smear", smear}, {"smear_dotted", smear_dotted}, {"connect", connect},
    {"corner", corner}, {"zigzag", zigzag}, {"fill_enclosed", fill_enclosed}, {"enclosed", enclosed},
    {"outline", outline}, {"interior", interior}, {"rim", rim}, {"frame", draw_frame},
    {"drop_single_cells", drop_single_cells}, {"keep_single_cells", keep_single_cells}, {"extend", extend},
    {"summary_of_parts", summary_of_parts}, {"attract", attract}, {"gravity", gravity},
    {"complete_symmetry", complete_symmetry}, {"complete_around", complete_around}, {"behind", behind},
    {"continue_pattern", continue_pattern}, {"continue_lines", continue_lines}, {"unit", unit},
};

// What a word acts on and what it makes.
enum class Kind { kImage, kSplit, kPick, kOdd, kOrder, kKeep, kItem, kStack, kJoin, kCompare };

constexpr std::pair<std::string_view, Kind> kListWords[] = {
    {"split", Kind::kSplit}, {"pick", Kind::kPick},   {"odd", Kind::kOdd},   {"order", Kind::kOrder},
    {"keep", Kind::kKeep},   {"item", Kind::kItem},   {"stack", Kind::kStack}, {"join", Kind::kJoin},
    {"compare", Kind::kCompare}};

struct Word {
  Kind kind = Kind::kImage;
  Kernel kernel = nullptr;  // of an image word
  Arguments arguments;
  size_t by = 0;               // the feature of a list word, in kFeatures
  bool is_most = false;        // whether it takes what has the highest value, or what is common or first
  bool is_not = false;         // whether it takes all others
  int cost = 0;
  bool keeps_alone = false;    // whether a list of one that it makes is an image
  std::vector<int32_t> known;  // image -> what the word makes of it; of a split the first of its parts in `parts`
  std::vector<int32_t> parts;  // kListLength numbers for each image that is split

  bool takes(bool is_list) const { return kind == Kind::kImage || is_list != (kind == Kind::kSplit); }

  bool makes_list(bool is_list) const {
    if (kind == Kind::kImage) return is_list;
    return kind == Kind::kSplit || kind == Kind::kOrder || kind == Kind::kKeep;
  }
};

// Numbers of the images of one input: those of a list, or one image and kNone.
using List = std::array<int32_t, kListLength>;

// What ends an expansion: no word is applied after one of these is reached.
struct Limits {
  int64_t max_states;
  int64_t max_bytes;
  double seconds;  // from now on
};

class Graph {
 public:
  Graph(int frame, int num_inputs) : frame_(frame), num_inputs_(num_inputs) {}

  ImageStore& images() { return store_; }
  const ImageStore& images() const { return store_; }
  int64_t num_states() const { return index_.size(); }

  // The memory that it takes.
  int64_t num_bytes() const {
    int64_t bytes = store_.num_bytes() + index_.num_bytes() + bytes_of(states_) + bytes_of(numbers_);
    for (const Word& word : words_) bytes += bytes_of(word.known) + bytes_of(word.parts);
    for (const std::vector<int64_t>& values : features_) bytes += bytes_of(values);
    for (const auto& [key, states] : levels_) bytes += bytes_of(states);
    return bytes + bytes_of(image_states_);
  }

  // Return the number of a word; kNone if there is none of this name.
  int declare(std::string_view name, const std::string& first, const std::string& second, int cost, bool keeps_alone) {
    Word word;
    word.cost = cost;
    word.keeps_alone = keeps_alone;
    word.arguments.frame = frame_;
    word.arguments.text = first;
    word.arguments.steps = rays_of(name == "attract" ? "cross" : name == "connect" && first == "cross" ? "rows" : first);
    if (name == "connect" && first == "cross") {
      for (const Step& step : rays_of("columns")) word.arguments.steps.push_back(step);
    }
    word.arguments.first = std::atoi(first.c_str());
    word.arguments.second = std::atoi(second.c_str());
    word.by = static_cast<size_t>(std::find(std::begin(kFeatures), std::end(kFeatures), second) - kFeatures);
    word.is_most = first == "most" || first == "not_most" || first == "common" || first == "first" || first == "rows";
    word.is_not = first.rfind("not_", 0) == 0;
    for (const NamedKernel& named : kKernels) {
      if (named.name == name) word.kernel = named.kernel;
    }
    for (const auto& [list_word, kind] : kListWords) {
      if (list_word == name) word.kind = kind;
    }
    if (word.kernel == nullptr && word.kind == Kind::kImage) return kNone;
    words_.push_back(std::move(word));
    return static_cast<int>(words_.size()) - 1;
  }

  int num_words() const { return static_cast<int>(words_.size()); }
  bool takes(int word, bool is_list) const { return words_[static_cast<size_t>(word)].takes(is_list); }
  bool makes_list(int word, bool is_list) const { return words_[static_cast<size_t>(word)].makes_list(is_list); }

  // What words make of an image one after the other, up to the first kNone; kNone where one has no answer.
  int32_t made(const int32_t* words, size_t most, int32_t number) {
    List list = one(number);
    for (size_t i = 0; i < most && words[i] != kNone && list[0] != kNone; i++) list = applied(words[i], list);
    return list[0];
  }

  // Forget all images, and what words make of them, but keep the memory; where there are no states.
  void forget() {
    store_.clear();
    for (Word& word : words_) {
      word.known.clear();
      word.parts.clear();
    }
    for (std::vector<int64_t>& values : features_) values.clear();
  }

  // Add the state of the inputs.
  void start(const int32_t* numbers) {
    std::vector<List> lists(static_cast<size_t>(num_inputs_));
    for (size_t input = 0; input < lists.size(); input++) lists[input] = one(numbers[input]);
    add(lists, false, kNone, kNone, 0);
  }

  // What a word with a kernel makes of an image.
  int32_t mapped(int word_number, int32_t number) {
    Word& word = words_[static_cast<size_t>(word_number)];
    int32_t& known = known_of(word.known, number, kUnknown);
    if (known == kUnknown) {
      const bool has_answer = word.kernel(store_[number], word.arguments, picture_);
      known = has_answer ? store_.add(picture_.image()) : kNone;
    }
    return known;
  }

  // Make all images of each next cost up to one; before those of a cost the lists of one less, which only they need. A
  // state of cost 1 with words of cost 2, then one of cost 2 with words of cost 1, make those of cost 3. Where the time
  // ends, the cost stays, and the next call goes on there; where there are too many states, it rises without them.
  void expand(int cost, const Limits& limits) {
    const auto begin = std::chrono::steady_clock::now();
    const int64_t part = std::max<int64_t>(kPartCells / (int64_t{num_inputs_} * frame_ * frame_), 1);
    for (is_late_ = false; cost_ < cost; cost_++, at_ = {}) {
      for (; at_.makes_images < 2 && !is_full_; at_.makes_images++, at_.source = 0) {
        const int target = cost_ + at_.makes_images;
        for (; at_.source < 2 * target && !is_full_; at_.source++, at_.word = 0) {
          const int source = at_.source / 2;
          const bool is_list = at_.source % 2 != 0;
          const int64_t count = static_cast<int64_t>(level(source, is_list).size());
          for (; at_.word < words_.size() && !is_full_; at_.word++, at_.first = 0) {
            const Word& word = words_[at_.word];
            if (source + word.cost != target || !word.takes(is_list)) continue;
            if (word.makes_list(is_list) == (at_.makes_images != 0)) continue;
            do {
              const bool begins_chunk = at_.first % kChunk == 0;
              is_full_ |= begins_chunk && (num_states() >= limits.max_states || num_bytes() >= limits.max_bytes);
              if (is_full_) break;
              const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
              is_late_ = spent.count() > limits.seconds;
              if (is_late_) return;
              const int64_t chunk_end = (at_.first / kChunk + 1) * kChunk;
              const int64_t last = std::min({at_.first + part, chunk_end, count});
              apply(static_cast<int>(at_.word), source, is_list, at_.first, last, target);
              num_applied_ += last - at_.first;
              at_.first = last;
            } while (at_.first < count);
          }
        }
      }
    }
  }

  int cost() const { return cost_; }               // up to which states are known
  int64_t num_applied() const { return num_applied_; }
  bool is_full() const { return is_full_; }        // whether there are as many states or bytes as there may be
  bool is_late() const { return is_late_; }        // whether the last expansion ran out of time

  // Call `visit(state, numbers, cost)` for each state that is one image for each input.
  template <typename Visit>
  void each_image_state(Visit visit) const {
    for (int32_t state : image_states_) {
      visit(state, &numbers_[states_[static_cast<size_t>(state)].first], states_[static_cast<size_t>(state)].cost);
    }
  }

  int64_t num_image_states() const { return static_cast<int64_t>(image_states_.size()); }
  int32_t parent(int32_t state) const { return states_[static_cast<size_t>(state)].parent; }
  int32_t word(int32_t state) const { return states_[static_cast<size_t>(state)].word; }

 private:
  struct State {
    size_t first;  // of its numbers
    int32_t parent;
    int32_t word;
    int16_t cost;
    bool is_list;
  };

  static List one(int32_t number) {
    List list;
    list.fill(kNone);
    list[0] = number;
    return list;
  }

  std::vector<int32_t>& level(int cost, bool is_list) { return levels_[{cost, is_list}]; }

  // Apply a word to some states of a level; keep those that have an answer for every input and are new.
  void apply(int word_number, int cost, bool is_list, int64_t first, int64_t last, int target_cost) {
    const bool makes_lists = words_[static_cast<size_t>(word_number)].makes_list(is_list);
    const bool keeps_alone = words_[static_cast<size_t>(word_number)].keeps_alone;
    const std::vector<int32_t>& sources = level(cost, is_list);
    std::vector<List> lists(static_cast<size_t>(num_inputs_));
    for (int64_t place = first; place < last; place++) {
      const int32_t state = sources[static_cast<size_t>(place)];
      bool is_valid = true;
      bool has_two = false;
      for (int input = 0; input < num_inputs_ && is_valid; input++) {
        List& list = lists[static_cast<size_t>(input)];
        list = applied(word_number, list_of(state, input));
        is_valid = list[0] != kNone;
        has_two |= list[1] != kNone;
      }
      if (!is_valid || (makes_lists && !has_two && !keeps_alone)) continue;
      add(lists, makes_lists && has_two, state, word_number, target_cost);
    }
  }

  List list_of(int32_t state, int input) const {
    const State& own = states_[static_cast<size_t>(state)];
    if (!own.is_list) return one(numbers_[own.first + static_cast<size_t>(input)]);
    List list;
    const size_t first = own.first + static_cast<size_t>(input) * kListLength;
    std::copy_n(numbers_.begin() + static_cast<int64_t>(first), kListLength, list.begin());
    return list;
  }

  // What is known of an image: only up to the last image that was asked for, as most images never are.
  template <typename Value>
  static Value& known_of(std::vector<Value>& values, int32_t number, Value unknown) {
    const size_t place = static_cast<size_t>(number);
    if (values.size() <= place) values.resize(std::max(place + 1, 2 * values.size()), unknown);
    return values[place];
  }

  void add(const std::vector<List>& lists, bool is_list, int32_t parent, int32_t word, int cost) {
    row_.clear();
    for (const List& list : lists) row_.insert(row_.end(), list.begin(), list.begin() + (is_list ? kListLength : 1));
    const auto [state, is_new] = index_.number(hash_of(row_.data(), row_.size() * sizeof(int32_t), is_list));
    if (!is_new) return;
    states_.push_back({numbers_.size(), parent, word, static_cast<int16_t>(cost), is_list});
    numbers_.insert(numbers_.end(), row_.begin(), row_.end());
    level(cost, is_list).push_back(state);
    if (!is_list) image_states_.push_back(state);
  }

  int64_t value(size_t by, int32_t number) {
    constexpr int64_t kNotKnown = INT64_MIN;
    int64_t& found = known_of(features_[by], number, kNotKnown);
    if (found == kNotKnown) found = feature(store_[number], kFeatures[by]);
    return found;
  }

  List applied(int word_number, const List& list) {
    Word& word = words_[static_cast<size_t>(word_number)];
    switch (word.kind) {
      case Kind::kImage: {
        List result = list;
        for (int32_t& number : result) {
          if (number != kNone) number = mapped(word_number, number);
        }
        return result;
      }
      case Kind::kSplit: return split_list(word, list[0]);
      case Kind::kItem: return one(list[static_cast<size_t>(word.arguments.first)]);
      case Kind::kPick:
      case Kind::kOdd:
      case Kind::kOrder:
      case Kind::kKeep: return chosen(word, list);
      default: return one(combined(word, list));
    }
  }

  List split_list(Word& word, int32_t number) {
    int32_t& known = known_of(word.known, number, kUnknown);
    if (known == kUnknown) {
      List parts;
      parts.fill(kNone);
      size_t count = 0;
      const Image image = store_[number];
      split(image, word.arguments.text, [&](Picture& part) {
        if (count < kListLength) parts[count++] = store_.add(part.image());
      });
      known = static_cast<int32_t>(word.parts.size());
      word.parts.insert(word.parts.end(), parts.begin(), parts.end());
    }
    List parts;
    std::copy_n(word.parts.begin() + known, kListLength, parts.begin());
    return parts;
  }

  // The images of a list with their values; without holes.
  struct Ranked {
    std::array<std::pair<int64_t, int32_t>, kListLength> images;
    size_t count = 0;

    const auto* begin() const { return images.data(); }
    const auto* end() const { return images.data() + count; }
  };

  // Choose images of a list by a feature.
  List chosen(const Word& word, const List& list) {
    Ranked known;
    for (int32_t number : list) {
      if (number != kNone) known.images[known.count++] = {value(word.by, number), number};
    }
    List result;
    result.fill(kNone);
    if (known.count == 0) return result;
    if (word.kind == Kind::kOdd) return one(odd(known, word.is_most));
    int64_t wanted = known.images[0].first;
    for (const auto& [value, number] : known) wanted = word.is_most ? std::max(wanted, value) : std::min(wanted, value);
    if (word.kind == Kind::kPick) {
      int32_t found = kNone;
      for (const auto& [value, number] : known) {
        if (value != wanted || number == found) continue;
        if (found != kNone) return result;
        found = number;
      }
      return one(found);
    }
    if (word.kind == Kind::kOrder) {
      std::stable_sort(known.images.begin(), known.images.begin() + static_cast<int64_t>(known.count),
                       [&](const auto& a, const auto& b) { return word.is_most ? a.first > b.first : a.first < b.first; });
    }
    size_t place = 0;
    for (const auto& [value, number] : known) {
      if (word.kind == Kind::kOrder || (value == wanted) != word.is_not) result[place++] = number;
    }
    return result;
  }

  // The image whose value no other has, or the first one with the commonest value.
  static int32_t odd(const Ranked& known, bool is_common) {
    int32_t found = kNone;
    int best = 1;
    for (const auto& [value, number] : known) {
      int same = 0;
      for (const auto& other : known) same += other.first == value;
      if (is_common) {
        if (same > best) found = number;
        best = std::max(best, same);
      } else if (same == 1) {
        if (found != kNone) return kNone;
        found = number;
      }
    }
    return found;
  }

  int32_t combined(const Word& word, const List& list) {
    std::vector<Image> images;
    for (int32_t number : list) {
      if (number != kNone) images.push_back(store_[number]);
    }
    bool has_answer = false;
    if (word.kind == Kind::kStack) has_answer = stack(images, word.is_most, frame_, picture_);
    if (word.kind == Kind::kJoin) has_answer = join(images, word.is_most, frame_, picture_);
    if (word.kind == Kind::kCompare && images.size() == 2 && list[1] != kNone) {
      has_answer = compare(images[0], images[1], word.arguments.text, picture_);
    }
    return has_answer ? store_.add(picture_.image()) : kNone;
  }

  int frame_;
  int num_inputs_;
  ImageStore store_;
  Picture picture_;
  std::vector<Word> words_;
  std::vector<int64_t> features_[std::size(kFeatures)];
  HashIndex index_;
  std::vector<State> states_;
  std::vector<int32_t> numbers_;  // of all states
  std::vector<int32_t> image_states_;
  std::map<std::pair<int, bool>, std::vector<int32_t>> levels_;
  std::vector<int32_t> row_;
  struct {
    int makes_images = 0;  // 0: the lists of one cost less, 1: the images of a cost
    int source = 0;        // twice the cost of the states, and 1 more for lists
    size_t word = 0;
    int64_t first = 0;  // of the states
  } at_;                // where an expansion goes on
  int cost_ = 0;
  int64_t num_applied_ = 0;
  bool is_full_ = false;
  bool is_late_ = false;
};

}  // namespace jaxarc::search
