zpl 1

# A thumbnail, statistics and a hash are made that nobody reads.
pipeline written(root: path) {
  let classes = dirs(root)
  files("{root}/*/*.jpg")
  | label = classes.index_of(path.parent.name)
  | image = bytes.decode_image(mode="rgb")
  | thumb = image.resize(64, 64)
  | bright = f32(image).mean()
  | digest = hash(bytes)
  | size = bytes.byte_length()
  | image = image.random_crop(224, 224).to_chw()
  | batch(64)
  | select image, label
}

pipeline hand(root: path) {
  let classes = dirs(root)
  files("{root}/*/*.jpg")
  | label = classes.index_of(path.parent.name)
  | image = bytes.decode_image(mode="rgb")
  | image = image.random_crop(224, 224).to_chw()
  | select image, label
  | batch(64)
}
