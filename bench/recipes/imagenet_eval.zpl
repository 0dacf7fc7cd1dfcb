zpl 1

# ImageNet, evaluation: resized to 256 x 256, the middle 224 x 224, normalised.
pipeline written(root: path) {
  let classes = dirs(root)
  files("{root}/*/*.jpg")
  | image = bytes.decode_image(mode="rgb")
  | image = image.resize(256, 256)
  | image = image.center_crop(224, 224)
  | image = image.normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
  | image = image.to_chw()
  | label = classes.index_of(path.parent.name)
  | select image, label
  | batch(64, drop_remainder=true)
}

pipeline hand(root: path) {
  let classes = dirs(root)
  let middle = box(16, 16, 224, 224)
  files("{root}/*/*.jpg")
  | label = classes.index_of(path.parent.name)
  | shape = bytes.decode_image_shape()
  | source = shape.resize_source(middle, 256, 256)
  | image = bytes.decode_image_region(source)
                 .resize_region(middle, source, shape.height(), shape.width(), 256, 256)
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
                 .to_chw()
  | select image, label
  | batch(64, drop_remainder=true)
}

pipeline needed(root: path) {
  files("{root}/*/*.jpg")
  | box = bytes.decode_image_shape().resize_source(box(16, 16, 224, 224), 256, 256)
  | select path, box
}
