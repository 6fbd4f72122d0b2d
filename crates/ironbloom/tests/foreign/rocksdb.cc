// Writes a RocksDB table with a Bloom filter, and the filter's answers. See README.md.
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <string>

using namespace rocksdb;
static const int INSERTED = 1000, ASKED = 100000;
// Long enough to take every path of the hash, up to more than 240 bytes.
static std::string text(int i) {
  static const char* tails[] = {"", "é", "ab", "漢字", "x€"};
  std::string key = std::to_string(i) + tails[i % 5];
  if (i % 7 == 6) key += std::string(i % 331, 'a' + i % 26);
  return key;
}

int main() {
  Options options;
  options.create_if_missing = true;
  BlockBasedTableOptions table;
  table.filter_policy.reset(NewBloomFilterPolicy(8));
  table.format_version = 5;
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  std::set<std::string> keys;
  for (int i = 0; i < INSERTED; i++) keys.insert(text(i));
  keys.insert(std::string(1, 0));  // all other keys are between these two, so the filter is asked for each
  keys.insert("\xff");
  SstFileWriter writer(EnvOptions(), options);
  if (!writer.Open("rocksdb.sst").ok()) return 1;
  for (auto& key : keys) writer.Put(key, "");
  if (!writer.Finish().ok()) return 1;
  DB* db;
  if (!DB::Open(options, "rocksdb.db", &db).ok()) return 1;
  IngestExternalFileOptions copy;
  if (!db->IngestExternalFile({"rocksdb.sst"}, copy).ok()) return 1;
  SetPerfLevel(PerfLevel::kEnableCount);
  std::string answers((ASKED + 7) / 8, 0), value;
  int found = 0;
  for (int i = 0; i < ASKED; i++) {
    get_perf_context()->Reset();
    db->Get(ReadOptions(), text(i), &value);
    auto* context = get_perf_context();
    if (context->bloom_sst_hit_count + context->bloom_sst_miss_count != 1) { std::cerr << i << " was not asked\n"; return 1; }
    if (context->bloom_sst_hit_count) answers[i / 8] |= 1 << (i % 8), found++;
  }
  std::ofstream("rocksdb.answers", std::ios::binary) << answers;
  std::cout << "rocksdb " << found << " of " << ASKED << " found\n";
  delete db;
}
