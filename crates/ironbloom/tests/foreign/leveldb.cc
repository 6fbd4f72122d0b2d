// Writes a LevelDB filter, and its answers. See README.md.
#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

static const int INSERTED = 1000, ASKED = 100000;
static std::string text(int i) {
  static const char* tails[] = {"", "é", "ab", "漢字", "x€"};
  return std::to_string(i) + tails[i % 5];
}

int main() {
  const leveldb::FilterPolicy* policy = leveldb::NewBloomFilterPolicy(8);
  std::vector<std::string> keys;
  std::vector<leveldb::Slice> slices;
  for (int i = 0; i < INSERTED; i++) keys.push_back(text(i));
  for (auto& key : keys) slices.emplace_back(key);
  std::string filter, answers((ASKED + 7) / 8, 0);
  policy->CreateFilter(slices.data(), INSERTED, &filter);
  int found = 0;
  for (int i = 0; i < ASKED; i++)
    if (policy->KeyMayMatch(text(i), filter)) answers[i / 8] |= 1 << (i % 8), found++;
  std::ofstream("leveldb.bin", std::ios::binary) << filter;
  std::ofstream("leveldb.answers", std::ios::binary) << answers;
  std::cout << "leveldb " << found << " of " << ASKED << " found, " << filter.size() << " bytes\n";
}
