zpl 1

# ImageNet, training, in the order of torchvision's reference script: a random box, resized, mirrored at random, in
# [0, 1], normalised.
pipeline written(root: path) {
  let classes = dirs(root)
  files("{root}/*/*.jpg")
  | shuffle()
  | image = bytes.decode_image(mode="rgb")
  | box = image.random_resized_crop_box()
  | image = image.crop(box).resize(224, 224)
  | turn = coin()
  | image = image.flip(turn)
  | image = image.normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
  | image = image.to_chw()
  | label = classes.index_of(path.parent.name)
  | select image, label
  | batch(64, drop_remainder=true)
}

pipeline hand(root: path) {
  let classes = dirs(root)
  files("{root}/*/*.jpg")
  | shuffle()
  | label = classes.index_of(path.parent.name)
  | box = bytes.decode_image_shape().random_resized_crop_box()
  | turn = coin()
  | image = bytes.decode_image_region(box)
                 .resize(224, 224)
                 .flip(turn)
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
                 .to_chw()
  | select image, label
  | batch(64, drop_remainder=true)
}

# The pixels that are needed.
pipeline needed(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | box = bytes.decode_image(mode="rgb").random_resized_crop_box()
  | select path, box
}
