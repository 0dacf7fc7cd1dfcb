zpl 1

# The ResNet pipeline of Pecan, without its rotation and shear: a random box of the decoded picture, resized, mirrored,
# normalised, and made half as large at the end, as f16.
pipeline written(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | image = f32(bytes.decode_image(mode="rgb"))
  | image = (image - [123.675, 116.28, 103.53]) / [58.395, 57.12, 57.375]
  | turn = coin()
  | image = image.flip(turn)
  | box = image.random_crop_box(224, 224)
  | image = image.crop(box)
  | image = image.to_chw()
  | image = f16(image)
  | label = dirs(root).index_of(path.parent.name)
  | label = label.one_hot(1000)
  | select image, label
  | batch(64, drop_remainder=true)
}

pipeline hand(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | turn = coin()
  | box = bytes.decode_image_shape().random_crop_box(224, 224)
  | image = bytes.decode_image_region(bytes.decode_image_shape().flip_box(box, turn)).flip(turn)
  | image = f16(((f32(image) - [123.675, 116.28, 103.53]) / [58.395, 57.12, 57.375]).to_chw())
  | label = dirs(root).index_of(path.parent.name).one_hot(1000)
  | select image, label
  | batch(64, drop_remainder=true)
}

pipeline needed(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | turn = coin()
  | box = bytes.decode_image_shape().random_crop_box(224, 224)
  | box = bytes.decode_image_shape().flip_box(box, turn)
  | select path, box
}
