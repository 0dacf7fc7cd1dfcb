zpl 1

# What needs pixels is asked first, what the path says last.
pipeline written(root: path) {
  let classes = dirs(root)
  files("{root}/*/*.jpg")
  | image = bytes.decode_image(mode="rgb")
  | label = classes.index_of(path.parent.name)
  | small = image.resize(96, 96)
  | filter f32(small).mean() > 60.0 and image.height() >= 300 and label % 4 == 1
  | image = small.to_chw()
  | select image, label
  | batch(64)
}

pipeline hand(root: path) {
  let classes = dirs(root)
  files("{root}/*/*.jpg")
  | label = classes.index_of(path.parent.name)
  | filter label % 4 == 1
  | image = bytes.decode_image(mode="rgb")
  | filter image.height() >= 300
  | small = image.resize(96, 96)
  | filter f32(small).mean() > 60.0
  | image = small.to_chw()
  | select image, label
  | batch(64)
}
