// Words of tf.data, PyTorch, WebDataset, DALI and Grain: each is ours too, or leads to ours.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

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
// The public names of their reference pages, one after the other: each is ours, or there is a hint that is no guess by
// spelling.
struct PublicNames {
  std::string_view system, names;
};
constexpr PublicNames kPublicNames[] = {
    {"tf.data.Dataset, tf.data, tf.data.experimental",
     "apply as_numpy_iterator batch bucket_by_sequence_length cache cardinality choose_from_datasets "
     "concatenate counter enumerate filter fingerprint flat_map from_generator from_tensor_slices from_tensors "
     "get_single_element group_by_window ignore_errors interleave list_files load map options padded_batch "
     "prefetch ragged_batch random range rebatch reduce rejection_resample repeat sample_from_datasets save "
     "scan shard shuffle skip snapshot sparse_batch take take_while unbatch unique window with_options zip "
     "AUTOTUNE Dataset DatasetSpec FixedLengthRecordDataset Iterator NumpyIterator Options TFRecordDataset "
     "TextLineDataset ThreadingOptions assert_cardinality AutoShardPolicy AutotuneOptions copy_to_device "
     "Counter CsvDataset dense_to_ragged_batch dense_to_sparse_batch DistributeOptions from_list from_variant "
     "get_next_as_optional get_structure group_by_reducer index_table_from_dataset "
     "make_batched_features_dataset make_csv_dataset map_and_batch OptimizationOptions pad_to_cardinality "
     "parallel_interleave parse_example_dataset prefetch_to_device RandomDataset Reducer shuffle_and_repeat "
     "SqlDataset table_from_dataset to_variant bytes_produced_stats latency_stats"},
    {"tf.image, tf.io",
     "adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_jpeg_quality adjust_saturation "
     "central_crop convert_image_dtype crop_and_resize crop_to_bounding_box decode_and_crop_jpeg decode_bmp "
     "decode_gif decode_image decode_jpeg decode_png draw_bounding_boxes encode_jpeg encode_png extract_glimpse "
     "extract_jpeg_shape extract_patches flip_left_right flip_up_down generate_bounding_box_proposals "
     "grayscale_to_rgb hsv_to_rgb image_gradients is_jpeg non_max_suppression non_max_suppression_padded "
     "pad_to_bounding_box per_image_standardization psnr random_brightness random_contrast random_crop "
     "random_flip_left_right random_flip_up_down random_hue random_jpeg_quality random_saturation resize "
     "resize_with_crop_or_pad resize_with_pad rgb_to_grayscale rgb_to_hsv rgb_to_yiq rgb_to_yuv rot90 "
     "sample_distorted_bounding_box sobel_edges ssim ssim_multiscale stateless_random_brightness "
     "stateless_random_contrast stateless_random_crop stateless_random_flip_left_right "
     "stateless_random_flip_up_down stateless_random_hue stateless_random_jpeg_quality "
     "stateless_random_saturation stateless_sample_distorted_bounding_box total_variation transpose yiq_to_rgb "
     "yuv_to_rgb decode_base64 decode_compressed decode_csv decode_json_example decode_proto decode_raw "
     "parse_example parse_single_example parse_tensor read_file write_jpeg write_png"},
    {"torch.utils.data, torchdata",
     "BatchSampler ChainDataset ConcatDataset DataLoader Dataset DistributedSampler IterableDataset "
     "RandomSampler Sampler SequentialSampler StackDataset Subset SubsetRandomSampler TensorDataset "
     "WeightedRandomSampler collate default_collate default_convert get_worker_info random_split worker_init_fn "
     "collate_fn pin_memory Batcher Collator Concater Demultiplexer FileLister FileOpener Filter Forker Grouper "
     "IterableWrapper Mapper Multiplexer RoutedDecoder ShardingFilter Shuffler StreamReader UnBatcher Zipper "
     "BucketBatcher Bz2FileLoader CSVParser Cycler DataFrameMaker Decompressor Dropper EndOnDiskCacheHolder "
     "Enumerator FlatMapper Flattener FSSpecFileLister FSSpecFileOpener FullSync GDriveReader HashChecker "
     "Header HttpReader HuggingFaceHubReader InBatchShuffler InMemoryCacheHolder IndexAdder IoPathFileLister "
     "IoPathFileOpener IterKeyZipper JsonParser LengthSetter LineReader MapKeyZipper MaxTokenBucketizer "
     "OnDiskCacheHolder OnlineReader ParagraphAggregator ParquetDataFrameLoader PinMemory Prefetcher "
     "RandomSplitter RarArchiveLoader Repeater RoundRobinDemultiplexer Rows2Columnar S3FileLister S3FileLoader "
     "SampleMultiplexer Saver ShuffledFlatMapper Slicer TarArchiveLoader UnZipper WebDataset XzFileLoader "
     "ZipArchiveLoader ZipperLongest MultiplexerLongest BaseNode Loader ParallelMapper MultiNodeWeightedSampler "
     "SamplerWrapper StatefulDataLoader Unbatcher sharding_filter in_batch_shuffle rows2columnar bucketbatch "
     "max_token_bucketize mux demux fork"},
    {"torchvision.transforms",
     "AugMix AutoAugment CenterCrop ClampBoundingBoxes ColorJitter Compose ConvertBoundingBoxFormat "
     "ConvertImageDtype CutMix ElasticTransform FiveCrop GaussianBlur GaussianNoise Grayscale Identity JPEG "
     "Lambda LinearTransformation MixUp Normalize PILToTensor Pad RGB RandAugment RandomAdjustSharpness "
     "RandomAffine RandomApply RandomAutocontrast RandomChannelPermutation RandomChoice RandomCrop "
     "RandomEqualize RandomErasing RandomGrayscale RandomHorizontalFlip RandomInvert RandomIoUCrop RandomOrder "
     "RandomPerspective RandomPhotometricDistort RandomPosterize RandomResize RandomResizedCrop RandomRotation "
     "RandomShortestSize RandomSolarize RandomVerticalFlip RandomZoomOut Resize SanitizeBoundingBoxes "
     "ScaleJitter TenCrop ToDtype ToImage ToPILImage ToPureTensor ToTensor TrivialAugmentWide "
     "UniformTemporalSubsample adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation "
     "adjust_sharpness affine autocontrast center_crop convert_image_dtype crop elastic_transform equalize "
     "erase five_crop gaussian_blur gaussian_noise get_dimensions get_image_size hflip horizontal_flip invert "
     "normalize pad perspective pil_to_tensor posterize resize resized_crop rgb_to_grayscale rotate solarize "
     "ten_crop to_dtype to_grayscale to_image to_pil_image to_tensor vertical_flip vflip read_image "
     "decode_image ImageFolder DatasetFolder VisionDataset FakeData"},
    {"WebDataset",
     "WebDataset WebLoader DataPipeline FluidInterface FakeLength MockDataset SimpleShardList ResampledShards "
     "MultiShardSample ShardWriter TarWriter RandomMix RoundRobin associate batched cached_tarfile_samples "
     "cached_tarfile_to_samples decode detshuffle dynamic_batched extract_keys group_by_keys "
     "ignore_and_continue ignore_and_stop info listed log_keys map map_dict map_tuple mcached pipe rename "
     "rename_keys repeatedly reraise_exception resampled rsample select shuffle shuffled slice slice_ "
     "split_by_node split_by_worker split_by_rank tar_file_expander tarfile_samples tarfile_to_samples to_dict "
     "to_tuple trace unbatched unlisted update_dict url_opener warn_and_continue warn_and_stop with_epoch "
     "with_length xdecode single_node_only shardspec nodesplitter"},
    {"nvidia.dali.fn",
     "arithm_generic_op audio_decoder audio_resample batch_permutation bb_flip bbox_paste bbox_rotate "
     "box_encoder brightness brightness_contrast caffe caffe2 cast cast_like cat coco coin_flip choice beta "
     "uniform normal color_space_conversion color_twist constant contrast coord_flip coord_transform copy crop "
     "crop_mirror_normalize debayer dl_tensor_python_function dump_image element_extract equalize erase "
     "expand_dims external_source fast_resize_crop_mirror file filter flip full full_like fits gaussian "
     "gaussian_blur get_property grid_mask hsv hue image image_crop image_random_crop image_slice imageslice "
     "inflate inputs jitter jpeg_compression_distortion laplacian lookup_table math mel_filter_bank median_blur "
     "mfcc multi_paste mxnet nemo_asr nonsilent_region normal_distribution normalize numba_function numpy "
     "one_hot ones ones_like optical_flow pad paste peek_image_shape per_batch permute_batch power_spectrum "
     "preemphasis_filter python_function random_bbox_crop random_crop_generator random_mask_pixel "
     "random_object_bbox random_resized_crop reductions reinterpret remap reshape resize resize_crop_mirror "
     "roi_random_crop rotate salt_and_pepper saturation select_masks sequence sequence_rearrange shapes shot "
     "slice spectrogram sphere squeeze ssd_random_crop stack tfrecord tensor_resize to_decibels "
     "torch_python_function transpose video video_resize warp_affine warp_perspective water webdataset zeros "
     "zeros_like combine rotation scale shear translation CoinFlip CropMirrorNormalize ExternalSource "
     "FileReader ImageDecoder ImageDecoderCrop ImageDecoderRandomCrop ImageDecoderSlice NumpyReader "
     "TFRecordReader Uniform DALIGenericIterator pipeline_def Pipeline LastBatchPolicy"},
    {"Grain",
     "ArrayRecordDataSource BagDataSource Batch BatchTransform ConcatenateMapDataset DataLoader DatasetIterator "
     "DatasetOptions Filter FilterTransform FlatMapTransform FirstFitPackIterDataset InMemoryDataSource "
     "IndexSampler InterleaveIterDataset IterDataset MapDataset MapTransform MapWithIndex MapWithIndexTransform "
     "MixedIterDataset MixedMapDataset MultiprocessingOptions NoSharding ParquetIterDataset PrefetchIterDataset "
     "RandomAccessDataSource RandomMap RandomMapTransform RangeDataSource ReadOptions RepeatMapDataset Sampler "
     "SelectionWithProbabilitiesMap SequentialSampler SharedMemoryDataSource ShardByJaxProcess ShardOptions "
     "ShuffleMapDataset SourceMapDataset TFRecordIterDataset TfRandomMapTransform WindowShuffleIterDataset "
     "WindowShuffleMapDataset ZipIterDataset ZipMapDataset batch batch_and_pad concatenate concatenate_datasets "
     "device_put filter flatmap limit map map_with_index mix mp_prefetch multiprocess_prefetch pack pick "
     "prefetch random_map repeat seed select_from_datasets shuffle slice source to_iter_dataset to_mp_iter "
     "window_shuffle zip zip_datasets get_state set_state"},
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

TEST(NearMiss, PublicNames) {
  int count = 0;
  for (const PublicNames& list : kPublicNames) {
    for (size_t begin = 0; begin < list.names.size();) {
      const size_t end = std::min(list.names.find(' ', begin), list.names.size());
      const std::string name(list.names.substr(begin, end - begin));
      begin = end + 1;
      ++count;
      if (is_ours(name)) continue;
      for (const std::string& text : {"range(3) | " + name + "()", "range(3) | x = " + name + "(index)"}) {
        const std::string e = said(text);
        EXPECT_NE(e.find("= hint: "), e.npos) << list.system << ": " << e;
        EXPECT_EQ(e.find("did you mean"), e.npos) << list.system << ": " << e;
      }
    }
  }
  EXPECT_GE(count, 650);
}

// No word stands in two entries: the last one would win.
TEST(NearMiss, EachWordOnce) {
  const std::string_view words[] = {
#define ZEPHON_NEAR_MISS(theirs, text) theirs,
#define ZEPHON_NEAR_ARGUMENT(theirs, ours)
#include "frontend/near_misses.def"
#undef ZEPHON_NEAR_MISS
#undef ZEPHON_NEAR_ARGUMENT
  };
  std::set<std::string_view> seen;
  for (std::string_view list : words)
    for (size_t begin = 0; begin < list.size();) {
      const size_t end = std::min(list.find(' ', begin), list.size());
      EXPECT_TRUE(seen.insert(list.substr(begin, end - begin)).second) << list.substr(begin, end - begin);
      begin = end + 1;
    }
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
