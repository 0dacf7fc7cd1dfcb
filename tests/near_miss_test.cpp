// Words of tf.data, PyTorch, WebDataset, DALI and Grain: each is ours too, or leads to ours.
#include <gtest/gtest.h>

#include "frontend/frontend.h"
#include "ops/all_ops.h"

namespace zephon {
namespace {

struct Word {
  std::string_view system, theirs, ours;  // `ours` stands in the hint, or is the same word
};
constexpr Word kWords[] = {
    {"tf.data", "map", "field = expression"},
    {"tf.data", "apply", "field = expression"},
    {"tf.data", "flat_map", "unbatch"},
    {"tf.data", "batch", "batch"},
    {"tf.data", "padded_batch", "padded_batch"},
    {"tf.data", "bucket_by_sequence_length", "bucket_by_length"},
    {"tf.data", "cache", "cache"},
    {"tf.data", "snapshot", "cache"},
    {"tf.data", "choose_from_datasets", "mix"},
    {"tf.data", "sample_from_datasets", "mix"},
    {"tf.data", "concatenate", "concatenate"},
    {"tf.data", "enumerate", "range"},
    {"tf.data", "from_generator", "files"},
    {"tf.data", "from_tensors", "range"},
    {"tf.data", "from_tensor_slices", "npy"},
    {"tf.data", "ignore_errors", "on_error"},
    {"tf.data", "list_files", "files"},
    {"tf.data", "map_and_batch", "batch"},
    {"tf.data", "prefetch", "prefetch"},
    {"tf.data", "prefetch_to_device", "prefetch"},
    {"tf.data", "range", "range"},
    {"tf.data", "rebatch", "unbatch"},
    {"tf.data", "ragged_batch", "padded_batch"},
    {"tf.data", "dense_to_ragged_batch", "padded_batch"},
    {"tf.data", "rejection_resample", "mix"},
    {"tf.data", "repeat", "repeat"},
    {"tf.data", "shard", "shard"},
    {"tf.data", "shuffle", "shuffle"},
    {"tf.data", "shuffle_and_repeat", "shuffle"},
    {"tf.data", "skip", "skip"},
    {"tf.data", "take", "take"},
    {"tf.data", "unbatch", "unbatch"},
    {"tf.data", "TextLineDataset", "text_lines"},
    {"tf.data", "CsvDataset", "csv"},
    {"tf.data", "make_csv_dataset", "csv"},
    {"tf.data", "FixedLengthRecordDataset", "raw"},
    {"tf.data", "decode_csv", "csv"},
    {"tf.data", "decode_jpeg", "decode_image"},
    {"tf.data", "decode_png", "decode_image"},
    {"tf.data", "decode_image", "decode_image"},
    {"tf.data", "decode_raw", "decode_raw"},
    {"tf.data", "read_file", "read_file"},
    {"tf.data", "random_flip_left_right", "random_flip"},
    {"tf.data", "flip_left_right", "flip"},
    {"tf.data", "random_crop", "random_crop"},
    {"tf.data", "central_crop", "center_crop"},
    {"tf.data", "per_image_standardization", "normalize"},
    {"tf.data", "convert_image_dtype", "to_unit"},
    {"tf.data", "resize_images", "resize"},
    {"tf.data", "resize", "resize"},
    {"tf.data", "one_hot", "one_hot"},
    {"tf.data", "cast", "f32(x)"},
    {"tf.data", "expand_dims", "reshape"},
    {"tf.data", "squeeze", "reshape"},
    {"PyTorch", "DataLoader", "batch"},
    {"PyTorch", "Dataset", "files"},
    {"PyTorch", "IterableDataset", "files"},
    {"PyTorch", "TensorDataset", "npz"},
    {"PyTorch", "ConcatDataset", "concatenate"},
    {"PyTorch", "ChainDataset", "concatenate"},
    {"PyTorch", "Subset", "filter"},
    {"PyTorch", "random_split", "split"},
    {"PyTorch", "RandomSampler", "shuffle"},
    {"PyTorch", "SubsetRandomSampler", "shuffle"},
    {"PyTorch", "SequentialSampler", "shuffle"},
    {"PyTorch", "WeightedRandomSampler", "mix"},
    {"PyTorch", "DistributedSampler", "shard"},
    {"PyTorch", "BatchSampler", "batch"},
    {"PyTorch", "default_collate", "batch"},
    {"PyTorch", "collate", "batch"},
    {"PyTorch", "Mapper", "field = expression"},
    {"PyTorch", "Batcher", "batch"},
    {"PyTorch", "UnBatcher", "unbatch"},
    {"PyTorch", "Collator", "batch"},
    {"PyTorch", "Shuffler", "shuffle"},
    {"PyTorch", "Filter", "filter"},
    {"PyTorch", "FileLister", "files"},
    {"PyTorch", "FileOpener", "files"},
    {"PyTorch", "Concater", "concatenate"},
    {"PyTorch", "Multiplexer", "mix"},
    {"PyTorch", "SampleMultiplexer", "mix"},
    {"PyTorch", "ShardingFilter", "shard"},
    {"PyTorch", "sharding_filter", "shard"},
    {"PyTorch", "CSVParser", "csv"},
    {"PyTorch", "JsonParser", "jsonl"},
    {"PyTorch", "LineReader", "text_lines"},
    {"PyTorch", "Cycler", "repeat"},
    {"PyTorch", "cycle", "repeat"},
    {"PyTorch", "Header", "take"},
    {"PyTorch", "bucketbatch", "bucket_by_length"},
    {"PyTorch", "max_token_bucketize", "bucket_by_length"},
    {"PyTorch", "Compose", "chain"},
    {"PyTorch", "ToTensor", "to_chw"},
    {"PyTorch", "PILToTensor", "to_chw"},
    {"PyTorch", "pil_to_tensor", "to_chw"},
    {"PyTorch", "to_tensor", "to_chw"},
    {"PyTorch", "Normalize", "normalize"},
    {"PyTorch", "normalize", "normalize"},
    {"PyTorch", "Resize", "resize"},
    {"PyTorch", "CenterCrop", "center_crop"},
    {"PyTorch", "RandomCrop", "random_crop"},
    {"PyTorch", "RandomResizedCrop", "random_resized_crop"},
    {"PyTorch", "RandomHorizontalFlip", "random_flip"},
    {"PyTorch", "hflip", "flip"},
    {"PyTorch", "horizontal_flip", "flip"},
    {"PyTorch", "RandomApply", "where"},
    {"PyTorch", "RandomChoice", "where"},
    {"PyTorch", "Lambda", "fn"},
    {"PyTorch", "ConvertImageDtype", "to_unit"},
    {"PyTorch", "ToDtype", "f32(x)"},
    {"PyTorch", "ImageFolder", "files"},
    {"PyTorch", "DatasetFolder", "files"},
    {"PyTorch", "read_image", "decode_image"},
    {"PyTorch", "pad_sequence", "padded_batch"},
    {"PyTorch", "permute", "transpose"},
    {"PyTorch", "view", "reshape"},
    {"PyTorch", "clamp", "clamp"},
    {"WebDataset", "decode", "decode_image"},
    {"WebDataset", "to_tuple", "select"},
    {"WebDataset", "to_dict", "field = expression"},
    {"WebDataset", "rename", "drop"},
    {"WebDataset", "rename_keys", "drop"},
    {"WebDataset", "extract_keys", "select"},
    {"WebDataset", "map_dict", "field = expression"},
    {"WebDataset", "map_tuple", "field = expression"},
    {"WebDataset", "batched", "batch"},
    {"WebDataset", "unbatched", "unbatch"},
    {"WebDataset", "unlisted", "unbatch"},
    {"WebDataset", "shuffled", "shuffle"},
    {"WebDataset", "detshuffle", "shuffle"},
    {"WebDataset", "with_epoch", "--epochs"},
    {"WebDataset", "with_length", "take"},
    {"WebDataset", "repeatedly", "repeat"},
    {"WebDataset", "split_by_node", "shard"},
    {"WebDataset", "split_by_worker", "--rank"},
    {"WebDataset", "resampled", "repeat"},
    {"WebDataset", "rsample", "filter"},
    {"WebDataset", "RandomMix", "mix"},
    {"WebDataset", "RoundRobin", "mix"},
    {"WebDataset", "WebLoader", "batch"},
    {"WebDataset", "associate", "lookup"},
    {"WebDataset", "warn_and_continue", "on_error"},
    {"WebDataset", "ignore_and_continue", "on_error"},
    {"WebDataset", "reraise_exception", "on_error"},
    {"WebDataset", "log_keys", "show"},
    {"WebDataset", "slice_", "skip"},
    {"DALI", "crop_mirror_normalize", "normalize"},
    {"DALI", "CropMirrorNormalize", "normalize"},
    {"DALI", "resize_crop_mirror", "random_flip"},
    {"DALI", "random_resized_crop", "random_resized_crop"},
    {"DALI", "image_decoder", "decode_image"},
    {"DALI", "ImageDecoder", "decode_image"},
    {"DALI", "image_random_crop", "random_resized_crop"},
    {"DALI", "image_crop", "center_crop"},
    {"DALI", "peek_image_shape", "height"},
    {"DALI", "FileReader", "files"},
    {"DALI", "file_reader", "files"},
    {"DALI", "external_source", "files"},
    {"DALI", "python_function", "fn"},
    {"DALI", "coin_flip", "coin"},
    {"DALI", "CoinFlip", "coin"},
    {"DALI", "uniform", "uniform"},
    {"DALI", "Uniform", "uniform"},
    {"DALI", "normal", "normal"},
    {"DALI", "cast_like", "f32(x)"},
    {"DALI", "one_hot", "one_hot"},
    {"DALI", "transpose", "transpose"},
    {"DALI", "stack", "stack"},
    {"DALI", "cat", "concat"},
    {"DALI", "reinterpret", "decode_raw"},
    {"DALI", "get_property", "path"},
    {"DALI", "lookup_table", "[...][index]"},
    {"DALI", "batch_permutation", "shuffle"},
    {"DALI", "pad", "padded_batch"},
    {"DALI", "brightness", "clamp"},
    {"DALI", "brightness_contrast", "clamp"},
    {"Grain", "MapDataset", "files"},
    {"Grain", "IterDataset", "files"},
    {"Grain", "RangeDataSource", "range"},
    {"Grain", "random_map", "field = expression"},
    {"Grain", "map_with_index", "field = expression"},
    {"Grain", "RandomMapTransform", "field = expression"},
    {"Grain", "MapTransform", "field = expression"},
    {"Grain", "FilterTransform", "filter"},
    {"Grain", "FlatMapTransform", "unbatch"},
    {"Grain", "Batch", "batch"},
    {"Grain", "batch_and_pad", "padded_batch"},
    {"Grain", "to_iter_dataset", "leave it out"},
    {"Grain", "mp_prefetch", "parallelism"},
    {"Grain", "device_put", "leave it out"},
    {"Grain", "IndexSampler", "shuffle"},
    {"Grain", "ShardOptions", "shard"},
    {"Grain", "ShardByJaxProcess", "shard"},
    {"Grain", "NoSharding", "shard"},
    {"Grain", "window_shuffle", "shuffle"},
    {"Grain", "WindowShuffleIterDataset", "shuffle"},
    {"Grain", "limit", "take"},
    {"Grain", "pick", "take"},
};
// In a call, with `{}` for the name of the argument.
struct ArgumentWord {
  std::string_view system, theirs, ours, call;
};
constexpr ArgumentWord kArguments[] = {
    {"tf.data", "drop_last", "drop_remainder", "batch(2, {}=true)"},
    {"PyTorch", "drop_last", "drop_remainder", "batch(2, {}=true)"},
    {"WebDataset", "partial", "drop_remainder", "batch(2, {}=true)"},
    {"tf.data", "num_parallel_calls", "parallelism", "batch(2, {}=2)"},
    {"PyTorch", "num_workers", "parallelism", "batch(2, {}=2)"},
    {"DALI", "num_threads", "parallelism", "batch(2, {}=2)"},
    {"PyTorch", "prefetch_factor", "buffer", "batch(2, {}=2)"},
    {"WebDataset", "bufsize", "buffer_size", "shuffle({}=2)"},
    {"WebDataset", "batchsize", "batch_size", "batch({}=2)"},
    {"DALI", "max_batch_size", "batch_size", "batch({}=2)"},
    {"tf.data", "row_length", "batch_size", "batch({}=2)"},
    {"Grain", "window_size", "buffer_size", "shuffle({}=2)"},
    {"DALI", "initial_fill", "buffer_size", "shuffle({}=2)"},
    {"tf.data", "padded_shapes", "length", "padded_batch(2, {}=3)"},
    {"tf.data", "padding_values", "padding", "padded_batch(2, {}=3)"},
    {"PyTorch", "padding_value", "padding", "padded_batch(2, {}=3)"},
    {"Grain", "drop_remainder", "drop_remainder", "batch(2, {}=true)"},
    {"Grain", "worker_count", "parallelism", "batch(2, {}=2)"},
    {"Grain", "worker_buffer_size", "buffer", "batch(2, {}=2)"},
    {"DALI", "num_shards", "num_shards", "shard({}=2, index=0)"},
    {"DALI", "shard_id", "index", "shard(num_shards=2, {}=0)"},
    {"Grain", "shard_index", "index", "shard(num_shards=2, {}=0)"},
    {"Grain", "shard_count", "num_shards", "shard({}=2, index=0)"},
    {"PyTorch", "num_replicas", "num_shards", "shard({}=2, index=0)"},
    {"PyTorch", "rank", "index", "shard(num_shards=2, {}=0)"},
    {"tf.data", "reshuffle_each_iteration", "reshuffle_each_epoch", "shuffle({}=true)"},
};

// What is said about a program of one line.
std::string said(const std::string& text) {
  SourceMap sources;
  Diagnostics diags;
  (void)compile(sources, sources.add("t.zpl", text), {}, all_ops(), diags);
  return render(diags, sources);
}

bool is_ours(std::string_view name) {
  for (const OpDef* op : all_ops().all())
    if (name == (op->surface.empty() ? op->name : op->surface)) return true;
  return name == "filter" || name == "select" || name == "drop";
}

TEST(NearMiss, Words) {
  int count = 0;
  for (const Word& word : kWords) {
    SCOPED_TRACE(std::string(word.system) + ": " + std::string(word.theirs));
    ++count;
    if (is_ours(word.theirs)) continue;
    // As a step, as a source and as an operator of a value: the hint is there each time.
    const std::string name(word.theirs);
    for (const std::string& text :
         {"range(3) | " + name + "()", name + "() | take(3)", "range(3) | x = " + name + "(index)"}) {
      std::string e = said(text);
      size_t hint = e.find("= hint: ");
      EXPECT_NE(hint, e.npos) << e;
      EXPECT_NE(e.find(word.ours, hint == e.npos ? 0 : hint), e.npos) << e;
    }
  }
  EXPECT_GE(count, 170);
}

TEST(NearMiss, Arguments) {
  for (const ArgumentWord& word : kArguments) {
    if (word.theirs == word.ours) continue;
    std::string call(word.call);
    call.replace(call.find("{}"), 2, word.theirs);
    std::string e = said("range(3) | " + call);
    EXPECT_NE(e.find("here it is called `" + std::string(word.ours) + "`"), e.npos) << word.system << "\n" << e;
  }
}

// What a hint tells to write exists.
TEST(NearMiss, HintsNameWhatThereIs) {
  const std::string_view hints[] = {
#define ZEPHON_NEAR_MISS(theirs, text) text,
#define ZEPHON_NEAR_ARGUMENT(theirs, ours)
#include "frontend/near_misses.def"
#undef ZEPHON_NEAR_MISS
#undef ZEPHON_NEAR_ARGUMENT
  };
  for (std::string_view hint : hints) {
    bool code = false;
    for (size_t i = 0; i < hint.size(); ++i) {
      if (hint[i] == '`') code = !code;
      if (!code || hint[i] != '(' || i == 0) continue;
      size_t begin = i;
      while (begin > 0 && (std::isalnum(static_cast<unsigned char>(hint[begin - 1])) != 0 || hint[begin - 1] == '_'))
        --begin;
      std::string name(hint.substr(begin, i - begin));
      if (name.empty() || name == "f" || elem_from_name(name)) continue;
      EXPECT_TRUE(is_ours(name)) << name << " in: " << hint;
    }
  }
}

}  // namespace
}  // namespace zephon
