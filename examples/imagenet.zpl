zpl 1

# The usual training recipe for ImageNet, on the photographs beside this file. With a corpus of your own:
#   zephonc run examples/imagenet.zpl root=/data/imagenet/train
pipeline imagenet(root: path = "data/photos", size: int = 224, mode: enum(train, eval) = train)
    -> {image: f32[64, 3, size, size], label: i64[64]} {
  let classes = dirs(root)                  # the class folders, sorted by name
  files("{root}/*/*.jpg")                   # one sample per file: path, bytes
  | label = classes.index_of(path.parent.name)
  | if mode == train { shuffle() }          # the whole data set, in constant memory
  | image = bytes.decode_image(mode="rgb")  # u8[h, w, 3]
                 .random_resized_crop(size, size)
                 .random_flip()
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
                 .to_chw()                  # f32[3, size, size]
  | select image, label
  | batch(64, drop_remainder=true)
}
